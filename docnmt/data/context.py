"""What a system gets to see of the sentences around one, in token ids.

A rule says it for one kind of system: the neighbours joined in a row (`ContextRule`), or each by itself with or without
its translation (`HistoryRule`), or put before the sentence itself (a rule may change source and target, too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from docnmt.base.errors import DocnmtError
from docnmt.data.store import Ints
from docnmt.data.subwords import BOS, EOS
from docnmt.document import ContextSpec, trim_to_budget, visible_positions

Ids = Sequence[int]


@dataclass(frozen=True)
class Neighbours:
    """The sentences that a rule's spec lets a sentence see, in reading order; gaps are not among them."""

    before: Sequence[Ids] = ()
    after: Sequence[Ids] = ()
    translations: Sequence[Ids] = ()  # of those before, where the rule sees them


@dataclass(frozen=True)
class Before:
    """The sentences before one, each by itself, the nearest last. Where there are none: one of a single begin mark."""

    sources: list[list[int]]  # each with its end mark
    translations: list[list[int]] = field(default_factory=list)  # of `sources`, without marks; empty: not asked for

    def __len__(self) -> int:
        return sum(map(len, self.sources)) + sum(map(len, self.translations))


Context = list[int] | Before


@dataclass(frozen=True)
class Sizes:
    """Pieces around each of many sentences, as the rule's spec sees them, [sentences]."""

    before: Ints
    after: Ints
    translated: Ints  # of the translations of those before
    count: Ints  # sentences before


@dataclass(frozen=True)
class ContextRule:
    """The neighbours in one row: which, how many pieces of them at most, and the marks around them."""

    spec: ContextSpec
    max_tokens: int
    bos: int
    eos: int
    target_bos: int = BOS
    target_eos: int = EOS

    remembers = False  # whether it needs its own translations of the sentences before: it decodes a document in order

    @property
    def sees_translations(self) -> bool:
        """Whether training and scoring show it the translations of the sentences before: the reference's."""
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
        """How many tokens `context` has, and by how many `source` and `target` grow, for many sentences at once."""
        total = sizes.before + sizes.after
        joined = (total + 1).clip(max=self.max_tokens)
        joined[total == 0] = 1
        return joined, 0, 0

    def join(self, before: Sequence[Ids], after: Sequence[Ids]) -> list[int]:
        """Context sentences in one row with an end mark after the last; a single begin mark where there are none."""
        left = [token for sentence in before for token in sentence]
        right = [token for sentence in after for token in sentence]
        if not left and not right:
            return [self.bos]
        keep_left, keep_right = trim_to_budget(len(left), len(right), self.max_tokens - 1)
        return [*left[len(left) - keep_left :], *right[:keep_right], self.eos]

    def around(self, sentences: Sequence[Ids], position: int, translations: Sequence[Ids] = ()) -> Neighbours:
        """The neighbours of one sentence of a document given as ids; `translations` of at least those before it.

        Only a system that writes the sentences before once more can decode without these.
        """
        places = visible_positions(sentences, position, self.spec)
        before = [i for i in places if i < position]
        shown = self.remembers or (self.sees_translations and len(translations) > 0)
        return Neighbours(
            [sentences[i] for i in before],
            [sentences[i] for i in places if i > position],
            [translations[i] for i in before] if shown else (),
        )

    def of(self, sentences: Sequence[Ids], position: int, translations: Sequence[Ids] = ()) -> Context | None:
        """The context of one sentence of a document given as ids."""
        return self.context(self.around(sentences, position, translations))


@dataclass(frozen=True)
class HistoryRule(ContextRule):
    """The sentences before, each by itself; of a history that is too long, the far end goes."""

    def __post_init__(self) -> None:
        if self.spec.following:
            raise DocnmtError("this system reads sentences before, none after\n  Set the context's following to 0.")

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
    """As `HistoryRule`, with the translations of these sentences: the reference's in training, its own in decoding."""

    remembers = True
