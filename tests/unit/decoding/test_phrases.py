"""Phrases in a text, against a search through all ways to find them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.decoding.phrases import Form, Matcher, Phrase, forms_of, missing


def of(text: str, source: str = "x") -> Phrase:
    return Phrase(text, source, (0, len(source)))


def matcher_of(*phrases: str) -> Matcher:
    return Matcher([forms_of(of(phrase)) for phrase in phrases])


def complete(phrases, text: str) -> bool:
    matcher = matcher_of(*phrases)
    return matcher.complete(matcher.read(matcher.start, text))


def occurrences(phrase: str, text: str) -> list[tuple[int, int]]:
    """Where the phrase stands as whole words; only letters make words here."""
    found = []
    for begin in range(len(text) - len(phrase) + 1):
        end = begin + len(phrase)
        if text[begin:end] == phrase:
            cut_before = begin > 0 and text[begin - 1].isalpha() and phrase[0].isalpha()
            cut_after = end < len(text) and text[end].isalpha() and phrase[-1].isalpha()
            if not cut_before and not cut_after:
                found.append((begin, end))
    return found


def most_side_by_side(phrases: tuple[str, ...], text: str, taken=()) -> int:
    """How many of the phrases a text holds at most, none over another."""
    if not phrases:
        return 0
    best = most_side_by_side(phrases[1:], text, taken)
    for begin, end in occurrences(phrases[0], text):
        if all(end <= other_begin or other_end <= begin for other_begin, other_end in taken):
            best = max(best, 1 + most_side_by_side(phrases[1:], text, (*taken, (begin, end))))
    return best


PHRASES = st.lists(st.text("ab .", min_size=1, max_size=4).filter(str.strip), max_size=3).map(tuple)


@given(phrases=PHRASES, text=st.text("ab .", max_size=12))
@settings(max_examples=400, deadline=None)
def test_all_that_can_be_found_is_found_and_no_more(phrases, text):
    most = most_side_by_side(phrases, text)
    assert complete(phrases, text) == (most == len(phrases))
    assert len(missing(list(map(of, phrases)), text)) == len(phrases) - most


@given(phrases=PHRASES, text=st.text("ab .", max_size=12), cut=st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_reading_in_pieces_is_reading_at_once(phrases, text, cut):
    matcher = matcher_of(*phrases)
    assert matcher.read(matcher.read(matcher.start, text[:cut]), text[cut:]) == matcher.read(matcher.start, text)


@pytest.mark.parametrize(
    ("phrases", "text", "expected"),
    [
        (["New York", "New York Times"], "the New York Times of New York", True),
        (["New York", "New York Times"], "in New York, the New York Times", True),
        (["New York", "New York Times"], "the New York Times", False),
        (["cat"], "two cats", False),
        (["cat"], "a tomcat", False),
        (["cat"], "(cat)", True),
        (["cat"], "the cat's", True),
        (["cat", "cat"], "cat cat", True),
        (["cat", "cat"], "a cat", False),
        (["C++"], "in C++11", True),  # it ends in a mark: what follows is no matter
        (["猫"], "我喜欢猫的", True),
        (["API"], "用API的", True),
        (["का"], "काम", False),
        ([], "", True),
    ],
)
def test_whole_words(phrases, text, expected):
    assert complete(phrases, text) == expected


def test_a_capital_only_before_all_other_words():
    phrase = of("red button")
    matcher = Matcher([forms_of(phrase)])

    def met(text: str) -> bool:
        return matcher.complete(matcher.read(matcher.start, text))

    assert met("Red button here") and met(" « Red button") and met("A red button")
    assert not met("A Red button") and not met("RED button")
    # Sentences are told apart before a text is checked, or parts of them are put together: there any will do.
    assert not missing([phrase], "First. Red button") and missing([phrase], "RED BUTTON") == [phrase]
    assert forms_of(of("Über")) == (Form("Über", False),)


def test_what_is_missing_is_told_in_order():
    first, second, third = of("cat", "chat"), of("dog"), of("cat", "chatte")
    assert missing([first, second, third], "one cat") == [second, third]
    assert missing([first, third], "cat, cat") == []
    assert missing([], "") == []


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_phrase(text):
    with pytest.raises(DocnmtError, match="phrase is empty"):
        of(text)
