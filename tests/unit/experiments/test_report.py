"""The bins of the report's plots."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from docnmt.document import ParallelDocument
from docnmt.evaluation.test_sets import TestSet
from docnmt.experiments import report


def bins(monkeypatch, documents: list[tuple[str, ...]]) -> dict[str, dict[str, int]]:
    """How many sentences are in each bin of each plot."""
    test = TestSet(
        "Test",
        [ParallelDocument(str(number), sentences, sentences) for number, sentences in enumerate(documents)],
        [[sentence for sentences in documents for sentence in sentences]],
    )
    lab = SimpleNamespace(
        scoreboard=SimpleNamespace(metric=SimpleNamespace(segment="sentence", higher_is_better=True)),
        parts=SimpleNamespace(whole=SimpleNamespace(test=test)),
        prepared=SimpleNamespace(source=SimpleNamespace(encode=lambda texts: [list(text) for text in texts])),
    )
    found = {}
    monkeypatch.setattr(report, "_gain_figure", lambda lab, title, x, masks: found.update({title: masks}) or "")
    report.gains(lab)
    return {title: {name: int(np.sum(mask)) for name, mask in masks.items()} for title, masks in found.items()}


def test_sentence_length_is_told_without_spaces(monkeypatch):
    found = bins(monkeypatch, [tuple("字" * length for length in [3] * 20 + [15] * 30)])
    assert found["Gain by sentence length"] == {"1-5": 20, "11-20": 30}


def test_places_are_counted_in_each_document_and_gaps_are_no_sentences(monkeypatch):
    found = bins(monkeypatch, [("a", "", "c", "d")] * 20)
    assert found["Gain by position in the document"] == {"1": 20, "3": 20, "4-5": 20}
    assert found["Gain by sentence length"] == {"1-5": 60}
