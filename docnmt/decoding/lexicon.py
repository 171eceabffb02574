"""How pieces are translated, learnt from sentence pairs: model 1 of Brown et al. (1993), "The Mathematics of
Statistical Machine Translation".

Each target piece e of a pair comes from one of its source pieces f, or from an empty one that every pair has:
    count(e, f) = sum over the pairs, over each e and f in them, of t(e | f) / sum over f' in the pair of t(e | f')
    t(e | f) = count(e, f) / sum over e' of count(e', f)
again and again, all t equal at first. A target piece's counts never ask for another's. So target pieces are taken some
at a time: a table of all combinations is there for these alone, and of the others only the combinations that occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docnmt.base.progress import Progress
from docnmt.decoding.training_pairs import Side, TrainingPairs, runs

ROUNDS = 5
LEAST_PROBABILITY = 1e-4  # what is less probable is nobody's translation
BLOCK = 1 << 21  # combinations in a table
CHUNK = 1 << 21  # links, of a target piece to a source piece of its pair, that are looked at together

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Lexicon:
    """t(target | source): a combination has the same place in all three."""

    source: Ids
    target: Ids
    probability: Floats

    def best(self, count: int, without: NDArray) -> tuple[Ids, Ids]:
        """Each source piece with its `count` most probable target pieces; those in `without` are left out first."""
        left = ~np.isin(self.target, without)
        source, target = self.source[left], self.target[left]
        order = np.lexsort((target, -self.probability[left], source))
        source, target = source[order], target[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        return source[rank < count], target[rank < count]


def learn_lexicon(
    pairs: TrainingPairs, progress: Progress, rounds: int = ROUNDS, least: float = LEAST_PROBABILITY
) -> Lexicon:
    """What is less probable than `least` is left out."""
    empty = int(pairs.source.tokens.max(initial=-1)) + 1
    width = empty + 1
    source = Side(np.insert(pairs.source.tokens, pairs.source.lengths.cumsum(), empty), pairs.source.lengths + 1)
    blocks = [_Block(source, width, *found) for found in _occurrences(pairs.target, max(1, BLOCK // width))]
    totals = np.zeros(width)
    with progress.bar("align", rounds * len(pairs.target.tokens), "pieces") as advance:
        for _ in range(rounds):
            sums = np.zeros(width)
            for block in blocks:
                block.count(totals)
                sums += np.bincount(block.combinations % width, block.counts, minlength=width)
                advance(len(block.rows))
            totals = sums
    found = [block.probabilities(totals, least) for block in blocks]
    return Lexicon(*map(np.concatenate, zip(*found, strict=True)))


def _occurrences(target: Side, height: int) -> Iterator[tuple[int, Ids, Ids]]:
    """For each `height` target pieces the first of them, and which of them occur in which pairs, in order."""
    order = np.argsort(target.tokens, kind="stable")
    pieces = target.tokens[order]
    pairs = np.repeat(np.arange(len(target), dtype=np.int32), target.lengths)[order]
    for first in range(0, int(pieces.max(initial=0)) + 1, height):
        start, end = np.searchsorted(pieces, (first, first + height))
        yield first, pieces[start:end] - first, pairs[start:end]


class _Block:
    """Some target pieces, a row of a table each, and what was counted for them in the last round."""

    def __init__(self, source: Side, width: int, first: int, rows: Ids, pairs: Ids):
        self.source, self.width = source, width
        self.first, self.rows, self.pairs = first, rows, pairs
        self.size = (int(rows.max(initial=-1)) + 1) * width
        self.combinations = np.empty(0, np.int32)  # that occur: row * width + source piece
        self.counts = np.empty(0, np.float32)

    def count(self, totals: NDArray[np.float64]) -> None:
        """One round; `totals` are the sums of all blocks' counts by source piece, from the round before."""
        first_round = not len(self.combinations)
        table = np.full(self.size, float(first_round), np.float32)
        table[self.combinations] = self.counts / totals[self.combinations % self.width]
        counts = np.zeros(self.size)
        for chunk in self._chunks():
            pairs = self.pairs[chunk]
            lengths = self.source.lengths[pairs]
            links = self.source.tokens[runs(self.source.starts[pairs], lengths)]
            links += np.repeat(self.rows[chunk] * np.int32(self.width), lengths)
            share = table[links]
            share /= np.repeat(np.add.reduceat(share, lengths.cumsum() - lengths), lengths)
            counts += np.bincount(links, share, minlength=self.size)
        if first_round:
            self.combinations = np.flatnonzero(counts).astype(np.int32)
        self.counts = counts[self.combinations].astype(np.float32)

    def _chunks(self) -> Iterator[slice]:
        """Runs of occurrences with about CHUNK links."""
        links = self.source.lengths[self.pairs].cumsum()
        ends = np.unique(np.searchsorted(links, np.arange(CHUNK, links.max(initial=0) + CHUNK, CHUNK)) + 1)
        yield from map(slice, [0, *ends[:-1]], ends)

    def probabilities(self, totals: NDArray[np.float64], least: float) -> tuple[Ids, Ids, Floats]:
        """Source pieces, target pieces and t, without the empty source piece."""
        rows, source = np.divmod(self.combinations, np.int32(self.width))
        probability = (self.counts / totals[source]).astype(np.float32)
        kept = (probability >= least) & (source < self.width - 1)
        return source[kept], rows[kept] + np.int32(self.first), probability[kept]
