"""Which sentences are a sentence's context, and what is kept of them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.document import (
    NO_CONTEXT,
    ContextSpec,
    ParallelDocument,
    context_positions,
    context_sentences,
    trim_to_budget,
)

counts = st.integers(0, 6)
specs = st.builds(ContextSpec, counts, counts)


@st.composite
def places(draw):
    """A position in a document."""
    length = draw(st.integers(1, 15))
    return draw(st.integers(0, length - 1)), length


# ---- context_positions ----


@given(places(), specs)
def test_a_context_never_leaves_the_document_nor_holds_the_sentence_itself(place, spec):
    position, length = place
    found = context_positions(position, length, spec)
    assert all(0 <= i < length for i in found)
    assert position not in found


@given(places(), specs)
def test_a_context_is_in_reading_order_and_without_gaps(place, spec):
    position, length = place
    with_sentence = sorted([*context_positions(position, length, spec), position])
    assert list(context_positions(position, length, spec)) == [i for i in with_sentence if i != position]
    assert with_sentence == list(range(with_sentence[0], with_sentence[-1] + 1))


@given(places(), specs)
def test_a_context_has_as_many_sentences_as_there_are(place, spec):
    position, length = place
    found = context_positions(position, length, spec)
    assert sum(i < position for i in found) == min(spec.previous, position)
    assert sum(i > position for i in found) == min(spec.following, length - 1 - position)


@given(places(), specs)
def test_following_mirrors_previous(place, spec):
    # The document read backwards, with the two numbers exchanged, gives the same neighbours.
    position, length = place
    backwards = context_positions(length - 1 - position, length, ContextSpec(spec.following, spec.previous))
    assert [length - 1 - i for i in reversed(backwards)] == list(context_positions(position, length, spec))


def test_the_papers_context_is_the_two_sentences_before():
    spec = ContextSpec()
    assert [tuple(context_positions(i, 4, spec)) for i in range(4)] == [(), (0,), (0, 1), (1, 2)]


def test_context_sentences_gives_the_text():
    assert context_sentences("abcdef", 2, ContextSpec(1, 2)) == ("b", "d", "e")
    assert context_sentences("abcdef", 0, ContextSpec(2, 0)) == ()


# ---- ContextSpec ----


@given(counts, counts)
def test_parse_reads_both_numbers_in_any_order(previous, following):
    spec = ContextSpec(previous, following)
    assert ContextSpec.parse(f"previous={previous},following={following}") == spec
    assert ContextSpec.parse(f"following={following}, previous={previous}") == spec
    # What is not named is none, not the default.
    assert ContextSpec.parse(f"previous={previous}") == ContextSpec(previous, 0)
    assert ContextSpec.parse(f"following={following}") == ContextSpec(0, following)


def test_parse_none():
    assert ContextSpec.parse("none") == NO_CONTEXT == ContextSpec(0, 0)


@pytest.mark.parametrize(
    "text",
    ["", "2", "previous", "previous=", "previous=-1", "previous=two", "before=2", "previous=2;following=1", "off"],
)
def test_parse_refuses_anything_else_and_names_it(text):
    with pytest.raises(DocnmtError) as caught:
        ContextSpec.parse(text)
    assert repr(text) in str(caught.value) and "previous=N" in str(caught.value)


@given(st.lists(st.sampled_from(["previous", "following", "none", "=", ",", " ", "-", "2", "²", "٣"])).map("".join))
def test_parse_has_no_other_way_to_fail(text):
    with contextlib.suppress(DocnmtError):
        ContextSpec.parse(text)


@pytest.mark.parametrize("numbers", [(-1, 0), (0, -1)])
def test_a_negative_number_of_sentences_is_refused(numbers):
    with pytest.raises(DocnmtError):
        ContextSpec(*numbers)


# ---- trim_to_budget ----

sizes = st.integers(0, 60)


@given(sizes, sizes, sizes)
def test_trimming_keeps_as_much_as_fits(before, after, budget):
    keep_before, keep_after = trim_to_budget(before, after, budget)
    assert 0 <= keep_before <= before and 0 <= keep_after <= after
    assert keep_before + keep_after == min(before + after, budget)


@given(sizes, sizes, sizes)
def test_trimming_is_fair(before, after, budget):
    # A side loses something only if it already has its half, whatever the other side has.
    keep_before, keep_after = trim_to_budget(before, after, budget)
    assert keep_before == before or keep_before >= budget // 2
    assert keep_after == after or keep_after >= budget // 2


@given(sizes, sizes, sizes)
def test_trimming_mirrors_but_for_the_odd_token(before, after, budget):
    keep_before, keep_after = trim_to_budget(before, after, budget)
    mirrored_after, mirrored_before = trim_to_budget(after, before, budget)
    assert abs(keep_before - mirrored_before) <= budget % 2
    assert abs(keep_after - mirrored_after) <= budget % 2


@given(sizes, sizes, sizes)
def test_one_more_token_of_budget_takes_nothing_away(before, after, budget):
    smaller, larger = trim_to_budget(before, after, budget), trim_to_budget(before, after, budget + 1)
    assert smaller[0] <= larger[0] and smaller[1] <= larger[1]


@given(sizes, sizes)
def test_with_one_side_only_it_has_the_whole_budget(size, budget):
    assert trim_to_budget(size, 0, budget) == (min(size, budget), 0)
    assert trim_to_budget(0, size, budget) == (0, min(size, budget))


# ---- documents ----


def test_a_parallel_document_needs_as_many_target_sentences():
    with pytest.raises(DocnmtError, match="talk-7: 2 source sentences but 1 target"):
        ParallelDocument("talk-7", ("a", "b"), ("A",))
    assert len(ParallelDocument("talk-7", ("a", "b"), ("A", "B"))) == 2
