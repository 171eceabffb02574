"""Codes of languages."""

from __future__ import annotations

# Written without spaces between sentences.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "yue", "wuu"})


def primary(code: str) -> str:
    """The language of a code, whatever region or script it adds: zh of zh-Hant_TW."""
    return code.replace("_", "-").partition("-")[0].lower()
