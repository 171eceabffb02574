"""Codes of languages."""

from __future__ import annotations

import pytest

from docnmt.text.languages import primary


@pytest.mark.parametrize(
    ("code", "language"), [("fr", "fr"), ("fr-CA", "fr"), ("zh_Hant-TW", "zh"), ("PT_br", "pt"), ("", ""), ("x-y", "x")]
)
def test_the_language_of_a_code(code: str, language: str) -> None:
    assert primary(code) == language
