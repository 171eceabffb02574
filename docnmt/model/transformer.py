"""The whole model: the Transformer of Vaswani et al. (2017), theta_s, with the paper's context sub-layers, theta_d.

One class. Without a context the added modules are passed over and what remains *is* the sentence model:
P(y | x; theta_s) is a special case of P(y | X_<k, x; theta_s, theta_d).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.errors import DocnmtError
from docnmt.model.context import ContextAttention, ContextEncoder, is_document_parameter
from docnmt.model.layers import CrossAttention, Dropout, Embedding, FeedForward, Residual, SelfAttention
from docnmt.model.loss import smoothed_cross_entropy
from docnmt.model.segments import Segments


class Packed(NamedTuple):
    """Token ids of many segments in one row, and where each segment lies."""

    tokens: Tensor  # [tokens]
    segments: Segments


@dataclass(frozen=True)
class Batch:
    """Sentence pairs for training or scoring; `context` is None where the context modules are to be passed over."""

    source: Packed  # each sentence with its end mark
    target_in: Packed  # y_0 = begin, y_1 ... y_{J-1}
    target_out: Tensor  # y_1 ... y_J = end, [target tokens]
    context: Packed | None = None


class Memory(NamedTuple):
    """What the decoder attends to."""

    states: Tensor  # S^(N_s), [source tokens, width]
    segments: Segments
    context: Tensor | None  # C^(N_c), [context tokens, width]
    context_segments: Segments | None


class EncoderLayer(nn.Module):
    def __init__(self, model: ModelConfig, context: ContextAttention | None):
        super().__init__()
        self.attention = SelfAttention(model.width, model.heads)
        self.after_attention = Residual(model.width, model.dropout)
        self.context = context
        self.feed_forward = FeedForward(model.width, model.filter_width)
        self.after_feed_forward = Residual(model.width, model.dropout)

    def forward(
        self, s: Tensor, segments: Segments, context: Tensor | None, context_segments: Segments | None
    ) -> Tensor:
        b = self.after_attention(s, self.attention(s, segments))  # B^(n) = MultiHead(S^(n-1), S^(n-1), S^(n-1))
        if self.context is not None and context is not None:
            b = self.context(b, segments, context, context_segments)  # D^(n) = MultiHead(B^(n), C^(N_c), C^(N_c))
        return self.after_feed_forward(b, self.feed_forward(b))  # S^(n) = [FNN(D_1); ...; FNN(D_I)]


class DecoderLayer(nn.Module):
    def __init__(self, model: ModelConfig, context: ContextAttention | None):
        super().__init__()
        self.attention = SelfAttention(model.width, model.heads, causal=True)
        self.after_attention = Residual(model.width, model.dropout)
        self.context = context
        self.source_attention = CrossAttention(model.width, model.heads)
        self.after_source_attention = Residual(model.width, model.dropout)
        self.feed_forward = FeedForward(model.width, model.filter_width)
        self.after_feed_forward = Residual(model.width, model.dropout)

    def forward(self, t: Tensor, segments: Segments, memory: Memory) -> Tensor:
        e = self.after_attention(t, self.attention(t, segments))  # E^(n) = MultiHead(T^(n-1), T^(n-1), T^(n-1))
        if self.context is not None and memory.context is not None:
            e = self.context(e, segments, memory.context, memory.context_segments)  # F^(n) = MultiHead(E^(n), C, C)
        g = self.source_attention(e, segments, memory.states, memory.segments)  # G^(n) = MultiHead(F^(n), S, S)
        g = self.after_source_attention(e, g)
        return self.after_feed_forward(g, self.feed_forward(g))  # T^(n) = [FNN(G_1); ...; FNN(G_j)]


class DocumentTransformer(nn.Module):
    encoder: list[EncoderLayer]  # module lists, named here by what they hold
    decoder: list[DecoderLayer]

    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.model_config, self.context_config = model, context
        self.source_embedding = Embedding(source_vocabulary, model.width)
        self.target_embedding = Embedding(target_vocabulary, model.width)
        self.dropout = Dropout(model.dropout)
        in_encoder = context.active and context.integration in ("encoder", "both")
        in_decoder = context.active and context.integration in ("decoder", "both")
        self.context_encoder = (
            ContextEncoder(context.layers, model.width, model.filter_width, model.heads, model.dropout)
            if in_encoder or in_decoder
            else None
        )

        def sublayer(wanted: bool) -> ContextAttention | None:
            return ContextAttention(model.width, model.heads, context.connection, context.start) if wanted else None

        encoder = (EncoderLayer(model, sublayer(in_encoder)) for _ in range(model.encoder_layers))
        decoder = (DecoderLayer(model, sublayer(in_decoder)) for _ in range(model.decoder_layers))
        self.encoder = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.decoder = nn.ModuleList(decoder)  # type: ignore[assignment]
        self.softmax = nn.Linear(model.width, target_vocabulary, bias=False)  # W_o
        nn.init.normal_(self.softmax.weight, std=model.width**-0.5)
        self.tie_weights()

    def tie_weights(self) -> None:
        """One table where the recipe wants one."""
        if self.model_config.tie == "all":
            self.target_embedding = self.source_embedding
        if self.model_config.tie != "none":
            self.softmax.weight = self.target_embedding.weight

    def embed(self, embedding: Embedding, packed: Packed) -> Tensor:
        segments = packed.segments
        return self.dropout(embedding(packed.tokens, segments.positions, segments.longest))  # [tokens, width]

    def encode(self, source: Packed, context: Packed | None = None) -> Memory:
        c, context_segments = None, None
        if self.context_encoder is not None and context is not None:
            context_segments = context.segments
            c = self.context_encoder(self.embed(self.source_embedding, context), context_segments)  # C^(N_c)
        s = self.embed(self.source_embedding, source)  # S^(0) = X
        for layer in self.encoder:
            s = layer(s, source.segments, c, context_segments)
        return Memory(s, source.segments, c, context_segments)

    def forward(self, batch: Batch) -> Tensor:
        """T^(N_t), [target tokens, width]"""
        memory = self.encode(batch.source, batch.context)
        t = self.embed(self.target_embedding, batch.target_in)  # T^(0) = Y
        for layer in self.decoder:
            t = layer(t, batch.target_in.segments, memory)
        return t

    def loss(self, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """The smoothed cross-entropy summed over tokens, and each target token's log-probability."""
        return smoothed_cross_entropy(self(batch), self.softmax.weight, batch.target_out, smoothing)

    # ---- theta = theta_s + theta_d ----

    def sentence_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_s"""
        return ((n, p) for n, p in self.named_parameters() if not is_document_parameter(n))

    def document_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_d"""
        return ((n, p) for n, p in self.named_parameters() if is_document_parameter(n))

    @torch.no_grad()
    def load_weights(self, weights: dict[str, Tensor]) -> list[str]:
        """Takes over every weight that fits by name; returns the names of those the given weights do not have."""
        own = dict(self.named_parameters())
        for name, value in weights.items():
            if name not in own or own[name].shape != value.shape:
                raise DocnmtError(
                    f"the weights do not fit the model: {name} has shape {tuple(value.shape)}\n"
                    "  Use weights and settings of the same model."
                )
            own[name].copy_(value)
        return [name for name in own if name not in weights]
