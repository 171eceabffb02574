"""How much a server takes on, and from whom."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from docnmt.base.errors import DocnmtError

KEYS = "DOCNMT_API_KEYS"


@dataclass(frozen=True)
class Settings:
    characters: int = 50_000  # of a text
    strings: int = 1_000  # in a list
    file_bytes: int = 10 << 20
    seconds: float = 60  # for a request
    alternatives: int = 10
    keys: frozenset[str] = field(default=frozenset(), repr=False)  # none: everybody may ask

    @property
    def text_bytes(self) -> int:
        """Of a request with a text: JSON may spell a character in 12."""
        return 12 * self.characters + 64 * 1024


def read_keys(path: str) -> frozenset[str]:
    """API keys, one a line, from a file; or, separated by spaces, from the environment."""
    if not path:
        return frozenset(os.environ.get(KEYS, "").split())
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DocnmtError(f"{path}: cannot be read ({error})\n  Give a text file with a key a line.") from None
    keys = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not keys:
        raise DocnmtError(f"{path}: has no keys\n  Write one a line, or leave --keys out to let everybody in.")
    return keys
