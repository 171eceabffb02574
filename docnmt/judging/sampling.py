"""What is judged: whole documents, drawn by a seed, and on which side each judge sees each system."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.corpus.read import read_source
from docnmt.evaluation.outputs import Output, References, read_outputs

_REMEDY = "Translate this source with both systems, or name the source that they translated."


@dataclass(frozen=True)
class JudgedDocument:
    """A document and what the two systems, in the order of the command line, made of it."""

    id: str
    source: tuple[str, ...]
    outputs: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Place:
    """Where a sentence stands: the number of its document in the sample and its own in the document, both from 0."""

    document: int
    position: int


@dataclass(frozen=True)
class Sample:
    """The documents that judges see, in this order."""

    systems: tuple[str, str]
    seed: int
    documents: tuple[JudgedDocument, ...]

    @cached_property
    def sentences(self) -> tuple[Place, ...]:
        return tuple(Place(k, i) for k, document in enumerate(self.documents) for i in range(len(document.source)))

    @cached_property
    def questions(self) -> tuple[Place, ...]:
        """The sentences that judges are asked about: all but those that both systems translate by the same words."""
        return tuple(place for place in self.sentences if not self.is_same(place))

    def texts(self, place: Place) -> tuple[str, str, str]:
        """A sentence and its two translations."""
        document = self.documents[place.document]
        one, other = document.outputs
        return document.source[place.position], one[place.position], other[place.position]

    def is_same(self, place: Place) -> bool:
        _, one, other = self.texts(place)
        return one.split() == other.split()


def read_sample(source: str, systems: tuple[str, str], documents: int = 20, seed: int = 1) -> Sample:
    """Draws whole documents of a source file and of its two translations; all, if there are no more
    than asked for.

    With the same seed a larger sample begins with the smaller one.
    """
    if documents < 1:
        raise DocnmtError(f"--documents {documents}: there is nothing to judge\n  Give 1 or more.")
    if seed < 0:
        raise DocnmtError(f"--seed {seed}: a seed cannot be negative\n  Give 0 or more.")
    test_set = _test_set(source)
    assert test_set.sources is not None
    outputs = _outputs(systems, test_set)
    drawn = []
    for number in np.random.default_rng(seed).permutation(len(test_set.ids))[:documents]:
        begin, end = (int(np.searchsorted(test_set.documents, number, side)) for side in ("left", "right"))
        one, other = (output.sentences[begin:end] for output in outputs)
        drawn.append(JudgedDocument(test_set.ids[number], test_set.sources[begin:end], (one, other)))
    sample = Sample((outputs[0].name, outputs[1].name), seed, tuple(drawn))
    if not sample.questions:
        raise DocnmtError(
            f"{systems[0]} and {systems[1]} translate all {len(sample.sentences):,} sentences drawn in the same words: "
            "there is nothing to judge\n  Name two systems that differ, or draw more --documents."
        )
    return sample


def _test_set(path: str) -> References:
    """The documents of the source, without references."""
    found = list(read_source(path))
    test_set = References(
        ids=tuple(document.id for document in found),
        documents=np.repeat(np.arange(len(found)), [len(document) for document in found]),
        texts=(),
        sources=tuple(sentence for document in found for sentence in document.sentences),
    ).without_gaps()
    if not len(test_set):
        raise DocnmtError(f"{path}: contains no sentences\n  Choose another file.")
    return test_set


def _outputs(paths: tuple[str, str], test_set: References) -> list[Output]:
    try:
        return read_outputs(paths, test_set)
    except BadInput as error:
        if error.kind != "unequal sides":
            raise
        problem = error.problem.replace("in the references", "in the source")
        raise BadInput(
            error.kind, problem, _REMEDY, file=error.file, document=error.document, line=error.line
        ) from None


def first_systems(seed: int, judge: str, documents: int) -> tuple[int, ...]:
    """For each document, which system (0 or 1) a judge sees first.

    A document's translations keep their places, so that each can be read as a text. Each system is
    first in half of the documents, so that a liking for one place favours neither.
    """
    letters = np.frombuffer(hashlib.sha256(judge.encode()).digest(), dtype="<u4")
    random = np.random.default_rng([seed, *map(int, letters)])
    halves = (np.arange(documents) + random.integers(2)) % 2
    return tuple(int(system) for system in random.permutation(halves))
