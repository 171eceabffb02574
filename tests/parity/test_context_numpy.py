"""Sections 2.2 and 2.3 of the paper, transcribed to NumPy in the paper's order and symbols, against the modules.

The paper writes a state as a column; here, as in the modules, it is a row. Float64, so that the comparison is sharp.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.packing import Segments, make_batch
from docnmt.model.transformer import Memory
from tests.builders import BOS, EOS, INTEGRATIONS, SOURCE_WORDS, TARGET_WORDS, make_model, random_sentences, with_end

HEADS = 4  # of make_model
WIDTH = 16


class Weights:
    """A module's parameters by name, as NumPy arrays: `w / "attention" / "output"` goes down, `w["weight"]` reads."""

    def __init__(self, module, prefix: str = ""):
        self.module, self.prefix = module, prefix

    def __truediv__(self, name: object) -> Weights:
        return Weights(self.module, f"{self.prefix}{name}.")

    def __getitem__(self, name: str) -> np.ndarray:
        return self.module.get_parameter(self.prefix + name).detach().numpy()


# ---- Vaswani et al. (2017) ----


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, w):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * w["weight"] + w["bias"]


def projections(w):
    """W and b of queries, keys, values: one fused matrix, or the query's own and one for keys and values."""
    if hasattr(w.module.get_submodule(w.prefix[:-1]), "query_key_value"):
        fused = w / "query_key_value"
        return list(zip(np.split(fused["weight"], 3), np.split(fused["bias"], 3), strict=True))
    query, fused = w / "query", w / "key_value"
    return [
        (query["weight"], query["bias"]),
        *zip(np.split(fused["weight"], 2), np.split(fused["bias"], 2), strict=True),
    ]


def multi_head(q, k, v, w, causal=False):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O"""
    q, k, v = (x @ matrix.T + bias for x, (matrix, bias) in zip((q, k, v), projections(w), strict=True))
    size = WIDTH // HEADS
    heads = []
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        scores = q[:, part] @ k[:, part].T / np.sqrt(size)
        if causal:
            scores = np.where(np.tri(len(q), len(k), dtype=bool), scores, -np.inf)
        heads.append(softmax(scores) @ v[:, part])
    return np.concatenate(heads, axis=1) @ (w / "output")["weight"].T + (w / "output")["bias"]


def fnn(x, w):
    inner = np.maximum(0, x @ (w / "inner")["weight"].T + (w / "inner")["bias"])
    return inner @ (w / "outer")["weight"].T + (w / "outer")["bias"]


def residual(h, sublayer, w):
    return layer_norm(h + sublayer, w / "norm")


# ---- 2.2 Document-level context representation ----


def context_encoder(x_c, w, layers):
    c = x_c  # C^(0) = X_c
    for n in range(layers):
        layer = w / "layers" / n
        a = residual(c, multi_head(c, c, c, layer / "attention"), layer / "after_attention")
        c = residual(a, fnn(a, layer / "feed_forward"), layer / "after_feed_forward")
    return c


# ---- 2.3.3 Context gating ----


def connect(h, sublayer, w, connection, start):
    if connection == "gate":
        gate = w / "gate"
        lam = 1 / (1 + np.exp(-(h @ (gate / "w_i")["weight"].T + sublayer @ (gate / "w_s")["weight"].T)))
    if (connection, start) == ("gate", "paper"):
        return layer_norm(lam * h + (1 - lam) * sublayer, w / "norm")  # Gating(H)
    if (connection, start) == ("residual", "paper"):
        return layer_norm(h + sublayer, w / "norm")  # Residual(H)
    # Not in the paper: the start that equals the sentence model.
    return h + (1 - lam) * sublayer if connection == "gate" else h + sublayer


def context_attention(h, c, w, context):
    return connect(h, multi_head(h, c, c, w / "attention"), w / "connection", context.connection, context.start)


# ---- 2.3.1 and 2.3.2 Integration ----


def encoder_layer(s, c, w, context):
    b = residual(s, multi_head(s, s, s, w / "attention"), w / "after_attention")
    d = context_attention(b, c, w / "context", context) if context.integration in ("encoder", "both") else b
    return residual(d, fnn(d, w / "feed_forward"), w / "after_feed_forward")


def decoder_layer(t, c, s, w, context):
    e = residual(t, multi_head(t, t, t, w / "attention", causal=True), w / "after_attention")
    f = context_attention(e, c, w / "context", context) if context.integration in ("decoder", "both") else e
    g = residual(f, multi_head(f, s, s, w / "source_attention"), w / "after_source_attention")
    return residual(g, fnn(g, w / "feed_forward"), w / "after_feed_forward")


def embed(tokens, w):
    rates = 10000.0 ** -(2 * np.arange(WIDTH // 2) / WIDTH)
    angles = np.arange(len(tokens))[:, None] * rates
    return w["weight"][tokens] * np.sqrt(WIDTH) + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def log_probabilities(x_c, x, y, model):
    """log P(y_j | X_<k, x, y_<j) for every word of the target vocabulary"""
    w, context = Weights(model), model.context_config
    c = context_encoder(embed(x_c, w / "source_embedding"), w / "context_encoder", context.layers)
    s = embed(x, w / "source_embedding")
    for n in range(len(model.encoder)):
        s = encoder_layer(s, c, w / "encoder" / n, context)
    t = embed([BOS, *y], w / "target_embedding")
    for n in range(len(model.decoder)):
        t = decoder_layer(t, c, s, w / "decoder" / n, context)
    return np.log(softmax(t @ (w / "target_embedding")["weight"].T))  # W_o is tied to the target embedding


# ---- the comparison ----

LENGTHS = [4, 1, 6]
CONTEXT_LENGTHS = [5, 7, 1]
CONNECTIONS = list(itertools.product(("gate", "residual"), ("paper", "sentence")))
every_connection = pytest.mark.parametrize(("connection", "start"), CONNECTIONS)


def rows(lengths, seed=0):
    return torch.randn(sum(lengths), WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def segments(lengths):
    return Segments(torch.tensor(lengths))


def each(function, *packed):
    """A NumPy function of single sentences over packed rows."""
    parts = [[part.numpy() for part in tensor.split(lengths)] for tensor, lengths in packed]
    return np.concatenate([function(*sentence) for sentence in zip(*parts, strict=True)])


def same(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("layers", [1, 2])
def test_context_encoder(layers):
    module = make_model(context=ContextConfig(layers=layers)).double().context_encoder
    x_c = rows(CONTEXT_LENGTHS)
    expected = each(lambda x: context_encoder(x, Weights(module), layers), (x_c, CONTEXT_LENGTHS))
    same(module(x_c, segments(CONTEXT_LENGTHS)), expected)


@every_connection
def test_context_attention_with_its_connection(connection, start):
    context = ContextConfig(connection=connection, start=start)
    module = make_model(context=context).double().encoder[0].context
    h, c = rows(LENGTHS), rows(CONTEXT_LENGTHS, 1)
    expected = each(lambda *x: context_attention(*x, Weights(module, ""), context), (h, LENGTHS), (c, CONTEXT_LENGTHS))
    same(module(h, segments(LENGTHS), c, segments(CONTEXT_LENGTHS)), expected)


@every_connection
def test_connection(connection, start):
    module = make_model(context=ContextConfig(connection=connection, start=start)).double().decoder[1].context
    h, sublayer = rows(LENGTHS), rows(LENGTHS, 1)
    expected = connect(h.numpy(), sublayer.numpy(), Weights(module.connection), connection, start)
    same(module.connection(h, sublayer), expected)


@every_connection
def test_encoder_layer(connection, start):
    context = ContextConfig(connection=connection, start=start)
    layer = make_model(context=context).double().encoder[1]
    s, c = rows(LENGTHS), rows(CONTEXT_LENGTHS, 1)
    expected = each(lambda *x: encoder_layer(*x, Weights(layer), context), (s, LENGTHS), (c, CONTEXT_LENGTHS))
    same(layer(s, segments(LENGTHS), c, segments(CONTEXT_LENGTHS)), expected)


@every_connection
def test_decoder_layer(connection, start):
    context = ContextConfig(connection=connection, start=start)
    layer = make_model(context=context).double().decoder[1]
    target_lengths = [2, 5, 3]
    t, c, s = rows(target_lengths), rows(CONTEXT_LENGTHS, 1), rows(LENGTHS, 2)
    expected = each(
        lambda *x: decoder_layer(*x, Weights(layer), context),
        (t, target_lengths),
        (c, CONTEXT_LENGTHS),
        (s, LENGTHS),
    )
    memory = Memory(s, segments(LENGTHS), c, segments(CONTEXT_LENGTHS))
    same(layer(t, segments(target_lengths), memory)[0], expected)


@pytest.mark.parametrize("integration", INTEGRATIONS)
@every_connection
def test_the_whole_model(connection, start, integration):
    context = ContextConfig(connection=connection, start=start, integration=integration, layers=2)
    model = make_model(context=context).double()
    sources, contexts = (with_end(random_sentences(4, SOURCE_WORDS, seed)) for seed in (1, 2))
    targets = random_sentences(4, TARGET_WORDS, 3)
    batch = make_batch(sources, contexts, targets, BOS, EOS)
    expected = np.concatenate(
        [log_probabilities(c, x, y, model) for c, x, y in zip(contexts, sources, targets, strict=True)]
    )
    # The module's table of positions is single precision.
    same(model.softmax(model(batch)).log_softmax(1), expected, 1e-5)
