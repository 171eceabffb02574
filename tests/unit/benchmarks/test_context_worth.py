"""The cache of `benchmarks/context_worth.py`: what it says of a piece, and what that adds to a model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.context_worth import Scored, cached
from docnmt.document import ContextSpec, ParallelDocument


class Letters:
    """Sub-words that are letters."""

    eos = ord("$")

    def encode(self, texts: tuple[str, ...]) -> list[list[int]]:
        return [[ord(letter) for letter in text] for text in texts]

    def pieces(self, ids: list[int]) -> list[str]:
        return [chr(number) for number in ids]


def test_the_cache_counts_pieces_and_pairs_of_the_sentences_before():
    remembered = ParallelDocument("d", ("x",) * 4, ("zz", "aba", "ab", "q"))
    written = [("z", "$"), ("$",), ("$",), ("a", "b", "c", "$")]
    rows = cached(SimpleNamespace(target=Letters()), remembered, written, ContextSpec(2, 0))
    assert rows[:2] == [(0.0, 0.0, False, False)] * 2  # nothing stands before the first sentence
    assert rows[4:] == [  # after "aba$" and "ab$": seven pieces
        (3 / 7, 1.0, True, True),  # both begin with a
        (2 / 7, 2 / 3, True, True),  # b after two of three a
        (0.0, 0.0, True, True),  # c never; b is followed by a and by the end
        (2 / 7, 0.0, True, False),  # after c, which is not known
    ]


def test_a_mixture_is_a_probability_and_no_cache_changes_nothing():
    scored = object.__new__(Scored)
    scored.model = np.array([0.5, 0.25, 0.1])
    scored.caches = {"c": (np.array([0.2, 0.0, 0.3]), np.array([1.0, 0.0, 0.0]), *np.array([[1, 0, 1], [1, 0, 0]]))}
    assert scored.gains("c", 0.0, 0.0).tolist() == [0, 0, 0]
    mixed = np.exp(scored.gains("c", 0.1, 0.2)) * scored.model
    assert mixed == pytest.approx([0.7 * 0.5 + 0.1 * 0.2 + 0.2 * 1.0, 0.25, 0.9 * 0.1 + 0.1 * 0.3])
