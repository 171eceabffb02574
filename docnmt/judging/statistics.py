"""How far judges agree, and whether a preference could be chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """Fleiss' kappa, and the two shares it is made of; not a number where there is nothing to compute it from."""

    kappa: float
    observed: float  # the share of pairs of judges that agree
    expected: float  # the same if all judged by chance, with the shares of the verdicts as they are


def fleiss_kappa(verdicts: Sequence[Sequence[Hashable]]) -> Agreement:
    """Agreement on items that all have the same number of verdicts, two or more; who gave which does not matter.

    Where all verdicts are the same, chance would agree as well, and kappa is not defined.
    """
    if not verdicts or len(verdicts[0]) < 2:
        return Agreement(math.nan, math.nan, math.nan)
    judges = len(verdicts[0])
    if any(len(item) != judges for item in verdicts):
        raise ValueError("each item must have the same number of verdicts")
    counts = [Counter(item) for item in verdicts]
    agreeing = sum(n * (n - 1) for item in counts for n in item.values())
    observed = agreeing / (len(verdicts) * judges * (judges - 1))
    totals = sum(counts, Counter())
    given = len(verdicts) * judges
    chance = sum(n * n for n in totals.values())
    expected = chance / given**2
    kappa = (observed - expected) / (1 - expected) if chance < given**2 else math.nan
    return Agreement(kappa, observed, expected)


def sign_test(one: int, other: int) -> float:
    """Exact, two-sided: how probable so uneven a split, or a more uneven one, is by fair coins. Ties are left out."""
    tosses = one + other
    ways = tail = 1  # to toss no heads; then one more each time
    for heads in range(min(one, other)):
        ways = ways * (tosses - heads) // (heads + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**tosses)
