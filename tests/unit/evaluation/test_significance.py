"""Intervals and p-values are those that statistics says, where it can say them."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from docnmt.evaluation import significance
from docnmt.evaluation.metrics import METRICS, Metric, corpus_statistics, make_metric
from docnmt.evaluation.significance import compare, interval, sign_test
from tests.builders import in_target_language, lines


class Mean(Metric):
    """The mean of a number a sentence, of which all is known."""

    name, higher_is_better, signature = "mean", True, "mean"

    def statistics(self, hypotheses, references):
        return np.array([[float(hypothesis), 1.0] for hypothesis in hypotheses])

    def score(self, totals):
        return float(totals[0] / totals[1])


MEAN = Mean()


def rows(values) -> np.ndarray:
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=1)


def corpora(sentences: int = 60) -> tuple[list[str], list[str], list[str]]:
    """A reference and two systems that each miss a word here and there."""
    reference = list(in_target_language(lines(sentences, seed=3)))
    random = np.random.default_rng(4)
    systems = [
        [" ".join(word for word in text.split() if random.random() > share) or "?" for text in reference]
        for share in (0.2, 0.1)
    ]
    return reference, *systems


# ---- intervals ----


def test_an_interval_is_as_wide_as_the_standard_error_says():
    values = np.random.default_rng(1).normal(50, 10, size=400)
    found = interval(MEAN, rows(values), None, resamples=4000)
    error = 1.96 * values.std() / math.sqrt(len(values))
    assert found.low == pytest.approx(values.mean() - error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + error, abs=0.1 * error)


def test_sentences_that_say_the_same_make_no_interval_narrower_if_documents_are_drawn():
    values = np.random.default_rng(2).normal(50, 10, size=50)
    documents = np.repeat(np.arange(50), 16)
    alone = interval(MEAN, rows(values), None)
    by_document = interval(MEAN, rows(np.repeat(values, 16)), documents)
    by_sentence = interval(MEAN, rows(np.repeat(values, 16)), None)
    width = by_document.high - by_document.low
    assert width == pytest.approx(alone.high - alone.low, rel=1e-9)
    assert width == pytest.approx(4 * (by_sentence.high - by_sentence.low), rel=0.2)


def test_documents_need_not_stand_together_nor_be_numbered_from_zero():
    values = np.random.default_rng(3).normal(size=60)
    documents = np.arange(60) // 6
    order = np.random.default_rng(4).permutation(60)
    one = interval(MEAN, rows(values), documents)
    other = interval(MEAN, rows(values[order]), 100 + 7 * documents[order])
    assert one.low == pytest.approx(other.low)
    assert one.high == pytest.approx(other.high)


def test_one_document_has_no_interval_and_proves_nothing():
    values = np.arange(10.0)
    documents = np.zeros(10, dtype=np.int64)
    assert math.isnan(interval(MEAN, rows(values), documents).low)
    found = compare(MEAN, rows(values), rows(values + 5), documents)
    assert found.difference == pytest.approx(5)
    assert found.p_bootstrap == found.p_randomisation == 1
    assert math.isnan(found.interval.high)


# ---- comparisons ----


@pytest.mark.parametrize("name", METRICS)
def test_a_system_does_not_differ_from_itself(name):
    reference, system, _ = corpora()
    metric = make_metric(name)
    statistics, documents = corpus_statistics(metric, system, [reference], np.arange(60) // 5)
    for units in (documents, None):
        found = compare(metric, statistics, statistics, units, trials=300)
        assert found.difference == found.interval.low == found.interval.high == 0
        assert found.p_bootstrap == found.p_randomisation == 1


@pytest.mark.parametrize("name", METRICS)
def test_the_other_way_round_all_is_mirrored(name):
    reference, one, other = corpora()
    metric = make_metric(name)
    documents = np.arange(60) // 5
    first, units = corpus_statistics(metric, one, [reference], documents)
    second, _ = corpus_statistics(metric, other, [reference], documents)
    there = compare(metric, first, second, units, trials=500)
    back = compare(metric, second, first, units, trials=500)
    assert (there.baseline, there.system) == (back.system, back.baseline)
    assert there.difference == -back.difference != 0
    assert there.interval.low == pytest.approx(-back.interval.high)
    assert (there.p_bootstrap, there.p_randomisation) == (back.p_bootstrap, back.p_randomisation)
    assert there.baseline == metric.score(first.sum(axis=0))


def test_randomisation_comes_to_what_all_swaps_give():
    random = np.random.default_rng(5)
    baseline, system = random.normal(size=8), random.normal(0.7, size=8)
    gaps = system - baseline
    swaps = [abs(np.dot(signs, gaps)) for signs in itertools.product((1, -1), repeat=8)]
    exact = np.mean([swap >= abs(gaps.sum()) - 1e-12 for swap in swaps])
    found = compare(MEAN, rows(baseline), rows(system), None, trials=20_000)
    assert 0.02 < exact < 0.5
    assert found.p_randomisation == pytest.approx(exact, abs=1e-12) and found.exact and found.trials == 256
    drawn = compare(MEAN, rows(baseline), rows(system), None, trials=255)
    assert drawn.p_randomisation == pytest.approx(exact, abs=0.08) and not drawn.exact and drawn.trials == 255


@pytest.mark.parametrize("documents", [1, 3, 4, 8, 13])
def test_few_documents_cannot_prove_much(documents):
    """However clear the difference: of all swaps, none and all of them give it."""
    values = np.arange(documents, dtype=np.float64)
    found = compare(MEAN, rows(values), rows(values + 10), None)
    assert found.p_randomisation == 2 / 2**documents


@pytest.mark.parametrize("gap", [0.05, 0.1, 0.2])
def test_both_p_values_follow_the_normal_distribution_where_it_holds(gap):
    random = np.random.default_rng(6)
    baseline = random.normal(size=500)
    noise = random.normal(size=500)
    system = baseline + gap + noise - noise.mean()
    deviations = gap * math.sqrt(500) / noise.std()
    tail = 1 - NormalDist().cdf(deviations)
    found = compare(MEAN, rows(baseline), rows(system), None, resamples=8000)
    assert found.difference == pytest.approx(gap)
    assert found.p_randomisation == pytest.approx(2 * tail, abs=0.02)  # as far away on either side
    assert found.p_bootstrap == pytest.approx(tail, abs=0.04)  # sacrebleu's definition counts the one
    assert found.interval.low < gap < found.interval.high


def test_true_equals_are_seldom_told_apart():
    """Of systems that differ by chance alone, about one in twenty has p < 0.05."""
    random = np.random.default_rng(7)
    documents = np.repeat(np.arange(30), 4)
    hits = 0
    for _ in range(200):
        shared = np.repeat(random.normal(size=(2, 30)), 4, axis=1)  # what is hard about a document
        one, other = shared + random.normal(size=(2, 120))
        found = compare(MEAN, rows(one), rows(other), documents, resamples=10, trials=400)
        hits += found.p_randomisation < 0.05
    assert 2 <= hits <= 20


# ---- how it is done ----


def test_the_seed_decides():
    values = np.random.default_rng(8).normal(size=(2, 40))
    one, again, other = (compare(MEAN, rows(values[0]), rows(values[1]), None, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.interval != other.interval


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    values = np.random.default_rng(9).integers(0, 100, size=(2, 40))
    whole = compare(MEAN, rows(values[0]), rows(values[1]), None, trials=200), interval(MEAN, rows(values[0]), None)
    monkeypatch.setattr(significance, "_BLOCK", 40 * 7)
    assert whole == (
        compare(MEAN, rows(values[0]), rows(values[1]), None, trials=200),
        interval(MEAN, rows(values[0]), None),
    )


def test_a_difference_says_how_it_was_tested():
    values = rows(np.arange(6.0))
    by_document = compare(MEAN, values, values, np.arange(6) // 2, resamples=50, trials=7)
    assert (by_document.unit, by_document.resamples, by_document.trials) == ("documents", 50, 7)
    assert by_document.swaps == "approximate randomisation, 7 trials"
    assert compare(MEAN, values, values, np.arange(6) // 2, trials=8).swaps == "all 8 swaps"
    assert compare(MEAN, values, values, None, resamples=5, trials=5).unit == "sentences"
    whole = make_metric("document-bleu")
    statistics, _ = corpus_statistics(whole, ["a b", "c d"], [["a b", "c e"]], np.array([0, 1]))
    assert compare(whole, statistics, statistics, None, resamples=5, trials=5).unit == "documents"


def test_a_thousand_resamples_of_three_thousand_sentences_take_about_a_second():
    metric = make_metric("chrf")
    statistics = np.random.default_rng(10).integers(1, 50, size=(3000, 18)).astype(np.float64)
    started = time.monotonic()
    interval(metric, statistics, None)
    assert time.monotonic() - started < 5  # a slow machine's second


# ---- the sign test ----


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
