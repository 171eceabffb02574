"""The structures of accelerator.h, and int8 matrices packed for products.c."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_long, c_void_p

import torch
import torch.nn.functional as F
from torch import Tensor

COLUMNS, DEPTH = 16, 8  # outputs of a panel, inputs at a time
MOST_OF_FOUR = 258  # weights of one sign: 127 times as much fits into sixteen bits


class Matrix(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("panels", "scales", "bias", "sums")] + [
        ("inputs", c_long),
        ("outputs", c_long),
    ]


class Norm(ctypes.Structure):
    _fields_ = [("weight", c_void_p), ("bias", c_void_p), ("epsilon", c_float)]


class Memory(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("keys", "values", "slots", "counts", "places")] + [
        (name, c_long) for name in ("all_slots", "longest", "room")
    ]


NO_CONTEXT, GATED, RESIDUAL = range(3)


class Layer(ctypes.Structure):
    _fields_ = [
        ("query_key_value", Matrix),
        ("words_output", Matrix),
        ("after_words", Norm),
        ("context_query", Matrix),
        ("context_output", Matrix),
        ("after_context", Norm),
        ("source_query", Matrix),
        ("source_output", Matrix),
        ("after_source", Norm),
        ("inner", Matrix),
        ("outer", Matrix),
        ("after_feed_forward", Norm),
        ("context", c_long),
    ]


class Packed:
    """An int8 matrix in the order that products.c reads it."""

    def __init__(self, values: Tensor, scales: Tensor, bias: Tensor | None):
        """values: int8 [outputs, inputs], as in_16_bits leaves them; scales, bias [outputs]"""
        self.outputs, self.inputs = values.shape
        room = -self.outputs % COLUMNS  # of the last panel
        values = F.pad(values, (0, 0, 0, room))
        fours = values.view(torch.int32).view(-1, COLUMNS, self.inputs // DEPTH, 2)  # neighbours stay together
        self.panels = fours.permute(0, 2, 3, 1).contiguous()
        self.sums = values.sum(dim=1, dtype=torch.int32)
        self.scales = F.pad(scales, (0, room))
        self.bias = torch.zeros(len(values)) if bias is None else F.pad(bias.detach(), (0, room))
        parts = [at(part) for part in (self.panels, self.scales, self.bias, self.sums)]
        self.structure = Matrix(*parts, self.inputs, self.outputs)


def in_16_bits(values: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    """The same matrix, such that sixteen bits hold the sum of four products that products.c adds there, whatever the
    input. Few rows need it: theirs become a little coarser."""
    fours = values.view(len(values), -1, 2, 2, 2).transpose(2, 3).flatten(3)  # of inputs 0 1 4 5 and 2 3 6 7
    positive, negative = fours.clamp(min=0).sum(3, dtype=torch.int16), fours.clamp(max=0).sum(3, dtype=torch.int16)
    most = torch.maximum(positive, -negative).flatten(1).amax(1)
    over = most > MOST_OF_FOUR
    if not over.any():
        return values, scales
    values, scales = values.clone(), scales.clone()
    shrink = (MOST_OF_FOUR - 2) / most[over]  # less two: four halves that are rounded up
    values[over] = (values[over] * shrink[:, None]).round().to(torch.int8)
    scales[over] /= shrink
    return values, scales


def at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
