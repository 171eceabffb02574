"""How well sentences of two books fit each other, by lengths and by a word table, and the best alignment."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from docnmt.text.scripts import CJK

# ---- The best alignment of two texts, by dynamic programming ----

# A bead (Brown et al. 1991) groups sentences that belong together: one and its translation, one and two, or one that
# has no translation.

Matrix = NDArray[np.float64]
Shape = tuple[int, int]  # how many sentences of each side


class Bead(NamedTuple):
    source: range
    target: range


def best_beads(scores: Mapping[Shape, Matrix], skip: tuple[float, float], size: Shape) -> list[Bead]:
    """The beads with the highest sum of scores, in order.

    `scores[a, b][i, j]` is that of a bead of `a` sentences from source sentence i on and `b` from target sentence j on;
    `skip` what it costs to leave out a sentence of either side, a negative number.
    """
    n, m = size
    skipped = skip[1] * np.arange(m + 1)
    best = np.full((n + 1, m + 1), -np.inf)
    best[0] = skipped
    for i in range(1, n + 1):
        row = best[i - 1] + skip[0]
        for (a, b), values in scores.items():
            if i >= a and m >= b:
                row[b:] = np.maximum(row[b:], best[i - a, : m + 1 - b] + values[i - a])
        # After that any number of target sentences may be skipped: take the best of all earlier positions.
        best[i] = skipped + np.maximum.accumulate(row - skipped)
    return _trace(best, scores, skip)


def _trace(best: Matrix, scores: Mapping[Shape, Matrix], skip: tuple[float, float]) -> list[Bead]:
    """Backtracks from the end: at each position, the step that gave its score."""
    i, j = best.shape[0] - 1, best.shape[1] - 1
    found = []
    while i or j:
        steps = {}
        if i:
            steps[1, 0] = best[i - 1, j] + skip[0]
        if j:
            steps[0, 1] = best[i, j - 1] + skip[1]
        for (a, b), values in scores.items():
            if i >= a and j >= b:
                steps[a, b] = best[i - a, j - b] + values[i - a, j - b]
        a, b = max(steps, key=lambda shape: steps[shape])
        found.append(Bead(range(i - a, i), range(j - b, j)))
        i, j = i - a, j - b
    return found[::-1]


# ---- How well sentences fit each other: by lengths (Gale and Church 1993) and by the words of a word table ----

# The score of a bead is a log-likelihood ratio: how much more probable the target's words are as a translation of the
# source's than as words of any sentence of the book.

# The shapes of beads, with their prior probabilities; a sentence that has no translation has SKIP.
PRIORS: dict[Shape, float] = {(1, 1): 0.87, (1, 2): 0.045, (2, 1): 0.045, (2, 2): 0.01, (1, 3): 0.01, (3, 1): 0.01}
SKIP = 0.005
_SPREAD = 6.8  # variance of the target's length for each character of the source (Gale and Church)
_LONGEST = 3_000  # words per chapter; the others are too rare to help
_RUN = 25  # sentences that go to one word table before the next has its turn
_WORD = re.compile(rf"[{CJK}]|[^\W_]+")

# Source words [sentences' words], target words -> p(target | source), [source words, target words].
Translations = Callable[[Sequence[str], Sequence[str]], Matrix]


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def cognates(source: Sequence[str], target: Sequence[str]) -> Matrix:
    """A word table before there is one: numbers and words that begin alike may be each other's translation."""
    known: dict[str, int] = {"": 0}
    keys = [np.array([known.setdefault(cognate_key(word), len(known)) for word in words]) for words in (source, target)]
    return 0.5 * ((keys[0][:, None] == keys[1][None, :]) & (keys[0][:, None] > 0))


def cognate_key(word: str) -> str:
    """The part of a word that is compared; "" for short words, which are too ambiguous."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return plain if plain.isdigit() else plain[:5] if len(plain) > 3 else ""


class ChapterScores:
    """The scores of all possible beads of a chapter."""

    def __init__(self, source: Sequence[str], target: Sequence[str], frequencies: Counter[str], ratio: float):
        """`frequencies` of the target's words in the book; `ratio` of the target's length to the source's."""
        self._lengths = [np.array([len(text) for text in side], dtype=np.float64) for side in (source, target)]
        self._ratio = ratio
        words = [[words_of(text) for text in side] for side in (source, target)]
        self._vocabularies = [_vocabulary(side) for side in words]
        self._bags = [bags(side, known) for side, known in zip(words, self._vocabularies, strict=True)]
        total = frequencies.total()
        self._usual = np.array([frequencies[word] / total for word in self._vocabularies[1]])

    def matrices(self, tables: Sequence[Translations], trust: float) -> dict[Shape, Matrix]:
        """`tables` take turns with the source sentences, in `fold`s; `trust` is the share of words that a table is
        expected to explain."""
        source, target = self._bags
        folds = fold(np.arange(len(source)), len(tables))
        known = np.zeros((len(source), len(self._usual)))
        for number, table in enumerate(tables):
            rows = folds == number
            known[rows] = source[rows] @ table(*self._vocabularies)
        sizes = source.sum(axis=1) + 1  # plus the empty word, which target words without a source translate
        found: dict[Shape, Matrix] = {}
        for a in sorted({shape[0] for shape in PRIORS}):
            if len(source) < a:
                continue
            together = sums(known, a) / sums(sizes, a)[:, None] / self._usual
            words = np.log(1 - trust + trust * together) @ target.T
            for b in (b for first, b in PRIORS if first == a and len(target) >= b):
                found[a, b] = sums(words.T, b).T + self._length_scores(a, b) + math.log(PRIORS[a, b])
        return found

    def words_in(self, targets: range) -> float:
        """How many words of the target sentences are in the vocabulary."""
        return float(self._bags[1][targets.start : targets.stop].sum())

    def _length_scores(self, a: int, b: int) -> Matrix:
        source, target = (sums(side, n) for side, n in zip(self._lengths, (a, b), strict=True))
        off = target[None, :] - self._ratio * source[:, None]
        return -(off**2) / (2 * _SPREAD * self._ratio * (source[:, None] + 1))


def fold(sentences: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """Which of the word tables scores a source sentence: the one that was not learnt from it."""
    return (sentences // _RUN) % folds


def _vocabulary(sentences: Sequence[Sequence[str]]) -> list[str]:
    often = Counter(word for words in sentences for word in dict.fromkeys(words))  # a set's order is never the same
    return [word for word, _ in often.most_common(_LONGEST)]


def bags(texts: Sequence[Iterable[str]], vocabulary: Collection[str]) -> Matrix:
    """[texts, vocabulary], 1 where a text has a word."""
    places = {word: place for place, word in enumerate(vocabulary)}
    found = np.zeros((len(texts), len(places)))
    for number, words in enumerate(texts):
        found[number, [places[word] for word in words if word in places]] = 1
    return found


def sums(rows: Matrix, count: int) -> Matrix:
    """The sums of each `count` consecutive rows, or numbers."""
    return sum((rows[k : len(rows) - count + 1 + k] for k in range(1, count)), rows[: len(rows) - count + 1])


# ---- Which word translates which: the word table of IBM Model 1 (Brown et al. 1993) ----

Words = Sequence[str]
NOTHING = ""  # the empty source word, which target words without a source translate
_ITERATIONS = 5


class WordTable:
    """p(target word | source word) of the words that were seen together."""

    def __init__(self, pairs: Iterable[tuple[Words, Words]]):
        """Expectation-maximisation over all links of all pairs at once; a word counts once per sentence."""
        self._sources: dict[str, int] = {NOTHING: 0}
        self._targets: dict[str, int] = {}
        links = [self._links(*pair) for pair in pairs]
        sources, targets, sizes = (
            np.fromiter(chain.from_iterable(link[column] for link in links), np.int64) for column in range(3)
        )
        self._width = max(1, len(self._targets))
        self._keys, which = np.unique(sources * self._width + targets, return_inverse=True)
        token = np.repeat(np.arange(len(sizes)), sizes)  # of each link: which target word it would explain
        owner = self._keys // self._width
        self._values: Matrix = np.full(len(self._keys), 1.0)
        for _ in range(_ITERATIONS):
            weights = self._values[which]
            share = weights / np.bincount(token, weights, len(sizes))[token]
            counts = np.bincount(which, share, len(self._keys))
            self._values = counts / np.bincount(owner, counts, len(self._sources))[owner]
        # Where in them the keys of each source word begin; the last is where all of them end.
        self._starts = np.searchsorted(owner, np.arange(len(self._sources) + 1))

    def _links(self, source: Words, target: Words) -> tuple[list[int], list[int], list[int]]:
        known = [self._sources.setdefault(word, len(self._sources)) for word in dict.fromkeys((NOTHING, *source))]
        found = [self._targets.setdefault(word, len(self._targets)) for word in dict.fromkeys(target)]
        return known * len(found), [t for t in found for _ in known], [len(known)] * len(found)

    def matrix(self, source: Words, target: Words) -> Matrix:
        """[NOTHING and the source words; target words], 0 if two were never seen together."""
        columns = [self._targets.get(word, self._width) for word in target]
        found = np.zeros((1 + len(source), len(target)))
        known = np.zeros(self._width + 1)  # of one source word, by target words; 0 for those that were never seen
        for row, word in zip(found, (NOTHING, *source), strict=True):
            if word in self._sources:
                keys = slice(*self._starts[self._sources[word] :][:2])
                targets = self._keys[keys] % self._width
                known[targets] = self._values[keys]
                row[:] = known[columns]
                known[targets] = 0
        return found


class WordAligner:
    """Links that are the best in both directions: few, but mostly right."""

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
