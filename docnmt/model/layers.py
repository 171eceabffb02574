"""The parts of Vaswani et al. (2017): embeddings, attention, feed-forward networks, residual connections; and what
recurrent networks need.

All work on packed rows, [tokens, width] (see data/packing.py). Norms come after each sub-layer, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from docnmt.data.packing import Segments


class Embedding(nn.Module):
    """Word embedding, scaled by the root of the width, plus sinusoidal positions."""

    def __init__(self, vocabulary: int, width: int, positions: str = "vaswani", start: str = "mark"):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.scale = math.sqrt(width)
        self.positions = positions
        self.from_zero = start == "zero"  # the token at position 0 is embedded as zeros

    def forward(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        """tokens, positions: [tokens], every position below `longest` -> [tokens, width]"""
        words = self.words(tokens)
        if self.from_zero:
            words = words * (positions > 0)[:, None]
        return words + self.table(longest)[positions]

    def at(self, tokens: Tensor, position: int) -> Tensor:
        """The same for tokens at one position."""
        place = self.table(position + 1)[position]
        if self.from_zero and position == 0:
            return place.repeat(len(tokens), 1)
        return self.words(tokens) + place

    def words(self, tokens: Tensor) -> Tensor:
        """[tokens] -> [tokens, width], without positions"""
        return F.embedding(tokens, self.weight) * self.scale

    def table(self, length: int) -> Tensor:
        # Grows with the longest sentence so far, instead of being a buffer with a limit.
        return sinusoids(length, self.weight.shape[1], self.weight.device, self.positions)


_tables: dict[tuple[int, torch.device, str], Tensor] = {}


def sinusoids(length: int, width: int, device: torch.device, kind: str = "vaswani") -> Tensor:
    """[length or more, width]: sines in the first half, cosines in the second; cached."""
    table = _tables.get((width, device, kind))
    if table is None or len(table) < length:
        places = torch.arange(max(256, 2 * length), dtype=torch.float32)
        # Rates from 1 to nearly 1 / 10000 in the paper; in Marian and tensor2tensor the last one is 1 / 10000 itself.
        span = width if kind == "vaswani" else max(1, 2 * (width // 2) - 2)
        rates = torch.exp(torch.arange(0, width, 2)[: width // 2] * (-math.log(10000.0) / span))
        angles = places[:, None] * rates  # [length, width / 2]
        table = F.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, width % 2)).to(device)
        _tables[width, device, kind] = table
    return table


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[segments, length, width] -> [segments, heads, length, width / heads]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[segments, heads, length, width / heads] -> [segments, length, width]"""
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """MultiHead(X, X, X); one matrix makes queries, keys and values."""

    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query_key_value = linear(width, 3 * width)
        for part in self.query_key_value.weight.data.split(width):  # three square matrices, each with its own fan-out
            nn.init.xavier_uniform_(part)
        self.output = linear(width, width)

    def forward(self, x: Tensor, segments: Segments) -> Tensor:
        parts = segments.pad(self.query_key_value(x)).chunk(3, dim=-1)  # 3 x [segments, longest, width]
        query, key, value = (split_heads(part, self.heads) for part in parts)
        # Padding comes after the last token, so the causal mask already hides it.
        mask = None if self.causal else segments.attention_mask
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal)
        return self.output(segments.unpad(join_heads(heads)))


class CrossAttention(nn.Module):
    """MultiHead(X, M, M); `memory` gives the keys and values of M, for decoders that compute them once."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = linear(width, width)
        self.key_value = linear(width, 2 * width)
        for part in self.key_value.weight.data.split(width):
            nn.init.xavier_uniform_(part)
        self.output = linear(width, width)

    def memory(self, states: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
        """[memory tokens, width] -> keys and values, each [segments, heads, longest, width / heads]"""
        key, value = segments.pad(self.key_value(states)).chunk(2, dim=-1)
        return split_heads(key, self.heads), split_heads(value, self.heads)

    def forward(self, x: Tensor, segments: Segments, memory: Tensor, memory_segments: Segments) -> Tensor:
        query = split_heads(segments.pad(self.query(x)), self.heads)  # [segments, heads, longest, width / heads]
        key, value = self.memory(memory, memory_segments)
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=memory_segments.attention_mask)
        return self.output(segments.unpad(join_heads(heads)))


def attention_weights(
    attention: CrossAttention, x: Tensor, segments: Segments, memory: Tensor, memory_segments: Segments
) -> Tensor:
    """The weights of `attention` when called with the same arguments, [segments, heads, longest, memory longest]"""
    query = split_heads(segments.pad(attention.query(x)), attention.heads)  # [segments, heads, longest, width / heads]
    key, _ = attention.memory(memory, memory_segments)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    if memory_segments.attention_mask is not None:
        scores = scores.masked_fill(~memory_segments.attention_mask, float("-inf"))
    return scores.softmax(dim=-1)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": partial(F.relu, inplace=True),
    "swish": F.silu,
    "gelu": F.gelu,
}


class FeedForward(nn.Module):
    """FNN, applied at each position."""

    def __init__(self, width: int, filter_width: int, activation: str = "relu"):
        super().__init__()
        self.inner = linear(width, filter_width)
        self.outer = linear(filter_width, width)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(ACTIVATIONS[self.activation](self.inner(x)))


class Dropout(nn.Module):
    """Dropout from 16 random bits per element. torch's own draws a number for each, several times slower on a CPU."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def noise(self, x: Tensor) -> Tensor:
        """0 where an element is dropped, 1 / (1 - rate) elsewhere; shaped as x."""
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        lanes = bits.view(torch.int16)[: x.numel()].view(x.shape)
        # An element is dropped where its 16 bits, read as -32768 ... 32767, fall below this.
        threshold = round(self.rate * 65536) - 32768
        return torch.where(lanes >= threshold, 1 / (1 - self.rate), 0.0).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.noise(x) if self.training and self.rate else x

    def add(self, h: Tensor, x: Tensor) -> Tensor:
        """h + dropout(x), in one pass"""
        return torch.addcmul(h, x, self.noise(x)) if self.training and self.rate else h + x


class Residual(nn.Module):
    """LayerNorm(H + SubLayer(H)), with dropout on the sub-layer's output."""

    def __init__(self, width: int, dropout: float, epsilon: float = 1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(width, epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, h: Tensor, sublayer: Tensor) -> Tensor:
        return self.norm(self.dropout.add(h, sublayer))


# ---- recurrent networks ----


def init_recurrent(network: nn.RNNBase) -> None:
    """A square matrix for each gate: orthogonal for states, Xavier's for inputs. All biases are zero."""
    for name, parameter in network.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
        else:
            for part in parameter.data.split(network.hidden_size):
                (nn.init.orthogonal_ if name.startswith("weight_hh") else nn.init.xavier_uniform_)(part)


def run_recurrent(
    network: nn.RNNBase, x: Tensor, segments: Segments, first: Tensor | None = None
) -> tuple[Tensor, Any]:
    """[tokens, inputs] -> states [segments, longest, directions x width] and each segment's last
    ones [directions, segments, width], in the backward direction that of its first token."""
    rows = pack_padded_sequence(segments.pad(x), segments.lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, last = network(rows, first)
    return pad_packed_sequence(states, batch_first=True)[0], last
