"""Products with matrices that do not change any more: packed once, used often.

int8 is the accelerator's product: weights and inputs have one scale a row, so that no row depends on those beside it.
Without the accelerator the same rounded weights are multiplied in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from docnmt.engine.native import ACTIVATIONS as IN_C
from docnmt.engine.native import DEPTH, Accelerator, Packed, accelerator, dequantize, quantize
from docnmt.model.layers import ACTIVATIONS

Matrix = Callable[[Tensor], Tensor]  # [rows, inputs] -> [rows, outputs]


def has_int8() -> bool:
    """Whether there is an int8 product for this processor."""
    return _fast() is not None


def _fast() -> Accelerator | None:
    found = accelerator()
    return found if found is not None and found.has_int8 else None


class QuantizedRows:
    """A matrix as int8, each row with its own scale: its largest element becomes 127, or less where the accelerator's
    sums would overflow."""

    def __init__(self, weight: Tensor):
        self.values, self.scales = quantize(weight.contiguous())  # int8 [rows, columns], [rows]
        self.fast = _fast() if weight.shape[1] % DEPTH == 0 else None
        if self.fast is not None:
            self.values, self.scales = self.fast.in_16_bits(self.values, self.scales)

    def matrix(self, bias: Tensor | None, activation: str = "", chosen: Tensor | None = None) -> Matrix:
        """x -> x weight^T + bias, of all rows or of those chosen; the bias is of these alone."""
        if self.fast is not None:
            return Int8Matrix(self.fast, self.fast.pack(self.values, self.scales, bias, chosen), activation)
        rows = slice(None) if chosen is None else chosen
        return FloatMatrix(dequantize(self.values[rows], self.scales[rows]), bias, activation)


class FloatMatrix:
    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str = ""):
        self.weight, self.bias, self.activation = weight.contiguous(), bias, activation

    def __call__(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return ACTIVATIONS[self.activation](y) if self.activation else y


class Int8Matrix:
    """The accelerator's."""

    def __init__(self, fast: Accelerator, packed: Packed, activation: str):
        self.fast, self.packed, self.activation = fast, packed, activation

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        if self.activation in IN_C:
            return self.fast.product(self.packed, x, self.activation, out)
        return ACTIVATIONS[self.activation](self.fast.product(self.packed, x))


def pack(weight: Tensor, bias: Tensor | None, int8: bool, activation: str = "") -> Matrix:
    """x -> x weight^T + bias, and what the activation makes of it."""
    return QuantizedRows(weight).matrix(bias, activation) if int8 else FloatMatrix(weight, bias, activation)


class Softmax:
    """W_o, whole or some of its rows: those of a shortlist."""

    def __init__(self, weight: Tensor, bias: Tensor | None, int8: bool):
        self.rows, self.bias = QuantizedRows(weight) if int8 else weight, bias
        self.whole = self.over(None)

    def over(self, words: Tensor | None) -> Matrix:
        bias = self.bias if self.bias is None or words is None else self.bias[words]
        if isinstance(self.rows, QuantizedRows):
            return self.rows.matrix(bias, chosen=words)
        return FloatMatrix(self.rows if words is None else self.rows[words], bias)

    def listed(self, words: Sequence[Tensor]) -> Listed:
        """Over the words of each sentence's shortlist, in their order."""
        ids = pad_sequence(list(words), batch_first=True, padding_value=-1)
        united = torch.cat(list(words)).unique()
        ids, none = ids.clamp(min=0), ids < 0
        columns = torch.searchsorted(united, ids).masked_fill_(none, 0)
        return Listed(self.over(united), ids, columns, none)


class Listed(NamedTuple):
    """What each sentence of a batch may write. One product scores the words of all, which is faster than one for each
    sentence; of these a sentence sees its own, side by side, so that nothing depends on the sentences beside it."""

    matrix: Matrix
    words: Tensor  # of each sentence, [sentences, most]
    columns: Tensor  # where the product has them
    none: Tensor  # True behind a sentence's last word

    def __call__(self, t: Tensor) -> Tensor:
        """[rows, width] -> [rows, most]"""
        scores = self.matrix(t).unflatten(0, (len(self.words), -1))  # [sentences, beam, words of all]
        own = scores.gather(2, self.columns[:, None].expand(-1, scores.shape[1], -1))
        return own.masked_fill_(self.none[:, None], -torch.inf).flatten(0, 1)

    def of(self, sentences: Tensor) -> Listed:
        return self._replace(words=self.words[sentences], columns=self.columns[sentences], none=self.none[sentences])
