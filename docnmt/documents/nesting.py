"""Pairs of marks: found among tags, and written well nested wherever a translation has put them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from docnmt.documents.segment import Mark

_TAG_NAME = re.compile(r"</?([A-Za-z0-9][\w:-]*)")
_FURTHEST = 100  # tags to look back for a partner: else a string of nothing but opening tags would take long


def paired(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks whose codes are tags, with `<b>` and the `</b>` that closes it made a pair; the others stand alone."""
    found = list(marks)
    waiting: list[tuple[str, int]] = []  # name and position of the tags that are open
    pairs = 0
    for position, mark in enumerate(found):
        name = _TAG_NAME.match(mark.code)
        if name is None or mark.code.endswith("/>"):
            continue
        if not mark.code.startswith("</"):
            waiting.append((name[1], position))
            continue
        nearest = range(len(waiting) - 1, max(-1, len(waiting) - _FURTHEST), -1)
        at = next((at for at in nearest if waiting[at][0] == name[1]), None)
        if at is not None:
            opening = waiting[at][1]
            del waiting[at:]  # what was opened inside and not closed stands alone
            pairs += 1
            found[opening] = replace(found[opening], pair=pairs)
            found[position] = replace(mark, pair=pairs, closing=True)
    return tuple(found)


def with_marks(text: str, marks: Iterable[Mark], spelt: Callable[[str], str]) -> str:
    """The text as `spelt` writes it, with every mark's code at its place."""
    parts: list[str] = []
    start = 0
    for mark in nested(marks):
        at = min(max(mark.at, start), len(text))
        parts += spelt(text[start:at]), mark.code
        start = at
    return "".join([*parts, spelt(text[start:])])


def nested(
    marks: Iterable[Mark],
    loose: Iterable[int] = (),
    is_link: Callable[[Mark], bool] = lambda mark: False,
) -> list[Mark]:
    """The order in which to write marks: every pair opens before it closes and, but for the loose ones, none cross.

    Where two pairs cross the inner one is closed early; a link that would stand inside another one ends that one early.
    """
    ordered = _touching(_loosened(sorted(marks, key=lambda mark: mark.at), set(loose)))
    both: dict[int, list[Mark]] = {}
    for mark in ordered:
        both.setdefault(mark.pair, []).append(mark)
    result: list[Mark] = []
    opened: list[int] = []
    closed: set[int] = set()
    link = 0  # the open pair that is a link
    waiting: list[Mark] = []  # links that stand alone, for after the open one

    def close(until: int, at: int) -> None:
        nonlocal link
        while until not in closed:
            number = opened.pop()
            closed.add(number)
            result.append(replace(next(mark for mark in both[number] if mark.closing), at=at))
            if number == link:
                result.extend(replace(mark, at=at) for mark in waiting)
                link = 0
                waiting.clear()

    for mark in ordered:
        alone = not mark.pair or len(both[mark.pair]) != 2
        if not alone and mark is both[mark.pair][1]:
            close(mark.pair, mark.at)
            continue
        if not alone and mark.closing:
            mark = replace(both[mark.pair][1], at=mark.at)
        if link and is_link(mark):
            if alone:
                waiting.append(mark)
                continue
            close(link, mark.at)
        if not alone:
            opened.append(mark.pair)
            link = mark.pair if is_link(mark) else link
        result.append(mark)
    return result


def _loosened(marks: Sequence[Mark], loose: set[int]) -> list[Mark]:
    """Loose pairs as single marks, the opening one first."""
    halves = {(mark.pair, mark.closing): mark for mark in marks}
    begun: set[int] = set()
    result: list[Mark] = []
    for mark in marks:
        if mark.pair in loose:
            half = halves[mark.pair, mark.pair in begun]
            begun.add(mark.pair)
            mark = replace(half, at=mark.at, pair=0)
        result.append(mark)
    return result


def _touching(marks: list[Mark]) -> list[Mark]:
    """A pair that ends where another one begins ends first: the two touch, they do not overlap."""
    places: dict[int, list[int]] = {}
    for mark in marks:
        places.setdefault(mark.pair, []).append(mark.at)
    arranged: list[Mark] = []
    for at, here in groupby(marks, key=lambda mark: mark.at):
        group = list(here)
        beginning = next((i for i, mark in enumerate(group) if mark.pair and places[mark.pair][-1] > at), len(group))
        arranged += group[:beginning]
        arranged += sorted(group[beginning:], key=lambda mark: not (mark.pair and places[mark.pair][0] < at))
    return arranged
