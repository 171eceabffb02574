"""The word table: probabilities that sum to one, and words that are found without anybody telling."""

from __future__ import annotations

import random

import numpy as np
import pytest

from docnmt.corpus.align_scores import WordAligner, WordTable

# A language whose words are ours spelt backwards, in another order.
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def invented(count: int, seed: int = 1) -> list[tuple[list[str], list[str]]]:
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        source = generator.sample(WORDS, generator.randint(3, 9))
        target = [word[::-1] for word in source]
        generator.shuffle(target)
        pairs.append((source, target))
    return pairs


def test_the_translations_of_a_word_are_a_distribution():
    pairs = invented(200)
    table = WordTable(pairs)
    targets = sorted({word for _, target in pairs for word in target})
    sources = sorted({word for source, _ in pairs for word in source})
    assert table.matrix(sources, targets).sum(axis=1) == pytest.approx(np.ones(len(sources) + 1))


def test_words_find_their_translations_whatever_the_order():
    aligner = WordAligner(invented(400))
    right = found = wanted = 0
    for source, target in invented(50, seed=2):
        links = aligner.links(source, target)
        found, wanted = found + len(links), wanted + len(source)
        right += sum(source[s][::-1] == target[t] for s, t in links)
    assert right / found > 0.98 and right / wanted > 0.95


def test_words_never_seen_are_linked_to_nothing():
    aligner = WordAligner(invented(20))
    assert aligner.links(["unseen"], ["unknown"]) == []
    assert aligner.links([], ["tab"]) == aligner.links(["bat"], []) == []
    assert WordTable([]).matrix(["a"], ["b"]).tolist() == [[0.0], [0.0]]
