"""Embeddings, dropout and attention, each against a plain version written out here."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.data.packing import Segments
from docnmt.model import layers
from docnmt.model.layers import CrossAttention, Dropout, Embedding, FeedForward, Residual, SelfAttention, sinusoids
from tests.builders import shake

CPU = torch.device("cpu")
LENGTHS = [[3, 1, 5, 2], [4, 4], [1]]


# ---- positions and embeddings ----


@pytest.mark.parametrize("width", [2, 4, 16, 512])
def test_sinusoids_are_sines_then_cosines(width):
    table = sinusoids(40, width, CPU)[:40].double()
    half = width // 2
    rates = [10000.0 ** -(2 * i / width) for i in range(half)]  # Vaswani et al., section 3.5
    for place in (0, 1, 7, 39):
        expected = [math.sin(place * r) for r in rates] + [math.cos(place * r) for r in rates]
        torch.testing.assert_close(table[place], torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0)


def test_sinusoids_of_an_odd_width_end_in_zero():
    table = sinusoids(5, 7, CPU)
    assert table.shape[1] == 7 and not table[:, -1].any()


def test_the_table_grows_and_keeps_its_values(monkeypatch):
    monkeypatch.setattr(layers, "_tables", {})
    short = sinusoids(3, 8, CPU).clone()
    long = sinusoids(5000, 8, CPU)
    assert len(long) >= 5000
    assert torch.equal(long[: len(short)], short)
    assert sinusoids(10, 8, CPU) is long  # not made again


def test_embedding_is_scaled_word_plus_position():
    embedding = Embedding(11, 16)
    tokens, positions = torch.tensor([3, 5, 3]), torch.tensor([0, 1, 700])
    table = sinusoids(701, 16, CPU)
    expected = embedding.weight[tokens] * 4 + table[positions]
    torch.testing.assert_close(embedding(tokens, positions, 701), expected)


def test_a_table_made_while_decoding_serves_in_training(monkeypatch):
    # Validation decodes in inference mode in the middle of training; what it leaves behind must not break autograd.
    monkeypatch.setattr(layers, "_tables", {})
    embedding = Embedding(11, 16)
    tokens, positions = torch.tensor([3, 5]), torch.tensor([0, 1])
    with torch.inference_mode():
        embedding(tokens, positions, 2)
    embedding(tokens, positions, 2).square().sum().backward()
    assert embedding.weight.grad.abs().sum() > 0


# ---- dropout ----


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_rate_and_scale(rate):
    torch.manual_seed(1)
    noise = Dropout(rate).noise(torch.empty(1000, 401))
    assert set(noise.unique().tolist()) == {0.0, torch.tensor(1 / (1 - rate)).item()}
    dropped = (noise == 0).double()
    spread = math.sqrt(rate * (1 - rate) / noise.numel())
    assert abs(dropped.mean().item() - rate) < 5 * spread
    # The same rate in every lane of 16 bits, and no tie between neighbours.
    for lane in range(4):
        assert abs(dropped.flatten()[lane::4].mean().item() - rate) < 10 * spread
    together = (dropped[:, 1:] * dropped[:, :-1]).mean().item()
    assert abs(together - rate**2) < 5 * spread


def test_dropout_keeps_the_mean():
    torch.manual_seed(1)
    assert abs(Dropout(0.1)(torch.ones(1000, 1000)).mean().item() - 1) < 0.002


def test_dropout_is_the_same_under_one_seed_and_another_under_the_next():
    dropout, x = Dropout(0.4), torch.randn(17, 5)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (3, 5), (2, 3, 7)])
def test_dropout_fits_any_shape(shape):
    x = torch.ones(shape)
    assert Dropout(0.2)(x).shape == x.shape


def test_dropout_is_the_identity_in_eval_and_at_rate_zero():
    x, h = torch.randn(6, 3), torch.randn(6, 3)
    off = Dropout(0.5).eval()
    assert off(x) is x and torch.equal(off.add(h, x), h + x)
    none = Dropout(0.0).train()
    assert none(x) is x and torch.equal(none.add(h, x), h + x)


def test_the_gradient_of_dropout_is_its_noise():
    dropout = Dropout(0.3)
    x = torch.randn(9, 4, requires_grad=True)
    h = torch.randn(9, 4, requires_grad=True)
    torch.manual_seed(5)
    noise = dropout.noise(x)
    torch.manual_seed(5)
    dropout(x).sum().backward()
    assert torch.equal(x.grad, noise)
    x.grad = None
    torch.manual_seed(5)
    out = dropout.add(h, x)
    torch.testing.assert_close(out, h + x * noise)
    out.sum().backward()
    assert torch.equal(x.grad, noise) and torch.equal(h.grad, torch.ones_like(h))


def test_dropout_in_double_and_bfloat16():
    for dtype in (torch.float64, torch.bfloat16):
        assert Dropout(0.5)(torch.ones(8, 8, dtype=dtype)).dtype == dtype


def test_residual_is_norm_of_the_sum():
    residual = shake(Residual(8, 0.5)).eval()
    h, x = torch.randn(5, 8), torch.randn(5, 8)
    expected = F.layer_norm(h + x, (8,), residual.norm.weight, residual.norm.bias)
    torch.testing.assert_close(residual(h, x), expected)


def test_feed_forward():
    network = shake(FeedForward(8, 12))
    x = torch.randn(5, 8)
    inner = torch.clamp(x @ network.inner.weight.T + network.inner.bias, min=0)
    torch.testing.assert_close(network(x), inner @ network.outer.weight.T + network.outer.bias)


# ---- attention ----


def plain_attention(query: Tensor, key: Tensor, value: Tensor, heads: int, causal: bool = False) -> Tensor:
    """One sentence, [length, width], a loop over heads and the softmax written out."""
    size = query.shape[1] // heads
    found = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        weights = query[:, part] @ key[:, part].T / math.sqrt(size)
        if causal:
            weights = weights.masked_fill(torch.ones_like(weights).triu(1).bool(), -torch.inf)
        weights = weights.exp() / weights.exp().sum(1, keepdim=True)
        found.append(weights @ value[:, part])
    return torch.cat(found, dim=1)


def apply(matrix: nn.Linear, part: int, parts: int, x: Tensor) -> Tensor:
    return x @ matrix.weight.chunk(parts)[part].T + matrix.bias.chunk(parts)[part]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_self_attention_is_plain_attention_of_each_sentence(lengths, causal):
    torch.manual_seed(0)
    attention = shake(SelfAttention(8, 2, causal)).double()
    x = torch.randn(sum(lengths), 8, dtype=torch.float64)
    expected = [
        attention.output(plain_attention(*(apply(attention.query_key_value, i, 3, s) for i in range(3)), 2, causal))
        for s in x.split(lengths)
    ]
    torch.testing.assert_close(attention(x, Segments(torch.tensor(lengths))), torch.cat(expected))


@pytest.mark.parametrize("memory_lengths", [[2, 6, 1, 3], [5, 5, 5, 5]])
@pytest.mark.parametrize("lengths", [[3, 1, 5, 2], [4, 4, 4, 4]])
def test_cross_attention_is_plain_attention_of_each_pair(lengths, memory_lengths):
    torch.manual_seed(0)
    attention = shake(CrossAttention(8, 4)).double()
    x = torch.randn(sum(lengths), 8, dtype=torch.float64)
    memory = torch.randn(sum(memory_lengths), 8, dtype=torch.float64)
    expected = [
        attention.output(
            plain_attention(attention.query(s), *(apply(attention.key_value, i, 2, m) for i in range(2)), 4)
        )
        for s, m in zip(x.split(lengths), memory.split(memory_lengths), strict=True)
    ]
    found = attention(x, Segments(torch.tensor(lengths)), memory, Segments(torch.tensor(memory_lengths)))
    torch.testing.assert_close(found, torch.cat(expected))


def test_a_word_does_not_see_those_after_it():
    attention = shake(SelfAttention(8, 2, causal=True))
    segments = Segments(torch.tensor([4, 2]))
    x = torch.randn(6, 8)
    changed = x.clone()
    changed[2] += 1
    same = (attention(x, segments) == attention(changed, segments)).all(1)
    assert same.tolist() == [True, True, False, False, True, True]


def test_gradients_stay_within_a_sentence():
    attention = shake(SelfAttention(8, 2))
    x = torch.randn(9, 8, requires_grad=True)
    attention(x, Segments(torch.tensor([4, 3, 2])))[4:7].sum().backward()
    assert x.grad.bool().any(1).tolist() == [False] * 4 + [True] * 3 + [False] * 2


def test_each_square_matrix_of_a_fused_one_starts_with_its_own_fan_out():
    # Xavier over the fused matrix would make query, key and value smaller than the output matrix.
    bound = math.sqrt(6 / (64 + 64))
    for matrix, parts in ((SelfAttention(64, 2).query_key_value, 3), (CrossAttention(64, 2).key_value, 2)):
        for part in matrix.weight.chunk(parts):
            assert 0.95 * bound < part.abs().max() <= bound
