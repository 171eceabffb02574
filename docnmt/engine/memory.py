"""What the decoder attends to, in torch alone: keys and values of source and context, and of the words so far.

All hypotheses of a sentence share one pool of words: each sees of it what its own words put there, and nothing is moved
when hypotheses change places, only what each of them sees. Words that no hypothesis sees any more are thrown out every
few steps, and most are: hypotheses of a sentence differ in their last words.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Segments

STEPS = 8  # words of each hypothesis between two clearings


class Attended(NamedTuple):
    """Keys and values of a source or of its context for several layers."""

    keys: Tensor  # [layers, sentences, heads, size, longest]: the other way round products with them are slower
    values: Tensor  # [layers, sentences, heads, longest, size]
    hidden: Tensor | None  # [sentences, 1, 1, longest], -inf where there is no token; None where all are there

    @classmethod
    def of_projected(cls, projected: Tensor, segments: Segments, heads: int, width: int) -> Attended:
        """[tokens, layers x 2 width]"""
        states = segments.pad(projected).unflatten(2, (-1, 2, heads, width // heads))
        keys, values = states.unbind(3)  # [sentences, longest, layers, heads, size]
        mask = segments.attention_mask
        hidden = None if mask is None else torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)
        return cls(keys.permute(2, 0, 3, 4, 1).contiguous(), values.permute(2, 0, 3, 1, 4).contiguous(), hidden)

    @property
    def sentences(self) -> int:
        return self.keys.shape[1]

    def of(self, sentences: Tensor) -> Attended:
        hidden = None if self.hidden is None else self.hidden[sentences]
        return Attended(self.keys[:, sentences], self.values[:, sentences], hidden)

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """[sentences x n, width] -> [sentences x n, width]"""
        _, sentences, heads, size, _ = self.keys.shape
        query = query.reshape(sentences, -1, heads, size)
        return weigh(query, self.keys[layer], self.values[layer], self.hidden)


class WordPool:
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
        """Query, key and value of each hypothesis' last word, [rows, 3 width] -> what it finds in its words, [rows,
        width]"""
        _, _, sentences, heads, _, size = self.states.shape
        parts = projected.view(sentences, self.beam, 3, heads, size)
        new = self.states[layer, :, :, :, self.filled - self.beam : self.filled]  # [2, sentences, heads, beam, size]
        new.copy_(parts[:, :, 1:].permute(2, 0, 3, 1, 4))
        key, value = self.states[layer, :, :, :, : self.filled].unbind()
        return weigh(parts[:, :, 0], key.transpose(2, 3), value, self.hidden[..., : self.filled])

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
        """Of these sentences these places alone, [sentences, places], and room behind them."""
        layers, _, count, heads, room, size = self.states.shape
        filled = places.shape[1]
        places = F.pad(places, (0, STEPS * self.beam))
        # A row for each place; what stands in the room does not matter.
        begins = torch.arange(2 * layers)[:, None, None] * count + sentences[:, None]  # [2 layers, sentences, 1]
        begins = (begins * heads + torch.arange(heads)) * room  # [2 layers, sentences, heads]
        rows = (begins[..., None] + places[:, None]).flatten()
        self.states = self.states.view(-1, size).index_select(0, rows).view(layers, 2, len(sentences), heads, -1, size)
        self.hidden = self.hidden[sentences].gather(3, places[:, None, None].expand(-1, -1, self.beam, -1))
        self.hidden[..., filled:] = -torch.inf
        self.filled = filled


def weigh(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None) -> Tensor:
    """query [sentences, n, heads, size]; key [sentences, heads, size, m]; value [sentences, heads, m, size]; hidden:
    added to the weights before the softmax, fits [sentences, heads, n, m] -> [sentences x n, width]. The query carries
    its scale."""
    weights = query.transpose(1, 2) @ key
    if hidden is not None:
        weights += hidden
    return (weights.softmax(dim=3) @ value).transpose(1, 2).flatten(2).flatten(0, 1)
