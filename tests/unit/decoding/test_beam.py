"""Beam search against exhaustive search, against the model without a cache, and against itself in other batches."""

from __future__ import annotations

import itertools

import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.packing import make_batch, pack
from docnmt.decoding import beam as beam_module
from docnmt.decoding.beam import Hypothesis, WuRule, beam_search, length_penalty
from tests.builders import (
    BOS,
    CONNECTIONS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    TARGET_WORDS,
    endless_model,
    make_model,
    random_sentences,
    toy_model,
    with_end,
)

MARKS = {"bos": BOS, "eos": EOS}


def log_probabilities(model, source, context, sequences):
    """For each sequence each word's log-probability, the end mark's last, by the whole model without a cache."""
    count = len(sequences)
    batch = make_batch([source] * count, None if context is None else [context] * count, sequences, BOS, EOS)
    with torch.no_grad():
        _, found = model.loss(batch)
    return [part.tolist() for part in found.split(batch.target_in.segments.lengths.tolist())]


def search(model, sources, contexts=None, **options):
    return beam_search(model, pack(sources), None if contexts is None else pack(contexts), **MARKS, **options)


# ---- exhaustive search ----

WORDS = 6
OTHER = [word for word in range(WORDS) if word != EOS]
BEAM = 400  # at most 5^3 hypotheses go on, with 6 continuations each: 2 * 400 candidates are all there are


def exhaustive(model, source, context, limit, alpha):
    """Every sequence that ends within the limit, best first."""
    sequences = [s for n in range(limit) for s in itertools.product(OTHER, repeat=n)]
    found = []
    for tokens, values in zip(sequences, log_probabilities(model, source, context, sequences), strict=True):
        total = sum(values)
        found.append(Hypothesis(total / ((5 + len(tokens) + 1) / 6) ** alpha, total, tokens))
    return sorted(found, reverse=True)


def toy_problem(seed: int):
    model = make_model(seed, source_words=WORDS, target_words=WORDS, decoder_layers=1, encoder_layers=1)
    sources = [[3, EOS], [4, 5, EOS]]  # with 1 extra their limits are 3 and 4
    contexts = [[BOS], [5, 3, 4, EOS]]
    return model, sources, contexts


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_large_enough_is_exhaustive(seed, alpha):
    model, sources, contexts = toy_problem(seed)
    for around in (contexts, None):
        for nbest in (1, 5):
            found = search(model, sources, around, beam=BEAM, alpha=alpha, nbest=nbest, extra_length=1)
            for i, hypotheses in enumerate(found):
                limit = len(sources[i]) + 1
                best = exhaustive(model, sources[i], None if around is None else around[i], limit, alpha)[:nbest]
                assert [h.tokens for h in hypotheses] == [h.tokens for h in best]
                assert [h.score for h in hypotheses] == pytest.approx([h.score for h in best], abs=1e-4)
                assert [h.log_probability for h in hypotheses] == pytest.approx(
                    [h.log_probability for h in best], abs=1e-4
                )


def test_all_there_is_as_an_n_best_list():
    model, sources, contexts = toy_problem(1)
    (found,) = search(model, sources[1:], contexts[1:], beam=BEAM, nbest=BEAM, extra_length=1)
    expected = exhaustive(model, sources[1], contexts[1], 4, 0.6)
    assert len(found) == len(expected) == 1 + 5 + 25 + 125
    assert {h.tokens for h in found} == {h.tokens for h in expected}
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 4, 9])
def test_a_small_beam_finds_real_sequences_and_never_better_ones(beam):
    model, sources, contexts = toy_problem(2)
    for i, hypotheses in enumerate(search(model, sources, contexts, beam=beam, nbest=beam, extra_length=1)):
        best = exhaustive(model, sources[i], contexts[i], len(sources[i]) + 1, 0.6)
        known = {h.tokens: h.score for h in best}
        for h in hypotheses:
            if len(h.tokens) == len(sources[i]) + 1:
                assert len(hypotheses) == 1 or not any(other.tokens in known for other in hypotheses)  # cut off, all
                continue
            assert h.score == pytest.approx(known[h.tokens], abs=1e-4)
            assert h.score <= best[0].score + 1e-5


def test_length_penalty():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(20, 0.0) == 1


# ---- greedy ----


def greedy(model, source, context, limit):
    """The best word after all words so far, until it is the end mark; no cache, no beam."""
    tokens = []
    while len(tokens) < limit:
        batch = make_batch([source], None if context is None else [context], [tokens], BOS, EOS)
        with torch.no_grad():
            word = model.softmax(model(batch)[-1]).argmax().item()
        if word == EOS:
            break
        tokens.append(word)
    return tuple(tokens)


@pytest.mark.parametrize("with_context", [True, False], ids=["context", "off"])
def test_a_beam_of_one_is_greedy(with_context):
    model = toy_model()
    sources, contexts = problem(12)
    found = search(model, sources, contexts if with_context else None, beam=1, extra_length=6)
    for i, hypotheses in enumerate(found):
        expected = greedy(model, sources[i], contexts[i] if with_context else None, len(sources[i]) + 6)
        assert hypotheses[0].tokens == expected
        assert len(hypotheses) == 1


# ---- cache ----


def problem(count: int, words: int = TARGET_WORDS):
    sources, contexts = (with_end(random_sentences(count, words, seed, longest=7)) for seed in (50, 51))
    contexts[0] = [BOS]
    return sources, contexts


def check_scores(model, sources, contexts, found, extra_length, alpha=0.6):
    for i, hypotheses in enumerate(found):
        limit = len(sources[i]) + extra_length
        context = None if contexts is None else contexts[i]
        sequences = [h.tokens for h in hypotheses]
        assert sequences and len(set(sequences)) == len(sequences)
        assert hypotheses == sorted(hypotheses, reverse=True)
        for h, values in zip(hypotheses, log_probabilities(model, sources[i], context, sequences), strict=True):
            if len(h.tokens) == limit:  # cut off: the end mark was never chosen
                values = values[:-1]
            assert h.log_probability == pytest.approx(sum(values), abs=1e-4, rel=1e-4)
            assert h.score == pytest.approx(h.log_probability / ((5 + len(values)) / 6) ** alpha, rel=1e-6)


@pytest.mark.parametrize("with_context", [True, False], ids=["context", "off"])
def test_cached_log_probabilities_are_those_of_the_whole_model(with_context):
    sources, contexts = problem(8)
    around = contexts if with_context else None
    found = search(toy_model(), sources, around, beam=4, nbest=4, extra_length=8)
    assert len({len(h.tokens) for hypotheses in found for h in hypotheses}) > 3, "too much alike to prove anything"
    check_scores(toy_model(), sources, around, found, 8)


@pytest.mark.parametrize("integration", ["none", *INTEGRATIONS])
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("start", ["paper", "sentence"])
def test_cached_log_probabilities_for_every_kind_of_context(integration, connection, start):
    model = make_model(context=ContextConfig(integration=integration, connection=connection, start=start))
    sources, contexts = problem(4)
    assert SOURCE_WORDS >= TARGET_WORDS  # so that the problem's ids are words of both
    check_scores(model, sources, contexts, search(model, sources, contexts, beam=3, nbest=3, extra_length=4), 4)


def test_sentences_of_one_length_need_no_mask():
    sources = with_end(random_sentences(5, TARGET_WORDS, 1, shortest=4, longest=4))
    contexts = with_end(random_sentences(5, TARGET_WORDS, 2, shortest=6, longest=6))
    check_scores(toy_model(), sources, contexts, search(toy_model(), sources, contexts, nbest=2, extra_length=5), 5)


def test_alpha_zero_scores_by_log_probability():
    sources, contexts = problem(4)
    for hypotheses in search(toy_model(), sources, contexts, alpha=0.0, nbest=3, extra_length=5):
        assert all(h.score == h.log_probability for h in hypotheses)


# ---- batches ----


def tokens_and_scores(found):
    return [[h.tokens for h in hypotheses] for hypotheses in found], [h.score for hyps in found for h in hyps]


@pytest.mark.parametrize("with_context", [True, False], ids=["context", "off"])
@pytest.mark.parametrize("beam", [1, 4])
def test_batch_and_order_change_no_output(beam, with_context):
    model = toy_model()
    sources, contexts = problem(10)
    if not with_context:
        contexts = None

    def run(indices):
        around = None if contexts is None else [contexts[i] for i in indices]
        return search(model, [sources[i] for i in indices], around, beam=beam, nbest=beam, extra_length=6)

    together, scores = tokens_and_scores(run(range(10)))
    alone, alone_scores = tokens_and_scores([run([i])[0] for i in range(10)])
    assert alone == together
    assert alone_scores == pytest.approx(scores, abs=1e-4)
    order = [7, 2, 9, 0, 4, 1, 8, 3, 6, 5]
    permuted, _ = tokens_and_scores(run(order))
    assert permuted == [together[i] for i in order]
    pairs = [found for begin in range(0, 10, 2) for found in tokens_and_scores(run([begin, begin + 1]))[0]]
    assert pairs == together


@pytest.mark.parametrize("alpha", [0.6, 1.5])  # the more it is, the more a hypothesis in flight can still gain
@pytest.mark.parametrize("nbest", [1, 3])
def test_leaving_the_batch_early_changes_nothing(monkeypatch, nbest, alpha):
    # Without the bound every sentence stays until its limit; whatever it finds in that time is no better.
    sources, contexts = problem(16)
    options = {"nbest": nbest, "alpha": alpha, "extra_length": 6}
    early, early_scores = tokens_and_scores(search(toy_model(), sources, contexts, **options))
    monkeypatch.setattr(WuRule, "done", lambda self, best, length: length >= self.limit)
    late, late_scores = tokens_and_scores(search(toy_model(), sources, contexts, **options))
    assert early == late
    assert early_scores == pytest.approx(late_scores, abs=1e-4)


def test_sentences_do_leave_the_batch(monkeypatch):
    sizes = []
    advance = beam_module.DecoderState.advance

    def counting(self, words):
        sizes.append(len(words) // 4)
        return advance(self, words)

    monkeypatch.setattr(beam_module.DecoderState, "advance", counting)
    sources, contexts = problem(10)
    search(toy_model(), sources, contexts)
    assert sizes[0] == 10 and sizes == sorted(sizes, reverse=True) and sizes[-1] < 10


def test_a_sentence_twice_gives_the_same_twice():
    sources, contexts = problem(3)
    found = search(toy_model(), [*sources, *sources], [*contexts, *contexts], nbest=2)
    assert tokens_and_scores(found[:3])[0] == tokens_and_scores(found[3:])[0]


# ---- the limit ----


@pytest.fixture
def endless():
    return endless_model()


@pytest.mark.parametrize("beam", [1, 4])
def test_without_an_end_the_limit_cuts(endless, beam):
    sources, contexts = problem(5)
    for source, hypotheses in zip(
        sources, search(endless, sources, contexts, beam=beam, nbest=beam, extra_length=3), strict=True
    ):
        limit = len(source) + 3
        assert len(hypotheses) == beam
        for h in hypotheses:
            assert len(h.tokens) == limit and EOS not in h.tokens
            assert h.score == pytest.approx(h.log_probability / length_penalty(limit, 0.6))
        assert hypotheses == sorted(hypotheses, reverse=True)


def test_a_beam_wider_than_the_vocabulary():
    model, sources, contexts = toy_problem(0)
    found = search(model, sources, contexts, beam=20, nbest=3, extra_length=1)
    assert all(len(hypotheses) == 3 for hypotheses in found)
    check_scores(model, sources, contexts, found, 1)
