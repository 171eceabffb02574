"""`document.split_pairs`: the first half of a sentence as context of its second."""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import DocumentStepConfig
from docnmt.data.batches import Examples
from docnmt.data.context import ContextRule
from docnmt.data.focus import SHORTEST, Lessons, SplitPairs
from docnmt.document import ContextSpec
from tests.builders import BOS, EOS, make_store, parallel_documents, subwords

RULE = ContextRule(ContextSpec(2, 0), 256, BOS, EOS)
ALWAYS = 0.999999


def splitter(rate: float = ALWAYS) -> SplitPairs:
    return SplitPairs(rate, subwords("source"), subwords("target"))


def test_halves_are_whole_words_and_together_the_sentence():
    source, target = subwords("source"), subwords("target")
    (ids,) = source.encode(["Le chat voit la mer, un homme aime le chat."])
    (translated,) = target.encode(["the cat sees the sea, a man likes the cat."])
    halves = splitter()(ids, translated)
    for sides, whole, side in ((halves.source, ids, source), (halves.target, translated, target)):
        assert [*sides[0], *sides[1]] == list(whole)
        assert abs(len(sides[0]) - len(sides[1])) < len(whole) / 2
        first, second, both = side.decode([*sides, whole])
        assert f"{first} {second}" == both, "cut between two words"


def test_what_is_too_short_stays_whole():
    assert splitter()(list(range(5, 5 + 2 * SHORTEST - 1)), list(range(5, 40))) is None


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_as_many_are_cut_as_asked_for(rate):
    (ids,) = subwords("source").encode(["Le chat voit la mer, un homme aime le chat."])
    torch.manual_seed(1)
    cut = [splitter(rate)(ids, ids) is not None for _ in range(2000)]
    assert sum(cut) / 2000 == pytest.approx(rate, abs=0.04)


def examples(folder, split_pairs: SplitPairs | None, foreign: int | None = None, rule: ContextRule = RULE) -> Examples:
    store = make_store(folder / "store", parallel_documents([9, 4]))
    return Examples([store], subwords("source"), subwords("target"), rule, foreign, Lessons(split_pairs=split_pairs))


def rows(packed) -> list[list[int]]:
    return [part.tolist() for part in packed.tokens.split(packed.segments.lengths.tolist())]


def test_the_first_half_is_the_last_sentence_of_the_context(tmp_path):
    whole, cut = (examples(tmp_path, each).batch(range(13)) for each in (None, splitter()))
    were_cut = 0
    for i, (sentence, second) in enumerate(zip(rows(whole.source), rows(cut.source), strict=True)):
        context, before = rows(cut.context)[i], rows(whole.context)[i]
        first = sentence[: len(sentence) - len(second)]
        assert sentence == [*first, *second]
        if not first:
            assert context == before
            continue
        were_cut += 1
        assert context[-len(first) - 1 :] == [*first, EOS]
        assert context[: -len(first) - 1] in ([], before[len(before) - len(context) + len(first) : -1]), (
            "then comes the sentence before"
        )
    assert were_cut > 2 and len(cut.target_out) < len(whole.target_out)


def test_a_context_from_elsewhere_does_not_see_the_first_half(tmp_path):
    whole, cut = (examples(tmp_path, each, foreign=3).batch(range(13)) for each in (None, splitter()))
    assert len(cut.source.tokens) < len(whole.source.tokens)
    assert torch.equal(cut.context.tokens, whole.context.tokens)
    none = ContextRule(ContextSpec(0, 0), 256, BOS, EOS)
    assert rows(examples(tmp_path, splitter(), rule=none).batch([5]).context) == [[BOS]]


def test_it_is_asked_for_by_the_recipe_and_reads_what_stands_before():
    asked, sides = DocumentStepConfig(split_pairs=0.5), (subwords("source"), subwords("target"), None)
    assert Lessons.of(asked, *sides, None).split_pairs is None, "no context, nothing to put there"
    assert Lessons.of(asked, *sides, RULE).split_pairs.rate == 0.5
    with pytest.raises(DocnmtError, match="following"):
        Lessons.of(asked, *sides, ContextRule(ContextSpec(1, 1), 256, BOS, EOS))
