"""The model's layers for inference, each made from the trained layer, with matrices that are packed once.

What the paper computes with several matrices is computed with one if the inputs are the same:
    query, key and value of the words;
    the context query with the gate's W_i;
    the context attention's output (W, b) with the gate's W_s folded through it: W_s SubLayer(H) = (W_s W) a + W_s b;
    keys and values of the source for all decoder layers, and of the context for all layers of both sides.
A query's scale, 1 / sqrt(width / heads), is part of its matrix.

Products are the accelerator's if it has them. In int8, weights and inputs have one scale per row, so that no row
depends on others; without the accelerator the same rounded weights are multiplied in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from docnmt.engine import native
from docnmt.engine.native import DEPTH, Accelerator, PackedMatrix, dequantize, quantize
from docnmt.model.context import ContextAttention, ContextEncoderLayer
from docnmt.model.layers import ACTIVATIONS, CrossAttention, FeedForward, SelfAttention
from docnmt.model.transformer import DecoderLayer, EncoderLayer

# ---- Products with matrices that no longer change ----

Matrix = Callable[[Tensor], Tensor]  # [rows, inputs] -> [rows, outputs]


def has_int8() -> bool:
    """Whether there is an int8 product for this processor."""
    return _fast() is not None


def _fast() -> Accelerator | None:
    found = native.accelerator()
    return found if found is not None and found.has_products else None


class Rows:
    """A matrix as products take it, whole or some of its rows: in float32, or in int8, where each row
    has its own scale: its largest element becomes 127, or less if the accelerator's sums would
    overflow. Without an int8 product for it, it has the rounded numbers in float32."""

    def __init__(self, weight: Tensor, int8: bool):
        self.values, self.fast = weight, _fast()
        self.scales: Tensor | None = None
        if int8:
            values, scales = quantize(weight.contiguous())  # int8 [rows, columns], [rows]
            if self.fast is not None and weight.shape[1] % DEPTH == 0:
                self.values, self.scales = self.fast.in_16_bits(values, scales)
            else:
                self.values = dequantize(values, scales)

    def matrix(self, bias: Tensor | None, activation: str = "", chosen: Tensor | None = None) -> Matrix:
        """x -> activation(x weight^T + bias), for all rows or those chosen; the bias has the same number."""
        if self.fast is not None:
            return FastMatrix(self.fast, self.fast.pack(self.values, self.scales, bias, chosen), activation)
        return TorchMatrix(self.values if chosen is None else self.values[chosen], bias, activation)


class TorchMatrix:
    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str):
        self.weight, self.bias, self.activation = weight.contiguous(), bias, activation

    def __call__(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return ACTIVATIONS[self.activation](y) if self.activation else y


@dataclass
class FastMatrix:
    """The accelerator's matrix product."""

    fast: Accelerator
    packed: PackedMatrix
    activation: str

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        if self.activation in native.ACTIVATIONS:
            return self.fast.product(self.packed, x, self.activation, out)
        return ACTIVATIONS[self.activation](self.fast.product(self.packed, x))


def pack(weight: Tensor, bias: Tensor | None, int8: bool, activation: str = "") -> Matrix:
    """x -> activation(x weight^T + bias)"""
    return Rows(weight, int8).matrix(bias, activation)


def pack_linear(layer: nn.Linear, int8: bool, activation: str = "") -> Matrix:
    return pack(layer.weight, layer.bias, int8, activation)


class Softmax:
    """W_o, whole or some of its rows: those of a shortlist."""

    def __init__(self, weight: Tensor, bias: Tensor | None, int8: bool):
        self.rows, self.bias = Rows(weight, int8), bias
        self.whole = self.over(None)

    def over(self, words: Tensor | None) -> Matrix:
        bias = self.bias if self.bias is None or words is None else self.bias[words]
        return self.rows.matrix(bias, chosen=words)

    def listed(self, words: Sequence[Tensor]) -> Listed:
        """Over the words of each sentence's shortlist, in their order."""
        ids = pad_sequence(list(words), batch_first=True, padding_value=-1)
        united = torch.cat(list(words)).unique()
        ids, none = ids.clamp(min=0), ids < 0
        columns = torch.searchsorted(united, ids).masked_fill_(none, 0)
        return Listed(self.over(united), ids, columns, none)


class Listed(NamedTuple):
    """What each sentence of a batch may write. One product scores the words of all sentences, which
    is faster than one for each; a sentence sees only its own columns, so that its result does not
    depend on the rest of the batch."""

    matrix: Matrix
    words: Tensor  # of each sentence, [sentences, most]
    columns: Tensor  # where the product has them
    none: Tensor  # True after a sentence's last word

    def __call__(self, t: Tensor) -> Tensor:
        """[rows, width] -> [rows, most]"""
        scores = self.matrix(t).unflatten(0, (len(self.words), -1))  # [sentences, beam, words of all]
        own = scores.gather(2, self.columns[:, None].expand(-1, scores.shape[1], -1))
        return own.masked_fill_(self.none[:, None], -torch.inf).flatten(0, 1)

    def of(self, sentences: Tensor) -> Listed:
        return self._replace(words=self.words[sentences], columns=self.columns[sentences], none=self.none[sentences])


# ---- Layers ----

Attend = Callable[[Tensor], Tensor]  # queries, [rows, width] -> what they find, [rows, width]


class Norm:
    def __init__(self, layer: nn.LayerNorm):
        # Copied: the compiled decoder points to them, and the model may be moved or converted later.
        self.weight, self.bias = layer.weight.detach().clone(), layer.bias.detach().clone()
        self.shape, self.eps = layer.normalized_shape, layer.eps

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class PackedAttention:
    """A sub-layer without the attention itself. `query` is made from the sub-layer's input: the
    query, in self-attention with key and value."""

    def __init__(self, query: Matrix, attention: SelfAttention | CrossAttention, norm: nn.LayerNorm, int8: bool):
        self.query, self.output, self.norm = query, pack_linear(attention.output, int8), Norm(norm)

    def __call__(self, h: Tensor, attend: Attend) -> Tensor:
        return self.norm(self.output(attend(self.query(h))).add_(h))


def self_attention(attention: SelfAttention, norm: nn.LayerNorm, int8: bool) -> PackedAttention:
    weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
    scale = torch.ones(len(bias))
    scale[: len(bias) // 3] = _scale(attention)
    return PackedAttention(pack(weight * scale[:, None], bias * scale, int8), attention, norm, int8)


class PackedFeedForward:
    def __init__(self, layer: FeedForward, norm: nn.LayerNorm, int8: bool):
        self.activation = layer.activation
        self.inner, self.outer = pack_linear(layer.inner, int8, layer.activation), pack_linear(layer.outer, int8)
        self.norm = Norm(norm)

    def __call__(self, h: Tensor) -> Tensor:
        return self.norm(self.outer(self.inner(h)).add_(h))


class PackedContextAttention:
    """The added sub-layer with its gate or residual connection."""

    def __init__(self, layer: ContextAttention, int8: bool):
        attention, connection = layer.attention, layer.connection
        gate, norm = connection.gate, connection.norm
        self.gated, self.norm = gate is not None, None if norm is None else Norm(norm)
        self.query = _query(attention, int8, None if gate is None else gate.w_i)
        if gate is None:
            self.output = pack_linear(attention.output, int8)
        else:
            weight, bias, w_s = attention.output.weight, attention.output.bias, gate.w_s.weight
            self.output = pack(torch.cat([weight, w_s @ weight]), torch.cat([bias, w_s @ bias]), int8)

    def __call__(self, h: Tensor, attend: Attend) -> Tensor:
        if not self.gated:
            h = self.output(attend(self.query(h))).add_(h)
            return h if self.norm is None else self.norm(h)
        query, of_h = self.query(h).chunk(2, dim=1)
        sublayer, of_sublayer = self.output(attend(query)).chunk(2, dim=1)
        gate = torch.sigmoid_(of_h + of_sublayer)  # lambda
        if self.norm is None:
            return torch.addcmul(h, gate.neg_().add_(1), sublayer)
        return self.norm(torch.lerp(sublayer, h, gate))


class PackedEncoderLayer:
    """Of the source encoder, or of the context encoder, which has no context of its own."""

    def __init__(self, layer: EncoderLayer | ContextEncoderLayer, int8: bool):
        self.attention = self_attention(layer.attention, layer.after_attention.norm, int8)
        context = layer.context if isinstance(layer, EncoderLayer) else None
        self.context = None if context is None else PackedContextAttention(context, int8)
        self.feed_forward = PackedFeedForward(layer.feed_forward, layer.after_feed_forward.norm, int8)

    def __call__(self, s: Tensor, to_words: Attend, to_context: Attend | None = None) -> Tensor:
        b = self.attention(s, to_words)
        if self.context is not None and to_context is not None:
            b = self.context(b, to_context)
        return self.feed_forward(b)


class PackedDecoderLayer:
    def __init__(self, layer: DecoderLayer, int8: bool):
        self.attention = self_attention(layer.attention, layer.after_attention.norm, int8)
        self.context = None if layer.context is None else PackedContextAttention(layer.context, int8)
        source, norm = layer.source_attention, layer.after_source_attention.norm
        self.source_attention = PackedAttention(_query(source, int8), source, norm, int8)
        self.feed_forward = PackedFeedForward(layer.feed_forward, layer.after_feed_forward.norm, int8)

    def __call__(self, t: Tensor, to_words: Attend, to_context: Attend | None, to_source: Attend) -> Tensor:
        e = self.attention(t, to_words)
        if self.context is not None and to_context is not None:
            e = self.context(e, to_context)
        return self.feed_forward(self.source_attention(e, to_source))


def keys_and_values(attentions: Sequence[CrossAttention], int8: bool) -> Matrix:
    """Of one memory for all these attentions, [tokens, width] -> [tokens, attentions x 2 width]"""
    parts = [attention.key_value for attention in attentions]
    return pack(torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]), int8)


def _scale(attention: SelfAttention | CrossAttention) -> float:
    return (attention.output.weight.shape[0] / attention.heads) ** -0.5


def _query(attention: CrossAttention, int8: bool, beside: nn.Linear | None = None) -> Matrix:
    """The query's matrix, and beside it another one of the same input."""
    weight, bias = attention.query.weight * _scale(attention), attention.query.bias * _scale(attention)
    if beside is not None:
        beside_bias = beside.weight.new_zeros(len(beside.weight)) if beside.bias is None else beside.bias
        weight, bias = torch.cat([weight, beside.weight]), torch.cat([bias, beside_bias])
    return pack(weight, bias, int8)
