"""`document.focus`: words that count for more than others while step 2 is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from docnmt.config import DocumentStepConfig
from docnmt.data.batches import Examples, epoch_batches
from docnmt.data.context import ContextRule
from docnmt.data.focus import Focus, Lessons
from docnmt.document import ContextSpec
from tests.builders import BOS, EOS, make_store, parallel_documents, small_subwords, subwords
from tests.every_system import CASES, document_batch, make_system, rule_of, some_document

RULE = ContextRule(ContextSpec(2, 0), 256, BOS, EOS)
ENGLISH = [
    "she took her hat and his",
    "the other hero is there",
    "herself, he said: \u201cHis hat\u201d",
    "this is it",
] * 9


@pytest.fixture(scope="module")
def english():
    return small_subwords(ENGLISH, 310)


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("she took her hat", "her"),
        ("the other hero is there", ""),  # no part of a word
        ("\u201cHis hat\u201d, his", "His his"),  # in any case, after any mark
        ("HER", "HER"),
        ("he took herself", ""),  # another word, whatever its pieces
        ("", ""),
    ],
)
def test_whole_words_are_found_whatever_their_pieces(english, text, counted):
    (ids,) = english.encode([text])
    focus = Focus(["his", "her"], 5, False, english)
    weights = focus.weights(ids)
    assert set(weights) <= {1.0, 5.0}
    (found,) = english.decode([[piece for piece, weight in zip(ids, weights, strict=True) if weight == 5]])
    assert found.split() == counted.split()
    assert focus.words.are_in(ids) is bool(counted)


def test_words_are_no_patterns(english):
    (ids,) = english.encode(["this is it"])
    assert not Focus(["i.", "th.*"], 5, False, english).words.are_in(ids)


@pytest.mark.parametrize("name", CASES)
def test_a_token_that_counts_twice_is_as_good_as_two(name):
    """In the loss of every system."""
    model, rule = make_system(CASES[name]), rule_of(CASES[name])
    batch = document_batch(rule, some_document())
    once, log_p = model.loss(batch, 0.1)
    twice, again = model.loss(replace(batch, counts=torch.full((len(batch.target_out),), 2.0)), 0.1)
    torch.testing.assert_close(twice, 2 * once)
    assert torch.equal(log_p, again), "what is reported does not depend on what counts"
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients = [torch.autograd.grad(loss, trained, allow_unused=True) for loss in (once, twice)]
    for one, two in zip(*gradients, strict=True):
        if one is not None:
            torch.testing.assert_close(two, 2 * one, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["attention", "cache"])
def test_the_loss_is_the_sum_over_what_counts(name):
    model, rule = make_system(CASES[name]).requires_grad_(False), rule_of(CASES[name])
    batch = document_batch(rule, some_document())
    counts = torch.arange(len(batch.target_out)).float()
    loss, log_p = model.loss(replace(batch, counts=counts))
    assert float(loss) == pytest.approx(float(-(counts * log_p).sum()), rel=1e-5)


def examples(folder, focus: Focus | None) -> Examples:
    store = make_store(folder / "store", parallel_documents([9, 4, 12]))
    return Examples([store], subwords("source"), subwords("target"), RULE, lessons=Lessons(focus))


def test_a_batch_counts_the_words_of_its_own_sentences(tmp_path):
    focus = Focus(["diux", "ri"], 3, False, subwords("target"))
    batch = examples(tmp_path, focus).batch([3, 0, 7])
    rows = [ids[1:] for ids in batch.target_in.tokens.split(batch.target_in.segments.lengths.tolist())]
    assert batch.counts.tolist() == [w for row in rows for w in (*focus.weights(row.tolist()), 1.0)]
    assert {1.0, 3.0} == set(batch.counts.tolist())
    assert examples(tmp_path, None).batch([3, 0, 7]).counts is None


def test_only_sentences_with_such_a_word_are_in_batches_and_their_contexts_stay(tmp_path):
    whole = examples(tmp_path, None)
    focus = Focus(["diux"], 3, True, subwords("target"))
    some = examples(tmp_path, focus)
    seen = sorted(int(i) for batch in epoch_batches(some, 200, seed=1, epoch=0) for i in batch)
    having = [i for i in range(len(whole)) if focus.words.are_in(whole._sentence("target", i).tolist())]
    assert seen == having and 0 < len(having) < len(whole)
    for i in seen:
        assert torch.equal(some.batch([i]).context.tokens, whole.batch([i]).context.tokens)


def test_it_is_asked_for_by_the_recipe():
    step = DocumentStepConfig(focus=("diux",), focus_weight=2.0)
    assert Lessons.of(step, subwords("source"), subwords("target"), None, None).focus.weight == 2.0
