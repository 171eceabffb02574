"""What the decoder attends to, where there is the accelerator: keys and values lie still.

Each sentence has a slot. When sentences leave or hypotheses change places, only small lists change: the slots of the
sentences that are left, and for each hypothesis the places in its slot that its own words took.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Segments
from docnmt.decoding.accelerator import Accelerator, Keys

STEPS = 16  # words of each hypothesis that there is room for at first


class Slotted(NamedTuple):
    """Keys and values of a source or of its context for all decoder layers."""

    keys: Tensor  # [layers, slots, heads, longest, size]
    values: Tensor
    slots: Tensor  # [sentences]
    counts: Tensor  # tokens of each, [sentences]
    accelerator: Accelerator

    @classmethod
    def of_projected(
        cls, projected: Tensor, segments: Segments, heads: int, width: int, accelerator: Accelerator
    ) -> Slotted:
        """[tokens, layers x 2 width]"""
        states = segments.pad(projected).unflatten(2, (-1, 2, heads, width // heads)).permute(2, 3, 0, 4, 1, 5)
        keys, values = states.unbind(1)
        slots = torch.arange(segments.count, dtype=torch.int32)
        return cls(keys.contiguous(), values.contiguous(), slots, segments.lengths.int(), accelerator)

    @property
    def sentences(self) -> int:
        return len(self.slots)

    @property
    def held(self) -> Keys:
        return Keys(self.keys, self.values, self.slots, self.counts)

    def of(self, sentences: Tensor) -> Slotted:
        return self._replace(slots=self.slots[sentences], counts=self.counts[sentences])

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """[sentences x n, width] -> [sentences x n, width]"""
        return self.accelerator.attend(query, self.keys[layer], self.values[layer], self.slots, self.counts)


class SlottedPool:
    """Keys and values of the words written so far."""

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, width: int, accelerator: Accelerator):
        self.beam, self.accelerator, self.filled = beam, accelerator, 0
        self.states = torch.empty(2, layers, sentences, heads, STEPS * beam, width // heads)
        self.slots = torch.arange(sentences, dtype=torch.int32)
        self.counts = torch.zeros(sentences, dtype=torch.int32)
        self.places = torch.empty(sentences * beam, STEPS, dtype=torch.int32)  # of each hypothesis, step by step
        self.own = torch.arange(beam, dtype=torch.int32)

    def make_room(self) -> None:
        """A place for the next word of each hypothesis."""
        if self.filled == self.states.shape[4]:
            self.states = F.pad(self.states, (0, 0, 0, self.filled))  # twice as much
            self.places = F.pad(self.places, (0, self.places.shape[1]))
        self.places[:, self.filled // self.beam].view(-1, self.beam).copy_(self.own + self.filled)
        self.counts += 1
        self.filled += self.beam

    @property
    def held(self) -> Keys:
        return Keys(self.states[0], self.states[1], self.slots, self.counts, self.places)

    def attend(self, layer: int, projected: Tensor) -> Tensor:
        """Query, key and value of each hypothesis' last word, [rows, 3 width] -> what it finds in its words, [rows,
        width]"""
        keys, values = self.states[0, layer], self.states[1, layer]
        self.accelerator.put(projected, keys, values, self.slots, self.filled - self.beam, self.beam)
        return self.accelerator.attend(projected, keys, values, self.slots, self.counts, self.places)

    def reorder(self, rows: Tensor) -> None:
        self.places = self.places[rows]

    def keep(self, sentences: Tensor) -> None:
        self.slots, self.counts = self.slots[sentences], self.counts[sentences]
        self.places = self.places.unflatten(0, (-1, self.beam))[sentences].flatten(0, 1)
