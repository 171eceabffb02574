"""Fleiss' kappa and the sign test against other ways to compute them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from docnmt.evaluation.significance import sign_test
from docnmt.judging.summary import fleiss_kappa

# The worked example of the method: ten subjects, each put into one of five categories by fourteen raters.
TABLE = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)


def test_kappa_of_the_worked_example():
    items = [[category for category, n in enumerate(row) for _ in range(n)] for row in TABLE]
    found = fleiss_kappa(items)
    assert found.observed == pytest.approx(0.378, abs=5e-4)
    assert found.expected == pytest.approx(0.213, abs=5e-4)
    assert found.kappa == pytest.approx(0.210, abs=5e-4)


def kappa_by_pairs(items: np.ndarray) -> float:
    """By its meaning: how much more often two different raters of an item agree than two verdicts drawn at random."""
    judges = items.shape[1]
    pairs = list(itertools.permutations(range(judges), 2))
    observed = np.mean([items[:, one] == items[:, other] for one, other in pairs])
    drawn = items.ravel()
    expected = np.mean(drawn[:, None] == drawn[None, :])
    return float((observed - expected) / (1 - expected))


@pytest.mark.parametrize("judges", [2, 3, 5])
def test_kappa_is_agreement_of_pairs_beyond_chance(judges):
    random = np.random.default_rng(judges)
    for _ in range(20):
        items = random.choice([-1, 0, 1], size=(30, judges), p=(0.2, 0.5, 0.3))
        assert fleiss_kappa(items.tolist()).kappa == pytest.approx(kappa_by_pairs(items))


def test_kappa_of_judges_who_agree_and_of_judges_who_toss_coins():
    assert fleiss_kappa([[1, 1, 1], [0, 0, 0], [-1, -1, -1]]).kappa == 1
    assert fleiss_kappa([[0, 1], [1, 0]]).kappa == -1
    coins = np.random.default_rng(1).integers(3, size=(4000, 3)).tolist()
    assert abs(fleiss_kappa(coins).kappa) < 0.03


def test_kappa_is_not_defined_without_verdicts_that_could_disagree():
    for items in ([], [[1], [0]], [[1, 1], [1, 1]]):
        assert math.isnan(fleiss_kappa(items).kappa)
    assert fleiss_kappa([[1, 1], [1, 1]]).observed == 1


def test_kappa_needs_as_many_verdicts_of_each_item():
    with pytest.raises(ValueError, match="same number"):
        fleiss_kappa([[1, 1], [1]])


def test_the_sign_test_counts_every_toss_of_coins():
    for tosses in range(11):
        heads = [sum(coins) for coins in itertools.product((0, 1), repeat=tosses)]
        for one in range(tosses + 1):
            uneven = abs(2 * one - tosses)
            expected = Fraction(sum(abs(2 * count - tosses) >= uneven for count in heads), len(heads))
            assert sign_test(one, tosses - one) == pytest.approx(float(expected), rel=1e-12)


def test_the_sign_test_of_large_counts_neither_overflows_nor_vanishes():
    assert sign_test(5000, 5000) == 1
    assert 0 < sign_test(300, 500) < 1e-11
    # The bell curve with its correction for whole numbers is close to it.
    z = (560 - 500 - 0.5) / math.sqrt(1000 / 4)
    assert sign_test(440, 560) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.02)
