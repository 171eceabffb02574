"""Our tests against sacrebleu's own PairedTest, where both resample sentences: equal up to what chance leaves."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.significance import Difference, compare, interval
from tests.builders import in_target_language, lines

# Enough that two trials seldom come to the very same difference: we count such ties, sacrebleu does not.
SENTENCES = 400
RESAMPLES = 2000
# p is a share of 2,000 draws on either side: the standard error of their difference is at most 0.016.
TOLERANCE = 0.05

METRICS = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}
# The share of words that each system gets wrong: a baseline, one much like it, one a little and one clearly better.
SYSTEMS = {"baseline": 0.3, "alike": 0.305, "better": 0.27, "clearly better": 0.15}


@functools.cache
def corpus() -> tuple[list[list[str]], dict[str, list[str]]]:
    references = [list(in_target_language(lines(SENTENCES, seed=seed))) for seed in (5, 6)]
    words = sorted({word for text in references[0] for word in text.split()})
    random = np.random.default_rng(11)
    systems = {
        name: [
            " ".join(str(random.choice(words)) if random.random() < share else word for word in text.split())
            for text in references[0]
        ]
        for name, share in SYSTEMS.items()
    }
    return references, systems


@functools.cache
def theirs(name: str, test: str) -> dict[str, sacrebleu.significance.Result]:
    """sacrebleu's result for each system."""
    references, systems = corpus()
    metrics = {name: METRICS[name]()}
    _, results = PairedTest(list(systems.items()), metrics, references, test_type=test, n_samples=RESAMPLES)()
    del results["System"]
    (found,) = results.values()
    return dict(zip(SYSTEMS, found, strict=True))


@functools.cache
def ours(name: str, system: str) -> Difference:
    references, systems = corpus()
    metric = make_metric(name)
    statistics = [metric.statistics(systems[own], references) for own in ("baseline", system)]
    return compare(metric, *statistics, None, resamples=RESAMPLES, trials=RESAMPLES)


@pytest.mark.parametrize("system", ["alike", "better", "clearly better"])
@pytest.mark.parametrize("name", METRICS)
def test_the_paired_bootstrap_agrees(name, system):
    found, other = ours(name, system), theirs(name, "bs")[system]
    assert found.system == pytest.approx(other.score, rel=1e-12)
    assert found.p_bootstrap == pytest.approx(other.p_value, abs=TOLERANCE)


@pytest.mark.parametrize("system", ["alike", "better", "clearly better"])
@pytest.mark.parametrize("name", METRICS)
def test_approximate_randomisation_agrees(name, system):
    found, other = ours(name, system), theirs(name, "ar")[system]
    assert found.p_randomisation == pytest.approx(other.p_value, abs=TOLERANCE)


@pytest.mark.parametrize("name", METRICS)
def test_intervals_agree(name):
    references, systems = corpus()
    metric = make_metric(name)
    found = interval(metric, metric.statistics(systems["better"], references), None, resamples=RESAMPLES)
    other = theirs(name, "bs")["better"]
    assert (found.high - found.low) / 2 == pytest.approx(other.ci, rel=0.1)
    assert (found.high + found.low) / 2 == pytest.approx(other.mean, abs=0.2 * float(other.ci))


def test_the_systems_are_near_and_far():
    """So that agreement means something: chance, doubt and certainty are all among them."""
    found = [ours("bleu", system).p_randomisation for system in ("alike", "better", "clearly better")]
    assert found[0] > 0.3
    assert 0.003 < found[1] < 0.3
    assert found[2] < 0.001
