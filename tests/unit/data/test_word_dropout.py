"""`document.word_dropout`: words of the source that step 2 hides."""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import DocumentStepConfig
from docnmt.data.batches import Examples
from docnmt.data.context import ContextRule
from docnmt.data.focus import Lessons, WordDropout
from docnmt.document import ContextSpec
from tests.builders import BOS, EOS, make_store, parallel_documents, subwords

RULE = ContextRule(ContextSpec(2, 0), 256, BOS, EOS)


def unknown() -> int:
    return subwords("source").unk


def test_named_words_are_hidden_whole_and_no_others():
    source = subwords("source")
    (ids,) = source.encode(["Le chat voit la mer, un homme aime le chat."])
    hide = WordDropout(0.999999, ["chat", "la"], source)
    hidden = hide(ids)
    assert len(hidden) == len(ids)
    assert all(new in (old, unknown()) for old, new in zip(ids, hidden, strict=True))
    left, gone = (
        source.decode([[i for i, new in zip(ids, hidden, strict=True) if (new == unknown()) is is_gone]])[0].split()
        for is_gone in (False, True)
    )
    assert gone == ["chat", "la", "chat"]
    assert left == ["Le", "voit", "mer,", "un", "homme", "aime", "le."]


def test_named_words_of_a_sentence_are_hidden_together():
    """One that is left would tell what the others are."""
    source = subwords("source")
    (ids,) = source.encode(["un chat, un chat, un chat"])
    hide = WordDropout(0.3, ["chat"], source)
    torch.manual_seed(1)
    times = [hide(ids).count(unknown()) for _ in range(1000)]
    assert len(set(times)) == 2 and min(times) == 0
    assert sum(map(bool, times)) / 1000 == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_any_piece_is_hidden_as_often_as_asked_for(rate):
    torch.manual_seed(1)
    hidden = WordDropout(rate, [], subwords("source"))([7] * 4000)
    assert set(hidden) == {7, unknown()}
    assert hidden.count(unknown()) / 4000 == pytest.approx(rate, abs=0.03)


def examples(folder, word_dropout: WordDropout | None) -> Examples:
    store = make_store(folder / "store", parallel_documents([9, 4]))
    return Examples([store], subwords("source"), subwords("target"), RULE, lessons=Lessons(word_dropout=word_dropout))


def test_in_a_batch_it_touches_the_source_alone_and_is_a_function_of_the_seed(tmp_path):
    rows = [8, 3, 10]
    plain = examples(tmp_path, None).batch(rows)
    some = examples(tmp_path, WordDropout(0.5, [], subwords("source")))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(some.batch(rows))
    assert torch.equal(found[0].source.tokens, found[1].source.tokens)
    assert not torch.equal(found[0].source.tokens, found[2].source.tokens)
    for batch in found:
        changed = batch.source.tokens != plain.source.tokens
        assert changed.any() and (batch.source.tokens[changed] == unknown()).all()
        ends = plain.source.tokens == EOS
        assert torch.equal(batch.source.tokens[ends], plain.source.tokens[ends])
        assert torch.equal(batch.context.tokens, plain.context.tokens)
        assert torch.equal(batch.target_out, plain.target_out)


def test_without_it_nothing_is_drawn(tmp_path):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    examples(tmp_path, None).batch([1, 2])
    assert torch.equal(torch.get_rng_state(), state)


def test_it_is_off_by_default():
    sides = subwords("source"), subwords("target")
    assert Lessons.of(DocumentStepConfig(), *sides, None, RULE) == Lessons()
    assert Lessons.of(DocumentStepConfig(word_dropout=0.2), *sides, None, RULE).word_dropout.rate == 0.2
    with pytest.raises(DocnmtError, match="word_dropout"):
        DocumentStepConfig(word_dropout=1.0)
