"""What the judges found, counted by hand; Fleiss' kappa against another way to compute it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.evaluation.significance import sign_test
from docnmt.judging.store import Place, Store
from docnmt.judging.summary import as_csv, figures, fleiss_kappa, same_passed, summarise, summary_table
from tests.judging_samples import NAMES, make_sample, prefer

# Nine questions in documents of 3, 2 and 4 of them; sentences 2 of each document (from 0) are the same in both.
VERDICTS = {"Anna": ">=<<=<<=<", "Ben": "==<>=<<<=", "Cleo": ">=<==<><="}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "j.sqlite", make_sample((4, 3, 5)))
    yield made
    made.close()


@pytest.fixture
def judged(store):
    for name, verdicts in VERDICTS.items():
        prefer(store, name, verdicts)
    return store


def test_every_judge_has_a_row_of_the_paper_s_table(judged):
    summary = summarise(judged)
    counts = {row.name: (row.better, row.equal, row.worse) for row in summary.rows}
    assert counts == {"Anna": (1, 3 + 3, 5), "Ben": (1, 4 + 3, 4), "Cleo": (2, 4 + 3, 3)}
    assert all(row.judgements == 12 and row.same == 3 for row in summary.rows)
    overall = summary.overall
    assert (overall.better, overall.equal, overall.worse) == (4, 20, 12)
    assert overall.shares == pytest.approx((100 * 4 / 36, 100 * 20 / 36, 100 * 12 / 36))
    assert not summary.unfinished


def test_a_judge_s_sign_tests_count_sentences_and_documents(judged):
    anna = summarise(judged).rows[0]
    assert (anna.sentence_signs.better, anna.sentence_signs.worse) == (1, 5)
    assert anna.sentence_signs.p == sign_test(1, 5)
    # Documents: > and < cancel in the first, the second and the third are the second system's.
    assert (anna.document_signs.better, anna.document_signs.worse) == (0, 2)
    assert anna.document_signs.p == 0.5


def test_overall_a_sentence_counts_once_however_many_judged_it(judged):
    overall = summarise(judged).overall
    # By sentence: ++ === -- -> +, 0, -, then (-+0) 0, 0, then ---, -+- ..., each for whom most are.
    assert (overall.sentence_signs.better, overall.sentence_signs.worse) == (1, 5)
    assert (overall.document_signs.better, overall.document_signs.worse) == (0, 2)


def test_agreement_is_about_what_was_asked(judged):
    summary = summarise(judged)
    assert summary.agreed_on == 9
    assert summary.agreement == fleiss_kappa(list(zip(*VERDICTS.values(), strict=True)))


def test_who_has_stopped_counts_as_far_as_he_came(store):
    prefer(store, "Anna", VERDICTS["Anna"])
    prefer(store, "Ben", "=<<>")  # the first document, and one sentence of the second
    summary = summarise(store)
    ben = summary.rows[1]
    assert (ben.better, ben.equal, ben.worse, ben.same) == (1, 1 + 1, 2, 1)
    assert [row.name for row in summary.unfinished] == ["Ben"]
    assert summary.agreed_on == 4
    assert "Not finished: Ben." in summary_table(summary).notes


def test_same_sentences_count_up_to_the_first_that_is_still_to_be_judged():
    sample = make_sample((4, 3, 5))
    assert same_passed(sample, []) == []
    assert same_passed(sample, [Place(0, 0), Place(0, 1)]) == [Place(0, 2)]
    assert len(same_passed(sample, sample.questions)) == 3


def test_a_change_of_mind_changes_the_table(judged):
    prefer(judged, "Anna", "<")
    anna = summarise(judged).rows[0]
    assert (anna.better, anna.worse) == (0, 6)


def test_some_judges_only(judged):
    summary = summarise(judged, ["cleo", "Anna"])
    assert [row.name for row in summary.rows] == ["Cleo", "Anna"]
    assert summary.overall.judgements == 24
    assert {row["judge"] for row in csv.DictReader(io.StringIO(as_csv(judged, ["Ben"])))} == {"Ben"}


def test_judges_who_said_nothing_are_none(store):
    store.enter("Idle")
    with pytest.raises(DocnmtError, match="no judgements yet"):
        summarise(store)
    prefer(store, "Anna", ">")
    assert [row.name for row in summarise(store).rows] == ["Anna"]
    with pytest.raises(DocnmtError, match=r"no judgements by 'Idle'\n  Choose from Anna\."):
        summarise(store, ["Idle"])


# ---- how it is shown ----


def test_the_table_has_the_paper_s_layout(judged):
    table = summary_table(summarise(judged))
    assert [column.name for column in table.columns][:4] == ["judge", ">", "=", "<"]
    assert [row[0] for row in table.rows] == ["Anna", "Ben", "Cleo", "Overall"]
    assert table.rows[-1][1:5] == ("11.1 %", "55.6 %", "33.3 %", "36")
    assert table.rules == {3}
    notes = " ".join(table.notes)
    assert f">: {NAMES[0]} is better than {NAMES[1]}" in notes
    assert "3 sentences are the same in both: judges were not asked" in notes
    assert f"Fleiss' kappa: {summarise(judged).agreement.kappa:.2f}, over the 9 sentences" in notes
    assert "Not finished" not in notes


def test_notes_where_there_is_no_agreement_to_measure(store):
    prefer(store, "Anna", "==")
    assert any("One judge" in note for note in summary_table(summarise(store)).notes)
    prefer(store, "Ben", "==")
    assert any("kappa: not defined" in note for note in summary_table(summarise(store)).notes)
    assert figures(summarise(store))["agreement"]["kappa"] is None


def test_places_are_counted_as_they_were_shown(store):
    store.enter("Anna")
    for place, choice in zip(store.sample.questions, ("first", "first", "second", "equal"), strict=False):
        store.judge("Anna", place, choice)
    assert summarise(store).places == (2, 1)


def test_figures_are_json_and_those_of_the_table(judged):
    summary = summarise(judged)
    told = json.loads(json.dumps(figures(summary), allow_nan=False))
    assert told["systems"] == list(NAMES)
    assert (told["documents"], told["sentences"], told["same"]) == (3, 12, 3)
    assert told["overall"]["percent"]["worse"] == pytest.approx(100 * 12 / 36)
    assert [row["name"] for row in told["judges"]] == ["Anna", "Ben", "Cleo"]
    assert told["judges"][0]["sentence_signs"]["p"] == sign_test(1, 5)
    assert told["agreement"]["kappa"] == summary.agreement.kappa


def test_csv_has_every_verdict_and_says_who_stood_first(judged):
    judged.judge("Anna", Place(0, 0), "equal")
    rows = list(csv.DictReader(io.StringIO(as_csv(judged))))
    assert len(rows) == 36
    assert {row["system_a"] for row in rows} == {NAMES[0]}
    for row in rows:
        k, i = int(row["document"].removeprefix("story-")), int(row["sentence"]) - 1
        document = judged.sample.documents[k]
        assert (row["source"], row["translation_a"], row["translation_b"]) == (
            document.source[i],
            *(output[i] for output in document.outputs),
        )
        asked = row["asked"] == "yes"
        assert asked == (i != 2) == bool(row["time"])
        if asked:
            assert row["shown_first"] == "ab"[judged.first_systems(row["judge"])[k]]
        else:
            assert (row["better"], row["shown_first"]) == ("equal", "")
    anna, *rest = (row for row in rows if row["judge"] == "Anna")
    assert (anna["better"], anna["revisions"]) == ("equal", "1")
    assert [row["better"] for row in rest if row["asked"] == "yes"] == [
        {">": "a", "=": "equal", "<": "b"}[sign] for sign in VERDICTS["Anna"][1:]
    ]


# ---- kappa ----

# The worked example of the method: ten subjects, each put into one of five categories by fourteen raters.
TABLE = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)


def test_kappa_of_the_worked_example():
    items = [[category for category, n in enumerate(row) for _ in range(n)] for row in TABLE]
    found = fleiss_kappa(items)
    assert found.observed == pytest.approx(0.378, abs=5e-4)
    assert found.expected == pytest.approx(0.213, abs=5e-4)
    assert found.kappa == pytest.approx(0.210, abs=5e-4)


def kappa_by_pairs(items: np.ndarray) -> float:
    """By its meaning: how much more often two different raters of an item agree than two verdicts drawn at random."""
    judges = items.shape[1]
    pairs = list(itertools.permutations(range(judges), 2))
    observed = np.mean([items[:, one] == items[:, other] for one, other in pairs])
    drawn = items.ravel()
    expected = np.mean(drawn[:, None] == drawn[None, :])
    return float((observed - expected) / (1 - expected))


@pytest.mark.parametrize("judges", [2, 3, 5])
def test_kappa_is_agreement_of_pairs_beyond_chance(judges):
    random = np.random.default_rng(judges)
    for _ in range(20):
        items = random.choice([-1, 0, 1], size=(30, judges), p=(0.2, 0.5, 0.3))
        assert fleiss_kappa(items.tolist()).kappa == pytest.approx(kappa_by_pairs(items))


def test_kappa_of_judges_who_agree_and_of_judges_who_toss_coins():
    assert fleiss_kappa([[1, 1, 1], [0, 0, 0], [-1, -1, -1]]).kappa == 1
    assert fleiss_kappa([[0, 1], [1, 0]]).kappa == -1
    coins = np.random.default_rng(1).integers(3, size=(4000, 3)).tolist()
    assert abs(fleiss_kappa(coins).kappa) < 0.03


def test_kappa_is_not_defined_without_verdicts_that_could_disagree():
    for items in ([], [[1], [0]], [[1, 1], [1, 1]]):
        assert math.isnan(fleiss_kappa(items).kappa)
    assert fleiss_kappa([[1, 1], [1, 1]]).observed == 1


def test_kappa_needs_as_many_verdicts_of_each_item():
    with pytest.raises(ValueError, match="same number"):
        fleiss_kappa([[1, 1], [1]])
