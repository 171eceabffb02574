"""Miculicich et al. (2018), "Document-Level Neural Machine Translation with Hierarchical Attention Networks".

A state looks at the words of each sentence before, then at what it found in these sentences:

    q_w = f_w(h_t)      s^j = MultiHead(q_w, h^j, h^j)              over the words of sentence j
    q_s = f_s(h_t)      d_t = FFN(MultiHead(q_s, s^j, s^j))         over the sentences j
    lambda = sigmoid(W_h h_t + W_d d_t)                             for each position and dimension
    h~_t = lambda h_t + (1 - lambda) d_t                            takes the place of h_t

In the encoder h_t is its output and h^j its outputs for sentence j; in the decoder h_t is the top
layer's state and h^j its states while it wrote the translation of sentence j. Norms are where the
authors' code has them: f_w and f_s are a norm before the attention's own matrix, s^j is normed,
FFN(m) is m + FNN(LayerNorm(m)), and h~_t is normed. As there, no gradient flows into the h^j.

Ours: the h^j are those of the sentence-level base, so that a sentence needs only k sentences of its
document; if there are none before, the states of a begin mark take their place, and the attention
learns what they mean.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.context import ContextRule, HistoryRule, MemoryRule
from docnmt.data.packing import Contexts, History, Packed, Segments
from docnmt.model.context import Connection
from docnmt.model.layers import CrossAttention, Dropout, FeedForward, join_heads, split_heads
from docnmt.model.transformer import Decoded, DocumentTransformer, Memory
from docnmt.systems.interface import System


class Past(NamedTuple):
    """Keys and values of the h^j of all sentences of a batch, in one row."""

    key: Tensor  # [sentences before, heads, longest, width / heads]
    value: Tensor
    mask: Tensor | None  # [sentences before, 1, 1, longest]
    groups: Segments  # which of them belong to which sentence of the batch

    def of(self, sentences: Tensor) -> Past:
        """Only those of these sentences of the batch."""
        counts = self.groups.lengths
        numbers = torch.arange(len(self.key), device=counts.device).split(counts.tolist())
        rows = torch.cat([numbers[sentence] for sentence in sentences.tolist()])
        mask = None if self.mask is None else self.mask[rows]
        return Past(self.key[rows], self.value[rows], mask, Segments(counts[sentences]))


class HierarchicalAttention(nn.Module):
    """h_t -> h~_t"""

    def __init__(self, model: ModelConfig, context: ContextConfig):
        super().__init__()
        self.before_words = nn.LayerNorm(model.width)
        self.words = CrossAttention(model.width, model.heads)
        self.after_words = nn.LayerNorm(model.width)
        self.before_sentences = nn.LayerNorm(model.width)
        self.sentences = CrossAttention(model.width, model.heads)
        self.before_feed_forward = nn.LayerNorm(model.width)
        self.feed_forward = FeedForward(model.width, model.filter_width)
        self.dropout = Dropout(model.dropout)
        self.connection = Connection(context.connection, context.start, model.width)
        if context.start == "sentence":
            # d_t is zero at first, and small after the first updates, although the norm before FNN scales it up.
            nn.init.zeros_(self.sentences.output.weight)
            nn.init.zeros_(self.feed_forward.outer.weight)

    def remember(self, states: Tensor, segments: Segments, counts: Tensor) -> Past:
        """h^1 ... h^k of each sentence of the batch, [words of all of them, width]"""
        return Past(*self.words.memory(states, segments), segments.attention_mask, Segments(counts))

    def forward(self, h: Tensor, segments: Segments, past: Past) -> Tensor:
        pairs = Segments(segments.lengths[past.groups.owners])  # a sentence's words once for each sentence before it
        s = self.attend_to_words(h, segments, past, pairs)
        m = self.attend_to_sentences(h, segments, s, past.groups, pairs)
        d = self.dropout.add(m, self.feed_forward(self.before_feed_forward(m)))
        return self.connection(h, d.to(h.dtype))

    def attend_to_words(self, h: Tensor, segments: Segments, past: Past, pairs: Segments) -> Tensor:
        """s^j = MultiHead(q_w, h^j, h^j), [pairs, width]"""
        q_w = segments.pad(self.words.query(self.before_words(h)))  # [sentences, longest, width]
        query = split_heads(q_w.index_select(0, past.groups.owners), self.words.heads)
        heads = F.scaled_dot_product_attention(query, past.key, past.value, attn_mask=past.mask)
        return self.after_words(self.words.output(pairs.unpad(join_heads(heads))))

    def attend_to_sentences(
        self, h: Tensor, segments: Segments, s: Tensor, groups: Segments, pairs: Segments
    ) -> Tensor:
        """MultiHead(q_s, s^j, s^j), [words, width]"""
        most, longest = groups.longest, segments.longest
        # From a row of words for each sentence before, to a row of sentences before for each word.
        by_sentence = groups.pad(pairs.pad(self.sentences.key_value(s)).flatten(1)).unflatten(2, (longest, -1))
        by_word = segments.unpad(by_sentence.transpose(1, 2).flatten(2)).unflatten(1, (most, -1))
        key, value = by_word.chunk(2, dim=-1)  # 2 x [words, most, width]
        q_s = self.sentences.query(self.before_sentences(h))[:, None]  # [words, 1, width]
        query, key, value = (split_heads(part, self.sentences.heads) for part in (q_s, key, value))
        mask = None if groups.dense else groups.mask[segments.owners][:, None, None]  # [words, 1, 1, most]
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.sentences.output(join_heads(heads)[:, 0])


class HanTransformer(DocumentTransformer):
    def add_context(self) -> None:
        model, context = self.model_config, self.context_config

        def network(*places: str) -> HierarchicalAttention | None:
            return HierarchicalAttention(model, context) if context.integration in places else None

        self.context_in_encoder = network("encoder", "both")
        self.context_in_decoder = network("decoder", "both")

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        memory = super().encode(source)
        if context is None:
            return memory
        assert isinstance(context, History)
        before = super().encode(context.source)
        if self.context_in_encoder is not None:
            past = self.context_in_encoder.remember(before.states.detach(), before.segments, context.counts)
            memory = memory._replace(states=self.context_in_encoder(memory.states, memory.segments, past))
        if self.context_in_decoder is not None:
            assert context.target is not None
            states, segments = super().decode(context.target, before).states.detach(), context.target.segments
            memory = memory._replace(remembered=self.context_in_decoder.remember(states, segments, context.counts))
        return memory

    def recall(self, decoded: Decoded, segments: Segments, remembered: Past) -> Decoded:
        assert self.context_in_decoder is not None
        return decoded._replace(states=self.context_in_decoder(decoded.states, segments, remembered))


def rule(context: ContextConfig) -> type[ContextRule]:
    """The encoder reads only the sources before; their translations are not needed."""
    return HistoryRule if context.integration == "encoder" else MemoryRule


SYSTEM = System(HanTransformer, rule)
