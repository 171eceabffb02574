"""Which word translates which: the word table of IBM Model 1 (Brown et al. 1993), learnt from sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Words = Sequence[str]
NOTHING = ""  # the source word of target words that translate none


class WordTable:
    """p(target word | source word) of the words that were seen together."""

    def __init__(self, pairs: Iterable[tuple[Words, Words]], iterations: int = 5):
        """Expectation-maximisation over all links of all pairs at once; a word counts once a sentence."""
        self._sources: dict[str, int] = {NOTHING: 0}
        self._targets: dict[str, int] = {}
        links = [self._links(*pair) for pair in pairs]
        sources, targets, sizes = (np.concatenate(column or [[]]).astype(np.int64) for column in _columns(links))
        self._width = max(1, len(self._targets))
        self._keys, which = np.unique(sources * self._width + targets, return_inverse=True)
        token = np.repeat(np.arange(len(sizes)), sizes)  # of each link: which target word it would explain
        owner = self._keys // self._width
        self._values: NDArray[np.float64] = np.full(len(self._keys), 1.0)
        for _ in range(iterations):
            weights = self._values[which]
            share = weights / np.bincount(token, weights, len(sizes))[token]
            counts = np.bincount(which, share, len(self._keys))
            self._values = counts / np.bincount(owner, counts, len(self._sources))[owner]

    def _links(self, source: Words, target: Words) -> tuple[list[int], list[int], list[int]]:
        known = [self._sources.setdefault(word, len(self._sources)) for word in dict.fromkeys((NOTHING, *source))]
        found = [self._targets.setdefault(word, len(self._targets)) for word in dict.fromkeys(target)]
        return known * len(found), [t for t in found for _ in known], [len(known)] * len(found)

    def matrix(self, source: Words, target: Words) -> NDArray[np.float64]:
        """[source words and, first, NOTHING; target words], 0 where two were never seen together."""
        rows = np.array([0, *(self._sources.get(word, -1) for word in source)], dtype=np.int64)
        columns = np.array([self._targets.get(word, -1) for word in target], dtype=np.int64)
        if not len(self._keys):
            return np.zeros((len(rows), len(columns)))
        if len(rows) * len(columns) > len(self._keys):
            return self._scattered(rows, columns)
        keys = rows[:, None] * self._width + columns[None, :]
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        seen = (self._keys[places] == keys) & (rows[:, None] >= 0) & (columns[None, :] >= 0)
        return np.where(seen, self._values[places], 0.0)

    def _scattered(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same for many words, which are different ones: all that is known of them, put in its place."""
        places = [np.full(size + 1, -1) for size in (len(self._sources), self._width)]
        for side, words in zip(places, (rows, columns), strict=True):
            side[words] = np.arange(len(words))
            side[-1] = -1  # words that were never seen
        row, column = places[0][self._keys // self._width], places[1][self._keys % self._width]
        known = (row >= 0) & (column >= 0)
        matrix = np.zeros((len(rows), len(columns)))
        matrix[row[known], column[known]] = self._values[known]
        return matrix


def _columns(links: list[tuple[list[int], list[int], list[int]]]) -> Iterator[list[list[int]]]:
    for number in range(3):
        yield [link[number] for link in links]


class WordAligner:
    """Links that both directions of translation find best: few of them, and those mostly right."""

    def __init__(self, pairs: Sequence[tuple[Words, Words]]):
        self._there = WordTable(pairs)
        self._back = WordTable([(target, source) for source, target in pairs])

    def links(self, source: Words, target: Words) -> list[tuple[int, int]]:
        """Places of a source and a target word that translate each other."""
        if not source or not target:
            return []
        there = self._there.matrix(source, target).argmax(axis=0)  # of each target word: its source word, from 1
        back = self._back.matrix(target, source).argmax(axis=0)
        return [(s - 1, t) for t, s in enumerate(there.tolist()) if s and back[s - 1] == t + 1]
