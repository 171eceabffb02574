"""The model's layers for inference, each made from the layer that was trained.

What the paper computes with several matrices is computed with one where the inputs are the same:
    query, key and value of the words;
    the context query with the gate's W_i;
    the context output W_o with the gate's W_s folded through it: W_s SubLayer(H) = (W_s W_o) a + W_s b_o;
    keys and values of the source for all decoder layers, and of the context for all layers of both sides.
A query's scale, 1 / sqrt(width / heads), is part of its matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.engine.matrices import Matrix, pack
from docnmt.model.context import ContextAttention, ContextEncoderLayer, IdentityGating, PaperGating, PaperResidual
from docnmt.model.layers import CrossAttention, FeedForward, SelfAttention
from docnmt.model.transformer import DecoderLayer, EncoderLayer

Attend = Callable[[Tensor], Tensor]  # queries, [rows, width] -> what they find, [rows, width]


class Norm:
    def __init__(self, layer: nn.LayerNorm):
        # Held by themselves: the compiled decoder points to them, and a model may be moved or converted later.
        self.weight, self.bias = layer.weight.detach().contiguous(), layer.bias.detach().contiguous()
        self.shape, self.eps = layer.normalized_shape, layer.eps

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class PackedSelfAttention:
    """Everything but the attention itself."""

    def __init__(self, attention: SelfAttention, norm: nn.LayerNorm, int8: bool):
        weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
        scale = torch.ones(len(bias))
        scale[: len(bias) // 3] = _scale(attention)
        self.query_key_value = pack(weight * scale[:, None], bias * scale, int8)
        self.output = pack(attention.output.weight, attention.output.bias, int8)
        self.norm = Norm(norm)

    def __call__(self, h: Tensor, attend: Attend) -> Tensor:
        return self.norm(self.output(attend(self.query_key_value(h))).add_(h))


class PackedSourceAttention:
    def __init__(self, attention: CrossAttention, norm: nn.LayerNorm, int8: bool):
        self.query = _query(attention, int8)
        self.output = pack(attention.output.weight, attention.output.bias, int8)
        self.norm = Norm(norm)

    def __call__(self, h: Tensor, attend: Attend) -> Tensor:
        return self.norm(self.output(attend(self.query(h))).add_(h))


class PackedFeedForward:
    def __init__(self, layer: FeedForward, norm: nn.LayerNorm, int8: bool):
        self.activation = layer.activation
        self.inner = pack(layer.inner.weight, layer.inner.bias, int8, layer.activation)
        self.outer = pack(layer.outer.weight, layer.outer.bias, int8)
        self.norm = Norm(norm)

    def __call__(self, h: Tensor) -> Tensor:
        return self.norm(self.outer(self.inner(h)).add_(h))


class PackedContextAttention:
    """The added sub-layer with its gate or residual connection."""

    def __init__(self, layer: ContextAttention, int8: bool):
        attention, connection = layer.attention, layer.connection
        self.gated = isinstance(connection, PaperGating | IdentityGating)
        norm = connection.norm if isinstance(connection, PaperGating | PaperResidual) else None
        self.norm = None if norm is None else Norm(norm)
        w_o, b_o = attention.output.weight, attention.output.bias
        if isinstance(connection, PaperGating | IdentityGating):
            w_i, w_s = connection.gate.w_i, connection.gate.w_s.weight
            self.query = _query(attention, int8, w_i)
            self.output = pack(torch.cat([w_o, w_s @ w_o]), torch.cat([b_o, w_s @ b_o]), int8)
        else:
            self.query = _query(attention, int8)
            self.output = pack(w_o, b_o, int8)

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
    """Of the source's encoder, or of the context's, which has no context of its own."""

    def __init__(self, layer: EncoderLayer | ContextEncoderLayer, int8: bool):
        self.attention = PackedSelfAttention(layer.attention, layer.after_attention.norm, int8)
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
        self.attention = PackedSelfAttention(layer.attention, layer.after_attention.norm, int8)
        self.context = None if layer.context is None else PackedContextAttention(layer.context, int8)
        self.source_attention = PackedSourceAttention(layer.source_attention, layer.after_source_attention.norm, int8)
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
