"""Marian's search, beside one that is written down as plainly as possible."""

from __future__ import annotations

import pytest
import torch

from docnmt.data.packing import make_batch, pack
from docnmt.decoding.beam import EXTRA_LENGTH, LONGEST, MarianRule, beam_search
from tests.builders import BOS, EOS, endless_model, random_sentences, toy_model, with_end

FORBIDDEN = [6, 11]


def log_probabilities(model, source, context, written):
    """Of the next word, by the whole model."""
    batch = make_batch([source], [context], [[*written]], BOS, EOS)
    with torch.no_grad():
        return model.softmax(model(batch))[-1].log_softmax(0).tolist()


def marians(model, source, context, beam, alpha, forbidden):
    alive, finished = [(0.0, ())], []
    room = beam
    for length in range(1, LONGEST * len(source) + 1):
        candidates = [
            (total + p, (*words, word))
            for total, words in alive
            for word, p in enumerate(log_probabilities(model, source, context, words))
            if word not in forbidden
        ]
        best = sorted(candidates, reverse=True)[:room]
        last = length == LONGEST * len(source)
        finished += [(total / length**alpha, words) for total, words in best if last or words[-1] == EOS]
        alive = [(total, words) for total, words in best if words[-1] != EOS]
        room = len(alive)
        if not alive:
            break
    return [(tuple(w for w in words if w != EOS), score) for score, words in sorted(finished, reverse=True)]


@pytest.mark.parametrize("forbidden", [[], FORBIDDEN])
@pytest.mark.parametrize(("beam", "alpha"), [(1, 1.0), (2, 0.0), (4, 1.0), (4, 0.6)])
def test_it_finds_what_the_plain_search_finds(beam, alpha, forbidden):
    model, words = toy_model(), 19
    sources = with_end(random_sentences(5, words, 6, longest=4))
    contexts = random_sentences(5, words, 7, longest=5)
    options = {"beam": beam, "nbest": beam, "alpha": alpha, "rule": MarianRule, "forbidden": forbidden}
    found = beam_search(model, pack(sources), pack(contexts), bos=BOS, eos=EOS, **options)
    for source, context, hypotheses in zip(sources, contexts, found, strict=True):
        expected = marians(model, source, context, beam, alpha, forbidden)
        assert [h.tokens for h in hypotheses] == [tokens for tokens, _ in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_at_three_times_the_source_all_that_are_left_end():
    sources = with_end(random_sentences(3, 19, 1))
    found = beam_search(endless_model(), pack(sources), None, bos=BOS, eos=EOS, beam=3, nbest=3, rule=MarianRule)
    for source, hypotheses in zip(sources, found, strict=True):
        assert [len(h.tokens) for h in hypotheses] == [LONGEST * len(source)] * 3


def test_a_forbidden_word_keeps_its_probability():
    # What is written costs what it costs with the word allowed.
    model, sources = toy_model(), with_end(random_sentences(4, 19, 2, longest=4))
    contexts = random_sentences(4, 19, 3)
    found = beam_search(model, pack(sources), pack(contexts), bos=BOS, eos=EOS, beam=1, forbidden=FORBIDDEN)
    for source, context, (hypothesis,) in zip(sources, contexts, found, strict=True):
        ended = len(hypothesis.tokens) < len(source) + EXTRA_LENGTH
        words = [*hypothesis.tokens, *([EOS] if ended else [])]
        total = sum(log_probabilities(model, source, context, words[:n])[word] for n, word in enumerate(words))
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-3)
        assert not set(FORBIDDEN) & set(words)
