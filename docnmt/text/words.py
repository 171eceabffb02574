"""What models see of a sentence, and back: punctuation normalised as OPUS-MT does, pieces put together into words for
people to read; and what a sentence is made of, however it is cut."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from docnmt.text.scripts import UNSPACED

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_UNSPACED = re.compile(f"[{UNSPACED}]")  # without spaces between words a piece has to do


def letters(text: str) -> str:
    """What is the same in a sentence however it is tokenised, escaped and encoded."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", html.unescape(text)).casefold()))


class Word(NamedTuple):
    """Pieces `begin` to `end` as text; `spaced` if a space comes before it."""

    text: str
    begin: int
    end: int
    spaced: bool


def words(pieces: Sequence[str]) -> list[Word]:
    """The words of a sentence given as SentencePiece pieces: every piece in one word, marks of punctuation apart from
    the word they touch, bytes read as the characters they spell."""
    return [word for run in _runs(_characters(pieces)) for word in _without_punctuation(run)]


def _characters(pieces: Sequence[str]) -> Iterator[Word]:
    """Each piece by itself, bytes gathered until they make a character."""
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
    """Parts up to the next space; in a script without spaces, each part."""
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
    if before == len(run) or not any(part.text for part in run[:before]):  # nothing but marks; or but the space
        before = 0
    after = len(list(takewhile(is_mark, reversed(run[before:]))))
    if after == len(run) - before:
        after = 0
    for group in (run[:before], run[before : len(run) - after], run[len(run) - after :]):
        if group:
            yield Word("".join(part.text for part in group), group[0].begin, group[-1].end, group[0].spaced)


# ---- punctuation as OPUS-MT normalises it ----

# Its models were trained on nothing else. As its scripts do, typographic and full-width marks become ASCII, whatever
# is no printable character becomes a space, and runs of spaces one. The scripts turn a full-width 1 into a quotation
# mark, a slip that would cost a digit: here it becomes 1.
_BECOMES = dict(zip("，、”“∶：？《》）！（；」「～’━〈〉【】％", ',,""::?"")!(;""~\'-<>[]%', strict=True))
_BECOMES |= {chr(0xFF10 + digit): str(digit) for digit in range(10)} | {"…": "..."}
_STOPS = "。．"  # a full stop and one space, whatever spaces follow


def normalise(text: str) -> tuple[str, list[int]]:
    """The text normalised, and for each of its characters, and its end, the place in the given text."""
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
