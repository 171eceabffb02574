"""Which characters make up words, in any script."""

from __future__ import annotations

import re
import unicodedata

# Thai, Lao, Burmese, Khmer, Kana, Han: no spaces part words there.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def in_word(character: str) -> bool:
    """A letter, a digit, or what is written above or below one."""
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def unspaced(character: str) -> bool:
    """Whether the character's script has no spaces between words."""
    return _UNSPACED.match(character) is not None


def in_spaced_word(character: str) -> bool:
    """A letter or digit of a script that has spaces between words; not so the empty string."""
    return character.isalnum() and not unspaced(character)
