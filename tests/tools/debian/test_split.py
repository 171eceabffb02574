"""Train, dev and test have no document and no text in common."""

import re

import pytest

from docnmt.document import GAP, ParallelDocument
from tests.tools.debian.packages import sentence
from tools.debian.splits import SPLITS, split


def document(name: str, numbers) -> ParallelDocument:
    return ParallelDocument(name, tuple(sentence(n, "fr") for n in numbers), tuple(sentence(n, "en") for n in numbers))


DOCUMENTS = [
    document(f"{source}:{n}", range((k * 60 + n) * 10, (k * 60 + n) * 10 + 10))
    for k, source in enumerate(("games", "help"))
    for n in range(60)
]


def ids(splits):
    return {name: [document.id for document in splits[name]] for name in SPLITS}


def test_documents_are_split_by_source_and_none_is_lost():
    splits, _ = split(DOCUMENTS, 0.1, 1)
    found = ids(splits)
    assert sorted(name for names in found.values() for name in names) == sorted(d.id for d in DOCUMENTS)
    for name in ("dev", "test"):
        assert [sum(each.startswith(source) for each in found[name]) for source in ("games", "help")] == [6, 6]


def test_the_seed_and_the_ids_decide_alone():
    first = ids(split(DOCUMENTS, 0.1, 1)[0])
    again = ids(split(DOCUMENTS[::-1], 0.1, 1)[0])
    assert {name: set(names) for name, names in first.items()} == {name: set(names) for name, names in again.items()}
    assert first != ids(split(DOCUMENTS, 0.1, 2)[0])
    order = {d.id: n for n, d in enumerate(DOCUMENTS)}
    for names in first.values():
        assert [order[name] for name in names] == sorted(order[name] for name in names)


def test_short_and_long_documents_stay_in_train():
    few = [document(f"x:{n}", range(n * 10, n * 10 + 3)) for n in range(40)]
    splits, _ = split(few, 0.1, 1)
    assert len(splits["train"]) == 40 and not splits["dev"] and not splits["test"]


def test_a_small_source_still_has_something_held_out():
    splits, _ = split(DOCUMENTS[:12], 0.02, 1)
    assert (len(splits["dev"]), len(splits["test"])) == (1, 1)


LEAKS = {
    "the same": lambda text: text,
    "other case and marks": lambda text: text.upper().replace(".", " !"),
    "a number more": lambda text: f"12. {text}",
    "a word changed": lambda text: re.sub(r" \w+ ", " another ", text, count=1),
    "a word left out": lambda text: re.sub(r" \w+ ", " ", text, count=1),
    "a word put in": lambda text: text.replace(" ", " more ", 1),
}


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("side", ["source", "target"])
def test_what_stands_in_a_smaller_split_becomes_a_gap_in_a_larger_one(leak, side):
    plain, _ = split(DOCUMENTS, 0.1, 1)
    held, other = plain["test"][0], plain["train"][0]
    changed = list(getattr(other, side))
    changed[4] = LEAKS[leak](getattr(held, side)[3])
    sides = {"source": other.source, "target": other.target, side: tuple(changed)}
    documents = [ParallelDocument(other.id, **sides) if d.id == other.id else d for d in DOCUMENTS]
    splits, emptied = split(documents, 0.1, 1)
    assert ids(splits) == ids(plain)
    assert emptied["train"] == 1
    found = splits["train"][0]
    assert found.source[4] == found.target[4] == GAP and found.filled == (0, 1, 2, 3, 5, 6, 7, 8, 9)
    assert splits["test"] == plain["test"]


def test_a_document_of_which_nothing_is_left_goes():
    plain, _ = split(DOCUMENTS, 0.1, 1)
    copy = ParallelDocument("help:copy", plain["test"][0].source[:5], plain["test"][0].target[:5])
    splits, emptied = split([*DOCUMENTS, copy], 0.1, 1)
    assert "help:copy" not in ids(splits)["train"] and emptied["train"] == 5


def test_short_sentences_may_stand_everywhere():
    documents = [ParallelDocument(d.id, ("Oui.", *d.source), ("Yes.", *d.target)) for d in DOCUMENTS]
    _, emptied = split(documents, 0.1, 1)
    assert not any(emptied.values())
