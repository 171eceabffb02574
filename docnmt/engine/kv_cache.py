"""What the decoder attends to: keys and values of source and context, and of the words so far.

There are two of each. With the accelerator, keys and values do not move: each sentence has a slot, and
when sentences leave or hypotheses change places, only small lists change. In pure torch all
hypotheses of a sentence share a pool of words with a mask of what each of them sees.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Segments
from docnmt.engine.native import Accelerator, Keys

# ---- With the accelerator ----

ROOM = 16  # initial capacity, in words of each hypothesis


class SlottedMemory(NamedTuple):
    """Keys and values of a source or of its context for all decoder layers."""

    held: Keys
    accelerator: Accelerator

    @classmethod
    def of_projected(
        cls, projected: Tensor, segments: Segments, heads: int, size: int, accelerator: Accelerator
    ) -> SlottedMemory:
        """[tokens, layers x 2 width]"""
        states = segments.pad(projected).unflatten(2, (-1, 2, heads, size)).permute(2, 3, 0, 4, 1, 5)
        keys, values = states.unbind(1)
        slots = torch.arange(segments.count, dtype=torch.int32)
        return cls(Keys(keys.contiguous(), values.contiguous(), slots, segments.lengths.int()), accelerator)

    @property
    def sentences(self) -> int:
        return len(self.held.slots)

    def of(self, sentences: Tensor) -> SlottedMemory:
        slots, counts = self.held.slots[sentences], self.held.counts[sentences]
        return self._replace(held=self.held._replace(slots=slots, counts=counts))

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """[sentences x n, width] -> [sentences x n, width]"""
        keys, values, slots, counts, _ = self.held
        return self.accelerator.attend(query, keys[layer], values[layer], slots, counts)


class SlottedWords:
    """Keys and values of the words so far. For each hypothesis a list has the places in its
    sentence's slot that its own words took."""

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, size: int, accelerator: Accelerator):
        self.beam, self.accelerator, self.filled = beam, accelerator, 0
        self.states = torch.empty(2, layers, sentences, heads, ROOM * beam, size)
        self.slots = torch.arange(sentences, dtype=torch.int32)
        self.counts = torch.zeros(sentences, dtype=torch.int32)
        self.places = torch.empty(sentences * beam, ROOM, dtype=torch.int32)  # of each hypothesis, step by step
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
        """Query, key and value of each hypothesis' last word, [rows, 3 width] -> what it finds in
        its words, [rows, width]"""
        keys, values = self.states[0, layer], self.states[1, layer]
        self.accelerator.put(projected, keys, values, self.slots, self.filled - self.beam, self.beam)
        return self.accelerator.attend(projected, keys, values, self.slots, self.counts, self.places)

    def reorder(self, rows: Tensor) -> None:
        self.places = self.places[rows]

    def keep(self, sentences: Tensor) -> None:
        self.slots, self.counts = self.slots[sentences], self.counts[sentences]
        self.places = self.places.unflatten(0, (-1, self.beam))[sentences].flatten(0, 1)


# ---- In pure torch ----

STEPS = 8  # words of each hypothesis between two clearings


class MaskedMemory(NamedTuple):
    """As `SlottedMemory`."""

    keys: Tensor  # [layers, sentences, heads, size, longest]: the other way round products with them are slower
    values: Tensor  # [layers, sentences, heads, longest, size]
    hidden: Tensor | None  # [sentences, 1, 1, longest], -inf where there is no token; None without padding

    @classmethod
    def of_projected(cls, projected: Tensor, segments: Segments, heads: int, size: int) -> MaskedMemory:
        """[tokens, layers x 2 width]"""
        states = segments.pad(projected).unflatten(2, (-1, 2, heads, size))
        keys, values = states.unbind(3)  # [sentences, longest, layers, heads, size]
        mask = segments.attention_mask
        hidden = None if mask is None else torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)
        return cls(keys.permute(2, 0, 3, 4, 1).contiguous(), values.permute(2, 0, 3, 1, 4).contiguous(), hidden)

    @property
    def sentences(self) -> int:
        return self.keys.shape[1]

    def of(self, sentences: Tensor) -> MaskedMemory:
        hidden = None if self.hidden is None else self.hidden[sentences]
        return MaskedMemory(self.keys[:, sentences], self.values[:, sentences], hidden)

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """[sentences x n, width] -> [sentences x n, width]"""
        _, sentences, heads, size, _ = self.keys.shape
        query = query.reshape(sentences, -1, heads, size)
        return _attend(query, self.keys[layer], self.values[layer], self.hidden)


class MaskedWords:
    """As `SlottedWords`. Each hypothesis sees of its sentence's pool what its own words put there.
    Words that no hypothesis sees any more are removed every few steps, and most are: hypotheses
    of a sentence differ in their last words."""

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, size: int):
        self.beam, self.filled = beam, 0
        self.states = torch.empty(layers, 2, sentences, heads, STEPS * beam, size)  # key and value at each place
        self.hidden = torch.full((sentences, 1, beam, STEPS * beam), -torch.inf)  # 0 where a hypothesis sees a place

    def make_room(self) -> None:
        """A place for the next word of each hypothesis, which sees its own."""
        if self.filled == self.hidden.shape[3]:
            self._clear()
        self.hidden[..., self.filled : self.filled + self.beam].diagonal(dim1=2, dim2=3).zero_()
        self.filled += self.beam

    def attend(self, layer: int, projected: Tensor) -> Tensor:
        _, _, sentences, heads, _, size = self.states.shape
        parts = projected.view(sentences, self.beam, 3, heads, size)
        new = self.states[layer, :, :, :, self.filled - self.beam : self.filled]  # [2, sentences, heads, beam, size]
        new.copy_(parts[:, :, 1:].permute(2, 0, 3, 1, 4))
        key, value = self.states[layer, :, :, :, : self.filled].unbind()
        return _attend(parts[:, :, 0], key.transpose(2, 3), value, self.hidden[..., : self.filled])

    def reorder(self, rows: Tensor) -> None:
        origin = rows.view(-1, self.beam) % self.beam
        seen = self.hidden[..., : self.filled]
        seen.copy_(seen.gather(2, origin[:, None, :, None].expand(-1, -1, -1, self.filled)))

    def keep(self, sentences: Tensor) -> None:
        self._rebuild(sentences, torch.arange(self.filled).expand(len(sentences), -1))

    def _clear(self) -> None:
        seen = (self.hidden == 0).any(dim=2)[:, 0]  # [sentences, places]
        needed = int(seen.sum(dim=1).max())
        places = seen.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :needed]
        self._rebuild(torch.arange(len(places)), places)

    def _rebuild(self, sentences: Tensor, places: Tensor) -> None:
        """Keeps only these places of these sentences, [sentences, places], with room after them."""
        layers, _, count, heads, room, size = self.states.shape
        filled = places.shape[1]
        places = F.pad(places, (0, STEPS * self.beam))
        # A row for each place; what is in the free room does not matter.
        begins = torch.arange(2 * layers)[:, None, None] * count + sentences[:, None]  # [2 layers, sentences, 1]
        begins = (begins * heads + torch.arange(heads)) * room  # [2 layers, sentences, heads]
        rows = (begins[..., None] + places[:, None]).flatten()
        self.states = self.states.view(-1, size).index_select(0, rows).view(layers, 2, len(sentences), heads, -1, size)
        self.hidden = self.hidden[sentences].gather(3, places[:, None, None].expand(-1, -1, self.beam, -1))
        self.hidden[..., filled:] = -torch.inf
        self.filled = filled


def _attend(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None) -> Tensor:
    """query [sentences, n, heads, size]; key [sentences, heads, size, m]; value [sentences, heads,
    m, size]; hidden: added to the logits, fits [sentences, heads, n, m] -> [sentences x n, width].
    The query is already scaled."""
    logits = query.transpose(1, 2) @ key
    if hidden is not None:
        logits += hidden
    return (logits.softmax(dim=3) @ value).transpose(1, 2).flatten(2).flatten(0, 1)
