"""The filters for a sentence pair. Each says True of a pair that is to go, and looks at nothing but that pair."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from docnmt.corpora.cleaning.measures import has_numerals, letters, numbers, script_of, similar_size, size, words_in

Filter = Callable[[str, str], bool]

# In the order in which they are asked: a pair is counted under the first one that it fails.
EXPLAINED = {
    "garbage": "control or private characters, signs of a broken encoding, or too few letters",
    "markup": "tags or entities of HTML left in the text",
    "length": "more words on one side than allowed",
    "ratio": "one side many times as long as the other",
    "script": "not written in the letters of its language",
    "copy": "the target is the source once more, or nearly",
    "numbers": "numbers on one side that the other does not have",
    "repeated pair": "the same pair stood before (a short one more often than allowed)",
    "repeated document": "all of the document stood before",
}

_BROKEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffd-\uffff\ue000-\uf8ff]|Ã[\x80-\xbf]|â€|\\\\[nt](?=[A-Z ])"
)
_MARKUP = re.compile(
    r"</?(?:a|b|i|u|p|br|hr|div|span|em|strong|font|table|t[rdh]|[uo]l|li|h[1-6]|img|code|pre|tt|su[bp]|center|big|small)"
    r"(?:\s[^<>]*)?/?>|&(?:amp|lt|gt|quot|apos|nbsp|#\d+|#x[0-9a-f]+);",
    re.IGNORECASE,
)
_FEWEST_LETTERS = 0.5
_SMALL = 12  # numbers up to here are often written as words
_SHARED = 0.75  # of the words on both sides: a copy with a word or two changed
_FOREIGN = 4  # words in other letters that any text may have: names


@dataclass(frozen=True)
class Limits:
    words: int = 200  # a side
    ratio: float = 4.0
    repeats: int = 5  # of a pair with fewer than four words; longer ones may stand in a corpus once


def pair_filters(languages: tuple[str, str], limits: Limits) -> dict[str, Filter]:
    """All of them by name. Scripts are checked where the languages are known."""
    found: dict[str, Filter] = {
        "garbage": _garbage,
        "markup": _markup,
        "length": lambda source, target: max(size(source), size(target)) > limits.words,
        "ratio": lambda source, target: not similar_size(source, target, limits.ratio),
        "copy": _copy,
        "numbers": _numbers_disagree,
    }
    if all(languages):
        found["script"] = partial(_wrong_script, tuple(map(script_of, languages)))
    return {name: found[name] for name in EXPLAINED if name in found}


def _garbage(source: str, target: str) -> bool:
    return any(_BROKEN.search(text) or letters(text) < _FEWEST_LETTERS for text in (source, target))


def _markup(source: str, target: str) -> bool:
    return any(_MARKUP.search(text) for text in (source, target))


def _wrong_script(scripts: tuple[re.Pattern[str], ...], source: str, target: str) -> bool:
    for text, script in zip((source, target), scripts, strict=True):
        inside, outside = words_in(text, script)
        if not inside or (outside > _FOREIGN and outside > inside):
            return True
    return False


def _copy(source: str, target: str) -> bool:
    left, right = source.casefold().split(), target.casefold().split()
    if left == right:
        return True
    shared = (Counter(left) & Counter(right)).total()
    return len(left) >= 4 and shared >= _SHARED * max(len(left), len(right))


def _numbers_disagree(source: str, target: str) -> bool:
    """A small number, or one that may be written in Chinese characters, may be missing on one side."""
    left, right = numbers(source), numbers(target)
    only_left, only_right = left - right, right - left
    if only_left and only_right:
        return True
    return any(len(n) > 2 or int(n) > _SMALL for n in (only_left or only_right)) and not (
        has_numerals(source) or has_numerals(target)
    )
