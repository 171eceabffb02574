"""How sure a score and a difference of scores are: documents (or sentences) are resampled.

The sentences of a document are alike in what is hard about them, and a document-level system is right or wrong about
several of them at once. So documents are drawn, with all their sentences, and not sentences; those give intervals that
are too narrow. Both can be had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docnmt.evaluation.metrics import Metric

Matrix = NDArray[np.float64]

_BLOCK = 1 << 22  # numbers in a block of weights, so that many sentences do not fill the memory
_EQUAL = 1e-9  # differences closer than this are the same one, summed in another order


@dataclass(frozen=True)
class Interval:
    """95 %; not a number where there is a single document (or sentence), which tells nothing about others."""

    low: float
    high: float


UNKNOWN = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class Difference:
    """A system beside a baseline; `difference` is system - baseline whichever of high and low is better.

    Both p are the probability of a difference as large if the systems were equals, and differ in how equals are made.
    Neither is ever 0: where trials are drawn one is added to counts, as the systems themselves are one way it could
    have come out.

    p_randomisation: in every trial the two systems' outputs for each document are swapped or left, by the toss of a
    coin; counts the trials in which the difference, in either direction, is at least as large. Where there are no more
    ways to swap than trials, each is looked at once, and p is exact.

    p_bootstrap: documents are drawn with replacement, for both systems the same; counts the resamples in which the
    absolute difference exceeds its mean over all resamples by at least the difference found. That is the definition of
    sacrebleu and of Moses. Where the systems hardly differ it stays near one half; where they do it counts one tail.
    """

    baseline: float
    system: float
    difference: float
    interval: Interval  # of the difference, by the bootstrap
    p_bootstrap: float
    p_randomisation: float
    resamples: int
    trials: int  # random swaps, or, where p is exact, all of them
    unit: str  # "documents" or "sentences": what was drawn
    exact: bool = False

    @property
    def swaps(self) -> str:
        """How p_randomisation was found, in words."""
        return f"all {self.trials:,} swaps" if self.exact else f"approximate randomisation, {self.trials:,} trials"


def interval(
    metric: Metric, statistics: Matrix, documents: NDArray[np.int64] | None, *, resamples: int = 1000, seed: int = 1
) -> Interval:
    """Of a system's score: the middle 95 % of its scores on resamples.

    `documents` has the index of the document of each row of the statistics; without it rows are drawn.
    """
    units = _by_unit(statistics, documents)
    if len(units) < 2:
        return UNKNOWN
    scores = [_scores(metric, weights @ units) for weights in _resamples(len(units), resamples, seed)]
    return _middle(np.concatenate(scores))


def compare(
    metric: Metric,
    baseline: Matrix,
    system: Matrix,
    documents: NDArray[np.int64] | None,
    *,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 1,
) -> Difference:
    """The difference of two systems, tested by paired bootstrap and by swaps, all of them or as many as `trials`."""
    ours, theirs = _by_unit(system, documents), _by_unit(baseline, documents)
    scores = metric.score(theirs.sum(axis=0)), metric.score(ours.sum(axis=0))
    difference = scores[1] - scores[0]
    drawn = np.concatenate(
        [
            _scores(metric, weights @ ours) - _scores(metric, weights @ theirs)
            for weights in _resamples(len(ours), resamples, seed)
        ]
    )
    together = (ours + theirs).sum(axis=0)
    exact = 2 ** len(ours) <= trials
    swapped = []
    for kept in _all_coins(len(ours)) if exact else _coins(len(ours), trials, seed):
        first = kept @ ours + (1 - kept) @ theirs
        swapped.append(_scores(metric, first) - _scores(metric, together - first))
    return Difference(
        baseline=scores[0],
        system=scores[1],
        difference=difference,
        interval=_middle(drawn) if len(ours) > 1 else UNKNOWN,
        p_bootstrap=_p_value(np.abs(drawn) - np.abs(drawn).mean(), difference) if len(ours) > 1 else 1.0,
        p_randomisation=_p_value(np.abs(np.concatenate(swapped)), difference, exact),
        resamples=resamples,
        trials=2 ** len(ours) if exact else trials,
        unit=f"{metric.segment}s" if documents is None else "documents",
        exact=exact,
    )


def _by_unit(statistics: Matrix, documents: NDArray[np.int64] | None) -> Matrix:
    """What is drawn at once as one row: the sums of each document."""
    if documents is None:
        return statistics
    _, places = np.unique(documents, return_inverse=True)
    sums = np.zeros((places.max() + 1, statistics.shape[1]))
    np.add.at(sums, places, statistics)
    return sums


def _scores(metric: Metric, totals: Matrix) -> NDArray[np.float64]:
    return np.array([metric.score(row) for row in totals])


def _resamples(units: int, count: int, seed: int) -> Iterator[Matrix]:
    """How often each unit is drawn in each resample, some resamples at a time."""
    generator = np.random.default_rng([seed, 0])
    return _blocks(units, count, lambda rows: generator.multinomial(units, np.full(units, 1 / units), size=rows))


def _coins(units: int, count: int, seed: int) -> Iterator[Matrix]:
    """1 where a system keeps its own output for a unit, 0 where it gets the other's."""
    generator = np.random.default_rng([seed, 1])
    return _blocks(units, count, lambda rows: generator.integers(2, size=(rows, units)))


def _all_coins(units: int) -> Iterator[Matrix]:
    """Each way they can fall, once."""
    ways = np.arange(2**units)[:, None] >> np.arange(units) & 1
    yield ways.astype(np.float64)


def _blocks(units: int, count: int, draw: Callable[[int], NDArray[np.int64]]) -> Iterator[Matrix]:
    rows = max(1, _BLOCK // units)
    for start in range(0, count, rows):
        yield draw(min(rows, count - start)).astype(np.float64)  # whole numbers are multiplied far more slowly


def _middle(values: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975))
    return Interval(float(low), float(high))


def _p_value(chance: NDArray[np.float64], difference: float, exact: bool = False) -> float:
    drawn = 0 if exact else 1  # all ways have the systems as they are among them
    return float(np.sum(chance >= abs(difference) - _EQUAL) + drawn) / (len(chance) + drawn)
