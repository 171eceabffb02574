"""Matrices in int8: what is lost, what is not, and that nothing more is lost the second time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.engine.native import SCALE, dequantize, quantize, take_scales, with_scales

floats = st.floats(-(2.0**100), 2.0**100, width=32)
matrices = st.integers(1, 5).flatmap(
    lambda inputs: st.lists(st.lists(floats, min_size=inputs, max_size=inputs), min_size=1, max_size=6)
)


def random_rows(rows: int, inputs: int = 3, seed: int = 0) -> Tensor:
    """Every mantissa is as likely as every other, and rows are of very different sizes."""
    random = np.random.default_rng(seed)
    values = random.uniform(1, 2, (rows, inputs)) * 2.0 ** random.integers(-40, 40, (rows, 1))
    return torch.from_numpy(values * random.choice([-1, 1], (rows, inputs))).float()


def check(matrix: Tensor) -> None:
    numbers, scales = quantize(matrix)
    assert (numbers.dtype, scales.dtype) == (torch.int8, torch.float32)
    assert (numbers.shape, scales.shape) == (matrix.shape, matrix.shape[:1])
    largest = matrix.abs().amax(dim=1)
    reached = numbers.to(torch.int64).abs().amax(dim=1)
    assert torch.equal(reached, torch.where(largest > 1e-30, 127, 0))
    back = dequantize(numbers, scales)
    assert back.dtype == torch.float32
    half = 0.5000001 * scales.double()[:, None]
    off = (back.double() - matrix.double()).abs()
    assert bool((off <= torch.where(largest > 1e-30, half[:, 0], largest.double())[:, None]).all())
    # float32 holds the products exactly ...
    assert torch.equal(back.double(), numbers.double() * scales.double()[:, None])
    # ... and so nothing is lost the second time.
    again, scales_again = quantize(back)
    assert torch.equal(again, numbers)
    assert torch.equal(scales_again, scales)


@given(matrices)
@example([[0.0, 0.0], [1.0, -0.0]])
@example([[2.0**-149, 2.0**-140], [-(2.0**-126), 1e-30], [2.0**-99, 2.0**-120]])
@example([[2.0**100, -1.0]])
@example([[127.0, 0.5, 1.5, 2.5, -63.5]])
def test_any_matrix(rows):
    check(torch.tensor(rows, dtype=torch.float32))


def test_all_kinds_of_mantissas():
    """largest / 127 as the scale would fail here for about one row in 130."""
    check(random_rows(100_000))


def test_an_error_of_less_than_a_percent_where_values_are_as_in_a_model():
    matrix = torch.randn(64, 512, generator=torch.Generator().manual_seed(1))
    off = (dequantize(*quantize(matrix)) - matrix).norm(dim=1) / matrix.norm(dim=1)
    assert 0 < off.max() < 0.015


def test_a_row_does_not_depend_on_others():
    matrix = random_rows(20)
    numbers, scales = quantize(matrix)
    for row in range(20):
        alone = quantize(matrix[row : row + 1])
        assert torch.equal(alone[0][0], numbers[row]) and torch.equal(alone[1][0], scales[row])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_shows_in_the_scale(bad):
    matrix = random_rows(3)
    matrix[1, 2] = bad
    assert quantize(matrix)[1].isfinite().tolist() == [True, False, True]


# ---- what a file holds ----


def some_weights() -> dict[str, Tensor]:
    return {"a.weight": random_rows(4), "a.bias": torch.randn(4), "b.weight": random_rows(5, 2), "c": random_rows(2)}


def test_into_a_file_and_out_of_it():
    weights = some_weights()
    held = with_scales(weights, ["a.weight", "b.weight"])
    assert set(held) == {*weights, "a.weight" + SCALE, "b.weight" + SCALE}
    assert {name for name, tensor in held.items() if tensor.dtype == torch.int8} == {"a.weight", "b.weight"}
    scales = take_scales(held)
    assert set(scales) == {"a.weight", "b.weight"} and set(held) == set(weights)
    assert all(torch.equal(held[name], weights[name]) for name in ("a.bias", "c"))
    for name in scales:
        assert torch.equal(dequantize(held[name], scales[name]), dequantize(*quantize(weights[name])))


def test_a_float32_file_has_no_scales():
    weights = some_weights()
    assert take_scales(weights) == {} and set(weights) == set(some_weights())


@pytest.mark.parametrize("damage", ["gone", "short", "double", "not a matrix"])
def test_scales_that_do_not_fit(damage):
    held = with_scales(some_weights(), ["a.weight"])
    name = "a.weight" + SCALE
    if damage == "gone":
        del held[name]
    elif damage == "short":
        held[name] = held[name][:-1]
    elif damage == "double":
        held[name] = held[name].double()
    else:
        held["a.weight"] = held["a.weight"][:, 0]
    with pytest.raises(DocnmtError, match=r"a\.weight: the scales of its int8 rows are missing\n  Copy"):
        take_scales(held)
