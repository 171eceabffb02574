"""The whole model: the Transformer of Vaswani et al. (2017), theta_s, with the paper's context sub-layers, theta_d.

One class. Without a context the added modules are skipped and what remains *is* the sentence model:
P(y | x; theta_s) is a special case of P(y | X_<k, x; theta_s, theta_d).

The paper's symbols, beside those of context.py:
    X       embedded words of the source sentence   S^(n)   encoder state after layer n, S^(0) = X
    Y       embedded words of the target so far     T^(n)   decoder state after layer n, T^(0) = Y
    G^(n)   decoder state after source attention    W_o     the softmax layer
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, Contexts, History, Packed, Segments
from docnmt.model.base import TranslationModel
from docnmt.model.context import (
    ContextAttention,
    ContextEmbeddings,
    ContextEncoder,
    ContextLSTM,
    EncodedSentences,
)
from docnmt.model.layers import CrossAttention, Dropout, Embedding, FeedForward, Residual, SelfAttention


class Memory(NamedTuple):
    """What the decoder attends to."""

    states: Tensor  # S^(N_s), [source tokens, width]
    segments: Segments
    context: Tensor | None = None  # C^(N_c), [context tokens, width]
    context_segments: Segments | None = None
    remembered: Any = None  # what a system keeps of the sentences before


class Decoded(NamedTuple):
    """The decoder's top layer at every position of the target."""

    states: Tensor  # T^(N_t), [target tokens, width]
    attended: Tensor  # what its source attention found, [target tokens, width]


# ---- 2.3.1 Integration into the encoder ----


class EncoderLayer(nn.Module):
    def __init__(self, model: ModelConfig, context: ContextAttention | None):
        super().__init__()
        self.attention = SelfAttention(model.width, model.heads)
        self.after_attention = Residual(model.width, model.dropout, model.norm_epsilon)
        self.context = context
        self.feed_forward = FeedForward(model.width, model.filter_width, model.activation)
        self.after_feed_forward = Residual(model.width, model.dropout, model.norm_epsilon)

    def forward(
        self, s: Tensor, segments: Segments, context: Tensor | None, context_segments: Segments | None
    ) -> Tensor:
        b = self.after_attention(s, self.attention(s, segments))  # B^(n) = MultiHead(S^(n-1), S^(n-1), S^(n-1))
        if self.context is not None and context is not None:
            b = self.context(b, segments, context, context_segments)  # D^(n) = MultiHead(B^(n), C^(N_c), C^(N_c))
        return self.after_feed_forward(b, self.feed_forward(b))  # S^(n) = [FNN(D_1); ...; FNN(D_I)]


# ---- 2.3.2 Integration into the decoder ----


class DecoderLayer(nn.Module):
    """For all words at once. Decoding word by word, the same layer is in states.py; packed for a CPU, in
    engine/layers.py and, in C, engine/csrc/decoder.h."""

    def __init__(self, model: ModelConfig, context: ContextAttention | None):
        super().__init__()
        self.attention = SelfAttention(model.width, model.heads, causal=True)
        self.after_attention = Residual(model.width, model.dropout, model.norm_epsilon)
        self.context = context
        self.source_attention = CrossAttention(model.width, model.heads)
        self.after_source_attention = Residual(model.width, model.dropout, model.norm_epsilon)
        self.feed_forward = FeedForward(model.width, model.filter_width, model.activation)
        self.after_feed_forward = Residual(model.width, model.dropout, model.norm_epsilon)

    def forward(self, t: Tensor, segments: Segments, memory: Memory) -> Tensor:
        return self.finish(*self.attend(t, segments, memory))

    def attend(self, t: Tensor, segments: Segments, memory: Memory) -> tuple[Tensor, Tensor]:
        """The state before source attention and what that attention found."""
        e = self.after_attention(t, self.attention(t, segments))  # E^(n) = MultiHead(T^(n-1), T^(n-1), T^(n-1))
        if self.context is not None and memory.context is not None:
            # F^(n) = MultiHead(E^(n), C^(N_c), C^(N_c))
            e = self.context(e, segments, memory.context, memory.context_segments)
        return e, self.source_attention(e, segments, memory.states, memory.segments)

    def finish(self, e: Tensor, attended: Tensor) -> Tensor:
        g = self.after_source_attention(e, attended)  # G^(n) = MultiHead(F^(n), S^(N_s), S^(N_s))
        return self.after_feed_forward(g, self.feed_forward(g))  # T^(n) = [FNN(G_1); ...; FNN(G_j)]


# ---- The whole model ----


class DocumentTransformer(TranslationModel):
    encoder: list[EncoderLayer]  # module lists, named here by what they hold
    decoder: list[DecoderLayer]

    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, context)
        self.source_embedding = Embedding(source_vocabulary, model.width, model.positions)
        self.target_embedding = Embedding(target_vocabulary, model.width, model.positions, model.start)
        self.dropout = Dropout(model.dropout)
        in_context = context.dropout if context.dropout >= 0 else model.dropout
        self.context_dropout = Dropout(context.embedding_dropout if context.embedding_dropout >= 0 else in_context)
        own = context.kind == "attention"  # the systems built on this class add modules of their own
        in_encoder = own and context.integration in ("encoder", "both")
        in_decoder = own and context.integration in ("decoder", "both")
        self.context_encoder = self._context_encoder(in_context) if in_encoder or in_decoder else None

        def sublayer(wanted: bool) -> ContextAttention | None:
            if not wanted:
                return None
            return ContextAttention(
                model.width,
                model.heads,
                context.connection,
                context.start,
                context.gate_opening,
                context.residual_dropout,
            )

        encoder = (EncoderLayer(model, sublayer(in_encoder)) for _ in range(model.encoder_layers))
        decoder = (DecoderLayer(model, sublayer(in_decoder)) for _ in range(model.decoder_layers))
        self.encoder = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.decoder = nn.ModuleList(decoder)  # type: ignore[assignment]
        self.softmax = nn.Linear(model.width, target_vocabulary, bias=model.output_bias)  # W_o
        nn.init.normal_(self.softmax.weight, std=model.width**-0.5)
        if model.output_bias:
            nn.init.zeros_(self.softmax.bias)
        self.tie_weights()

    def _context_encoder(self, dropout: float) -> nn.Module:
        model, context = self.model_config, self.context_config
        if context.representation == "encoder":
            return EncodedSentences(context.previous, model.width)
        if context.representation == "embedding":
            return ContextEmbeddings()
        if context.representation == "lstm":
            return ContextLSTM(model.width)
        return ContextEncoder(context.layers, model.width, model.filter_width, model.heads, dropout)

    def embed(self, embedding: Embedding, packed: Packed, dropout: Dropout | None = None) -> Tensor:
        segments = packed.segments
        embedded = embedding(packed.tokens, segments.positions, segments.longest)
        return (dropout or self.dropout)(embedded)  # [tokens, width]

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        c, context_segments = None, None
        if self.context_encoder is not None and context is not None:
            c, context_segments = self.represent(context)
        s = self.embed(self.source_embedding, source)  # S^(0) = X
        for layer in self.encoder:
            s = layer(s, source.segments, c, context_segments)
        return Memory(s, source.segments, c, context_segments)

    def represent(self, context: Contexts) -> tuple[Tensor, Segments]:
        """C^(N_c), [context tokens, width], one segment for each sentence of the batch"""
        if isinstance(self.context_encoder, EncodedSentences):
            assert isinstance(context, History)
            with torch.no_grad():  # no gradient flows back into the sentences before
                states = self.encode(context.source).states
            return self.context_encoder(self.context_dropout(states), context)
        assert self.context_encoder is not None and isinstance(context, Packed)
        if isinstance(self.context_encoder, ContextEncoder):
            x_c = self.embed(self.source_embedding, context, self.context_dropout)
        else:
            x_c = self.context_dropout(self.source_embedding.words(context.tokens))
        return self.context_encoder(x_c, context.segments), context.segments

    def decode(self, target_in: Packed, memory: Memory) -> Decoded:
        t = self.embed(self.target_embedding, target_in)  # T^(0) = Y
        for layer in self.decoder:
            e, attended = layer.attend(t, target_in.segments, memory)
            t = layer.finish(e, attended)
        decoded = Decoded(t, attended)
        return decoded if memory.remembered is None else self.recall(decoded, target_in.segments, memory.remembered)

    def recall(self, decoded: Decoded, segments: Segments, remembered: Any) -> Decoded:
        """The place for systems that bring what they remember into the decoder's top layer."""
        return decoded

    def forward(self, batch: Batch) -> Tensor:
        """T^(N_t), [target tokens, width]"""
        return self.decode(batch.target_in, self.encode(batch.source, batch.context)).states
