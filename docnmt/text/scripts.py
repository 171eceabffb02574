"""Languages and their scripts: which characters make up words, where words have no spaces between them, how wide they
are. No other module has code points."""

from __future__ import annotations

import re
import unicodedata

UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my", "yue", "wuu"})  # no spaces between sentences

# Ranges, for use inside the brackets of a pattern.
CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Kana, Han and its signs 々〆〇
_BOPOMOFO = "\u3100-\u312f\u31a0-\u31bf"
# Thai, Lao, Burmese, Khmer, Bopomofo, Kana, Han: no spaces between words. Korean has spaces.
UNSPACED = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_BOPOMOFO}{CJK}"
CJK_PUNCTUATION = "\u3000-\u3004\u3008-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
# Everything written in squares, with radicals, Hangul and half-width Kana.
EAST_ASIAN = (
    "\u1100-\u11ff\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Signs above, below and beside letters: not letters for `re`, but part of the word. Indic scripts completely.
SIGNS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"

# The scripts of languages; the default is Latin.
_SCRIPTS = {
    "be bg kk ky mk mn ru sr tg tt uk": "\u0400-\u052f",  # Cyrillic
    "ar fa ps ug ur": "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc",  # Arabic
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he yi": "\u0590-\u05ff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "ja": "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "hi mr ne": "\u0900-\u097f",  # Devanagari
    "as bn": "\u0980-\u09ff",
    "pa": "\u0a00-\u0a7f",
    "gu": "\u0a80-\u0aff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cff",
    "ml": "\u0d00-\u0d7f",
    "si": "\u0d80-\u0dff",
    "th": "\u0e00-\u0e7f",
    "ka": "\u10a0-\u10ff",
    "hy": "\u0530-\u058f",
    "km": "\u1780-\u17ff",
}
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_UNSPACED = re.compile(f"[{UNSPACED}]")


def primary(code: str) -> str:
    """The language of a code, whatever region or script it adds: zh of zh-Hant_TW."""
    return code.replace("_", "-").partition("-")[0].lower()


def script_of(language: str) -> re.Pattern[str]:
    """A pattern of the letters that a language is written in."""
    found = (letters for languages, letters in _SCRIPTS.items() if primary(language) in languages.split())
    return next((re.compile(f"[{letters}]") for letters in found), _LATIN)


def in_word(character: str) -> bool:
    """A letter, a digit, or what is written above or below one."""
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def unspaced(character: str) -> bool:
    """Whether the character's script has no spaces between words."""
    return _UNSPACED.match(character) is not None


def in_spaced_word(character: str) -> bool:
    """A letter or digit of a script that has spaces between words; false for the empty string."""
    return character.isalnum() and not unspaced(character)


def width(character: str) -> int:
    """Columns on a screen; Chinese takes two."""
    return 2 if character > "\u10ff" and unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    return sum(map(width, text))
