"""Languages, their scripts and words: which characters make up words, where words have no spaces between them, how wide
they are; pieces joined into words; punctuation normalised. No other module has code points."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

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
# Marks above, below and beside letters: not letters to `re`, but part of the word. Indic scripts completely.
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
LETTER = re.compile(r"[^\W\d_]")  # of any script
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_UNSPACED = re.compile(f"[{UNSPACED}]")


def primary(code: str) -> str:
    """The language of a code without its region or script: zh for zh-Hant_TW."""
    return code.replace("_", "-").partition("-")[0].lower()


def script_of(language: str) -> re.Pattern[str]:
    """A pattern that matches the letters a language is written in."""
    found = (letters for languages, letters in _SCRIPTS.items() if primary(language) in languages.split())
    return next((re.compile(f"[{letters}]") for letters in found), _LATIN)


def in_word(character: str) -> bool:
    """Whether it is a letter, a digit, or a mark above or below one."""
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def unspaced(character: str) -> bool:
    """Whether the character's script puts no spaces between words."""
    return _UNSPACED.match(character) is not None


def in_spaced_word(character: str) -> bool:
    """Whether it is a letter or digit of a script with spaces between words; false for the empty string."""
    return character.isalnum() and not unspaced(character)


def width(character: str) -> int:
    """Columns on a screen; Chinese takes two."""
    return 2 if character > "\u10ff" and unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    return sum(map(width, text))


def letters(text: str) -> str:
    """What stays the same in a sentence however it is tokenised, escaped and encoded."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", html.unescape(text)).casefold()))


# ---- Words from subword pieces, for people to read ----

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Word(NamedTuple):
    """Pieces `begin` to `end` as text; `spaced` if a space comes before it."""

    text: str
    begin: int
    end: int
    spaced: bool


def words(pieces: Sequence[str]) -> list[Word]:
    """The words of a sentence given as SentencePiece pieces: every piece is in one word, punctuation is separate from
    the word it touches, and bytes are read as the characters they spell."""
    return [word for run in _runs(_characters(pieces)) for word in _without_punctuation(run)]


def _characters(pieces: Sequence[str]) -> Iterator[Word]:
    """Each piece by itself; bytes are collected until they make a character."""
    begin, spelt = 0, b""
    for number, piece in enumerate(pieces):
        byte = _BYTE.fullmatch(piece)
        spelt = spelt + bytes.fromhex(byte[1]) if byte else spelt
        if byte and _is_open(spelt) and number + 1 < len(pieces) and _BYTE.fullmatch(pieces[number + 1]):
            continue
        text = spelt.decode("utf-8", "replace") if byte else piece.replace(SPACE, " ").strip()
        yield Word(text, begin, number + 1, piece.startswith(SPACE))
        begin, spelt = number + 1, b""


def _is_open(spelt: bytes) -> bool:
    """Whether more bytes could make a character of these."""
    try:
        spelt.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def _runs(parts: Iterator[Word]) -> Iterator[list[Word]]:
    """Parts up to the next space; in a script without spaces, each part by itself."""
    run: list[Word] = []
    for part in parts:
        apart = bool(run and any(p.text for p in run) and _UNSPACED.search(run[-1].text + part.text))
        if run and (part.spaced or apart):
            yield run
            run = []
        run.append(part)
    if run:
        yield run


def _without_punctuation(run: list[Word]) -> Iterator[Word]:
    """A run in up to three words: marks before, the word itself with marks inside it, marks after."""

    def is_mark(part: Word) -> bool:
        return not any(character.isalnum() for character in part.text)

    before = len(list(takewhile(is_mark, run)))
    if before == len(run) or not any(part.text for part in run[:before]):  # nothing but marks, or nothing but the space
        before = 0
    after = len(list(takewhile(is_mark, reversed(run[before:]))))
    if after == len(run) - before:
        after = 0
    for group in (run[:before], run[before : len(run) - after], run[len(run) - after :]):
        if group:
            yield Word("".join(part.text for part in group), group[0].begin, group[-1].end, group[0].spaced)


# ---- punctuation as OPUS-MT normalises it ----

# Its models were trained on such text only. As in its scripts, typographic and full-width marks become ASCII, whatever
# is not printable becomes a space, and runs of spaces become one. The scripts turn a full-width 1 into a quotation
# mark, a bug that would lose a digit: here it becomes 1.
_BECOMES = dict(zip("，、”“∶：？《》）！（；」「～’━〈〉【】％", ',,""::?"")!(;""~\'-<>[]%', strict=True))
_BECOMES |= {chr(0xFF10 + digit): str(digit) for digit in range(10)} | {"…": "..."}
_STOPS = "。．"  # a full stop and one space, whatever spaces follow


def normalise(text: str) -> tuple[str, list[int]]:
    """The normalised text, and the position in the given text of each of its characters and of its end."""
    written: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for new in _become(character):
            if new == " " and (not written or written[-1] == " "):
                continue
            written.append(new)
            places.append(place)
    if written and written[-1] == " ":
        written.pop()
        places.pop()
    return "".join(written), [*places, len(text)]


def _become(character: str) -> str:
    if character in _STOPS:
        return ". "
    if unicodedata.category(character).startswith("C"):
        return " "
    return _BECOMES.get(character, character)
