"""Examples are chosen by a rule: who gained most, and who lost most."""

from __future__ import annotations

import re

import sacrebleu

from docnmt.document import ContextSpec, ParallelDocument
from docnmt.evaluation.test_sets import TestSet
from docnmt.experiments.report import WINNERS, examples_table, find_examples

REFERENCE = "the quick brown fox jumps over the lazy dog"
GOOD = {share: REFERENCE[: len(REFERENCE) * share // 100] for share in range(10, 101, 10)}  # better and better
SPEC = ContextSpec(previous=2)


def test_set(sizes: tuple[int, ...]) -> TestSet:
    documents = [
        ParallelDocument(f"d{n}", tuple(f"source {n}.{k}" for k in range(size)), (REFERENCE,) * size)
        for n, size in enumerate(sizes)
    ]
    return TestSet("x", documents, [[REFERENCE] * sum(sizes)])


test_set.__test__ = False  # type: ignore[attr-defined]


def test_the_three_that_gained_most_and_the_one_that_lost_most():
    test = test_set((7,))
    plain = ["", *[GOOD[50]] * 6]
    informed = ["", *(GOOD[share] for share in (60, 100, 20, 80, 70, 40))]
    found = find_examples(test, plain, informed, SPEC)
    assert [example.position for example in found] == [2, 4, 5, 3]
    gains = [example.gain for example in found]
    assert gains[:3] == sorted(gains[:3], reverse=True) and gains[2] > 0 > gains[3]
    measure = sacrebleu.CHRF(lowercase=True)
    for example in found:
        scores = [measure.sentence_score(text, [REFERENCE]).score for text in (example.plain, example.informed)]
        assert example.gain == scores[1] - scores[0]


def test_an_example_is_told_with_its_context():
    test = test_set((2, 4))
    plain = [GOOD[50]] * 6
    informed = [*plain[:5], GOOD[90]]
    (example,) = find_examples(test, plain, informed, SPEC)
    assert (example.document, example.position) == ("d1", 3)
    assert example.context == ("source 1.1", "source 1.2") and example.source == "source 1.3"
    assert (example.reference, example.plain, example.informed) == (REFERENCE, GOOD[50], GOOD[90])


def test_sentences_without_context_or_with_the_same_translation_are_no_examples():
    test = test_set((1, 2))
    changed_where_there_is_no_context = [GOOD[90], GOOD[90], GOOD[50]]
    assert find_examples(test, [GOOD[50]] * 3, changed_where_there_is_no_context, SPEC) == []
    assert find_examples(test, [GOOD[50]] * 3, [GOOD[50]] * 3, SPEC) == []
    # With the sentence after it as context the first of a document has one.
    assert len(find_examples(test, [GOOD[50]] * 3, changed_where_there_is_no_context, ContextSpec(0, 1))) == 1


def test_losers_are_no_winners_and_winners_no_losers():
    test = test_set((4,))
    lost = find_examples(test, [GOOD[90]] * 4, [GOOD[90], *(GOOD[share] for share in (50, 20, 80))], SPEC)
    assert [example.position for example in lost] == [2]
    won = find_examples(test, [GOOD[20]] * 4, [GOOD[20], *(GOOD[share] for share in (50, 30, 80))], SPEC)
    assert [example.position for example in won] == [3, 1, 2]


def test_all_references_count():
    test = test_set((3,))
    other = "something else entirely"
    both = TestSet("x", test.documents, [*test.references, [other] * 3])
    (example,) = find_examples(both, [GOOD[20]] * 3, [GOOD[20], GOOD[20], other], SPEC)
    assert example.gain > 50 and example.reference == REFERENCE
    (example,) = find_examples(test, [GOOD[20]] * 3, [GOOD[20], GOOD[20], other], SPEC)
    assert example.gain < 0


def test_the_table_has_the_papers_layout():
    test = test_set((5,))
    found = find_examples(test, [GOOD[50]] * 5, [GOOD[50], *(GOOD[s] for s in (60, 70, 80, 20))], SPEC)
    table = examples_table(found)
    assert len(found) == WINNERS + 1
    names = ["Context", "Source", "Reference", "Transformer", "Our work", ""]
    assert [row[0] for row in table.rows] == names * 4
    assert table.rules == {6, 12, 18}
    assert table.rows[0][1] == "source 0.1 … source 0.2" and table.rows[1][1] == "source 0.3"
    assert table.rows[5][1].startswith("d0, sentence 4: +")
    (note,) = table.notes
    assert "gained most" in note and "lost most" in note


def test_every_cell_of_an_example_is_in_the_json():
    test = test_set((2,))
    table = examples_table(find_examples(test, [GOOD[50]] * 2, [GOOD[50], GOOD[90]], SPEC))
    texts = [text for row in table.as_dict()["rows"] for text in row.values()]
    assert [cell for row in table.rows for cell in row if cell not in texts] == []


def test_a_table_without_examples_says_so():
    table = examples_table([])
    assert table.rows == [] and re.search("No test sentence .* gained .* none that lost", table.notes[0])


def test_the_note_names_a_loser_only_where_there_is_one():
    test = test_set((3,))
    for said, wanted in (
        (90, "The test sentence .* and none that lost"),
        (20, "No test sentence .* the one that lost most"),
    ):
        table = examples_table(find_examples(test, [GOOD[50]] * 3, [GOOD[50], GOOD[50], GOOD[said]], SPEC))
        assert len(table.rows) == 6 and re.search(wanted, table.notes[0])
