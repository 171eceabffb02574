"""Sentence pairs as token ids in memory, for what is learnt from them by counting."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from docnmt.data.subwords import Subwords
from docnmt.document import ParallelDocument

BLOCK = 8192  # sentences encoded together
MOST = 300_000  # more pairs teach little that is new, and take their time

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """One language's sentences, one after another."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Collection[Sequence[int]]) -> Side:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), np.int32, int(lengths.sum())), lengths)

    @classmethod
    def encoded(cls, texts: Sequence[str], subwords: Subwords) -> Side:
        blocks = (texts[i : i + BLOCK] for i in range(0, len(texts), BLOCK))
        return cls.joined([cls.of([]), *(cls.of(subwords.encode(block, os.cpu_count() or 1)) for block in blocks)])

    @classmethod
    def joined(cls, sides: Sequence[Side]) -> Side:
        return cls(np.concatenate([side.tokens for side in sides]), np.concatenate([side.lengths for side in sides]))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return self.lengths.cumsum() - self.lengths

    def sentences(self) -> list[NDArray[np.int32]]:
        return np.split(self.tokens, self.lengths.cumsum())[:-1]


@dataclass(frozen=True)
class TrainingPairs:
    source: Side
    target: Side
    out_of: int  # how many there were; these may be a sample of them

    @classmethod
    def read(
        cls, documents: Iterable[ParallelDocument], source: Subwords, target: Subwords, most: int = MOST
    ) -> TrainingPairs:
        texts, count = evenly(((d.source[i], d.target[i]) for d in documents for i in d.filled), most)
        return cls(Side.encoded([s for s, _ in texts], source), Side.encoded([t for _, t in texts], target), count)

    def __len__(self) -> int:
        return len(self.source)

    def __str__(self) -> str:
        sampled = f", taken evenly from {self.out_of:,}" if self.out_of > len(self) else ""
        return f"{len(self):,} sentence pairs{sampled}"


def runs(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... of each run, one run after another."""
    before = lengths.cumsum() - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def evenly(items: Iterable[T], most: int) -> tuple[list[T], int]:
    """At most so many of the items, at equal distances, and how many there were."""
    kept: list[T] = []
    step = 1
    count = 0
    for item in items:
        if count % step == 0:
            kept.append(item)
            if len(kept) > most:
                del kept[1::2]
                step *= 2
        count += 1
    return kept, count
