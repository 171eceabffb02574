"""Marks inside a string: none is lost, all are well nested, wherever they are moved to."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from docnmt.documents.nesting import nested, paired, with_marks
from docnmt.documents.segment import Mark


def test_tags_find_their_partners() -> None:
    codes = ["<b>", "<i>", "</i>", "<br/>", "</b>", "</u>", "<i>"]
    marks = paired(Mark(n, code) for n, code in enumerate(codes))
    assert [(mark.pair, mark.closing) for mark in marks] == [
        (2, False),
        (1, False),
        (1, True),
        (0, False),
        (2, True),
        (0, False),
        (0, False),
    ]


@st.composite
def moved_marks(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    """Pairs and single marks at any places, in any order, closing ones before opening ones, too."""
    text = draw(st.text("ab ", max_size=12))
    place = st.integers(0, len(text))
    pairs = draw(st.integers(0, 5))
    marks = [Mark(draw(place), f"<{n}>", n) for n in range(1, pairs + 1)]
    marks += [Mark(draw(place), f"</{n}>", n, closing=True) for n in range(1, pairs + 1)]
    marks += [Mark(draw(place), f"<x{n}/>") for n in range(draw(st.integers(0, 3)))]
    return text, draw(st.permutations(marks))


@given(moved_marks())
def test_marks_are_nested_and_never_lost(case: tuple[str, list[Mark]]) -> None:
    text, marks = case
    written = with_marks(text, marks, str.upper)
    codes = re.findall("<[^>]*>", written)
    assert sorted(codes) == sorted(mark.code for mark in marks)
    assert re.sub("<[^>]*>", "", written) == text.upper()
    open_tags: list[str] = []
    for code in codes:
        if code.startswith("</"):
            assert open_tags.pop() == code[2:-1]
        elif not code.endswith("/>"):
            open_tags.append(code[1:-1])
    assert not open_tags


@given(moved_marks())
def test_marks_stay_in_the_order_of_their_places(case: tuple[str, list[Mark]]) -> None:
    places = [mark.at for mark in nested(case[1])]
    assert places == sorted(places)
