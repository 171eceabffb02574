"""Topics of documents and the target words that go with them, for the topic cache of cache.py.

A mixture of unigrams (Nigam et al., 2000) over both sides of the training documents: a document d
has one topic z, and given it every word is drawn by itself,

    p(d) = sum_z p(z) prod_x p(x | z) prod_y p(y | z)          x: source pieces, y: target pieces

fitted by EM. The topic of a sentence is the likeliest one given the source pieces that the system
sees. The original has an LDA model for each language and a projection between them; one model of
both sides needs no projection.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from docnmt.data.packing import History, Packed
from docnmt.data.store import SIDES, TokenStore

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
            of_tokens = sentences.repeat_interleave(read.segments.lengths)
            scores.index_add_(0, of_tokens, self.evidence[read.tokens])
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
