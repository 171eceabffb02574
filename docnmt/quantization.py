"""Matrices in eight bits: whole numbers from -127 to 127, and for each row the one float32 number they are times of.

A row is what one output is made of, or the embedding of one word. A scale has 17 significant bits and a number 7: their
product has 24, which float32 holds exactly. So what comes back gives the same numbers and the same scales when it is
quantized again, however often.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError

LARGEST = 127
SCALE = ".scale"  # follows a matrix's name in a file
_NOTHING = 1e-30  # a row with nothing larger is all zeros: below, scales would run out of bits


def quantize(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """[rows, inputs] in float32 -> numbers [rows, inputs] in int8, and scales [rows]"""
    largest = matrix.abs().amax(dim=1)
    scales = _to_17_bits(largest / LARGEST).masked_fill_(largest <= _NOTHING, 1.0)
    return (matrix / scales[:, None]).round_().to(torch.int8), scales


def dequantize(numbers: Tensor, scales: Tensor) -> Tensor:
    return numbers.float().mul_(scales[:, None])


def _to_17_bits(scales: Tensor) -> Tensor:
    """To the nearest; positive numbers alone."""
    return ((scales.view(torch.int32) + 64) & -128).view(torch.float32)


def with_scales(weights: Mapping[str, Tensor], matrices: Collection[str]) -> dict[str, Tensor]:
    """What a file holds: the named ones in int8, each with its scales beside it, the others as they are."""
    held = dict(weights)
    for name in matrices:
        held[name], held[name + SCALE] = quantize(weights[name])
    return held


def take_scales(held: dict[str, Tensor]) -> dict[str, Tensor]:
    """Takes the scales out of what a file held, and returns them by the names of their matrices."""
    scales = {}
    for name in [name for name, tensor in held.items() if tensor.dtype == torch.int8]:
        rows, scale = held[name], held.pop(name + SCALE, None)
        if rows.ndim != 2 or scale is None or scale.dtype != torch.float32 or scale.shape != rows.shape[:1]:
            raise DocnmtError(f"{name} has not a scale for each of its rows\n  Copy the model folder again.")
        scales[name] = scale
    return scales
