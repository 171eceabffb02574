"""The hierarchical attention network of Miculicich et al. (2018): its equations in NumPy, its start, what it reads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.context import Before, HistoryRule, MemoryRule
from docnmt.data.packing import make_batch
from docnmt.systems.han import SYSTEM, HanTransformer
from tests.builders import (
    BOS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    logits_of,
    model_config,
    random_sentences,
    sentence_model_of,
    shake,
    with_end,
)

HEADS, WIDTH = 4, 16  # of model_config
COUNTS = (1, 3, 2, 1, 3)  # sentences before each of a batch; the first's is the begin mark alone


def han(integration: str = "both", start: str = "paper", connection: str = "gate", **settings: object) -> ContextConfig:
    return ContextConfig(kind="han", integration=integration, start=start, connection=connection, **settings)


def make_han(context: ContextConfig, seed: int = 0, shaken: bool = True, **settings: object) -> HanTransformer:
    torch.manual_seed(seed)
    model = HanTransformer(model_config(**settings), context, SOURCE_WORDS, TARGET_WORDS)
    return (shake(model, seed) if shaken else model).eval()


def parts(counts: tuple[int, ...] = COUNTS, seed: int = 0) -> tuple[list, list[Before], list]:
    """Sources, what stands before each, and targets."""
    sources = with_end(random_sentences(len(counts), SOURCE_WORDS, seed))
    targets = random_sentences(len(counts), TARGET_WORDS, seed + 1)
    before = [
        Before(
            with_end(random_sentences(count, SOURCE_WORDS, seed + 10 + i)),
            random_sentences(count, TARGET_WORDS, seed + 20 + i),
        )
        for i, count in enumerate(counts)
    ]
    before[0] = Before([[BOS]], [[]])
    return sources, before, targets


def batch_of(sources, before, targets):
    return make_batch(sources, before, targets, BOS, EOS)


every_place = pytest.mark.parametrize("integration", INTEGRATIONS)
VARIANTS = [han(integration, start) for integration, start in itertools.product(INTEGRATIONS, STARTS)]
every_variant = pytest.mark.parametrize("context", VARIANTS, ids=lambda c: f"{c.integration}-{c.start}")

# ---- the equations, for one state at a time ----


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def affine(x, layer):
    return x @ array(layer.weight).T + array(layer.bias)


def layer_norm(x, norm):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * array(norm.weight) + array(norm.bias)


def multi_head(query, memory, attention):
    """One state attends to some others, which are keys and values."""
    q, (k, v) = affine(query, attention.query), np.split(affine(memory, attention.key_value), 2, axis=-1)
    size = WIDTH // HEADS
    heads = []
    for part in (slice(n * size, (n + 1) * size) for n in range(HEADS)):
        weights = np.exp(k[:, part] @ q[part] / np.sqrt(size))
        heads.append(weights / weights.sum() @ v[:, part])
    return affine(np.concatenate(heads), attention.output)


def summary(h_t, before, network):
    """d_t"""
    q_w = layer_norm(h_t, network.before_words)
    s = np.stack([layer_norm(multi_head(q_w, h_j, network.words), network.after_words) for h_j in before])
    m = multi_head(layer_norm(h_t, network.before_sentences), s, network.sentences)
    inner = np.maximum(0, affine(layer_norm(m, network.before_feed_forward), network.feed_forward.inner))
    return m + affine(inner, network.feed_forward.outer)


def with_context(h, before, network, start):
    """h~_t for each of a sentence's states, [words, width]"""
    changed = []
    for h_t in h:
        d_t = summary(h_t, before, network)
        gate = network.connection.gate
        lam = 1 / (1 + np.exp(-(array(gate.w_i.weight) @ h_t + array(gate.w_s.weight) @ d_t)))
        if start == "paper":
            changed.append(layer_norm(lam * h_t + (1 - lam) * d_t, network.connection.norm))
        else:
            changed.append(h_t + (1 - lam) * d_t)
    return np.stack(changed)


@every_variant
def test_the_whole_model_is_its_base_with_the_equations_above_encoder_and_decoder(context):
    """The base computes each sentence alone, also those before; the equations do the rest, state by state."""
    model = make_han(context).double()
    base = sentence_model_of(model).double()
    base.load_weights(dict(model.sentence_parameters()))
    sources, before, targets = parts()
    with torch.no_grad():
        whole = batch_of(sources, before, targets)
        found = model(whole).split(whole.target_in.segments.lengths.tolist())
        for source, history, target, states in zip(sources, before, targets, found, strict=True):
            alone = batch_of([source], None, [target])
            memory = base.encode(alone.source)
            past = [batch_of([s], None, [t]) for s, t in zip(history.sources, history.translations, strict=True)]
            read = [base.encode(b.source) for b in past]
            if model.context_in_encoder is not None:
                h_j = [array(m.states) for m in read]
                changed = with_context(array(memory.states), h_j, model.context_in_encoder, context.start)
                memory = memory._replace(states=torch.from_numpy(changed))
            expected = array(base.decode(alone.target_in, memory).states)
            if model.context_in_decoder is not None:
                h_j = [array(base.decode(b.target_in, m).states) for b, m in zip(past, read, strict=True)]
                expected = with_context(expected, h_j, model.context_in_decoder, context.start)
            np.testing.assert_allclose(array(states), expected, atol=1e-9)


def test_residual_is_the_model_without_its_gate():
    context = han("decoder", "sentence", "residual")
    model = make_han(context).double()
    sources, before, targets = parts((1,))
    batch, off = (batch_of(sources, around, targets) for around in (before, None))
    with torch.no_grad():
        past = batch_of(before[0].sources, None, before[0].translations)
        h, h_j = array(model(off)), array(model.decode(past.target_in, model.encode(past.source)).states)
        expected = np.stack([h_t + summary(h_t, [h_j], model.context_in_decoder) for h_t in h])
        np.testing.assert_allclose(array(model(batch)), expected, atol=1e-9)


# ---- parts, context on and off, what is read ----


@pytest.mark.parametrize(
    ("integration", "expected"), [("encoder", HistoryRule), ("decoder", MemoryRule), ("both", MemoryRule)]
)
def test_only_the_decoder_needs_translations(integration, expected):
    assert SYSTEM.rule(han(integration)) is expected


def test_without_a_place_there_is_no_network():
    assert not list(make_han(han("none")).document_parameters())


@every_place
def test_start_sentence_starts_as_exactly_the_sentence_model(integration):
    model = make_han(han(integration, "sentence"), shaken=False)
    sources, before, targets = parts()
    off = logits_of(model, batch_of(sources, None, targets))
    assert torch.equal(logits_of(model, batch_of(sources, before, targets)), off)
    paper = make_han(han(integration), shaken=False)
    assert not torch.allclose(logits_of(paper, batch_of(sources, before, targets)), off)


@every_place
def test_start_sentence_leaves_the_sentence_model_in_small_steps(integration):
    model, batch = make_han(han(integration, "sentence"), shaken=False), batch_of(*parts())
    start = logits_of(model, batch)
    optimiser = torch.optim.Adam([p for _, p in model.document_parameters()], lr=1e-3)
    model.loss(batch)[0].backward()
    optimiser.step()
    assert 0 < (logits_of(model, batch) - start).abs().max() < 0.05


@every_place
def test_each_sentence_before_matters_on_the_side_that_is_read(integration):
    model = make_han(han(integration))
    sources, before, targets = parts((1, 3))
    plain = logits_of(model, batch_of(sources[1:], before[1:], targets[1:]))
    for j in range(3):
        changed = [list(s) for s in before[1].sources], [list(t) for t in before[1].translations]
        changed[0][j][0] = changed[0][j][0] % (SOURCE_WORDS - 3) + 3
        moved = logits_of(model, batch_of(sources[1:], [Before(changed[0], before[1].translations)], targets[1:]))
        assert (moved - plain).abs().max() > 1e-4
        changed[1][j][0] = changed[1][j][0] % (TARGET_WORDS - 3) + 3
        moved = logits_of(model, batch_of(sources[1:], [Before(before[1].sources, changed[1])], targets[1:]))
        assert ((moved - plain).abs().max() > 1e-4) == (integration != "encoder")


def test_a_target_word_does_not_see_those_after_it():
    model = make_han(han())
    sources, before, targets = parts((1, 2), seed=3)
    targets[1] = [5, 6, 7, 8]
    first = logits_of(model, batch_of(sources[1:], before[1:], targets[1:]))
    second = logits_of(model, batch_of(sources[1:], before[1:], [[5, 6, 9, 8]]))
    same = (first - second).abs().amax(1) < 1e-6
    assert same.tolist() == [True, True, True, False, False]


def test_the_states_before_are_read_and_not_trained_through():
    """A word that stands only in the sentences before gets no gradient, though nothing is frozen."""
    model = make_han(han())
    batch = batch_of([[5, 6, EOS]], [Before([[7, 8, EOS]], [[9]])], [[4, 5]])
    model.loss(batch)[0].backward()
    moved = model.source_embedding.weight.grad.abs().sum(1) > 0
    assert moved.nonzero().flatten().tolist() == [EOS, 5, 6]
