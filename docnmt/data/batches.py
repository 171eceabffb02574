"""Batches of sentence pairs with their contexts, and the order in which training sees them.

The order is a pure function of the seed and the epoch, so a checkpoint needs only a position in it
(epoch, index) for training to continue exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.data.context import ContextRule, Ints, Neighbours, Sizes
from docnmt.data.focus import NO_LESSONS, Lessons
from docnmt.data.packing import Batch, make_batch
from docnmt.data.store import TokenStore
from docnmt.data.subwords import Subwords
from docnmt.document import context_positions


class Examples:
    """The sentence pairs of one or more token stores, numbered consecutively, each with its context if there is a rule.

    `foreign`, a seed, gives each sentence the context of a sentence of another document: a control.
    The lessons are described in focus.py.
    """

    def __init__(
        self,
        stores: Sequence[TokenStore],
        source: Subwords,
        target: Subwords,
        rule: ContextRule | None,
        foreign: int | None = None,
        lessons: Lessons = NO_LESSONS,
    ):
        self.stores, self.rule, self.is_foreign = list(stores), rule, foreign is not None
        self.focus, self.word_dropout, self.choices, self.split_pairs = lessons
        self.bos, self.eos, self.subwords = target.bos, target.eos, source
        self.offsets = np.cumsum([0, *map(len, self.stores)])  # [stores + 1]
        self.source_lengths = self._lengths("source") + len(source.whole([]))  # with its marks
        self.target_lengths = self._lengths("target") + 1
        self.gaps = np.concatenate([store.gaps() for store in self.stores])  # [sentences]: in no batch
        self.left_out = self._without_focus() if self.focus is not None and self.focus.only else self.gaps
        self.own_lengths = np.where(self.gaps, 0, self.target_lengths)
        starts, ends = zip(*(_document_bounds(store) for store in self.stores), strict=True)
        self.document_start = np.concatenate([s + o for s, o in zip(starts, self.offsets, strict=False)])  # [sentences]
        self.document_end = np.concatenate([e + o for e, o in zip(ends, self.offsets, strict=False)])
        # whose context each sentence gets, [sentences]
        self.context_of = np.arange(len(self)) if foreign is None else self._of_other_documents(foreign)
        added = [tokens[self.context_of] for tokens in self._added()]
        self.context_lengths = added[0]
        self.source_lengths, self.target_lengths = self.source_lengths + added[1], self.target_lengths + added[2]

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def _without_focus(self) -> NDArray:
        assert self.focus is not None
        return np.array([not self.focus.words.are_in(self._sentence("target", i).tolist()) for i in range(len(self))])

    def _lengths(self, side: str) -> Ints:
        return np.concatenate([store.lengths(side) for store in self.stores])

    def _added(self) -> tuple[Ints, Ints, Ints]:
        """What the rule adds to each sentence, in tokens: to its context, source and target."""
        nothing = np.zeros(len(self), np.int64)
        if self.rule is None:
            return nothing, nothing, nothing
        here = np.arange(len(self))
        first = np.maximum(self.document_start, here - self.rule.spec.previous)
        last = np.minimum(self.document_end, here + 1 + self.rule.spec.following)
        pieces = self._lengths("source"), self._lengths("target")
        source, target, filled = (np.concatenate([[0], np.cumsum(n)]) for n in (*pieces, pieces[0] > 0))
        sizes = Sizes(
            before=source[here] - source[first],
            after=source[last] - source[here + 1],
            translated=target[here] - target[first],
            count=filled[here] - filled[first],
        )
        context, more_source, more_target = self.rule.added(sizes)
        return context, nothing + more_source, nothing + more_target

    def _of_other_documents(self, seed: int) -> Ints:
        if len(np.unique(self.document_start)) < 2:
            raise DocnmtError(
                "shuffled contexts come from other documents, but there is only one\n  Give two documents or more."
            )
        # A number below the count of all sentences elsewhere; the sentence's own document is skipped.
        sizes = self.document_end - self.document_start
        drawn = np.random.default_rng(seed).integers(len(self) - sizes)
        return drawn + sizes * (drawn >= self.document_start)

    def _sentence(self, side: str, index: int) -> NDArray:
        store = int(np.searchsorted(self.offsets, index, "right")) - 1
        return self.stores[store].sentence(side, index - int(self.offsets[store]))

    def _around(self, index: int) -> Neighbours:
        """The neighbours of a sentence, or of the one whose context it gets."""
        assert self.rule is not None
        index = int(self.context_of[index])
        first, end = int(self.document_start[index]), int(self.document_end[index])
        places = [first + i for i in context_positions(index - first, end - first, self.rule.spec)]
        places = [i for i in places if len(self._sentence("source", i))]  # not the gaps
        before = [i for i in places if i < index]
        return Neighbours(
            [self._sentence("source", i).tolist() for i in before],
            [self._sentence("source", i).tolist() for i in places if i > index],
            [self._sentence("target", i).tolist() for i in before] if self.rule.sees_translations else (),
        )

    def batch(self, indices: Sequence[int], device: torch.device | str = "cpu") -> Batch:
        sources = [self._sentence("source", i).tolist() for i in indices]
        targets = [self._sentence("target", i).tolist() for i in indices]
        around = [] if self.rule is None else [self._around(i) for i in indices]
        if self.split_pairs is not None:
            self._split(sources, targets, around)
        if self.word_dropout is not None:
            sources = [self.word_dropout(source) for source in sources]
        contexts = None
        if self.rule is not None:
            sources = [self.rule.source(*pair) for pair in zip(sources, around, strict=True)]
            targets = [self.rule.target(*pair) for pair in zip(targets, around, strict=True)]
            contexts = [self.rule.context(each) for each in around]
        whole = [self.subwords.whole(source) for source in sources]
        batch = make_batch(whole, contexts, targets, self.bos, self.eos, device)
        if self.focus is not None:
            batch = replace(batch, counts=self.focus.of(targets).to(device))
        if self.choices is not None:
            batch = replace(batch, choice=self.choices.of(targets, device))
        return batch

    def _split(self, sources: list[list[int]], targets: list[list[int]], around: list[Neighbours]) -> None:
        """Replaces some sentences by their second halves, and puts the first halves into the
        contexts. A foreign context stays as it is: a control must not see the true one."""
        assert self.split_pairs is not None and self.rule is not None
        for i, pair in enumerate(zip(sources, targets, strict=True)):
            halves = self.split_pairs(*pair)
            if halves is None:
                continue
            (first, sources[i]), (translated, targets[i]) = halves
            if not self.is_foreign and self.rule.spec.previous:
                known = replace(around[i], before=[*around[i].before, first][-self.rule.spec.previous :], after=())
                if known.translations:
                    known = replace(known, translations=[*known.translations, translated][-len(known.before) :])
                around[i] = known


def _document_bounds(store: TokenStore) -> tuple[Ints, Ints]:
    """For each sentence, the first sentence of its document and the one after its last."""
    ends = np.asarray(store.document_ends)
    sizes = np.diff(ends, prepend=0)
    return np.repeat(ends - sizes, sizes), np.repeat(ends, sizes)


# ---- the order of training ----

WINDOW = 8192  # no batch has more sentences
BUCKET = 4  # target lengths this close count as equal, so that source or context lengths can be sorted, too


def cut_into_batches(examples: Examples, order: Ints, budget: int) -> list[Ints]:
    """Cuts an order into runs whose padded tokens (source, context and target together) stay within the budget.

    A sentence that is over the budget by itself is a batch of its own: nothing is dropped.
    """
    lengths = np.stack([examples.source_lengths, examples.context_lengths, examples.target_lengths])[:, order]
    batches, begin = [], 0
    while begin < len(order):
        longest = np.maximum.accumulate(lengths[:, begin : begin + WINDOW], axis=1).sum(axis=0)  # [window]
        cost = longest * np.arange(1, len(longest) + 1)
        size = max(1, int(np.searchsorted(cost, budget, "right")))
        batches.append(order[begin : begin + size])
        begin += size
    return batches


def epoch_batches(examples: Examples, budget: int, seed: int, epoch: int) -> list[Ints]:
    """All batches of one epoch: similar lengths together, batches in random order."""
    random = np.random.default_rng([seed, epoch])
    lottery = random.random(len(examples))
    second = examples.context_lengths if examples.context_lengths.any() else examples.source_lengths
    order = np.lexsort((lottery, second, examples.target_lengths // BUCKET))
    batches = cut_into_batches(examples, order[~examples.left_out[order]], budget)
    return [batches[i] for i in random.permutation(len(batches))]


@dataclass(frozen=True)
class Position:
    """A position in the endless stream of batches."""

    epoch: int = 0
    index: int = 0


class Stream:
    """An endless stream of batches, epoch after epoch, from any position on."""

    def __init__(self, examples: Examples, budget: int, seed: int):
        self.examples, self.budget, self.seed = examples, budget, seed
        self._plan: tuple[int, list[Ints]] = (-1, [])

    def epoch(self, epoch: int) -> list[Ints]:
        if self._plan[0] != epoch:
            self._plan = (epoch, epoch_batches(self.examples, self.budget, self.seed, epoch))
        return self._plan[1]

    def take(self, position: Position, count: int) -> tuple[list[Ints], Position]:
        """The next `count` batches and the position after them."""
        taken: list[Ints] = []
        epoch, index = position.epoch, position.index
        while len(taken) < count:
            plan = self.epoch(epoch)
            if index >= len(plan):
                epoch, index = epoch + 1, 0
                continue
            taken.append(plan[index])
            index += 1
        return taken, Position(epoch, index)


def in_order(examples: Examples, budget: int) -> Iterator[Ints]:
    """Batches for validation: every example once, sorted by length, the same each time."""
    order = np.lexsort((examples.source_lengths, examples.target_lengths))
    yield from cut_into_batches(examples, order[~examples.gaps[order]], budget)
