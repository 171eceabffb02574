"""Sentence pairs cut in two, the first half as context of the second.

Lupo et al. (2022), "Divide and Rule: Effective Pre-Training for Context-Aware Multi-Encoder Translation Models": few
words depend on the sentence before, many on an earlier part of their own sentence. Cut in the middle, any sentence
pair teaches where to look in a context: in *Elle prit | son chapeau* the gender of *son* stands before the cut alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from docnmt.data.subwords import Subwords

SHORTEST = 4  # pieces of a half: less is hardly a sentence


class Halves(NamedTuple):
    source: tuple[list[int], list[int]]
    target: tuple[list[int], list[int]]


class SplitPairs:
    def __init__(self, rate: float, source: Subwords, target: Subwords):
        self.rate = rate
        self.begins = [[piece.startswith(b" ") for piece in side.written()] for side in (source, target)]

    def __call__(self, source: Sequence[int], target: Sequence[int]) -> Halves | None:
        """The halves, where this pair is drawn and can be cut. Draws from torch's generator, which the training loop
        seeds for each batch."""
        if float(torch.rand(())) >= self.rate:
            return None
        cuts = [_middle(side, begins) for side, begins in zip((source, target), self.begins, strict=True)]
        if 0 in cuts:
            return None
        parts = [(list(side[:cut]), list(side[cut:])) for side, cut in zip((source, target), cuts, strict=True)]
        return Halves(*parts)


def _middle(sentence: Sequence[int], begins: Sequence[bool]) -> int:
    """Where the word begins that is nearest to the middle; 0 where a half would be too short."""
    places = [i for i in range(SHORTEST, len(sentence) - SHORTEST + 1) if begins[sentence[i]]]
    return min(places, key=lambda place: abs(2 * place - len(sentence)), default=0)
