"""The decoder one word at a time, with the keys, values and states of the words so far kept."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Segments
from docnmt.model.layers import CrossAttention, join_heads, split_heads
from docnmt.model.rnnsearch import Annotations, Recurrent, RNNsearch
from docnmt.model.transformer import Decoded, DocumentTransformer, Memory


class State(Protocol):
    """What beam search asks of a decoder: `sentences` x `beam` hypotheses in flight, row r of sentence r // beam."""

    @property
    def words(self) -> Tensor | None:
        """The words that have logits, [sentences, words]; None: the whole vocabulary."""

    def logits(self, words: Tensor) -> Tensor:
        """The last word of each hypothesis, [rows] -> logits of the next one, [rows, vocabulary],
        which the next call may overwrite"""

    def reorder(self, rows: Tensor) -> None:
        """Row r continues what was row rows[r]."""

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences stay in the batch; the others are finished."""


def select(rows: Any, sentences: Tensor) -> Any:
    """The rows of these sentences: of a tensor, of all tensors in a tuple, or as the object's own `of` has them."""
    if rows is None or isinstance(rows, Tensor):
        return None if rows is None else rows[sentences]
    if hasattr(rows, "of"):
        return rows.of(sentences)
    return type(rows)(*(select(part, sentences) for part in rows))


class Attended(NamedTuple):
    """Keys and values of a memory for one layer, one row a sentence."""

    key: Tensor  # [sentences, heads, longest, width / heads]
    value: Tensor
    mask: Tensor | None  # [sentences, 1, 1, longest], True = may attend

    @classmethod
    def to(cls, attention: CrossAttention, states: Tensor, segments: Segments) -> Attended:
        return cls(*attention.memory(states, segments), segments.attention_mask)


class DecoderState:
    """The Transformer's. `remembered`: what a system keeps of the sentences before."""

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
        # The hypotheses of a sentence stand side by side as if they were positions of one query.
        query = split_heads(attention.query(x).unflatten(0, (-1, self.beam)), attention.heads)
        heads = F.scaled_dot_product_attention(query, memory.key, memory.value, attn_mask=memory.mask)
        return attention.output(join_heads(heads).flatten(0, 1))

    def reorder(self, rows: Tensor) -> None:
        for n in range(len(self.keys)):
            self.keys[n], self.values[n] = self.keys[n][rows], self.values[n][rows]

    def keep(self, sentences: Tensor) -> None:
        self.reorder(_rows(sentences, self.beam))
        self.sources = [select(attended, sentences) for attended in self.sources]
        self.contexts = [select(attended, sentences) for attended in self.contexts]
        self.remembered = select(self.remembered, sentences)


class RecurrentState:
    """RNNsearch's: s_t of every hypothesis."""

    words: Tensor | None = None

    def __init__(self, model: RNNsearch, annotations: Annotations, beam: int):
        self.model, self.annotations, self.beam = model, annotations, beam
        self.s = annotations.start.repeat_interleave(beam, dim=0)  # [rows, width]

    def logits(self, words: Tensor) -> Tensor:
        return self.model.logits(self.advance(words), words, self.annotations.remembered)

    def advance(self, words: Tensor) -> Recurrent:
        """The last word of each hypothesis, [rows] -> what `model.decode` has for the next one"""
        e = self.model.embed(self.model.target_embedding, words)
        self.s, c = self.model.step(self.s, self.model.read(e), self.annotations)
        return Recurrent(e, self.s, c)

    def reorder(self, rows: Tensor) -> None:
        self.s = self.s[rows]

    def keep(self, sentences: Tensor) -> None:
        self.reorder(_rows(sentences, self.beam))
        self.annotations = select(self.annotations, sentences)


def _rows(sentences: Tensor, beam: int) -> Tensor:
    """All hypotheses of these sentences."""
    return (sentences[:, None] * beam + torch.arange(beam, device=sentences.device)).flatten()
