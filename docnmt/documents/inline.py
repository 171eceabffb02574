"""Tags and other marks inside a plain string: made pairs, and put back well nested wherever they now stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from docnmt.documents.segment import Mark

_NAME = re.compile(r"</?([A-Za-z0-9][\w:-]*)")


def paired(marks: Iterable[Mark], first: int = 1) -> tuple[Mark, ...]:
    """Marks whose codes are tags, with `<b>` and the `</b>` that closes it made a pair; the others stand alone.

    Pairs are numbered from `first` on.
    """
    found = list(marks)
    waiting: list[tuple[str, int]] = []  # name and position of the tags that are open
    number = first
    for position, mark in enumerate(found):
        name = _NAME.match(mark.code)
        if name is None or mark.code.endswith("/>"):
            continue
        if not mark.code.startswith("</"):
            waiting.append((name[1], position))
        elif (at := _last(waiting, name[1])) is not None:
            opening = waiting[at][1]
            del waiting[at:]  # what was opened inside and not closed stands alone
            found[opening] = replace(found[opening], pair=number)
            found[position] = replace(mark, pair=number, closing=True)
            number += 1
    return tuple(found)


def _last(waiting: list[tuple[str, int]], name: str) -> int | None:
    # A closing tag far from any partner would make this slow in a string of nothing but opening tags.
    nearest = range(len(waiting) - 1, max(-1, len(waiting) - 100), -1)
    return next((at for at in nearest if waiting[at][0] == name), None)


def nested(marks: Sequence[Mark]) -> list[Mark]:
    """The same marks, in the order in which to write them: every pair opens before it closes and none cross.

    Where two pairs cross, the inner one is closed early.
    """
    ordered = sorted(marks, key=lambda mark: mark.at)  # those at one place keep their order
    both: dict[int, list[Mark]] = {}
    for mark in ordered:
        if mark.pair:
            both.setdefault(mark.pair, []).append(mark)
    result: list[Mark] = []
    open_pairs: list[int] = []
    closed: set[int] = set()
    for mark in ordered:
        pair = both.get(mark.pair, [])
        if len(pair) != 2:
            result.append(mark)
        elif mark is pair[0]:
            opening = pair[1] if pair[0].closing else pair[0]
            result.append(replace(opening, at=mark.at))
            open_pairs.append(mark.pair)
        elif mark.pair not in closed:
            while True:
                number = open_pairs.pop()
                closed.add(number)
                first, second = both[number]
                result.append(replace(first if first.closing else second, at=mark.at))
                if number == mark.pair:
                    break
    return result


def with_marks(text: str, marks: Sequence[Mark], spelt: Callable[[str], str]) -> str:
    """The text as `spelt` writes it, with every mark's code at its place."""
    pieces: list[str] = []
    start = 0
    for mark in nested(marks):
        at = min(max(mark.at, start), len(text))
        pieces += spelt(text[start:at]), mark.code
        start = at
    pieces.append(spelt(text[start:]))
    return "".join(pieces)
