"""The dev and test sets of a recipe, with all their references."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError, SkipBad, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.config import Recipe
from docnmt.corpus.read import detect_format, read_corpus
from docnmt.document import Document, ParallelDocument
from docnmt.evaluation.outputs import read_references

Ints = NDArray[np.int64]
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
        return _digest([(document.id, document.source) for document in self.documents])

    @property
    def reference_key(self) -> str:
        return _digest(self.references)


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_test_set(files: CorpusFiles, recipe: Recipe) -> TestSet:
    languages = (recipe.data.source_language, recipe.data.target_language)
    on_bad = SkipBad() if recipe.data.skip_bad else raise_bad
    documents = list(read_corpus(files, languages=languages, on_bad=on_bad, limit=recipe.data.max_characters))
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
                f"{files}: document {document.id} has {len(places[document.id]):,} references but {len(document):,} "
                "sentence pairs\n  A test set cannot lose sentences: correct what skip_bad would skip."
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
