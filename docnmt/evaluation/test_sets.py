"""The dev and test sets of a recipe, with all their references; and their documents with wrong contexts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.base.files import json_hash
from docnmt.base.lines import CorpusFiles
from docnmt.config import Recipe
from docnmt.corpus.read import detect_format, read_named
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, visible_positions
from docnmt.evaluation.metrics import Ints
from docnmt.evaluation.outputs import read_references

SEVERAL_REFERENCES = ("nist-sgml", "iwslt-xml", "wmt-xml")  # formats that can have more than one


@dataclass(frozen=True)
class TestSet:
    """Documents with their references: `references[r][sentence]`, over the sentences of all documents."""

    __test__ = False  # tells pytest that this is not a test

    title: str
    documents: Sequence[ParallelDocument]
    references: Sequence[Sequence[str]]

    @property
    def sources(self) -> list[Document]:
        return [Document(document.id, document.source) for document in self.documents]

    def __len__(self) -> int:
        """How many sentences there are to translate."""
        return sum(len(document.filled) for document in self.documents)

    @property
    def document_of(self) -> Ints:
        """For each sentence the index of its document."""
        return np.repeat(np.arange(len(self.documents)), [len(document) for document in self.documents])

    @property
    def key(self) -> str:
        """Identifies the documents to translate."""
        return json_hash([(document.id, document.source) for document in self.documents])

    @property
    def reference_key(self) -> str:
        return json_hash(self.references)


def read_test_set(files: CorpusFiles, recipe: Recipe) -> TestSet:
    on_bad = recipe.data.on_bad()
    documents = list(read_named(recipe.data, files, on_bad))
    if isinstance(on_bad, SkipBad) and on_bad.counts:
        warnings.warn(f"{files}: {on_bad.report()}", stacklevel=1)
    references: Sequence[Sequence[str]] = [[sentence for d in documents for sentence in d.target]]
    if detect_format(files) in SEVERAL_REFERENCES and not files.swap:
        references = _all_references(files, documents, recipe.data.target_language)
    return TestSet(files.title, documents, references)


def _all_references(files: CorpusFiles, documents: Sequence[ParallelDocument], language: str) -> list[list[str]]:
    """All references, in the order of the documents, which may differ from that of the reference file."""
    found = read_references([files.target or files.path], language)
    ends = np.cumsum(found.lengths())
    places = {name: range(end - size, end) for name, end, size in zip(found.ids, ends, found.lengths(), strict=True)}
    for document in documents:
        if len(places[document.id]) != len(document):
            raise DocnmtError(
                f"{files}: document {document.id} has {len(places[document.id]):,} references, but {len(document):,} "
                "sentence pairs\n  A test set must be complete: correct the sentences that skip_bad would skip."
            )
    return [[version[i] for document in documents for i in places[document.id]] for version in found.texts]


def joined(title: str, sets: Sequence[TestSet]) -> TestSet:
    """Several sets as one; a set with fewer references than the others repeats its first."""
    count = max(len(each.references) for each in sets)
    rows = [
        [
            sentence
            for each in sets
            for sentence in (each.references[r] if r < len(each.references) else each.references[0])
        ]
        for r in range(count)
    ]
    return TestSet(title, [document for each in sets for document in each.documents], rows)


# ---- wrong contexts on purpose: what a model does with them shows whether it uses the right ones ----

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
    """For each document, a text of its length made from other documents: contexts that do not belong to it."""
    if len({document.id for document in documents}) < 2:
        raise DocnmtError(
            "shuffled contexts come from other documents, but there is only one\n  Give two or more documents."
        )
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

    A context that is as long as the true one and fits, but says nothing new.
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
