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


def remembered_words(history: History) -> RememberedWords:
    """Rows end together, so that the last n columns are the last n words of every sentence's history."""
    assert history.target is not None
    segments, counts = history.target.segments, history.counts
    lengths = torch.zeros_like(counts).index_add_(0, owners(history), segments.lengths - 1)  # without begin marks
    found = segments.positions.nonzero().squeeze(1)  # [words], all but the begin marks
    longest = int(lengths.max())
    mask = torch.arange(longest, device=counts.device) >= longest - lengths[:, None]
    words, places = counts.new_full(mask.shape, -1), counts.new_zeros(mask.shape)
    words[mask], places[mask] = history.target.tokens[found], found
    return RememberedWords(words, places)
