"""Kuang et al. (2017), "Cache-based Document-level Neural Machine Translation", on the Transformer
and on RNNsearch, its authors' own base.

The cache of a sentence holds words of the translations before it, first in first out, without stop
words and punctuation (the dynamic cache), and words of its topic (the topic cache).
At step t

    score(w) = log p_nmt(w) + FFN(s_t, c_t, e(y_{t-1}), e(w))       for the distinct words w of the cache
    p_cache  = softmax of these scores
    a        = sigmoid(FFN(s_t, c_t, e(y_{t-1})))
    p        = a p_nmt + (1 - a) p_cache

Zhang et al. do not describe their port to the Transformer in detail. Ours: s_t is the decoder's top
state, c_t what its top layer found in the source, both networks have one hidden layer of the
model's width (tanh), words are subword pieces, stop words are the frequent ones (`stop_words`
below), unless the recipe lists them. The original's score is the network alone. With log p_nmt,
p_cache is at first what the base itself thinks of the words of the cache; without it the gate has
closed before the network has learned which of them fit.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from docnmt.config import ContextConfig
from docnmt.data.context import MemoryRule
from docnmt.data.packing import Batch, Contexts, History, Packed
from docnmt.data.store import SIDES, TokenStore
from docnmt.data.subwords import Subwords
from docnmt.model.base import TranslationModel, select, slices
from docnmt.model.layers import linear
from docnmt.model.rnnsearch import RecurrentState, RNNsearch
from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.interface import System


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

    widths: int  # of s_t, c_t and e(y_{t-1}) together

    def add_context(self) -> None:
        width, topics = self.model_config.width, self.context_config.topic_words
        inputs = self.widths * width
        self.context_query = linear(inputs, width)  # the hidden layer of score(w) in two parts: s_t, c_t, e(y_{t-1})
        self.context_key = nn.Linear(width, width, bias=False)  # and e(w)
        self.context_score = nn.Linear(width, 1, bias=False)
        nn.init.xavier_uniform_(self.context_key.weight)
        nn.init.xavier_uniform_(self.context_score.weight)
        self.context_gate = nn.Sequential(linear(inputs, width), nn.Tanh(), linear(width, 1))
        vocabulary = len(self.softmax.weight)
        self.context_stop_words = nn.Parameter(torch.zeros(vocabulary, dtype=torch.bool), requires_grad=False)
        self.context_topics = Topics(len(self.source_embedding.weight), topics) if topics else None

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
        sentences = batch.target_in.segments.owners
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
        widest = max(len(self.softmax.weight), memory.remembered.keys[0].numel())  # of what a position needs
        for places in slices(len(sentences), widest, sentences.device):
            # What a slice computes is recomputed for its derivative instead of being kept.
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


class CacheTransformer(CacheModel, DocumentTransformer):
    widths = 3

    def e(self, words: Tensor) -> Tensor:
        return self.target_embedding.words(words)


class CacheRNNsearch(CacheModel, RNNsearch):
    widths = 4  # c_t is twice as wide as s_t

    def e(self, words: Tensor) -> Tensor:
        return self.target_embedding(words) * math.sqrt(self.model_config.width)


def stop_words(context: ContextConfig, documents: TokenStore, target: Subwords) -> Tensor:
    """What the dynamic cache does not remember, [vocabulary]: pieces without a letter or digit, and
    those that the recipe lists, or else those at least as frequent as it says."""
    texts = [text.decode("utf-8", "replace").strip().casefold() for text in target.written()]
    # A byte that is not a character by itself may be part of a letter.
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


# ---- topics of documents and the target words that go with them, for the topic cache ----

# A mixture of unigrams (Nigam et al., 2000) over both sides of the training documents: a document d
# has one topic z, and given it every word is drawn by itself,
#
#     p(d) = sum_z p(z) prod_x p(x | z) prod_y p(y | z)          x: source pieces, y: target pieces
#
# fitted by EM. The topic of a sentence is the likeliest one given the source pieces that the system
# sees. The original has an LDA model for each language and a projection between them; one model of
# both sides needs no projection.

TOPICS = 20
ROUNDS = 40  # of EM at most; it mostly converges sooner
PRIOR = 0.1  # added to every count, so that a word the topic never had is not impossible
SEED = 1  # of the documents that the topics start from


class Topics(nn.Module):
    """Learned before step 2 and then fixed. Parameters, so that model folders hold them."""

    def __init__(self, source_vocabulary: int, words: int):
        super().__init__()
        self.log_prior = nn.Parameter(torch.zeros(TOPICS), requires_grad=False)  # log p(z)
        # log p(x | z) - log p(x); 0 for what training never saw, as the marks around sentences
        self.evidence = nn.Parameter(torch.zeros(source_vocabulary, TOPICS), requires_grad=False)
        self.words = nn.Parameter(torch.full((TOPICS, words), -1), requires_grad=False)  # best first, then -1

    def topics(self, source: Packed, history: History) -> Tensor:
        """The likeliest topic of each sentence given its own source words and those before it, [sentences]"""
        here = torch.arange(source.segments.count, device=source.tokens.device)
        scores = self.log_prior.repeat(len(here), 1)  # [sentences, topics]
        for read, sentences in ((source, here), (history.source, history.owners)):
            scores.index_add_(0, sentences[read.segments.owners], self.evidence[read.tokens])
        return scores.argmax(1)

    def forward(self, source: Packed, history: History) -> Tensor:
        """Topic words, [sentences, words]; -1 where a topic has fewer"""
        return self.words[self.topics(source, history)]

    @torch.no_grad()
    def learn(self, documents: TokenStore, target_vocabulary: int) -> None:
        """The same documents give the same topics, so a resumed run simply learns them again."""
        sizes = (len(self.evidence), target_vocabulary)
        counts = [count_words(documents, side, size) for side, size in zip(SIDES, sizes, strict=True)]
        belongs = fit(counts)  # [documents, topics]
        source, target = (torch.sparse.mm(side.t(), belongs) for side in counts)  # [vocabulary, topics]
        log_p, log_prior = log_words(source), log_topics(belongs)
        self.log_prior.copy_(log_prior)
        self.evidence.copy_(log_p - torch.logsumexp(log_p + log_prior, 1, keepdim=True))
        # How far a word is above the count that its overall frequency predicts, in standard
        # deviations: function words are expected everywhere. Adding one to the variance keeps words
        # seen only once down.
        expected = target.sum(1, keepdim=True) * target.sum(0) / target.sum().clamp(min=1.0)
        excess = (target - expected) / (expected + 1).sqrt()
        best, words = excess.topk(min(self.words.shape[1], target_vocabulary), dim=0)  # [words, topics]
        self.words.fill_(-1)
        self.words[:, : len(words)] = words.masked_fill(best < 1e-6, -1).t()


def count_words(documents: TokenStore, side: str, vocabulary: int) -> Tensor:
    """How often each document has each word, [documents, vocabulary], sparse"""
    sentence_ends = np.concatenate([[0], documents.ends[side]])
    ends = sentence_ends[np.concatenate([[0], documents.document_ends])]  # [documents + 1], in tokens
    tokens = documents.tokens[side]
    found = [np.unique(tokens[i:j], return_counts=True) for i, j in pairwise(ends)]
    rows = np.repeat(np.arange(len(found)), [len(words) for words, _ in found])
    words, numbers = (np.concatenate([pair[n] for pair in found]).astype(np.int64) for n in range(2))
    places = torch.from_numpy(np.stack([rows, words]))
    shape = len(found), vocabulary
    return torch.sparse_coo_tensor(places, torch.from_numpy(numbers).double(), shape, check_invariants=True)


def log_words(counts: Tensor) -> Tensor:
    """log p(word | z), [vocabulary, topics]; nearly -inf for words that no document has"""
    smoothed = counts + PRIOR * (counts.sum(1, keepdim=True) > 0)
    return (smoothed / smoothed.sum(0)).clamp(min=1e-30).log()


def log_topics(belongs: Tensor) -> Tensor:
    """log p(z), [topics]"""
    smoothed = belongs.sum(0) + PRIOR
    return (smoothed / smoothed.sum()).log()


def fit(counts: list[Tensor]) -> Tensor:
    """p(z | d) for every document, [documents, topics]; `counts` of each side, [documents, vocabulary]"""
    documents = counts[0].shape[0]
    seeds = np.random.default_rng(SEED).permutation(documents)[np.arange(TOPICS) % documents]
    belongs = torch.zeros(documents, TOPICS, dtype=torch.float64)
    belongs[torch.from_numpy(seeds), torch.arange(TOPICS)] = 1.0  # each topic starts as one document
    for _ in range(ROUNDS):
        log_p = log_topics(belongs)
        for side in counts:
            log_p = log_p + torch.sparse.mm(side, log_words(torch.sparse.mm(side.t(), belongs)))
        before, belongs = belongs, log_p.softmax(1)
        if torch.allclose(before, belongs, atol=1e-4):
            break
    return belongs
