"""Kuang et al. (2017), "Cache-based Document-level Neural Machine Translation", on the Transformer
and on RNNsearch, its authors' own base.

The cache of a sentence holds words of the translations before it, first in first out, without stop
words and punctuation (the dynamic cache), and words of its topic (the topic cache, see topics.py).
At step t

    score(w) = log p_nmt(w) + FFN(s_t, c_t, e(y_{t-1}), e(w))       for the distinct words w of the cache
    p_cache  = softmax of these scores
    a        = sigmoid(FFN(s_t, c_t, e(y_{t-1})))
    p        = a p_nmt + (1 - a) p_cache

Zhang et al. do not describe their port to the Transformer in detail. Ours: s_t is the decoder's top
state, c_t what its top layer found in the source, both networks have one hidden layer of the
model's width (tanh), words are sub-word pieces, stop words are the frequent ones (`stop_words`
below), unless the recipe lists them. The original's score is the network alone. With log p_nmt,
p_cache is at first what the base itself thinks of the words of the cache; without it the gate has
closed before the network has learned which of them fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.context import MemoryRule
from docnmt.data.packing import Batch, Contexts, History, Packed
from docnmt.data.store import TokenStore
from docnmt.data.subwords import Subwords
from docnmt.model.base import SLICE, TranslationModel, select
from docnmt.model.layers import linear
from docnmt.model.rnnsearch import RecurrentState, RNNsearch
from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.interface import System
from docnmt.systems.topics import Topics


class Cache(NamedTuple):
    words: Tensor  # [sentences, size]
    mask: Tensor  # [sentences, size], True for the first occurrence of a word
    keys: Tensor  # e(w)'s part of the hidden layer of score(w), [sentences, size, width]


class Mixture(NamedTuple):
    """log p(v) = log a + log p_nmt(v) + gain(v), and gain(v) = log(1 + (1 - a) p_cache(v) / (a p_nmt(v))).

    The gain is 0 for all but the words of the cache, so that only p_nmt is as large as the vocabulary.
    """

    log_nmt: Tensor  # [positions, vocabulary]
    log_a: Tensor  # [positions, 1], 0 where the cache is empty: then p is p_nmt
    gain: Tensor  # [positions, size of the cache]


class CacheModel(TranslationModel):
    """What is added to a base: the Transformer or RNNsearch."""

    def add_cache(self, context: ContextConfig, source_vocabulary: int, inputs: int) -> None:
        """inputs: the size of s_t, c_t and e(y_{t-1}) together"""
        width = self.model_config.width
        self.context_query = linear(inputs, width)  # the hidden layer of score(w) in two parts: s_t, c_t, e(y_{t-1})
        self.context_key = nn.Linear(width, width, bias=False)  # and e(w)
        self.context_score = nn.Linear(width, 1, bias=False)
        nn.init.xavier_uniform_(self.context_key.weight)
        nn.init.xavier_uniform_(self.context_score.weight)
        self.context_gate = nn.Sequential(linear(inputs, width), nn.Tanh(), linear(width, 1))
        vocabulary = len(self.softmax.weight)
        self.context_stop_words = nn.Parameter(torch.zeros(vocabulary, dtype=torch.bool), requires_grad=False)
        self.context_topics = Topics(source_vocabulary, context.topic_words) if context.topic_words else None

    def e(self, words: Tensor) -> Tensor:
        """The word embedding without its position."""
        raise NotImplementedError

    def encode(self, source: Packed, context: Contexts | None = None) -> Any:
        memory = super().encode(source)
        if context is None:
            return memory
        assert isinstance(context, History)
        return memory._replace(remembered=self.cache(source, context))

    def beside(self, decoded: Any, previous: Tensor) -> tuple[Tensor, Tensor]:
        """What the softmax reads, and s_t, c_t, e(y_{t-1}) side by side"""
        return self.read_out(decoded), torch.cat([decoded.states, decoded.attended, self.e(previous)], dim=-1)

    def cache(self, source: Packed, history: History) -> Cache:
        words = history.remembered_words(self.context_stop_words).words[:, -self.context_config.cache_words :]
        if self.context_topics is not None:
            words = torch.cat([words, self.context_topics(source, history)], 1)
        words = words.sort(1).values  # equal ones side by side, -1 first
        mask = (words >= 0) & (words != F.pad(words, (1, 0), value=-1)[:, :-1])
        words = words.clamp(min=0)
        return Cache(words, mask, self.context_key(self.e(words)))

    def mix(self, states: Tensor, x: Tensor, cache: Cache) -> Mixture:
        """states, x: as from `beside`; a cache for each position"""
        log_nmt = self.softmax(states).float().log_softmax(1)
        hidden = torch.tanh(self.context_query(x)[:, None] + cache.keys)  # [positions, size, width]
        base = log_nmt.gather(1, cache.words)  # [positions, size]
        scores = base + self.context_score(hidden).squeeze(-1).float()
        log_cache = scores.masked_fill(~cache.mask, torch.finfo(scores.dtype).min).log_softmax(1)
        gate = self.context_gate(x).float()  # a = sigmoid(gate), so log (1 - a) / a = -gate
        gain = F.softplus(log_cache - gate - base)
        empty = ~cache.mask.any(1, keepdim=True)
        return Mixture(log_nmt, F.logsigmoid(gate).masked_fill(empty, 0.0), gain.masked_fill(~cache.mask, 0.0))

    def loss(self, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        memory = self.encode(batch.source, batch.context)
        if memory.remembered is None:
            return super().loss(batch, smoothing)
        segments = batch.target_in.segments
        sentences = torch.arange(segments.count, device=batch.target_out.device).repeat_interleave(segments.lengths)
        counts = torch.ones(len(sentences), device=sentences.device) if batch.counts is None else batch.counts
        decoded = self.decode(batch.target_in, memory)
        rows = (*self.beside(decoded, batch.target_in.tokens), batch.target_out, sentences, counts)

        def part(states: Tensor, x: Tensor, y: Tensor, sentence: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
            cache = select(memory.remembered, sentence)
            log_nmt, log_a, gain = self.mix(states, x, cache)
            right = (gain * (cache.words == y[:, None])).sum(1)
            log_p = log_nmt.gather(1, y[:, None])[:, 0] + log_a[:, 0] + right
            # Smoothing as without a cache: `smoothing` parts of the target are uniform over the
            # vocabulary, with p the mixture. sum_v log p(v) needs only the gains of the cache's
            # words.
            vocabulary = log_nmt.shape[1]
            all_log_p = log_nmt.sum(1) + vocabulary * log_a[:, 0] + gain.sum(1)
            smoothed = (1 - smoothing) * log_p + smoothing / vocabulary * all_log_p
            return -(smoothed * count).sum(), log_p.detach()

        total, found = memory.remembered.keys.new_zeros((), dtype=torch.float32), []
        for places in self._slices(len(sentences), memory.remembered):
            # What a slice computes is made again for its derivative instead of being kept.
            sliced = [row[places] for row in rows]
            loss, log_p = checkpoint(part, *sliced, use_reentrant=False, preserve_rng_state=False)
            total = total + loss
            found.append(log_p)
        return total, torch.cat(found)

    def logits(self, decoded: Any, previous: Tensor, remembered: Cache | None) -> Tensor:
        """log p of the next word"""
        if remembered is None:
            return super().logits(decoded, previous, remembered)
        beam = len(previous) // len(remembered.words)
        cache = select(remembered, torch.arange(len(previous), device=previous.device) // beam)
        log_nmt, log_a, gain = self.mix(*self.beside(decoded, previous), cache)
        return (log_nmt + log_a).scatter_add_(1, cache.words, gain)

    def _slices(self, positions: int, cache: Cache) -> Iterator[slice]:
        a_position = max(len(self.softmax.weight), cache.keys[0].numel())
        step = max(1, (SLICE if cache.keys.device.type == "cpu" else 8 * SLICE) // a_position)
        return (slice(begin, begin + step) for begin in range(0, positions, step))


class CacheTransformer(CacheModel, DocumentTransformer):
    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, context, source_vocabulary, target_vocabulary)
        self.add_cache(context, source_vocabulary, 3 * model.width)

    def e(self, words: Tensor) -> Tensor:
        return self.target_embedding.words(words)


class CacheRNNsearch(CacheModel, RNNsearch):
    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, context, source_vocabulary, target_vocabulary)
        self.add_cache(context, source_vocabulary, 4 * model.width)  # c_t is twice as wide as s_t

    def e(self, words: Tensor) -> Tensor:
        return self.target_embedding(words) * math.sqrt(self.model_config.width)


def stop_words(context: ContextConfig, documents: TokenStore, target: Subwords) -> Tensor:
    """What the dynamic cache does not remember, [vocabulary]: pieces without a letter or digit, and
    those that the recipe lists, or else those at least as frequent as it says."""
    texts = [text.decode("utf-8", "replace").strip().casefold() for text in target.written()]
    # A byte that is no character by itself may be part of a letter.
    found = torch.tensor([not any(c.isalnum() or c == "\ufffd" for c in text) for text in texts])
    if context.stop_words:
        listed = {word.casefold() for word in context.stop_words}
        return found | torch.tensor([text in listed for text in texts])
    counts = torch.from_numpy(np.bincount(documents.tokens["target"], minlength=len(texts)))
    return found | (counts >= context.stop_frequency * counts.sum().clamp(min=1))


@torch.no_grad()
def learn(model: CacheModel, documents: TokenStore, target: Subwords) -> None:
    model.context_stop_words.copy_(stop_words(model.context_config, documents, target))
    if model.context_topics is not None:
        model.context_topics.learn(documents, len(model.softmax.weight))


SYSTEM = System(CacheTransformer, rule=lambda _: MemoryRule, learn=learn)
ON_RNNSEARCH = System(CacheRNNsearch, rule=lambda _: MemoryRule, state=RecurrentState, learn=learn)
