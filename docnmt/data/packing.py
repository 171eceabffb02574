"""A batch as one long row of tokens: sentences, contexts and targets packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor

from docnmt.data.context import Before, Context

# Embeddings, feed-forward networks, gates and norms are position-wise: they need not know which
# sentence a token belongs to. So a batch is kept *packed*, [tokens, width]. Only attention looks
# across positions: it asks `Segments` to lay the tokens out as [segments, longest, ...] and to
# remove the padding again.


class Segments:
    """Where the segments (sentences, contexts) of a packed row are."""

    def __init__(self, lengths: Tensor):
        self.lengths = lengths  # [segments]
        self.count = len(lengths)
        self.longest = int(lengths.max()) if self.count else 0
        self.dense = bool((lengths == self.longest).all())
        places = torch.arange(self.longest, device=lengths.device)  # [longest]
        self.mask = places < lengths[:, None]  # [segments, longest], True where there is a token
        self.index = self.mask.flatten().nonzero().squeeze(1)  # [tokens], each token's row in the padded layout
        self.positions = places.repeat(self.count)[self.index]  # [tokens], 0, 1, 2 ... anew in each segment

    @property
    def owners(self) -> Tensor:
        """The segment that each token belongs to, [tokens]"""
        return self.index // self.longest

    @property
    def attention_mask(self) -> Tensor | None:
        """[segments, 1, 1, longest] for keys, True = may attend; None if there is no padding."""
        return None if self.dense else self.mask[:, None, None, :]

    def pad(self, packed: Tensor) -> Tensor:
        """[tokens, width] -> [segments, longest, width], zeros after each segment's end."""
        if not self.dense:
            packed = _Pad.apply(packed, self.index, self.count * self.longest)
        return packed.view(self.count, self.longest, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """[segments, longest, width] -> [tokens, width]."""
        rows = padded.reshape(self.count * self.longest, -1)
        return rows if self.dense else _Unpad.apply(rows, self.index)


def _spread(packed: Tensor, index: Tensor, rows: int) -> Tensor:
    return packed.new_zeros(rows, packed.shape[1]).index_copy_(0, index, packed)


# Each is the other's derivative. Autograd's own derivative of index_select adds row by row, which is slow on a CPU.
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


# ---- What goes into a model ----


class Packed(NamedTuple):
    """Token ids of many segments in one row, and where each segment is."""

    tokens: Tensor  # [tokens]
    segments: Segments


class RememberedWords(NamedTuple):
    words: Tensor  # [sentences, longest], the latest last; a shorter row begins with -1
    places: Tensor  # [sentences, longest], the position of each word in the history's row of translations


class History(NamedTuple):
    """The sentences before each sentence of a batch, each a segment of its own, the nearest last."""

    source: Packed
    target: Packed | None  # their translations, each after a begin mark, if the system remembers them
    counts: Tensor  # how many segments belong to each sentence of the batch, [sentences]

    @property
    def owners(self) -> Tensor:
        """The sentence of the batch that each segment belongs to, [segments]"""
        return torch.arange(len(self.counts), device=self.counts.device).repeat_interleave(self.counts)

    @property
    def distances(self) -> Tensor:
        """How many sentences are between each segment and its sentence of the batch, [segments]"""
        ends = self.counts.cumsum(0).repeat_interleave(self.counts)
        return ends - 1 - torch.arange(len(ends), device=ends.device)

    @property
    def joined(self) -> Segments:
        """All segments of one sentence of the batch as one."""
        return Segments(torch.zeros_like(self.counts).index_add_(0, self.owners, self.source.segments.lengths))

    def remembered_words(self, left_out: Tensor | None = None) -> RememberedWords:
        """The words of the translations before, in the order they were written. Rows end together,
        so that the last n columns are the last n words of every sentence's history.

        left_out: words that are not remembered, [vocabulary], True for these
        """
        assert self.target is not None
        tokens, segments = self.target
        kept = segments.positions > 0  # [tokens], all but the begin marks
        if left_out is not None:
            kept = kept & ~left_out[tokens]
        of_tokens = self.owners[segments.owners]
        lengths = torch.zeros_like(self.counts).index_add_(0, of_tokens, kept.to(self.counts.dtype))
        places = kept.nonzero().squeeze(1)  # [words]
        longest = int(lengths.max())
        mask = torch.arange(longest, device=places.device) >= longest - lengths[:, None]
        found = RememberedWords(self.counts.new_full(mask.shape, -1), self.counts.new_zeros(mask.shape))
        found.words[mask], found.places[mask] = tokens[places], places
        return found


Contexts = Packed | History  # the paper's model reads the first kind, some other systems the second


class Choice(NamedTuple):
    """Target tokens with a loss of their own: the right word against the other words of its class."""

    rows: Tensor  # which tokens, [choices]
    words: Tensor  # the right one first, then the others, [choices, words]
    there: Tensor  # False for padding, [choices, words]
    weights: Tensor  # of each loss, [choices]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs for training or scoring. If `context` is None, the context modules are skipped."""

    source: Packed  # each sentence with its end mark
    target_in: Packed  # y_0 = begin, y_1 ... y_{J-1}
    target_out: Tensor  # y_1 ... y_J = end, [target tokens]
    context: Contexts | None = None
    counts: Tensor | None = None  # how many times each target token counts in the loss, [target tokens]; None: once
    choice: Choice | None = None


# ---- From lists of token ids to packed rows ----


def pack(sentences: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Packed:
    tokens = torch.tensor([token for sentence in sentences for token in sentence], dtype=torch.int64)
    return Packed(tokens.to(device), Segments(torch.tensor([len(s) for s in sentences], device=device)))


def pack_contexts(contexts: Sequence[Context | None], bos: int, device: torch.device | str = "cpu") -> Contexts | None:
    """The contexts of a batch, all of one kind; None if the rule has none. `bos` begins a remembered translation."""
    rows = [context for context in contexts if context is not None]
    if not rows:
        return None
    if not isinstance(rows[0], Before):
        return pack(cast("list[list[int]]", rows), device)
    histories = cast("list[Before]", rows)
    translations = [[bos, *ids] for history in histories for ids in history.translations]
    return History(
        source=pack([ids for history in histories for ids in history.sources], device),
        target=pack(translations, device) if translations else None,
        counts=torch.tensor([len(history.sources) for history in histories], device=device),
    )


def make_batch(
    sources: Sequence[Sequence[int]],
    contexts: Sequence[Context | None] | None,
    targets: Sequence[Sequence[int]],
    bos: int,
    eos: int,
    device: torch.device | str = "cpu",
) -> Batch:
    """Sources and contexts have their marks, targets have none."""
    return Batch(
        source=pack(sources, device),
        target_in=pack([[bos, *target] for target in targets], device),
        target_out=pack([[*target, eos] for target in targets], device).tokens,
        context=None if contexts is None else pack_contexts(contexts, bos, device),
    )


def own_parts(values: Tensor, batch: Batch, own: Sequence[int]) -> list[Tensor]:
    """Given a value for each target token, those of each sentence's last `own` tokens: a rule may
    have put the translations of other sentences before them."""
    parts = values.split(batch.target_in.segments.lengths.tolist())
    return [part[len(part) - count :] for part, count in zip(parts, own, strict=True)]
