"""Products with matrices that do not change any more: packed once, used often.

int8 is the accelerator's product, or where there is none torch's own dynamic kernels. Weights have one scale a row in
both; inputs have one scale a row in the accelerator's, so that no row depends on those beside it, and one scale a
product in torch's. Everything that knows of them is in this file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.decoding.accelerator import accelerator
from docnmt.decoding.accelerator.structures import DEPTH, Packed, in_16_bits
from docnmt.quantization import quantize

Matrix = Callable[[Tensor], Tensor]  # [rows, inputs] -> [rows, outputs]

KERNELS = NARROW, WIDE = "fbgemm", "onednn"  # torch has both; which is faster depends on the matrix


def has_int8() -> bool:
    """Whether there are int8 kernels for this processor."""
    return _accelerated() or set(KERNELS) <= set(torch.backends.quantized.supported_engines)


def _accelerated() -> bool:
    fast = accelerator()
    return fast is not None and fast.has_int8


class QuantizedRows:
    """A matrix as int8, each row with its own scale: the largest element of a row becomes 127."""

    def __init__(self, values: Tensor, scales: Tensor):
        self.values, self.scales = values, scales  # int8 [rows, columns], [rows]

    @classmethod
    def of(cls, weight: Tensor) -> QuantizedRows:
        rows = cls(*quantize(weight))
        return cls(*in_16_bits(rows.values, rows.scales)) if rows.accelerated else rows

    @property
    def accelerated(self) -> bool:
        return self.values.shape[1] % DEPTH == 0 and _accelerated()

    def __getitem__(self, rows: Tensor) -> QuantizedRows:
        return QuantizedRows(self.values[rows], self.scales[rows])


class FloatMatrix:
    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False):
        self.weight, self.bias, self.relu = weight.contiguous(), bias, relu

    def __call__(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return y.relu_() if self.relu else y


class Int8Matrix:
    """The accelerator's."""

    def __init__(self, rows: QuantizedRows, bias: Tensor | None, relu: bool = False):
        fast = accelerator()
        assert fast is not None
        self.packed, self.product, self.relu = Packed(rows.values, rows.scales, bias), fast.product, relu

    def __call__(self, x: Tensor) -> Tensor:
        return self.product(self.packed, x, self.relu)


class TorchInt8Matrix:
    def __init__(self, rows: QuantizedRows, bias: Tensor | None, relu: bool = False):
        self.packed = _packed(rows, bias)
        kernels = torch.ops.quantized
        self.product = (kernels.linear_relu_dynamic if relu else kernels.linear_dynamic).default

    def __call__(self, x: Tensor) -> Tensor:
        # Inputs use 7 of 8 bits: without it the sums of pairs overflow on processors that add them in 16 bits.
        return self.product(x, self.packed, True)


def pack(weight: Tensor, bias: Tensor | None, int8: bool, relu: bool = False) -> Matrix:
    """x -> x weight^T + bias, nothing negative if `relu`."""
    return _int8(QuantizedRows.of(weight), bias, relu) if int8 else FloatMatrix(weight, bias, relu)


def _int8(rows: QuantizedRows, bias: Tensor | None, relu: bool = False) -> Matrix:
    return (Int8Matrix if rows.accelerated else TorchInt8Matrix)(rows, bias, relu)


class Softmax:
    """W_o, whole or some of its rows: those of a shortlist."""

    def __init__(self, weight: Tensor, int8: bool):
        self.rows: QuantizedRows | Tensor = QuantizedRows.of(weight) if int8 else weight
        self.whole = _without_bias(self.rows)

    def over(self, words: Tensor) -> Matrix:
        return _without_bias(self.rows[words])


def _without_bias(rows: QuantizedRows | Tensor) -> Matrix:
    return FloatMatrix(rows, None) if isinstance(rows, Tensor) else _int8(rows, None)


def _packed(rows: QuantizedRows, bias: Tensor | None) -> Any:
    outputs, inputs = rows.values.shape
    torch.backends.quantized.engine = WIDE if outputs >= 2 * inputs else NARROW
    zeros = torch.zeros_like(rows.scales, dtype=torch.int64)
    with warnings.catch_warnings():
        # torch warns that quantized tensors will go; the kernel stays, and this is how it takes its weights today.
        warnings.filterwarnings("ignore", message=".*quantized tensor.*")
        quantized = torch._make_per_channel_quantized_tensor(rows.values, rows.scales.double(), zeros, 0)
        return torch.ops.quantized.linear_prepack(quantized, bias)
