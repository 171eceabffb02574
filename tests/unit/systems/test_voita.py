"""Voita et al. (2018): the encoder's last layer in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.context import Neighbours, Sizes
from docnmt.data.packing import pack
from docnmt.document import ContextSpec
from docnmt.systems.voita import MarkedContext, VoitaTransformer
from tests.builders import BOS, EOS, SOURCE_WORDS, TARGET_WORDS, model_config, random_sentences, shake, with_end
from tests.parity.test_context_numpy import Weights, fnn, layer_norm, multi_head

CONTEXT = ContextConfig(kind="voita", previous=1)


def make_voita(seed: int = 0) -> VoitaTransformer:
    torch.manual_seed(seed)
    return shake(VoitaTransformer(model_config(), CONTEXT, SOURCE_WORDS, TARGET_WORDS), seed).eval()


def encoder_layer(s, w):
    a = layer_norm(s + multi_head(s, s, s, w / "attention"), w / "after_attention" / "norm")
    return layer_norm(a + fnn(a, w / "feed_forward"), w / "after_feed_forward" / "norm")


def positions(length: int, width: int) -> np.ndarray:
    """Vaswani's sinusoids, sines in the first half as the model lays them out."""
    angles = np.arange(length)[:, None] / 10000 ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def expected(model: VoitaTransformer, source: list[int], context: list[int]) -> np.ndarray:
    """One sentence through the encoder. `context` has no special token yet: the authors put one before it, and none
    before the source."""
    w = Weights(model)
    table, mark = (w / "source_embedding")["weight"], w["context_mark"]
    width = len(mark)
    s = table[source] * np.sqrt(width) + positions(len(source), width)
    c = np.concatenate([mark[None], table[context]]) * np.sqrt(width) + positions(len(context) + 1, width)
    last = len(model.encoder) - 1
    for n in range(last):
        s, c = encoder_layer(s, w / "encoder" / n), encoder_layer(c, w / "encoder" / n)
    c = encoder_layer(c, w / "context_last_layer")
    layer = w / "encoder" / last
    a, b = multi_head(s, s, s, layer / "attention"), multi_head(s, c, c, w / "context_attention")
    gate = np.concatenate([a, b], axis=1) @ (w / "context_gate")["weight"].T + (w / "context_gate")["bias"]
    g = 1 / (1 + np.exp(-gate))
    s = layer_norm(s + g * a + (1 - g) * b, layer / "after_attention" / "norm")
    return layer_norm(s + fnn(s, layer / "feed_forward"), layer / "after_feed_forward" / "norm")


RULE = MarkedContext(ContextSpec(1), 256, BOS, EOS)


def test_the_encoder_is_the_papers():
    model = make_voita().double()
    sources = with_end(random_sentences(4, SOURCE_WORDS, 1))
    before = random_sentences(4, SOURCE_WORDS, 2)
    before[0] = []  # a document's first sentence
    contexts = [RULE.context(Neighbours([ids] if ids else [])) for ids in before]
    found = model.encode(pack(sources), pack(contexts)).states.split([len(s) for s in sources])
    for source, ids, states in zip(sources, before, found, strict=True):
        context = [*ids, EOS] if ids else []
        np.testing.assert_allclose(states.detach().numpy(), expected(model, source, context), atol=1e-6)


def test_context_and_source_are_told_apart_by_the_special_token_alone():
    """The same words as source and as context: without it the shared layers could not tell which they encode."""
    model = make_voita()
    row = pack([[5, 6, EOS]])
    marked = pack([RULE.context(Neighbours([[5, 6]]))])
    assert marked.tokens.tolist() == [BOS, 5, 6, EOS]
    with torch.no_grad():
        source, context = model.embed(model.source_embedding, row), model.embed_context(marked)
        assert torch.equal(model.embed(model.source_embedding, pack([[BOS, 5, 6, EOS]]))[1:], context[1:])
        for layer in model.encoder[:-1]:
            source, context = (layer(x, ids.segments, None, None) for x, ids in ((source, row), (context, marked)))
    assert not torch.allclose(source, context[1:], atol=1e-3)


def test_the_special_token_is_learnt_with_what_is_added():
    model = make_voita().train()
    context = pack([RULE.context(Neighbours([[5, 6]])), RULE.context(Neighbours([]))])
    model.encode(pack([[5, EOS], [6, EOS]]), context).states.square().sum().backward()
    assert model.context_mark.grad.abs().max() > 0 and "context_mark" in dict(model.document_parameters())


@pytest.mark.parametrize("longest", [2, 3, 4, 5, 20])
def test_a_context_keeps_its_budget_with_the_special_token_and_is_as_long_as_foretold(longest):
    rule = replace(RULE, spec=ContextSpec(2, 1), max_tokens=longest)
    for before, after in ([[5, 6], [7]], []), ([], [[8, 9]]), ([[5, 6], [7]], [[8]]), ([], []):
        row = rule.context(Neighbours(before, after))
        sizes = Sizes(*(np.array([n]) for n in (sum(map(len, before)), sum(map(len, after)), 0, len(before))))
        assert len(row) == rule.added(sizes)[0][0] <= longest and row[0] == BOS
        assert longest < 20 or row == [
            BOS,
            *(t for ids in (*before, *after) for t in ids),
            *([EOS] if len(row) > 1 else []),
        ]
