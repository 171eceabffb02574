"""The terms that `benchmarks/terms.py` asks for: they and their translations stand where they are said to stand."""

from __future__ import annotations

import pytest

from benchmarks.drawn_terms import Task, TermFinder, draw
from docnmt.base.progress import Progress
from docnmt.decoding.phrases import missing
from docnmt.document import ParallelDocument

NOUNS = {"maison": "house", "jardin": "garden", "rivière": "river", "montagne": "mountain", "cheval": "horse"}
ADJECTIVES = {"blanche": "white", "vieille": "ancient", "petite": "little"}
PAIRS = [(f"voici la {n} {a} .", f"here is the {ADJECTIVES[a]} {NOUNS[n]} .") for n in NOUNS for a in ADJECTIVES]
# Words that are in most of the pairs are no content words; these make the others rare.
FILLING = [("voici la nuit .", "here is the night .")] * 1000


@pytest.fixture(scope="module")
def documents() -> list[ParallelDocument]:
    return [ParallelDocument("all", *zip(*PAIRS, strict=True))]


@pytest.fixture(scope="module")
def finder(documents) -> TermFinder:
    return TermFinder([*documents, ParallelDocument("filling", *zip(*FILLING, strict=True))], Progress(quiet=True))


def asked(task: Task):
    return [phrases for document in task.phrases for phrases in document]


def test_terms_are_words_and_pairs_of_words_with_the_reference_s_translation(documents, finder):
    task = draw(documents, finder, nouns=False, invented=False, seed=1)
    assert task.references == list(documents[0].target)
    lexicon = NOUNS | ADJECTIVES
    lexicon |= {f"{n} {a}": f"{ADJECTIVES[a]} {NOUNS[n]}" for n in NOUNS for a in ADJECTIVES}
    found = set()
    for phrases, source in zip(asked(task), documents[0].source, strict=True):
        assert phrases
        for phrase in phrases:
            assert source[slice(*phrase.at)] == phrase.source
            assert lexicon[phrase.source] == phrase.text
            found.add(len(phrase.source.split()))
    assert found == {1, 2}


def test_an_invented_name_takes_the_place_of_the_translation(documents, finder):
    task = draw(documents, finder, nouns=True, invented=True, seed=1)
    names = {}
    for phrases, reference, target in zip(asked(task), task.references, documents[0].target, strict=True):
        (phrase,) = phrases  # the adjective is no noun
        assert not missing(phrases, reference)
        assert missing(phrases, target)
        assert names.setdefault(phrase.source, phrase.text) == phrase.text
        assert reference.startswith("here is the ")
