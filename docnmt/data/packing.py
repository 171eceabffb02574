"""A batch as one long row of tokens: sentences, contexts and targets packed, with where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

# ---- A batch as one long row of tokens ----

# Embeddings, feed-forward networks, gates and norms are position-wise: they need not know which sentence a token
# belongs to. So a batch is kept *packed*, [tokens, width], without padding. Only attention looks across positions; it
# alone asks `Segments` to lay the tokens out as [segments, longest, ...] and to take the padding away again.


class Segments:
    """Where the segments (sentences, contexts) of a packed row lie."""

    def __init__(self, lengths: Tensor):
        self.lengths = lengths  # [segments]
        self.count = len(lengths)
        self.longest = int(lengths.max()) if self.count else 0
        self.dense = bool((lengths == self.longest).all())
        places = torch.arange(self.longest, device=lengths.device)  # [longest]
        self.mask = places < lengths[:, None]  # [segments, longest], True where a token stands
        self.index = self.mask.flatten().nonzero().squeeze(1)  # [tokens], each token's row in the padded layout
        self.positions = places.repeat(self.count)[self.index]  # [tokens], 0, 1, 2 ... anew in each segment

    @property
    def attention_mask(self) -> Tensor | None:
        """[segments, 1, 1, longest] for keys, True = may attend; None where there is no padding to hide."""
        return None if self.dense else self.mask[:, None, None, :]

    def pad(self, packed: Tensor) -> Tensor:
        """[tokens, width] -> [segments, longest, width], zeros behind each segment's end."""
        if not self.dense:
            packed = _Pad.apply(packed, self.index, self.count * self.longest)
        return packed.view(self.count, self.longest, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """[segments, longest, width] -> [tokens, width]."""
        rows = padded.reshape(self.count * self.longest, -1)
        return rows if self.dense else _Unpad.apply(rows, self.index)


def _spread(packed: Tensor, index: Tensor, rows: int) -> Tensor:
    return packed.new_zeros(rows, packed.shape[1]).index_copy_(0, index, packed)


# Each is the other's derivative; autograd's own derivative of index_select adds row by row, which is slow on a CPU.
class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, packed: Tensor, index: Tensor, rows: int) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(index)
        return _spread(packed, index, rows)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        (index,) = ctx.saved_tensors
        return gradient.index_select(0, index), None, None


class _Unpad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, padded: Tensor, index: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(index)
        ctx.rows = padded.shape[0]
        return padded.index_select(0, index)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        (index,) = ctx.saved_tensors
        return _spread(gradient, index, ctx.rows), None


# ---- What goes into a model: sentences, contexts and targets as packed rows of token ids ----


class Packed(NamedTuple):
    """Token ids of many segments in one row, and where each segment lies."""

    tokens: Tensor  # [tokens]
    segments: Segments


class History(NamedTuple):
    """The sentences before each sentence of a batch, each a segment of its own, the nearest last."""

    source: Packed
    target: Packed | None  # their translations, each after a begin mark, where the system remembers them
    counts: Tensor  # how many segments belong to each sentence of the batch, [sentences]

    @property
    def distances(self) -> Tensor:
        """How many sentences stand between each of them and its sentence of the batch, [segments]"""
        ends = self.counts.cumsum(0).repeat_interleave(self.counts)
        return ends - 1 - torch.arange(len(ends), device=ends.device)

    @property
    def joined(self) -> Segments:
        """All that belong to one sentence of the batch as one segment."""
        owners = torch.arange(len(self.counts), device=self.counts.device).repeat_interleave(self.counts)
        return Segments(torch.zeros_like(self.counts).index_add_(0, owners, self.source.segments.lengths))


Contexts = Packed | History  # the paper's model reads the first kind, some of its rivals the second


class Choice(NamedTuple):
    """Target tokens that are told from other words of their class, with a loss of their own."""

    rows: Tensor  # which tokens, [choices]
    words: Tensor  # the right one first, then the others, [choices, words]
    there: Tensor  # which of these are words, the rest is padding, [choices, words]
    weights: Tensor  # of each one's loss, [choices]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs for training or scoring; `context` is None where the context modules are to be passed over."""

    source: Packed  # each sentence with its end mark
    target_in: Packed  # y_0 = begin, y_1 ... y_{J-1}
    target_out: Tensor  # y_1 ... y_J = end, [target tokens]
    context: Contexts | None = None
    counts: Tensor | None = None  # how often each target token counts in the loss, [target tokens]; None: once
    choice: Choice | None = None
