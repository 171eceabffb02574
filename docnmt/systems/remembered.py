"""The words of the translations before each sentence of a batch, in the order they were written."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from docnmt.data.packing import History


class RememberedWords(NamedTuple):
    words: Tensor  # [sentences, longest], the newest last; in front of a shorter row -1
    places: Tensor  # [sentences, longest], where each word stands in the history's row of translations


def owners(history: History) -> Tensor:
    """Which sentence of the batch each segment of its history belongs to, [segments]"""
    return torch.arange(len(history.counts), device=history.counts.device).repeat_interleave(history.counts)


def remembered_words(history: History, left_out: Tensor | None = None) -> RememberedWords:
    """Rows end together, so that the last n columns are the last n words of every sentence's history.

    left_out: words that are not remembered, [vocabulary], True for these
    """
    assert history.target is not None
    segments, counts = history.target.segments, history.counts
    kept = segments.positions > 0  # [tokens], all but the begin marks
    if left_out is not None:
        kept = kept & ~left_out[history.target.tokens]
    of_tokens = owners(history).repeat_interleave(segments.lengths)
    lengths = torch.zeros_like(counts).index_add_(0, of_tokens, kept.to(counts.dtype))
    found = kept.nonzero().squeeze(1)  # [words]
    longest = int(lengths.max())
    mask = torch.arange(longest, device=counts.device) >= longest - lengths[:, None]
    words, places = counts.new_full(mask.shape, -1), counts.new_zeros(mask.shape)
    words[mask], places[mask] = history.target.tokens[found], found
    return RememberedWords(words, places)
