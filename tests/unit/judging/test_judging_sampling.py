"""Whole documents are drawn by a seed, and which system is which is balanced and hidden."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.judging.store import Place, first_systems, read_sample
from tests.judging_samples import NAMES, make_sample, sentences, write_files

LENGTHS = (3, 1, 6, 2, 4, 5, 2)


@pytest.fixture
def files(tmp_path):
    source, *systems = write_files(tmp_path, LENGTHS)
    return str(source), tuple(map(str, systems))


# ---- drawing ----


def test_documents_are_whole_and_each_sentence_has_its_own_translations(files):
    sample = read_sample(*files, documents=5)
    assert sample.systems == NAMES
    assert len({document.id for document in sample.documents}) == 5
    for document in sample.documents:
        number = int(document.id.removeprefix("story-"))
        source, *outputs = sentences(number, LENGTHS[number])
        assert (document.source, list(document.outputs)) == (source, outputs)


def test_a_seed_draws_the_same_and_another_seed_others(files):
    def drawn(seed: int, documents: int = 3) -> list[str]:
        return [document.id for document in read_sample(*files, documents=documents, seed=seed).documents]

    assert drawn(4) == drawn(4)
    assert len({tuple(drawn(seed)) for seed in range(8)}) > 4
    assert drawn(4, documents=6)[:3] == drawn(4)


def test_every_document_is_as_likely_to_be_drawn(files):
    counts = Counter(read_sample(*files, documents=2, seed=seed).documents[1].id for seed in range(210))
    assert len(counts) == len(LENGTHS)
    assert all(10 <= count <= 55 for count in counts.values())  # 30 expected: beyond four standard deviations


def test_all_are_taken_where_there_are_no_more(files):
    sample = read_sample(*files, documents=1000)
    assert sorted(document.id for document in sample.documents) == [f"story-{k}" for k in range(len(LENGTHS))]
    assert len(sample.sentences) == sum(LENGTHS)


def test_questions_are_the_sentences_that_differ_in_more_than_spaces():
    sample = make_sample((4, 3))
    assert sample.questions == (Place(0, 0), Place(0, 1), Place(0, 3), Place(1, 0), Place(1, 1))
    assert len(sample.sentences) == 7


def test_plain_text_and_gaps(tmp_path):
    (tmp_path / "s.fr").write_text("Un.\nDeux.\n\nTrois.\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("One.\nTwo.\n\nThree.\n", encoding="utf-8")
    (tmp_path / "b.en").write_text("One.\n\n\nThird.\n", encoding="utf-8")  # nothing for the second sentence
    sample = read_sample(str(tmp_path / "s.fr"), (str(tmp_path / "a.en"), str(tmp_path / "b.en")), documents=2)
    documents = {document.source: document.outputs for document in sample.documents}
    assert documents == {("Un.", "Deux."): (("One.", "Two."), ("One.", "")), ("Trois.",): (("Three.",), ("Third.",))}


# ---- sides ----


@pytest.mark.parametrize("documents", [1, 2, 7, 20])
def test_each_system_is_first_in_half_of_the_documents(documents):
    for judge in ("anna", "ben", "чарльз"):
        firsts = first_systems(1, judge, documents)
        assert len(firsts) == documents
        assert abs(2 * sum(firsts) - documents) == documents % 2


def test_sides_depend_on_seed_and_judge_alone():
    assert first_systems(1, "anna", 20) == first_systems(1, "anna", 20)
    judges = [f"judge {number}" for number in range(40)]
    assert len({first_systems(1, judge, 20) for judge in judges}) > 35
    assert first_systems(1, "anna", 20) != first_systems(2, "anna", 20)


def test_no_document_shows_one_system_first_to_most_judges():
    judges = 400
    for counts in zip(*(first_systems(1, f"judge {number}", 5) for number in range(judges)), strict=True):
        assert abs(sum(counts) - judges / 2) < 4 * (judges / 4) ** 0.5


# ---- errors ----


def refused(*arguments, **options) -> str:
    with pytest.raises(DocnmtError) as error:
        read_sample(*arguments, **options)
    return str(error.value)


def test_numbers_that_make_no_sample(files):
    assert "--documents 0" in refused(*files, documents=0)
    assert "--seed -1: a seed cannot be negative" in refused(*files, seed=-1)


def test_a_translation_of_something_else_is_refused_with_its_place(files, tmp_path):
    source, systems = files
    rows = (tmp_path / f"{NAMES[1]}.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    short = tmp_path / "short.tsv"
    short.write_text("".join(rows[:-1]), encoding="utf-8")
    message = refused(source, (systems[0], str(short)))
    assert re.search(r"short\.tsv.*document story-6: expected 2 sentences, found 1\n  Translate this source", message)
    more = tmp_path / "more.tsv"
    more.write_text("".join(rows) + "extra\tx\ty\n", encoding="utf-8")
    assert "document extra: it is not in the source\n" in refused(source, (systems[0], str(more)))


def test_one_system_twice_and_two_that_say_the_same(files, tmp_path):
    source, systems = files
    assert "given twice" in refused(source, (systems[0], systems[0]))
    twin = tmp_path / "twin.tsv"
    twin.write_text((tmp_path / f"{NAMES[0]}.tsv").read_text(encoding="utf-8"), encoding="utf-8")
    assert "nothing to judge" in refused(source, (systems[0], str(twin)))


def test_a_source_without_sentences(files, tmp_path):
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    assert "no documents" in refused(str(tmp_path / "empty.txt"), files[1])
