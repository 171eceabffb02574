"""Voita et al. (2018): the encoder's last layer in NumPy."""

from __future__ import annotations

import numpy as np
import torch

from docnmt.config import ContextConfig
from docnmt.data.batches import pack
from docnmt.systems.voita import VoitaTransformer
from tests.builders import BOS, SOURCE_WORDS, TARGET_WORDS, model_config, random_sentences, shake, with_end
from tests.parity.test_context_numpy import Weights, fnn, layer_norm, multi_head

CONTEXT = ContextConfig(kind="voita", previous=1)


def make_voita(seed: int = 0) -> VoitaTransformer:
    torch.manual_seed(seed)
    return shake(VoitaTransformer(model_config(), CONTEXT, SOURCE_WORDS, TARGET_WORDS), seed).eval()


def encoder_layer(s, w):
    a = layer_norm(s + multi_head(s, s, s, w / "attention"), w / "after_attention" / "norm")
    return layer_norm(a + fnn(a, w / "feed_forward"), w / "after_feed_forward" / "norm")


def expected(model: VoitaTransformer, source: list[int], context: list[int]) -> np.ndarray:
    """One sentence through the encoder, by the equations of the docstring."""
    w = Weights(model)
    with torch.no_grad():
        s, c = (model.embed(model.source_embedding, pack([ids])).numpy() for ids in (source, context))
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


def test_the_encoder_is_the_papers():
    model = make_voita().double()
    sources = with_end(random_sentences(4, SOURCE_WORDS, 1))
    contexts = [[BOS], *with_end(random_sentences(3, SOURCE_WORDS, 2))]
    found = model.encode(pack(sources), pack(contexts)).states.split([len(s) for s in sources])
    for source, context, states in zip(sources, contexts, found, strict=True):
        np.testing.assert_allclose(states.detach().numpy(), expected(model, source, context), atol=1e-10)
