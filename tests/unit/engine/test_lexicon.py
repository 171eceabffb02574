"""Model 1 of Brown et al., in blocks and chunks, against the equations written down word by word."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.progress import Progress
from docnmt.engine import shortlist as lexicon
from docnmt.engine.shortlist import Lexicon, Side, TrainingPairs, learn_lexicon

QUIET = Progress(quiet=True)
EMPTY = -1


def training_pairs(sentences: list[tuple[list[int], list[int]]]) -> TrainingPairs:
    return TrainingPairs(Side.of([s for s, _ in sentences]), Side.of([t for _, t in sentences]), len(sentences))


def reference(sentences: list[tuple[list[int], list[int]]], rounds: int) -> dict[tuple[int, int], float]:
    """t(e | f) by (f, e), as the equations have it."""
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in sentences:
            for e in target:
                norm = sum(t[f, e] for f in [*source, EMPTY])
                for f in [*source, EMPTY]:
                    counts[f, e] += t[f, e] / norm
        totals: dict[int, float] = defaultdict(float)
        for (f, _), count in counts.items():
            totals[f] += count
        t = defaultdict(float, {(f, e): count / totals[f] for (f, e), count in counts.items()})
    return {key: value for key, value in t.items() if key[0] != EMPTY}


def as_dict(found: Lexicon) -> dict[tuple[int, int], float]:
    rows = zip(found.source.tolist(), found.target.tolist(), found.probability.tolist(), strict=True)
    return {(f, e): t for f, e, t in rows}


pieces = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(pieces, pieces), min_size=1, max_size=12), st.integers(1, 4), st.sampled_from([1, 5, 40]))
def test_equals_the_equations(sentences, rounds, chunk):
    """However few target pieces are in a block and however few links in a chunk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "CHUNK", chunk)
        patch.setattr(lexicon, "BLOCK", chunk)
        found = as_dict(learn_lexicon(training_pairs(sentences), QUIET, rounds, least=0.0))
    expected = reference(sentences, rounds)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_finds_what_translates_what():
    """Word f is written as f + 20 in any order, with a word 40 in every sentence that translates nothing."""
    random = np.random.default_rng(1)
    sources = [random.choice(20, random.integers(2, 7), replace=False).tolist() for _ in range(300)]
    found = learn_lexicon(training_pairs([(s, [*random.permutation(np.add(s, 20)), 40]) for s in sources]), QUIET)
    source, target = found.best(1, without=np.array([40]))
    assert source.tolist() == list(range(20))
    assert target.tolist() == list(range(20, 40))


def test_the_best_are_the_most_probable_ones_of_each_source_piece():
    found = Lexicon(
        np.array([3, 1, 3, 3, 1, 3], np.int32),
        np.array([5, 6, 7, 8, 5, 9], np.int32),
        np.array([0.1, 0.4, 0.3, 0.5, 0.6, 0.1], np.float32),
    )
    assert [side.tolist() for side in found.best(2, np.array([]))] == [[1, 1, 3, 3], [5, 6, 8, 7]]
    assert [side.tolist() for side in found.best(2, np.array([8]))] == [[1, 1, 3, 3], [5, 6, 7, 5]]  # 5 before 9
    assert [side.tolist() for side in found.best(0, np.array([]))] == [[], []]


def test_the_improbable_is_left_out():
    sentences = [([1], [2])] * 99 + [([1], [3])]
    assert as_dict(learn_lexicon(training_pairs(sentences), QUIET)).keys() == {(1, 2), (1, 3)}
    assert as_dict(learn_lexicon(training_pairs(sentences), QUIET, least=0.02)).keys() == {(1, 2)}


def test_nothing_is_learnt_from_nothing():
    found = learn_lexicon(training_pairs([]), QUIET)
    assert len(found.source) == len(found.target) == len(found.probability) == 0
