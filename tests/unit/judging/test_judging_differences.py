"""Marks of what differs between two translations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.judging.app import differences


def marked(one: str, other: str) -> tuple[list[str], list[str]]:
    left, right = ([text for text, differs in parts if differs] for parts in differences(one, other))
    return left, right


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("He took it away.", "He took her away.", (["it"], ["her"])),
        ("The lawyer came.", "lawyer came.", (["The"], [])),
        ("It sleeps", "It sleeps.", ([], ["."])),
        ("a b c d", "a x y d", (["b c"], ["x y"])),
        ("", "Something.", ([], ["Something."])),
        ("他走了。", "她走了。", (["他"], ["她"])),
        ("वह गया", "वे गया", (["वह"], ["वे"])),
        ("un homme , ici", "un homme, ici", ([","], [","])),  # a space is a difference, too
        ("The same.", "The  same.", ([], [])),
    ],
)
def test_words_that_the_other_lacks_are_marked(one, other, expected):
    assert marked(one, other) == expected


TEXT = st.text(st.sampled_from("ab é.,'  他क्\u0301_"), max_size=30)


@given(TEXT, TEXT)
def test_no_letter_is_lost_and_what_is_left_is_common(one, other):
    left, right = differences(one, other)
    for text, parts in ((one, left), (other, right)):
        assert "".join(part for part, _ in parts) == text.strip()
        assert all(before[1] != after[1] for before, after in itertools.pairwise(parts))
    common = [" ".join("".join(part for part, differs in parts if not differs).split()) for parts in (left, right)]
    assert common[0].replace(" ", "") == common[1].replace(" ", "")


@given(TEXT)
def test_nothing_differs_from_itself(text):
    assert marked(text, text) == ([], [])
