"""Wang et al.'s hierarchical context on RNNsearch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.context import Before, HistoryRule
from docnmt.data.packing import make_batch, pack, pack_contexts
from docnmt.decoding.beam import beam_search
from docnmt.model.rnnsearch import RecurrentState
from docnmt.systems import system_of
from docnmt.systems.hierarchical import HierarchicalRNNsearch
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    logits_of,
    model_config,
    random_sentences,
    shake,
    with_end,
)
from tests.numpy_rnnsearch import Transcription

SOURCES, TARGETS = with_end(random_sentences(4, SOURCE_WORDS, 0)), random_sentences(4, TARGET_WORDS, 1)
SENTENCES = with_end(random_sentences(6, SOURCE_WORDS, 2))
HISTORIES = [Before([[BOS]]), Before(SENTENCES[:3]), Before(SENTENCES[3:5]), Before(SENTENCES[5:])]


def hierarchical(seed: int = 0, start: str = "paper", shaken: bool = True) -> HierarchicalRNNsearch:
    torch.manual_seed(seed)
    context = ContextConfig(kind="hierarchical", previous=3, start=start)
    model = HierarchicalRNNsearch(model_config(kind="rnnsearch"), context, SOURCE_WORDS, TARGET_WORDS)
    return (shake(model, seed) if shaken else model).eval()


def batch_of(histories=HISTORIES, sources=SOURCES, targets=TARGETS):
    return make_batch(sources, histories, targets, BOS, EOS)


# ---- the equations ----


def test_states_are_those_of_the_equations():
    model = hierarchical().double()
    with torch.no_grad():
        found = model(batch_of()).numpy()
    numpy = Transcription(model)
    rows = zip(SOURCES, TARGETS, HISTORIES, strict=True)
    wanted = [numpy.states(source, [BOS, *target], history.sources) for source, target, history in rows]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-10, atol=1e-12)


def test_the_summary_reads_words_and_sentences_in_order():
    model = hierarchical().double()

    def summary(*sentences):
        with torch.no_grad():
            return model.summarise(pack_contexts([Before(list(sentences))], BOS))[0].numpy()

    one, other = [5, 6, EOS], [7, 8, 9, EOS]
    np.testing.assert_allclose(summary(one, other), Transcription(model).summary([one, other]), rtol=1e-10)
    assert not np.allclose(summary(one, other), summary(other, one))
    assert not np.allclose(summary(one, other), summary([6, 5, EOS], other))
    assert not np.allclose(summary(one, other), summary(other))


def test_it_is_given_the_sentences_before_each_by_itself():
    rule = system_of("rnnsearch", "hierarchical").rule(ContextConfig(kind="hierarchical"))
    assert rule is HistoryRule and not rule.remembers


# ---- training ----


@pytest.mark.parametrize("start", STARTS)
def test_step_2_may_begin_as_the_base(start):
    model = hierarchical(start=start, shaken=False)
    difference = logits_of(model, batch_of()) - logits_of(model, replace(batch_of(), context=None))
    assert bool((difference.abs() < 1e-6).all()) == (start == "sentence")


def test_it_learns_to_say_what_only_the_context_tells():
    """The first word of the farther one of two sentences, through a base that is random and frozen."""
    words = 8

    def pairs(seed: int, count: int = 24):
        sources, far, near = (random_sentences(count, words, seed + i, longest=2) for i in (0, 1000, 2000))
        histories = [Before(with_end(two)) for two in zip(far, near, strict=True)]
        return with_end(sources), histories, [sentence[:1] for sentence in far]

    torch.manual_seed(2)
    config = model_config(kind="rnnsearch", width=32, dropout=0.0)
    model = HierarchicalRNNsearch(config, ContextConfig(kind="hierarchical"), words, words)
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    optimiser = torch.optim.Adam([p for _, p in model.document_parameters()], lr=0.01)
    for seed in range(100):
        sources, histories, targets = pairs(seed)
        optimiser.zero_grad()
        loss, _ = model.loss(batch_of(histories, sources, targets))
        (loss / len(targets)).backward()
        optimiser.step()
    sources, histories, targets = pairs(3000)
    context = pack_contexts(histories, BOS)
    found = beam_search(model.eval(), pack(sources), context, bos=BOS, eos=EOS, start=RecurrentState)
    right = [list(best.tokens) == target for (best, *_), target in zip(found, targets, strict=True)]
    assert sum(right) >= 0.9 * len(right)
