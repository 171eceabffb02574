"""The learning rate against the formula of Vaswani et al. (2017), section 5.3."""

from __future__ import annotations

import itertools

import pytest

from docnmt.config import StepConfig
from docnmt.training.loop import cooled, learning_rate


@pytest.mark.parametrize("update", [1, 2, 100, 3999, 4000, 4001, 100_000])
def test_against_the_formula(update):
    """lrate = d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5)"""
    expected = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
    assert learning_rate(update, 512, 4000, 1.0) == pytest.approx(expected, rel=1e-12)


def test_known_values():
    """The peak of the base model is 1 / sqrt(512 * 4000) = 6.99e-4, at the end of the warm-up."""
    assert learning_rate(4000, 512, 4000, 1.0) == pytest.approx(6.987712e-4, rel=1e-6)
    assert learning_rate(1, 512, 4000, 1.0) == pytest.approx(1.746928e-7, rel=1e-6)
    assert learning_rate(16_000, 512, 4000, 1.0) == pytest.approx(learning_rate(4000, 512, 4000, 1.0) / 2)


def test_rises_in_a_line_to_the_end_of_the_warm_up_then_falls():
    rates = [learning_rate(update, 64, 50, 1.0) for update in range(1, 200)]
    assert max(rates) == rates[49]
    for update in range(1, 51):
        assert rates[update - 1] == pytest.approx(update * rates[0])
    assert all(a > b for a, b in itertools.pairwise(rates[49:]))


def test_the_factor_is_a_factor():
    assert learning_rate(7, 64, 50, 0.1) == pytest.approx(0.1 * learning_rate(7, 64, 50, 1.0))


def left(step: StepConfig) -> list[float]:
    return [cooled(update, step.cooling(update)) for update in range(1, step.updates + 1)]


def test_a_cooldown_changes_nothing_before_it_and_then_falls_in_a_line_to_one_step_above_nothing():
    assert left(StepConfig(updates=8, cooldown=4)) == pytest.approx([1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert left(StepConfig(updates=3)) == [1, 1, 1]


def test_a_cooldown_longer_than_the_step_is_all_of_it():
    assert left(StepConfig(updates=4, cooldown=100)) == left(StepConfig(updates=4, cooldown=4)) == [0.8, 0.6, 0.4, 0.2]
