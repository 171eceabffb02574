"""Where two translations of a sentence differ, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

Part = tuple[str, bool]  # some text, and whether the other translation lacks it

# Thai, Lao, Burmese, Khmer, Kana, Han: no spaces part words there, so each character stands for itself.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Signs above, below and beside letters, which are no letters to `re` but part of the word; Indic scripts whole.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_TOKEN = re.compile(rf"(\s*)([{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_]|[{_SIGNS}])+|\S)")


@lru_cache(maxsize=10_000)
def differences(one: str, other: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts whole, in parts."""
    tokens = [_TOKEN.findall(text.strip()) for text in (one, other)]
    # A word counts as another if a space before it is gone, but at the beginning there is none to miss.
    keys = [[(bool(space) or not k, word) for k, (space, word) in enumerate(side)] for side in tokens]
    apart = [[True] * len(side) for side in tokens]
    for block in SequenceMatcher(None, keys[0], keys[1]).get_matching_blocks():
        for side, begin in zip(apart, (block.a, block.b), strict=True):
            side[begin : begin + block.size] = [False] * block.size
    left, right = (_parts(side, marks) for side, marks in zip(tokens, apart, strict=True))
    return left, right


def _parts(tokens: list[tuple[str, str]], apart: list[bool]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for number, (space, word) in enumerate(tokens):
        between = apart[number] and number > 0 and apart[number - 1]
        for text, differs in ((space, between), (word, apart[number])):
            if parts and parts[-1][1] == differs:
                parts[-1] = parts[-1][0] + text, differs
            elif text:
                parts.append((text, differs))
    return tuple(parts)
