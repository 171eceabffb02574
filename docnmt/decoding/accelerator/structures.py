"""The structures of accelerator.h."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_long, c_void_p
from typing import NamedTuple

from torch import Tensor

COLUMNS, DEPTH = 16, 8  # outputs of a panel, inputs at a time


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


class Packed(NamedTuple):
    """An int8 matrix in the order that products.c reads it."""

    panels: Tensor
    scales: Tensor
    bias: Tensor
    sums: Tensor
    inputs: int
    outputs: int

    @property
    def structure(self) -> Matrix:
        return Matrix(*map(at, self[:4]), self.inputs, self.outputs)


def at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
