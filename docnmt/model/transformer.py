"""The whole model: the Transformer of Vaswani et al. (2017), theta_s, with the paper's context sub-layers, theta_d.

One class. Without a context the added modules are skipped and what remains *is* the sentence model:
P(y | x; theta_s) is a special case of P(y | X_<k, x; theta_s, theta_d).

The paper's symbols, in addition to those of context.py:
    X       embedded words of the source sentence   S^(n)   encoder state after layer n, S^(0) = X
    Y       embedded words of the target so far     T^(n)   decoder state after layer n, T^(0) = Y
    G^(n)   decoder state after source attention    W_o     the softmax layer
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, Contexts, History, Packed, Segments
from docnmt.model.base import TranslationModel, hypotheses_of, select
from docnmt.model.context import (
    ContextAttention,
    ContextEmbeddings,
    ContextEncoder,
    ContextLSTM,
    EncodedSentences,
)
from docnmt.model.layers import (
    CrossAttention,
    Dropout,
    Embedding,
    FeedForward,
    Residual,
    SelfAttention,
    attention_weights,
    join_heads,
    split_heads,
)


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
    """For all words at once: in training and scoring. Word by word it runs

    - on a CPU, packed, in engine/csrc/decoder.h, or in engine/layers.py where there is no C extension,
    - in `DecoderState` below on a GPU, and for systems that change the model.

    The keys and values of the context are then in `DecoderState.contexts`, or in a memory of engine/kv_cache.py.
    """

    def __init__(self, model: ModelConfig, context: ContextAttention | None):
        super().__init__()
        self.attention = SelfAttention(model.width, model.heads, causal=True)
        self.after_attention = Residual(model.width, model.dropout, model.norm_epsilon)
        self.context = context
        self.source_attention = CrossAttention(model.width, model.heads)
        self.after_source_attention = Residual(model.width, model.dropout, model.norm_epsilon)
        self.feed_forward = FeedForward(model.width, model.filter_width, model.activation)
        self.after_feed_forward = Residual(model.width, model.dropout, model.norm_epsilon)

    def forward(self, t: Tensor, segments: Segments, memory: Memory) -> tuple[Tensor, Tensor]:
        """T^(n), and what source attention found"""
        e = self.after_attention(t, self.attention(t, segments))  # E^(n) = MultiHead(T^(n-1), T^(n-1), T^(n-1))
        if self.context is not None and memory.context is not None:
            # F^(n) = MultiHead(E^(n), C^(N_c), C^(N_c))
            e = self.context(e, segments, memory.context, memory.context_segments)
        attended = self.source_attention(e, segments, memory.states, memory.segments)
        return self.finish(e, attended), attended

    def finish(self, e: Tensor, attended: Tensor) -> Tensor:
        g = self.after_source_attention(e, attended)  # G^(n) = MultiHead(F^(n), S^(N_s), S^(N_s))
        return self.after_feed_forward(g, self.feed_forward(g))  # T^(n) = [FNN(G_1); ...; FNN(G_j)]


# ---- The whole model ----


class DocumentTransformer(TranslationModel):
    encoder: list[EncoderLayer]  # module lists, typed by what they hold
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
        self.add_context()

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
            t, attended = layer(t, target_in.segments, memory)
        decoded = Decoded(t, attended)
        return decoded if memory.remembered is None else self.recall(decoded, target_in.segments, memory.remembered)

    def recall(self, decoded: Decoded, segments: Segments, remembered: Any) -> Decoded:
        """A hook for systems that bring what they remember into the decoder's top layer."""
        return decoded

    def forward(self, batch: Batch) -> Tensor:
        """T^(N_t), [target tokens, width]"""
        return self.decode(batch.target_in, self.encode(batch.source, batch.context)).states

    def alignment(self, batch: Batch) -> Tensor:
        # The layers near the top know it best, the last but one of six (Garg et al., 2019);
        # of two or three the last one.
        layer = self.decoder[-(-5 * len(self.decoder) // 6) - 1]
        seen: list[Tensor] = []

        def after(attention: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            seen.append(attention_weights(attention, *inputs).mean(dim=1))

        handle = layer.source_attention.register_forward_hook(after)
        try:
            self(batch)
        finally:
            handle.remove()
        return seen[0]


# ---- one word at a time, with the keys and values of the words so far kept ----


class Attended(NamedTuple):
    """Keys and values of a memory for one layer, one row per sentence."""

    key: Tensor  # [sentences, heads, longest, width / heads]
    value: Tensor
    mask: Tensor | None  # [sentences, 1, 1, longest], True = may attend

    @classmethod
    def to(cls, attention: CrossAttention, states: Tensor, segments: Segments) -> Attended:
        return cls(*attention.memory(states, segments), segments.attention_mask)


class DecoderState:
    """The Transformer's; on a CPU `engine.Engine` takes its place. `remembered`: what a system keeps of the sentences
    before."""

    words: Tensor | None = None

    def __init__(self, model: DocumentTransformer, memory: Memory, beam: int):
        self.model, self.beam, self.remembered = model, beam, memory.remembered
        self.step = 0
        self.sources = [Attended.to(layer.source_attention, memory.states, memory.segments) for layer in model.decoder]
        self.contexts: list[Attended | None] = [None] * len(model.decoder)
        if memory.context is not None and memory.context_segments is not None:
            for n, layer in enumerate(model.decoder):
                if layer.context is not None:
                    attention = layer.context.attention
                    self.contexts[n] = Attended.to(attention, memory.context, memory.context_segments)
        # keys and values of the words so far, for each layer [rows, heads, step, width / heads]
        config = model.model_config
        rows = memory.segments.count * beam
        none = memory.states.new_empty(rows, config.heads, 0, config.width // config.heads)
        self.keys, self.values = [none] * len(model.decoder), [none] * len(model.decoder)

    def logits(self, words: Tensor) -> Tensor:
        return self.model.logits(self.advance(words), words, self.remembered)

    def advance(self, words: Tensor) -> Decoded:
        """The last word of each hypothesis, [rows] -> what `model.decode` has for the next one"""
        model = self.model
        t = model.target_embedding.at(words, self.step)
        for n, layer in enumerate(model.decoder):
            e = layer.after_attention(t, self._attend_to_words(n, t))
            context = self.contexts[n]
            if layer.context is not None and context is not None:
                e = layer.context.connection(e, self._attend(layer.context.attention, e, context))
            attended = self._attend(layer.source_attention, e, self.sources[n])
            t = layer.finish(e, attended)
        self.step += 1
        if self.remembered is None:
            return Decoded(t, attended)
        # The hypotheses of a sentence, as if they were its words.
        hypotheses = Segments(torch.full((len(t) // self.beam,), self.beam, device=t.device))
        return model.recall(Decoded(t, attended), hypotheses, self.remembered)

    def _attend_to_words(self, n: int, t: Tensor) -> Tensor:
        attention = self.model.decoder[n].attention
        parts = attention.query_key_value(t)[:, None].chunk(3, dim=-1)  # 3 x [rows, 1, width]
        query, key, value = (split_heads(part, attention.heads) for part in parts)
        self.keys[n] = key = torch.cat([self.keys[n], key], dim=2)
        self.values[n] = value = torch.cat([self.values[n], value], dim=2)
        heads = F.scaled_dot_product_attention(query, key, value)  # [rows, heads, 1, width / heads]
        return attention.output(join_heads(heads)[:, 0])

    def _attend(self, attention: CrossAttention, x: Tensor, memory: Attended) -> Tensor:
        # The hypotheses of a sentence are side by side as if they were positions of one query.
        query = split_heads(attention.query(x).unflatten(0, (-1, self.beam)), attention.heads)
        heads = F.scaled_dot_product_attention(query, memory.key, memory.value, attn_mask=memory.mask)
        return attention.output(join_heads(heads).flatten(0, 1))

    def reorder(self, rows: Tensor) -> None:
        for n in range(len(self.keys)):
            self.keys[n], self.values[n] = self.keys[n][rows], self.values[n][rows]

    def keep(self, sentences: Tensor) -> None:
        self.reorder(hypotheses_of(sentences, self.beam))
        self.sources = [select(attended, sentences) for attended in self.sources]
        self.contexts = [select(attended, sentences) for attended in self.contexts]
        self.remembered = select(self.remembered, sentences)
