"""Filters take out what is bad, each for its own reason, and leave gaps; what is good stays as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.corpus import clean as report
from docnmt.corpus.clean import EXPLAINED, Cleaner, Limits, numbers, read_all, similar_size, size
from docnmt.document import GAP, ParallelDocument

GOOD = ("Le chat dort sur la chaise.", "The cat sleeps on the chair.")


def cleaned(*pairs, languages=("fr", "en"), without=(), **limits):
    cleaner = Cleaner(languages, Limits(**limits), without)
    document = ParallelDocument("d", *map(tuple, zip(GOOD, *pairs, ("Il est tard.", "It is late."), strict=True)))
    (result,) = cleaner.clean([document])
    return cleaner, result


BAD = {
    "broken encoding": ("garbage", "Il a Ã©tÃ© lÃ  hier soir.", "He was there last night."),
    "replacement": ("garbage", "Il est l\ufffd depuis hier.", "He has been there since yesterday."),
    "few letters": ("garbage", "=A1+B2*(C3-4)/$5%", "=A1+B2*(C3-4)/$6%"),
    "tags": ("markup", "Le <b>chat</b> dort ici.", "The cat sleeps here."),
    "entities": ("markup", "Le chat dort ici.", "The cat &amp; dog sleep here."),
    "too long": ("length", "mot " * 201, "word " * 190),
    "one side too long": ("ratio", "Oui.", "Yes, and this goes on much longer than its source could ever say."),
    "wrong letters": ("script", "Кошка спит на стуле сегодня.", "The cat sleeps on the chair today."),
    "wrong letters in the target": ("script", "Le chat dort sur la chaise.", "Кошка спит на стуле сегодня."),
    "the same": ("copy", "The dog runs.", "the dog runs."),
    "nearly the same": ("copy", "The dog runs to the old gate.", "The dog runs to the new gate."),
    "other numbers": ("numbers", "Il y a 42 chats ici.", "There are 43 cats here."),
    "a number less": ("numbers", "En 1998, il est parti.", "Then he left for good."),
    "small numbers": ("numbers", "Il y a 2 chats ici.", "There are 3 cats here."),
}


@pytest.mark.parametrize("case", BAD)
def test_each_filter_removes_what_it_is_for(case):
    reason, *pair = BAD[case]
    cleaner, result = cleaned(pair)
    assert result.source == (GOOD[0], GAP, "Il est tard.") and result.target == (GOOD[1], GAP, "It is late.")
    assert {name: count for name, count in cleaner.counts.removed.items() if count} == {reason: 1}
    (example,) = cleaner.counts.examples[reason]
    assert (example.document, example.position, example.source, example.target) == ("d", 1, *pair)


@pytest.mark.parametrize("case", BAD)
def test_a_filter_that_is_left_out_removes_nothing(case):
    reason, *pair = BAD[case]
    cleaner, _ = cleaned(pair, without=[reason])
    assert reason not in cleaner.counts.removed and reason not in cleaner.active


@pytest.mark.parametrize(
    "pair",
    [
        ("Il y a deux chats ici.", "There are 2 cats here."),  # written as a word
        ("Le prix est de 1 250,50 euros.", "The price is 1,250.50 euros."),
        ("Le 05 mai 2021, il est parti.", "On May 5, 2021, he left."),
        ("Utilisez #include <stdio.h> au début.", "Put #include <stdio.h> at the beginning."),
        ("Berlin, Paris et Rome sont des villes.", "Berlin, Paris and Rome are large cities."),
        ("Oui, c'est ça.", "Yes."),
    ],
)
def test_good_pairs_stay(pair):
    cleaner, result = cleaned(pair)
    assert result.source[1] == pair[0], cleaner.counts.removed


def test_chinese_and_english():
    pairs = [
        ("LibreOffice Basic 代码基于子程序和函数。", "LibreOffice Basic code is based on subroutines and functions."),
        ("他在三十天内完成了二十五项任务。", "He finished 25 tasks within 30 days."),
        ("Use the File menu to open a new window.", "Use the File menu in order to open the new window today."),
    ]
    cleaner = Cleaner(("zh", "en"))
    (result,) = cleaner.clean([ParallelDocument("d", *map(tuple, zip(*pairs, strict=True)))])
    assert [bool(text) for text in result.source] == [True, True, False]
    assert size("他在三十天内完成了二十五项任务。") == pytest.approx(15 / 1.7)


def test_repeated_pairs_stay_once_and_short_ones_a_few_times():
    document = ParallelDocument("d", (*[GOOD[0]] * 4, *["Suivant"] * 4), (*[GOOD[1]] * 4, *["Next"] * 4))
    cleaner = Cleaner(("fr", "en"), Limits(repeats=3))
    (result,) = cleaner.clean([document])
    assert result.filled == (0, 4, 5, 6)
    assert cleaner.counts.removed["repeated pair"] == 4
    (result,) = Cleaner(("fr", "en"), without=["repeated pair"]).clean([document])
    assert result == document


def test_a_document_that_comes_again_goes_as_a_whole():
    first = ParallelDocument("a", ("Oui.", "Non."), ("Yes.", "No."))
    again = ParallelDocument("b", first.source, first.target)
    cleaner = Cleaner(("fr", "en"))
    assert [document.id for document in cleaner.clean([first, again])] == ["a"]
    assert cleaner.counts.removed["repeated document"] == 2
    assert (cleaner.counts.documents, cleaner.counts.documents_left) == (2, 1)


TEXTS = st.sampled_from(["", *(text for _, *pair in BAD.values() for text in pair), *GOOD, "Oui.", "Yes.", "Suivant"])


@given(st.lists(st.lists(st.tuples(TEXTS, TEXTS).filter(lambda p: bool(p[0]) == bool(p[1])), min_size=1), max_size=6))
def test_whatever_goes_every_line_keeps_its_place_and_is_counted(rows):
    documents = [ParallelDocument(str(n), *map(tuple, zip(*pairs, strict=True))) for n, pairs in enumerate(rows)]
    cleaner = Cleaner(("fr", "en"))
    results = {document.id: document for document in cleaner.clean(documents)}
    counts = cleaner.counts
    for document in documents:
        if result := results.get(document.id):
            assert len(result) == len(document) and result.filled
            for i in range(len(document)):
                pair = (result.source[i], result.target[i])
                assert pair in ((document.source[i], document.target[i]), (GAP, GAP))
    assert counts.pairs == sum(len(document.filled) for document in documents)
    assert counts.pairs_left == sum(len(document.filled) for document in results.values())
    assert counts.pairs - counts.pairs_left == sum(counts.removed.values())
    # Once clean, no pair is to go any more; documents may have become alike.
    again = Cleaner(("fr", "en"), without=["repeated document"])
    assert list(again.clean(results.values())) == list(results.values())


def test_languages_that_are_not_known_have_no_script():
    cleaner = Cleaner()
    assert "script" not in cleaner.active and set(cleaner.active) | {"script"} == set(EXPLAINED)


def test_unknown_filters_are_named():
    with pytest.raises(DocnmtError, match=r"unknown filter 'nonsense'\n  Choose from garbage, markup"):
        Cleaner(without=["nonsense"])


def test_measures():
    assert numbers("1,250.50 and 007") == numbers("1 250,50 et 7")
    assert numbers("1, 2, 3") == {"1": 1, "2": 1, "3": 1}
    assert similar_size("a b c d", "a", 2) and not similar_size("a b c d e", "a", 2)


def test_the_report_tells_all(tmp_path):
    cleaner, _ = cleaned(*(pair for _, *pair in BAD.values()))
    table = json.loads(json.dumps(report.as_dict(cleaner)))
    assert table["removed"]["numbers"] == 3 and sum(table["removed"].values()) == len(BAD)
    assert table["examples"]["copy"][0]["target"] == "the dog runs."
    text = report.markdown(cleaner)
    for name in cleaner.active:
        assert f"| {name} |" in text
    assert f"{len(BAD) + 2} pairs in 1 documents were read; 2 (" in text


def test_several_corpora_are_read_as_one(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"d\tun {name}\tone {name}\ne{name}\tdeux\ttwo\n")
    files = [CorpusFiles(str(tmp_path / f"{name}.tsv")) for name in "ab"]
    found = list(read_all(files, ("fr", "en"), raise_bad))
    assert [document.id for document in found] == ["d", "ea", "b/d", "eb"]
    with pytest.raises(DocnmtError, match=r"document a/d occurs twice\n  Rename"):
        list(read_all([*files[:1] * 3], ("fr", "en"), raise_bad))
