"""Wrong contexts on purpose: what a model does with them shows whether it uses the right ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from docnmt.base.errors import DocnmtError
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, visible_positions

TRUE, NONE, SHUFFLED, REPEATED = "true", "none", "shuffled", "repeated"

D = TypeVar("D", Document, ParallelDocument)
Row = tuple[str, ...]  # a sentence, or a pair of them


@dataclass(frozen=True)
class Contexts(Generic[D]):
    """Sentences with contexts of one kind: Documents as `Translator.translate_documents` takes
    them, ParallelDocuments as `Translator.score` does."""

    documents: Sequence[D]
    context_from: Sequence[D]
    context: ContextSpec
    last_only: bool = False  # the last sentence of each document is meant; empty ones before it keep its place

    def positions(self, document: D) -> Sequence[int]:
        """Of the sentences that are meant; a gap never is."""
        return range(len(document))[-1:] if self.last_only else document.filled


def with_contexts(documents: Sequence[D], spec: ContextSpec, seed: int) -> dict[str, Contexts[D]]:
    """The same sentences, in the same order, with their own contexts and with three kinds of wrong ones."""
    return {
        TRUE: Contexts(documents, documents, spec),
        NONE: Contexts(documents, documents, NO_CONTEXT),
        SHUFFLED: Contexts(documents, shuffled(documents, seed), spec),
        REPEATED: Contexts(_alone(documents, spec), repeated(documents, spec), spec, last_only=True),
    }


def shuffled(documents: Sequence[D], seed: int) -> list[D]:
    """For each document, another text of its length put together from other documents: contexts that do not belong."""
    if len({document.id for document in documents}) < 2:
        raise DocnmtError("shuffled contexts come from other documents\n  Give two documents or more.")
    generator = random.Random(seed)
    foreign = []
    for document in documents:
        rows: list[Row] = []
        while len(rows) < len(document):
            other = generator.choice(documents)
            if other.id != document.id:
                rows += _rows(other)
        foreign.append(_made_of(document, rows[: len(document)]))
    return foreign


def repeated(documents: Sequence[D], spec: ContextSpec) -> list[D]:
    """For each sentence a document of its own: the sentence, and once more for every sentence of
    its context.

    A context that is as long as the true one and fits, but tells nothing new.
    """
    again = []
    for document in documents:
        for row, around in _with_counts(document, spec):
            again.append(_made_of(document, [row] * (1 + sum(around))))
    return again


def _alone(documents: Sequence[D], spec: ContextSpec) -> list[D]:
    """For each sentence a document of its own, in which as many empty sentences stand before it as
    its context has there, so that `repeated` has as many."""
    alone = []
    for document in documents:
        for row, (before, _) in _with_counts(document, spec):
            empty: list[Row] = [("", "")] * before
            alone.append(_made_of(document, [*empty, row]))
    return alone


# ---- documents in one language or in two ----


def _rows(document: Document | ParallelDocument) -> list[Row]:
    if isinstance(document, Document):
        return [(sentence,) for sentence in document.sentences]
    return list(zip(document.source, document.target, strict=True))


def _made_of(document: D, rows: Sequence[Row]) -> D:
    """One of the same kind and name."""
    sides = range(1 if isinstance(document, Document) else 2)
    return type(document)(document.id, *(tuple(row[side] for row in rows) for side in sides))


def _with_counts(document: Document | ParallelDocument, spec: ContextSpec) -> Iterator[tuple[Row, tuple[int, int]]]:
    """Each sentence that is no gap, and how many its context has before and after it."""
    rows = _rows(document)
    sources = [row[0] for row in rows]
    for position in document.filled:
        seen = visible_positions(sources, position, spec)
        before = sum(place < position for place in seen)
        yield rows[position], (before, len(seen) - before)
