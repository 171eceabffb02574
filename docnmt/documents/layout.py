"""Cutting a text where it may be cut, so that the parts are as wide as wanted."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

_NOT_FIRST = frozenset(",.;:!?…%)]}»”’，。、；：！？）】》」』ー々")
_NOT_LAST = frozenset("([{«“‘（【《「『")
# How far from the wanted place a cut may be, as a share of a part's width, to come after a mark.
_PULL = {mark: pull for marks, pull in ((".!?…。！？", 0.3), (",;:，；：、", 0.15)) for mark in marks}


def width(character: str) -> int:
    """Columns on a screen; Chinese takes two."""
    return 2 if character > "\u10ff" and unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    return sum(map(width, text))


def cut(text: str, shares: Sequence[int]) -> list[str]:
    """As many parts as there are shares, in proportion to them, cut between words; together they are the text.

    Where there are fewer words than shares the last parts are empty.
    """
    ends = [0, *accumulate(map(width, text))]
    places = [at for at in range(1, len(text)) if _may_cut(text, at)]
    total = sum(shares) or 1
    mean = ends[-1] / len(shares)
    cuts = [0]
    reached, first = 0, 0
    for number, share in enumerate(shares[:-1], 1):
        reached += share
        wanted = ends[-1] * reached / total
        last = len(places) - (len(shares) - 1 - number)  # leaves a place for each cut to come
        if first >= len(places):
            cuts.append(len(text))
            continue
        candidates = places[first : max(last, first + 1)]
        near = bisect_left(candidates, wanted, key=lambda at: ends[at])
        window = candidates[max(0, near - 40) : near + 40]
        best = min(window, key=lambda at: abs(ends[at] - wanted) - mean * _pull(text, at))
        cuts.append(best)
        first = bisect_left(places, best) + 1
    return [text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _may_cut(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if after == " " or after in _NOT_FIRST:
        return False
    if before == " ":
        return at < 2 or text[at - 2] not in _NOT_LAST
    return before not in _NOT_LAST and (width(before) == 2 or width(after) == 2)


def _pull(text: str, at: int) -> float:
    return _PULL.get(text[at - 2 if at > 1 and text[at - 1] == " " else at - 1], 0.0)
