"""The decoder one word at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.model.layers import CrossAttention, join_heads, split_heads
from docnmt.model.transformer import DocumentTransformer, Memory


class State(Protocol):
    """What beam search asks of a decoder: `sentences` x `beam` hypotheses in flight, row r of sentence r // beam."""

    @property
    def words(self) -> Tensor | None:
        """Which the logits are of, [sentences, words], where not of the whole vocabulary."""

    def logits(self, words: Tensor) -> Tensor:
        """The last word of each hypothesis, [rows] -> scores of all words for the next one, [rows, vocabulary], which
        the next call may overwrite"""

    def reorder(self, rows: Tensor) -> None:
        """Row r goes on from what row rows[r] was."""

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences stay in the batch; the others are done."""


@dataclass
class Attended:
    """Keys and values of a memory for one layer, one row a sentence, and which of them are real."""

    key: Tensor  # [sentences, heads, longest, width / heads]
    value: Tensor
    mask: Tensor | None  # [sentences, 1, 1, longest]

    def keep(self, sentences: Tensor) -> None:
        self.key, self.value = self.key[sentences], self.value[sentences]
        self.mask = None if self.mask is None else self.mask[sentences]


class DecoderState:
    """The Transformer's."""

    words: Tensor | None = None

    def __init__(self, model: DocumentTransformer, memory: Memory, beam: int):
        self.model, self.beam = model, beam
        self.step = 0
        self.attended = memory.states[:0]  # what the top layer's source attention found at the last step, [rows, width]
        mask = memory.segments.attention_mask
        self.sources = [
            Attended(*layer.source_attention.memory(memory.states, memory.segments), mask) for layer in model.decoder
        ]
        self.contexts: list[Attended | None] = [None] * len(model.decoder)
        if memory.context is not None and memory.context_segments is not None:
            segments = memory.context_segments
            self.contexts = [
                None
                if layer.context is None
                else Attended(*layer.context.attention.memory(memory.context, segments), segments.attention_mask)
                for layer in model.decoder
            ]
        # keys and values of the words so far, for each layer [rows, heads, step, width / heads]
        config = model.model_config
        rows = memory.segments.count * beam
        none = memory.states.new_empty(rows, config.heads, 0, config.width // config.heads)
        self.keys, self.values = [none] * len(model.decoder), [none] * len(model.decoder)

    def logits(self, words: Tensor) -> Tensor:
        return self.model.softmax(self.advance(words)).float()

    def advance(self, words: Tensor) -> Tensor:
        """The last word of each hypothesis, [rows] -> T^(N_t) for the next one, [rows, width]"""
        model = self.model
        t = model.target_embedding.at(words, self.step)
        for n, layer in enumerate(model.decoder):
            e = layer.after_attention(t, self._attend_to_words(n, t))
            context = self.contexts[n]
            if layer.context is not None and context is not None:
                sublayer = self._attend(layer.context.attention, e, context)
                e = layer.context.connection(e, sublayer)
            self.attended = self._attend(layer.source_attention, e, self.sources[n])
            t = layer.finish(e, self.attended)
        self.step += 1
        return t

    def _attend_to_words(self, n: int, t: Tensor) -> Tensor:
        attention = self.model.decoder[n].attention
        parts = attention.query_key_value(t)[:, None].chunk(3, dim=-1)  # 3 x [rows, 1, width]
        query, key, value = (split_heads(part, attention.heads) for part in parts)
        self.keys[n] = key = torch.cat([self.keys[n], key], dim=2)
        self.values[n] = value = torch.cat([self.values[n], value], dim=2)
        heads = F.scaled_dot_product_attention(query, key, value)  # [rows, heads, 1, width / heads]
        return attention.output(join_heads(heads)[:, 0])

    def _attend(self, attention: CrossAttention, x: Tensor, memory: Attended) -> Tensor:
        # The hypotheses of a sentence stand side by side as if they were positions of one query.
        query = split_heads(attention.query(x).unflatten(0, (-1, self.beam)), attention.heads)
        heads = F.scaled_dot_product_attention(query, memory.key, memory.value, attn_mask=memory.mask)
        return attention.output(join_heads(heads).flatten(0, 1))

    def reorder(self, rows: Tensor) -> None:
        for n in range(len(self.keys)):
            self.keys[n], self.values[n] = self.keys[n][rows], self.values[n][rows]

    def keep(self, sentences: Tensor) -> None:
        rows = (sentences[:, None] * self.beam + torch.arange(self.beam, device=sentences.device)).flatten()
        self.reorder(rows)
        for attended in (*self.sources, *self.contexts):
            if attended is not None:
                attended.keep(sentences)
