"""F1 of classes of words, and the consistency of terms, of translations against their references and sources."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.cli import main
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.words import LTCR, WordClassF1, measure_consistency, same_pairs


def f1(hypotheses: list[str], *references: list[str], words: str = "his,her,its") -> float:
    metric = WordClassF1(words.split(","))
    return metric.score(metric.statistics(hypotheses, references).sum(axis=0))


def test_f1_is_that_of_precision_and_recall():
    reference = ["Her hat and her dog.", "He lost his way.", "It has its price."]
    assert f1(reference, reference) == 100
    assert f1(["no", "such", "word"], reference) == 0
    # 2 matches of 3 said and 4 wanted
    assert f1(["HER hat and his dog.", "He lost his way.", "It has a price."], reference) == pytest.approx(200 * 2 / 7)


def test_a_word_matches_in_its_own_sentence_and_as_often_as_both_have_it():
    assert f1(["her", ""], ["", "her"]) == 0
    assert f1(["her her her"], ["her"]) == pytest.approx(200 / 4)
    assert f1(["hers, this, itself"], ["his"]) == 0  # whole words


def test_the_best_of_several_references_counts_and_nothing_is_no_error():
    assert f1(["his"], ["her"], ["his"]) == 100
    assert f1(["a"], ["b"]) == 100
    assert f1(["他们来了"], ["他们来了"], words="他们,她们") == 100


# ---- terms ----

SOURCES = ["la lampe bleue brille", "une lampe rouge brille", "cette lampe tombe", "le chat dort", "ce chat mange"]
SAME = ["the blue lamp shines", "a red lamp shines", "this lamp falls", "the cat sleeps", "this cat eats"]


def references(sources=SOURCES, repeat: int = 40) -> References:
    """The same five sentences in many documents, so that there is something to learn words from."""
    documents = np.repeat(np.arange(repeat), len(SOURCES))
    ids = tuple(f"d{n}" for n in range(repeat))
    return References(ids, documents, (tuple(SAME * repeat),), None if sources is None else tuple(sources * repeat))


def consistency(monkeypatch, *texts: list[str]) -> list[float]:
    monkeypatch.setattr("docnmt.evaluation.words.COMMON", 1.0)
    outputs = [Output(str(n), tuple(text * 40)) for n, text in enumerate(texts)]
    found = measure_consistency(outputs, references())
    return [column.metric.score(column.statistics.sum(axis=0)) for column in found]


def test_a_term_that_is_put_in_two_ways_is_less_consistent(monkeypatch):
    mixed = [SAME[0].replace("lamp", "lantern"), *SAME[1:]]
    always = [text.replace("lamp", "lantern") for text in SAME]
    same, different, other = consistency(monkeypatch, SAME, mixed, always)
    assert same == other == 100  # which word it is, is not asked
    assert different < 80


def test_pairs_of_occurrences_are_counted():
    assert same_pairs([["lamp", "lamp", "light"], ["cat"], ["red", "red"]]) == (2, 4)
    assert LTCR.score(np.array([0.0, 0.0])) == 100


def test_terms_need_a_source_with_words():
    with pytest.raises(DocnmtError, match="but the references have none"):
        measure_consistency([Output("a", tuple(SAME * 40))], references(None))
    with pytest.raises(DocnmtError, match="spaces between words"):
        measure_consistency([Output("a", tuple(SAME * 40))], references(["那盏灯亮着"] * 5))


def test_words_and_terms_are_columns_of_an_evaluation(tmp_path: Path, capsys):
    rows = [(f"d{n}", *pair) for n in range(6) for pair in zip(SOURCES, SAME, strict=True)]
    reference, system, figures = (tmp_path / name for name in ("test.tsv", "mine.tsv", "figures.json"))
    reference.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    system.write_text(reference.read_text(encoding="utf-8").replace("this cat", "the cat"), encoding="utf-8")
    options = ("--metric", "bleu", "--words", "this,that", "--words", "a", "--terms", "--json", str(figures))
    assert main(["evaluate", str(system), "--reference", str(reference), *options]) == 0
    found = json.loads(figures.read_text())
    scores = {row["metric"]: row["score"] for row in found["results"]}
    assert scores["F1 of this/that"] == pytest.approx(200 / 3) and scores["F1 of a"] == 100
    assert 0 <= scores["LTCR"] <= 100 and found["signatures"]["LTCR"].startswith("LTCR|")
    assert "word-F1|words:this,that|" in capsys.readouterr().out
