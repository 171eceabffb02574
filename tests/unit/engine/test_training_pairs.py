"""Sentence pairs for counting: gaps left out, samples at equal distances."""

from __future__ import annotations

import numpy as np
import pytest

from docnmt.document import GAP, ParallelDocument
from docnmt.engine.shortlist import TrainingPairs, evenly, runs
from tests.builders import parallel_documents, subwords


def as_lists(pairs: TrainingPairs) -> list[tuple[list[int], list[int]]]:
    sides = zip(pairs.source.sentences(), pairs.target.sentences(), strict=True)
    return [(source.tolist(), target.tolist()) for source, target in sides]


def with_gap(document: ParallelDocument) -> ParallelDocument:
    sides = ((*side[:2], GAP, *side[2:]) for side in (document.source, document.target))
    return ParallelDocument(document.id, *sides)


@pytest.fixture
def documents() -> list[ParallelDocument]:
    first, *others = parallel_documents([7, 4, 1, 8])
    return [with_gap(first), *others]


def test_the_pairs_are_all_that_are_no_gaps(documents):
    read = TrainingPairs.read(documents, subwords("source"), subwords("target"))
    text = [(d.source[i], d.target[i]) for d in documents for i in d.filled]
    assert as_lists(read) == list(
        zip(
            subwords("source").encode([s for s, _ in text]),
            subwords("target").encode([t for _, t in text]),
            strict=True,
        )
    )
    assert str(read) == "20 sentence pairs"


@pytest.mark.parametrize("most", [1, 3, 7, 10, 19, 20, 50])
def test_samples_are_taken_at_equal_distances(documents, most):
    everything = as_lists(TrainingPairs.read(documents, subwords("source"), subwords("target")))
    pairs = TrainingPairs.read(documents, subwords("source"), subwords("target"), most)
    assert most / 2 < len(pairs) <= most or len(pairs) == 20
    assert as_lists(pairs) in [everything[::step] for step in range(1, 33)]
    assert ("taken evenly from 20" in str(pairs)) == (most < 20)


def test_evenly_keeps_memory_small_and_counts_all():
    kept, count = evenly(iter(range(1000)), 10)
    assert (kept, count) == (list(range(0, 1000, 128)), 1000)
    assert evenly(iter(()), 10) == ([], 0)


def test_runs():
    assert runs(np.array([5, 0, 9]), np.array([2, 3, 0])).tolist() == [5, 6, 0, 1, 2]
