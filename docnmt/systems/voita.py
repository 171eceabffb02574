"""Voita et al. (2018), "Context-Aware Neural Machine Translation Learns Anaphora Resolution".

The context goes through the source encoder's own first N - 1 layers and a last layer of its own. A
special token stands before the context and not before the source, so that the shared layers know
which of the two they encode. In the source encoder's last layer

    a = MultiHead(S, S, S)                  self-attention, as it was
    b = MultiHead(S, C, C)                  attention to the encoded context
    g = sigmoid(W [a; b] + b_0)             for each position and dimension
    g a + (1 - g) b                         takes the place of a

and everything after it, including the decoder, is unchanged.

Ours: the special token's embedding belongs to theta_d. The authors train the whole model; a frozen
base has never read this token and could not learn what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from docnmt.data.context import ContextRule, Ids, Ints, Sizes
from docnmt.data.packing import Contexts, Packed
from docnmt.model.layers import CrossAttention
from docnmt.model.transformer import DocumentTransformer, EncoderLayer, Memory
from docnmt.systems.interface import System


@dataclass(frozen=True)
class MarkedContext(ContextRule):
    """The neighbours in one row after the special token, which is alone if there are none."""

    def join(self, before: Sequence[Ids], after: Sequence[Ids]) -> list[int]:
        row = ContextRule.join(replace(self, max_tokens=self.max_tokens - 1), before, after)
        return row if row == [self.bos] else [self.bos, *row]

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        joined, source, target = super().added(sizes)
        there = sizes.before + sizes.after > 0
        return (joined + there).clip(max=self.max_tokens), source, target


class VoitaTransformer(DocumentTransformer):
    def add_context(self) -> None:
        model = self.model_config
        self.context_mark = nn.Parameter(torch.empty(model.width))  # the embedding of the special token
        nn.init.normal_(self.context_mark, std=model.width**-0.5)
        self.context_last_layer = EncoderLayer(model, None)
        self.context_attention = CrossAttention(model.width, model.heads)
        self.context_gate = nn.Linear(2 * model.width, model.width)
        nn.init.xavier_uniform_(self.context_gate.weight)
        nn.init.zeros_(self.context_gate.bias)

    def embed_context(self, context: Packed) -> Tensor:
        """[context tokens, width]; the first token of each context is the special one, whatever its id"""
        segments = context.segments
        words, mark = self.source_embedding.words(context.tokens), self.context_mark * self.source_embedding.scale
        words = torch.where((segments.positions == 0)[:, None], mark, words)
        return self.dropout(words + self.source_embedding.table(segments.longest)[segments.positions])

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        if context is None:
            return super().encode(source)
        assert isinstance(context, Packed)
        s, segments = self.embed(self.source_embedding, source), source.segments
        c, context_segments = self.embed_context(context), context.segments
        for layer in self.encoder[:-1]:
            s = layer(s, segments, None, None)
            c = layer(c, context_segments, None, None)  # the same weights
        c = self.context_last_layer(c, context_segments, None, None)
        last = self.encoder[-1]
        a = last.attention(s, segments)
        b = self.context_attention(s, segments, c, context_segments)
        g = torch.sigmoid(self.context_gate(torch.cat([a, b], dim=-1)))  # [tokens, width]
        s = last.after_attention(s, torch.lerp(b, a, g))
        return Memory(last.after_feed_forward(s, last.feed_forward(s)), segments)


SYSTEM = System(VoitaTransformer, rule=lambda _: MarkedContext)
