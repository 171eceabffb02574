"""`benchmarks/positions.py`: the frequencies of another table, and of a wider model."""

from __future__ import annotations

import pytest
import torch

from benchmarks.positions import shifted
from docnmt.model.layers import sinusoids

CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", ["vaswani", "marian"])
def test_of_its_own_width_it_is_the_models_table(kind):
    assert torch.allclose(shifted(64, 64, kind, 40), sinusoids(40, 64, CPU, kind)[:40], atol=1e-5)


@pytest.mark.parametrize("kind", ["vaswani", "marian"])
def test_of_twice_the_width_it_is_every_other_frequency(kind):
    wide = sinusoids(40, 128, CPU, kind)[:40]  # sines, then cosines
    assert torch.allclose(shifted(64, 128, kind, 40), wide[:, ::2], atol=1e-5)


def test_vaswanis_frequencies_are_those_of_the_wider_model_too():
    assert torch.allclose(shifted(64, 128, "vaswani", 40), shifted(64, 64, "vaswani", 40), atol=1e-5)
