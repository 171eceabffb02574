"""What goes into a model: sentences, contexts and targets as packed rows of token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from docnmt.model.segments import Segments


class Packed(NamedTuple):
    """Token ids of many segments in one row, and where each segment lies."""

    tokens: Tensor  # [tokens]
    segments: Segments


class History(NamedTuple):
    """The sentences before each sentence of a batch, each a segment of its own, the nearest last."""

    source: Packed
    target: Packed | None  # their translations, each after a begin mark, where the system remembers them
    counts: Tensor  # how many segments belong to each sentence of the batch, [sentences]


Contexts = Packed | History  # the paper's model reads the first kind, some of its rivals the second


@dataclass(frozen=True)
class Batch:
    """Sentence pairs for training or scoring; `context` is None where the context modules are to be passed over."""

    source: Packed  # each sentence with its end mark
    target_in: Packed  # y_0 = begin, y_1 ... y_{J-1}
    target_out: Tensor  # y_1 ... y_J = end, [target tokens]
    context: Contexts | None = None
