"""How certain a score and a difference of scores are: documents (or sentences) are resampled.

The sentences of a document are hard in similar ways, and a document-level system is right or wrong
about several of them at once. Sentences drawn one by one therefore give intervals that are too
narrow, so whole documents are drawn. Both are offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from docnmt.evaluation.metrics import Floats, Ints, Metric

_BLOCK = 1 << 22  # weights held at once: those of many sentences would fill the memory
_EQUAL = 1e-9  # closer differences are the same one, summed in another order


@dataclass(frozen=True)
class Interval:
    """95 %; NaN where there is a single document (or sentence), which tells nothing about others."""

    low: float
    high: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    @property
    def is_known(self) -> bool:
        return not math.isnan(self.low)

    def as_dict(self) -> dict[str, float | None]:
        """For JSON, which has no NaN."""
        return {"low": self.low if self.is_known else None, "high": self.high if self.is_known else None}


UNKNOWN = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class Difference:
    """A system compared with a baseline; `difference` is system - baseline, even if lower is better.

    Both p are the probability of such a large difference between systems that are equally good.
    Neither is ever 0: if trials are drawn, the observed result counts as one more of them.

    p_randomisation: in each trial a coin decides for each document whether the two systems swap
    their outputs; p is the share of trials whose difference, in either direction, is at least as
    large. If there are no more ways to swap than trials, each is tried once, and p is exact.

    p_bootstrap: documents are drawn with replacement, the same for both systems; p is the share of
    resamples in which the absolute difference exceeds its mean over all resamples by at least the
    observed difference, as sacrebleu and Moses define it. It stays near one half if the systems
    hardly differ, and counts one tail if they do.
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
    metric: Metric, statistics: Floats, documents: Ints | None, *, resamples: int = 1000, seed: int = 1
) -> Interval:
    """Of a system's score: the middle 95 % of its scores on resamples.

    `documents` has the document of each row of the statistics; without it rows are drawn.
    """
    units = _by_unit(statistics, documents)
    if len(units) < 2:
        return UNKNOWN
    scores = [_scores(metric, weights @ units) for weights in _resamples(len(units), resamples, seed)]
    return _middle(np.concatenate(scores))


def compare(
    metric: Metric,
    baseline: Floats,
    system: Floats,
    documents: Ints | None,
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


def _by_unit(statistics: Floats, documents: Ints | None) -> Floats:
    """A row for each unit that is drawn: the sums of a document."""
    if documents is None:
        return statistics
    _, places = np.unique(documents, return_inverse=True)
    sums = np.zeros((places.max() + 1, statistics.shape[1]))
    np.add.at(sums, places, statistics)
    return sums


def _scores(metric: Metric, totals: Floats) -> Floats:
    return np.array([metric.score(row) for row in totals])


def _resamples(units: int, count: int, seed: int) -> Iterator[Floats]:
    """How often each unit is drawn in each resample, some resamples at a time."""
    generator = np.random.default_rng([seed, 0])
    return _blocks(units, count, lambda rows: generator.multinomial(units, np.full(units, 1 / units), size=rows))


def _coins(units: int, count: int, seed: int) -> Iterator[Floats]:
    """1 where a system keeps its own output for a unit, 0 where it gets the other's."""
    generator = np.random.default_rng([seed, 1])
    return _blocks(units, count, lambda rows: generator.integers(2, size=(rows, units)))


def _all_coins(units: int) -> Iterator[Floats]:
    """Each way they can fall, once."""
    ways = np.arange(2**units)[:, None] >> np.arange(units) & 1
    yield ways.astype(np.float64)


def _blocks(units: int, count: int, draw: Callable[[int], Ints]) -> Iterator[Floats]:
    rows = max(1, _BLOCK // units)
    for start in range(0, count, rows):
        yield draw(min(rows, count - start)).astype(np.float64)  # whole numbers are multiplied far more slowly


def _middle(values: Floats) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975))
    return Interval(float(low), float(high))


def _p_value(chance: Floats, difference: float, exact: bool = False) -> float:
    drawn = 0 if exact else 1  # the result itself is one of all ways, but may not be among those drawn
    return float(np.sum(chance >= abs(difference) - _EQUAL) + drawn) / (len(chance) + drawn)


def sign_test(won: int, lost: int) -> float:
    """Exact, two-sided: how probable so uneven a split, or a more uneven one, is by fair coins.
    Ties are left out.

    Over the items that two systems answer differently it is McNemar's exact test.
    """
    tosses = won + lost
    ways = tail = 1  # to toss no heads; then one more each time
    for heads in range(min(won, lost)):
        ways = ways * (tosses - heads) // (heads + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**tosses)  # integers: exact however many
