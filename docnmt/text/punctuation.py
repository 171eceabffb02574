"""Punctuation as OPUS-MT normalised it before training its models: theirs have seen no other.

What the scripts of OPUS-MT do: typographic and full-width marks become ASCII, all that is no character to be printed
becomes a space, and runs of spaces one. The scripts turn a full-width 1 into a quotation mark, a slip of theirs that
would cost a digit: here it becomes 1.
"""

from __future__ import annotations

import unicodedata

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
