"""RNNsearch: its equations, padding, decoding word by word, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, make_batch, pack
from docnmt.decoding.beam import beam_search
from docnmt.model.rnnsearch import RecurrentState, RNNsearch, _Energies, gru_step
from docnmt.systems import system_of
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    fit,
    logits_of,
    model_config,
    random_batch,
    random_sentences,
    shake,
    with_end,
)
from tests.numpy_rnnsearch import Transcription

NO_CONTEXT = ContextConfig(kind="none")


def rnnsearch(seed: int = 0, source_words: int = SOURCE_WORDS, target_words: int = TARGET_WORDS, **settings: object):
    torch.manual_seed(seed)
    config = model_config(kind="rnnsearch", **settings)
    return shake(system_of("rnnsearch", "none").model(config, NO_CONTEXT, source_words, target_words), seed).eval()


def pairs(count: int = 6, seed: int = 0) -> tuple[list[list[int]], list[list[int]]]:
    return with_end(random_sentences(count, SOURCE_WORDS, seed)), random_sentences(count, TARGET_WORDS, seed + 1)


# ---- the equations ----


def test_states_are_those_of_the_equations_for_sentences_of_several_lengths():
    model, (sources, targets) = rnnsearch().double(), pairs()
    with torch.no_grad():
        found = model(make_batch(sources, None, targets, BOS, EOS)).numpy()
    numpy = Transcription(model)
    wanted = [numpy.states(source, [BOS, *target]) for source, target in zip(sources, targets, strict=True)]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-10, atol=1e-12)


def test_the_decoders_unit_is_torchs():
    """The encoder uses torch's own; both are the same unit."""
    cell = shake(torch.nn.GRUCell(5, 4)).double()
    x, s = torch.randn(3, 5, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    of_input, of_state = x @ cell.weight_ih.T + cell.bias_ih, s @ cell.weight_hh.T + cell.bias_hh
    torch.testing.assert_close(gru_step(s, of_input, of_state), cell(x, s), rtol=1e-12, atol=0)


def test_attention_is_a_distribution_over_the_words_that_are_there():
    model, (sources, _) = rnnsearch(), pairs()
    annotations = model.encode(pack(sources))
    _, weights = model.attend(annotations.start, annotations)  # [sentences, longest]
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(sources)))
    lengths = [len(source) for source in sources]
    assert len(set(lengths)) > 1
    for row, length in zip(weights, lengths, strict=True):
        assert (row[:length] > 0).all() and not row[length:].any()


def test_the_derivative_of_the_energies():
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 3, 4), (2, 5, 4), (4,))]
    assert torch.autograd.gradcheck(_Energies.apply, inputs)


# ---- batches ----


def test_a_sentence_has_the_same_states_alone_and_beside_longer_ones():
    model, (sources, targets) = rnnsearch(), pairs()
    together = logits_of(model, make_batch(sources, None, targets, BOS, EOS)).split([len(t) + 1 for t in targets])
    for source, target, wanted in zip(sources, targets, together, strict=True):
        alone = logits_of(model, make_batch([source], None, [target], BOS, EOS))
        torch.testing.assert_close(alone, wanted, rtol=1e-5, atol=1e-5)


def test_a_context_that_is_none_of_its_business_is_not_looked_at():
    model, batch = rnnsearch(), random_batch()
    assert torch.equal(logits_of(model, batch), logits_of(model, random_batch(context=False)))


# ---- word by word ----


def test_word_by_word_is_the_same_as_at_once():
    model, (sources, _) = rnnsearch(), pairs(4)
    targets = [[5, 6, 7, 8], [4, 4, 9, 10], [3, 12, 5, 5], [11, 7, 3, 6]]
    wanted = logits_of(model, make_batch(sources, None, targets, BOS, EOS)).unflatten(0, (4, -1))
    state = RecurrentState(model, model.encode(pack(sources)), 1)
    with torch.no_grad():
        for step, words in enumerate(zip(*([BOS, *target] for target in targets), strict=True)):
            torch.testing.assert_close(state.logits(torch.tensor(words)), wanted[:, step], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_hypotheses_change_places_and_sentences_leave():
    """Two hypotheses of three sentences; after two words those of each sentence cross over, and the second leaves."""
    model, (sources, _) = rnnsearch(), pairs(3)
    state = RecurrentState(model, model.encode(pack(sources)), 2)
    state.logits(torch.full((6,), BOS))
    state.logits(torch.tensor([3, 4, 5, 6, 7, 8]))
    state.reorder(torch.tensor([1, 0, 3, 2, 5, 4]))
    state.keep(torch.tensor([0, 2]))
    found = state.logits(torch.tensor([9, 10, 11, 12]))
    rows = [(0, [4, 9]), (0, [3, 10]), (2, [8, 11]), (2, [7, 12])]
    batch = make_batch([sources[i] for i, _ in rows], None, [words for _, words in rows], BOS, EOS)
    wanted = logits_of(model, batch).unflatten(0, (4, -1))[:, -1]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


# ---- weights and settings ----


@pytest.mark.parametrize(("tie", "tables"), [("none", 3), ("target", 2), ("all", 1)])
def test_ties(tie, tables):
    model = rnnsearch(tie=tie, source_words=TARGET_WORDS)
    parts = (model.source_embedding.weight, model.target_embedding.weight, model.softmax.weight)
    assert len({id(part) for part in parts}) == tables


def test_no_parameter_of_the_base_counts_as_a_context_module():
    model = rnnsearch()
    assert not list(model.document_parameters())
    names = {name for name, _ in model.sentence_parameters()}
    assert {"source_embedding.weight", "target_embedding.weight"} <= names


def test_heads_have_no_say():
    assert ModelConfig(kind="rnnsearch", width=30, heads=8).width == 30
    with pytest.raises(DocnmtError, match="30 cannot be split into 8 heads"):
        ModelConfig(width=30, heads=8)


def test_dropout_acts_in_training_only():
    model, batch = rnnsearch(dropout=0.5), random_batch(context=False)
    assert torch.equal(logits_of(model, batch), logits_of(model, batch))
    model.train()
    assert not torch.equal(logits_of(model, batch), logits_of(model, batch))


# ---- training ----


def test_every_parameter_has_a_gradient():
    model = rnnsearch().train()
    loss, _ = model.loss(random_batch(context=False))
    loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_it_learns_to_say_a_sentence_backwards():
    words = 8
    config = model_config(kind="rnnsearch", width=32, dropout=0.0)
    torch.manual_seed(0)
    model = RNNsearch(config, NO_CONTEXT, words, words)

    def batch(seed: int) -> Batch:
        sentences = random_sentences(32, words, seed, longest=3)
        return make_batch(with_end(sentences), None, [sentence[::-1] for sentence in sentences], BOS, EOS)

    fit(model, map(batch, range(80)), 0.02)
    sentences = [[3, 4, 5], [7, 6], [5], [6, 3, 4]]
    found = beam_search(model, pack(with_end(sentences)), None, bos=BOS, eos=EOS, start=RecurrentState)
    assert [list(best.tokens) for best, *_ in found] == [sentence[::-1] for sentence in sentences]
