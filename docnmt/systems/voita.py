"""Voita et al. (2018), "Context-Aware Neural Machine Translation Learns Anaphora Resolution".

The context goes through the source encoder's own first N - 1 layers and a last layer of its own. In the source
encoder's last layer

    a = MultiHead(S, S, S)                  self-attention, as it was
    b = MultiHead(S, C, C)                  attention to the encoded context
    g = sigmoid(W [a; b] + b_0)             for each position and dimension
    g a + (1 - g) b                         takes the place of a

and everything after it, the decoder included, stays what it was.
"""

from __future__ import annotations

import torch
from torch import nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Contexts, Packed
from docnmt.model.layers import CrossAttention
from docnmt.model.transformer import DocumentTransformer, EncoderLayer, Memory
from docnmt.systems.interface import System


class VoitaTransformer(DocumentTransformer):
    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, ContextConfig(kind="none"), source_vocabulary, target_vocabulary)
        self.context_config = context
        self.context_last_layer = EncoderLayer(model, None)
        self.context_attention = CrossAttention(model.width, model.heads)
        self.context_gate = nn.Linear(2 * model.width, model.width)
        nn.init.xavier_uniform_(self.context_gate.weight)
        nn.init.zeros_(self.context_gate.bias)

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        if context is None:
            return super().encode(source)
        assert isinstance(context, Packed)
        s, segments = self.embed(self.source_embedding, source), source.segments
        c, context_segments = self.embed(self.source_embedding, context), context.segments
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


SYSTEM = System(VoitaTransformer)
