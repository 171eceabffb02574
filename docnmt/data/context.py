"""What a system sees of the sentences around one, in token ids.

Each kind of system has a rule: the neighbours joined into one sequence (`ContextRule`), each by itself
(`HistoryRule`), with its translation (`MemoryRule`), or put before the sentence itself (a rule may
change source and target, too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.data.subwords import BOS, EOS
from docnmt.document import ContextSpec, trim_to_budget, visible_positions

Ids = Sequence[int]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Neighbours:
    """The sentences around one that its rule's spec allows, in reading order, without gaps."""

    before: Sequence[Ids] = ()
    after: Sequence[Ids] = ()
    translations: Sequence[Ids] = ()  # of those before, if the rule sees them


@dataclass(frozen=True)
class Before:
    """The sentences before one, each by itself, the nearest last. If there are none: a single begin mark."""

    sources: list[list[int]]  # each with its end mark
    translations: list[list[int]] = field(default_factory=list)  # of `sources`, without marks; empty: not needed

    def __len__(self) -> int:
        return sum(map(len, self.sources)) + sum(map(len, self.translations))


Context = list[int] | Before


@dataclass(frozen=True)
class Sizes:
    """How many pieces there are around each of many sentences, within the rule's spec, [sentences]."""

    before: Ints
    after: Ints
    translated: Ints  # of the translations of those before
    count: Ints  # sentences before


@dataclass(frozen=True)
class ContextRule:
    """The neighbours in one row of at most `max_tokens`."""

    spec: ContextSpec
    max_tokens: int
    bos: int
    eos: int
    target_bos: int = BOS
    target_eos: int = EOS

    remembers = False  # whether decoding needs the translations of the sentences before, so goes in document order

    @property
    def sees_translations(self) -> bool:
        """Whether training and scoring show it the reference translations of the sentences before."""
        return self.remembers

    def context(self, around: Neighbours) -> Context | None:
        return self.join(around.before, around.after)

    def source(self, sentence: Ids, around: Neighbours) -> Ids:
        """What the encoder reads, without the end mark."""
        return sentence

    def target(self, sentence: Ids, around: Neighbours) -> Ids:
        """What the decoder writes, without the end mark."""
        return sentence

    def own(self, written: Ids, around: Neighbours) -> Ids:
        """The sentence's own part of what the decoder wrote."""
        return written

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        """The number of tokens of `context`, and by how much `source` and `target` grow, for many sentences at once."""
        total = sizes.before + sizes.after
        joined = (total + 1).clip(max=self.max_tokens)
        joined[total == 0] = 1
        return joined, 0, 0

    def join(self, before: Sequence[Ids], after: Sequence[Ids]) -> list[int]:
        """Context sentences in one row with an end mark after the last; a single begin mark if there are none."""
        left = [token for sentence in before for token in sentence]
        right = [token for sentence in after for token in sentence]
        if not left and not right:
            return [self.bos]
        keep_left, keep_right = trim_to_budget(len(left), len(right), self.max_tokens - 1)
        return [*left[len(left) - keep_left :], *right[:keep_right], self.eos]

    def around(self, sentences: Sequence[Ids], position: int, translations: Sequence[Ids] = ()) -> Neighbours:
        """The neighbours of one sentence of a document; `translations` of at least the sentences before it.

        Only a system that translates the previous sentences again can decode without them.
        """
        places = visible_positions(sentences, position, self.spec)
        before = [i for i in places if i < position]
        shown = self.remembers or (self.sees_translations and len(translations) > 0)
        return Neighbours(
            [sentences[i] for i in before],
            [sentences[i] for i in places if i > position],
            [translations[i] for i in before] if shown else (),
        )


@dataclass(frozen=True)
class HistoryRule(ContextRule):
    """The sentences before, each by itself; a history that is too long is cut at its far end."""

    def __post_init__(self) -> None:
        if self.spec.following:
            raise DocnmtError(
                "this system only reads sentences before the current one\n  Set the context's following to 0."
            )

    def context(self, around: Neighbours) -> Context | None:
        kept: list[list[int]] = []
        room = self.max_tokens
        for sentence in reversed(around.before):
            if room < 2:  # for a piece and its end mark
                break
            kept.insert(0, [*sentence[max(0, len(sentence) - room + 1) :], self.eos])
            room -= len(kept[0])
        if not kept:
            return Before([[self.bos]], [[]] if self.remembers else [])
        return Before(kept, [list(ids) for ids in around.translations[-len(kept) :]] if self.remembers else [])

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        pieces = (sizes.before + sizes.count).clip(1, self.max_tokens)
        return pieces + sizes.translated if self.remembers else pieces, 0, 0


@dataclass(frozen=True)
class MemoryRule(HistoryRule):
    """As `HistoryRule`, with their translations: the reference's in training, the system's own in decoding."""

    remembers = True
