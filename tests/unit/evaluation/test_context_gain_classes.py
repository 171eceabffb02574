"""Gains by class of words: every piece in its place, and nothing counted for what it is not."""

from __future__ import annotations

import numpy as np
import pytest

from docnmt.evaluation.context_gain import END, ENDS, PUNCTUATION, WORDS, ContextGain, classes_of
from docnmt.evaluation.context_report import Figures
from docnmt.evaluation.controls import NONE, SHUFFLED, TRUE

SENTENCES = (
    (("▁She", "▁lost", "▁her", "▁h", "at", ".", "</s>"), (0.0, 0.1, 2.0, 0.2, 0.2, -0.5, 0.3)),
    (("▁Her", "'s", ",", "▁he", "▁says", ".", "</s>"), (1.0, 0.5, -0.1, 0.0, 0.0, 0.0, 0.1)),
    (("▁No", "!", "</s>"), (0.4, 0.0, 0.0)),
)
CLASSES = {"his/her": ["his", "her"], "its": ["its"]}


@pytest.fixture
def gain() -> ContextGain:
    values = tuple(np.array(gains) for _, gains in SENTENCES)
    nothing = tuple(np.zeros(len(gains)) for gains in values)
    return ContextGain(
        ("a", "b"),
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        tuple(pieces for pieces, _ in SENTENCES),
        {TRUE: values, NONE: nothing, SHUFFLED: nothing},
    )


def test_nats_a_word_of_each_class(gain):
    found = gain.by_word_class(CLASSES)
    assert list(found) == ["his/her", WORDS, PUNCTUATION, ENDS]  # no "its" anywhere
    assert (found["his/her"].tokens, found["his/her"].mean) == (2, pytest.approx((2.0 + 1.5) / 2))
    assert found["his/her"].sentences == 2
    assert (found[WORDS].tokens, found[WORDS].total) == (8, pytest.approx(4.4))
    assert (found[PUNCTUATION].tokens, found[PUNCTUATION].total) == (4, pytest.approx(-0.6))
    assert (found[ENDS].tokens, found[ENDS].total) == (3, pytest.approx(0.4))


def test_words_marks_and_ends_are_all_there_is(gain):
    found = gain.by_word_class({})
    assert sum(one.total for one in found.values()) == pytest.approx(gain.totals().sum())


def test_a_class_of_one_document_has_no_interval_and_all_words_have_one(gain):
    found = gain.by_word_class(CLASSES)
    assert np.isnan(found["his/her"].interval.low)
    assert found[WORDS].interval.low <= found[WORDS].mean <= found[WORDS].interval.high
    assert Figures(gain, None, {}, classes=CLASSES).as_dict()["by_word_class"][NONE]["his/her"]["low"] is None


def test_the_table_has_the_classes_first(gain):
    table = Figures(gain, None, {}, classes=CLASSES).by_word_class()
    assert [row[0] for row in table.rows] == ["his/her", WORDS, PUNCTUATION, ENDS]
    assert table.rows[0][1:3] == ("2", "+1.7500") and END not in str(table.rows)


def test_languages_with_probes_have_classes():
    assert classes_of(("fr", "en"))["his/her/its"] == ["his", "her", "its"]
    assert "gender" not in classes_of(("fr", "en")) and classes_of(("nl", "de")) == {}
