"""How documents go through a model: in windows of documents, units (sentences or parts of them), batches of units."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

import torch

from docnmt.base.errors import DocnmtError
from docnmt.data.context import Context, ContextRule, Ids, Neighbours
from docnmt.data.subwords import BOS, EOS, Subwords
from docnmt.decoding.beam import Hypothesis
from docnmt.decoding.constraints import Tracker, beam_for
from docnmt.decoding.phrases import Phrase
from docnmt.document import NO_CONTEXT, Document, ParallelDocument, check_sentences

AnyDocument = Document | ParallelDocument
D = TypeVar("D", Document, ParallelDocument)
T = TypeVar("T")


@dataclass(frozen=True)
class SentenceRule(ContextRule):
    """The sentence model's rule: no context, not even an empty one."""

    def context(self, around: Neighbours) -> None:
        return None


SENTENCE_RULE = SentenceRule(NO_CONTEXT, 0, BOS, EOS)


@dataclass
class Unit:
    """What is decoded at once: a sentence with its context, or a part of one that is too long."""

    source: Ids  # as the model reads it, its end mark included
    context: Context | None
    around: Neighbours
    sentence: str = ""  # its text; "" for a part of a sentence
    phrases: Sequence[Phrase] = ()  # that the translation must contain
    breaks: int = 0  # begin marks to be written before its own translation starts (see ContextRule.own)
    best: list[Hypothesis] = field(default_factory=list)
    text: str | None = None  # of the best hypothesis, if it differs from what its pieces spell
    length: int = 0  # of the best hypothesis as the decoder wrote it, with its end mark
    tracker: Tracker | None = None  # during the search for a translation with its phrases


@dataclass(frozen=True)
class Pair:
    """What is scored at once: a sentence, its context and a translation, as the model gets them."""

    source: Ids  # its end mark included
    context: Context | None
    target: Ids  # without marks
    own: int  # how many of the last target pieces, end mark included, belong to the sentence itself


@dataclass(frozen=True)
class UnitMaker:
    """Turns sentences into units by a context rule."""

    subwords: Subwords
    longest: int
    rule: ContextRule

    def units(
        self, document: Document, position: int, sentence: list[int], around: Neighbours, phrases: Sequence[Phrase]
    ) -> list[Unit]:
        """No units for an empty sentence, several for one that exceeds the model's length."""
        parts = split_long(sentence, self.longest, self.subwords)
        if len(parts) > 1:
            warnings.warn(
                f"document {document.id}, sentence {position + 1}: {len(sentence):,} pieces, over the model's limit of "
                f"{self.longest:,}; it is translated in {len(parts)} parts",
                stacklevel=2,
            )
        shares = [phrases] * len(parts)
        if phrases and len(parts) > 1:
            shares = self._shares(phrases, document.sentences[position], parts)
        whole = document.sentences[position] if len(parts) == 1 else ""
        context, breaks = self.rule.context(around), self._breaks(around)
        sources = [self.subwords.whole(self.rule.source(part, around)) for part in parts]
        return [
            Unit(source, context, around, whole, share, breaks) for source, share in zip(sources, shares, strict=True)
        ]

    def _shares(self, phrases: Sequence[Phrase], sentence: str, parts: Sequence[Ids]) -> list[Sequence[Phrase]]:
        """Distributes a sentence's phrases over its parts, by where their source terms begin."""
        _, spans = self.subwords.encode_with_spans(sentence)
        ends = [spans[end - 1][1] for end in accumulate(map(len, parts))]
        shares: list[list[Phrase]] = [[] for _ in parts]
        for phrase in phrases:
            shares[min(bisect_right(ends, phrase.at[0]), len(ends) - 1)].append(phrase)
        return [*shares]

    def _breaks(self, around: Neighbours) -> int:
        marks = [self.rule.target_bos] * len(around.before)
        return len(marks) - len(self.rule.own(marks, around))


def source_of(document: AnyDocument) -> tuple[str, ...]:
    return document.sentences if isinstance(document, Document) else document.source


def with_contexts(
    documents: Iterable[D], context_from: Iterable[AnyDocument] | None
) -> Iterator[tuple[D, AnyDocument]]:
    """Each document with the one its contexts are derived from: itself unless others are given."""
    others = None if context_from is None else iter(context_from)
    for document in documents:
        if not isinstance(document, Document | ParallelDocument):
            raise DocnmtError(f"not a document: {document!r:.40}\n  Write Document(id, [sentence, sentence]).")
        other = document if others is None else next(others, None)
        if other is None:
            raise DocnmtError(
                "context_from has fewer documents than there are to translate\n  Give one for each document."
            )
        yield document, other


def check_previous(previous: Sequence[str]) -> None:
    if isinstance(previous, str) or not isinstance(previous, Sequence):
        raise DocnmtError(f"previous must be a list of sentences, not {previous!r:.40}\n  Write previous=[text].")
    check_sentences(previous, "previous")


def continued(
    previous: tuple[str, ...], document: Document, other: AnyDocument, rule: ContextRule
) -> tuple[Document, AnyDocument]:
    """A document with sentences put before it, which it sees as context, and the document its contexts come from."""
    before = Document(other.id, (*previous, *source_of(other)))
    if rule.remembers and other is document:  # it needs its own translations of the sentences before
        return before, before
    return Document(document.id, ("",) * len(previous) + document.sentences), before  # gaps are not decoded


def split_long(ids: list[int], limit: int, subwords: Subwords) -> list[list[int]]:
    """Cuts a sentence of more than `limit` pieces into parts: after the last punctuation mark in the second half of a
    part, else before a word, else anywhere. No pieces give no parts."""
    parts = []
    while len(ids) > limit:
        pieces = subwords.pieces(ids[: limit + 1])
        half = range(limit, limit // 2, -1)
        starts = [i for i in half if pieces[i].startswith("▁")]
        after_mark = [i for i in starts if pieces[i - 1][-1:] in ".!?;:,"]
        after_mark += [i for i in half if pieces[i - 1][-1:] in "。！？；：，"]  # no space follows these
        cut = (after_mark or starts or [limit])[0]
        parts.append(ids[:cut])
        ids = ids[cut:]
    return [*parts, ids] if ids else parts


def batches(units: Sequence[Unit], beam: int, budget: int, most: int | None = None) -> Iterator[list[Unit]]:
    """Batches of units of similar length, with at most `most` units; a unit with a wider beam counts as several."""

    def size(unit: Unit) -> tuple[int, int, int]:
        times = 1 if unit.tracker is None else math.ceil(beam_for(unit.tracker, beam) / beam)
        return times, times * len(unit.source), times * len(unit.context or ())

    order = sorted(units, key=size)
    for places in within_budget([size(unit)[1:] for unit in order], budget, most):
        yield [order[place] for place in places]


def within_budget(sizes: list[tuple[int, int]], budget: int, most: int | None = None) -> Iterator[list[int]]:
    """Groups of consecutive places whose two sizes, padded to the longest of the group, are within the budget; at least
    one place, and at most `most`."""
    batch: list[int] = []
    widest = (0, 0)
    for place, size in enumerate(sizes):
        wider = max(widest[0], size[0]), max(widest[1], size[1])
        if batch and (sum(wider) * (len(batch) + 1) > budget or len(batch) == most):
            yield batch
            batch, wider = [], size
        batch.append(place)
        widest = wider
    if batch:
        yield batch


# ---- Batches decoded in parallel, one per thread ----

# One thread per core, each with its own batch, is much faster than all cores on one batch: the products of a step are
# too small to be shared. Threads suffice, and share the weights, because torch releases the GIL while it computes.


def in_parallel(batches: Sequence[T], decode: Callable[[T], None]) -> None:
    """Decodes all batches, as many at a time as torch has threads; the largest should come first."""
    workers = min(torch.get_num_threads(), len(batches))
    with _one_thread_each():  # for a single batch, too: one sentence takes twice as long on two threads
        if workers < 2:
            for batch in batches:
                decode(batch)
            return
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(decode, batches):
                pass


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
