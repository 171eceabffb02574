"""The bins of the report's plots."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from docnmt.document import ParallelDocument
from docnmt.experiments import report
from docnmt.experiments.translations import TestSet


def test_sentence_length_is_told_without_spaces(monkeypatch):
    sources = tuple("字" * length for length in [3] * 20 + [15] * 30)
    test = TestSet("Test", [ParallelDocument("a", sources, sources)], [sources])
    job = SimpleNamespace(
        scoreboard=SimpleNamespace(metric=SimpleNamespace(segment="sentence")),
        parts=SimpleNamespace(whole=SimpleNamespace(test=test)),
        prepared=SimpleNamespace(source=SimpleNamespace(encode=lambda texts: [list(text) for text in texts])),
    )
    found = {}
    monkeypatch.setattr(report, "_gain_figure", lambda job, title, x, masks: found.update({title: masks}) or [])
    report.gains(job)
    lengths = {name: int(np.sum(mask)) for name, mask in found["Gain by sentence length"].items()}
    assert lengths == {"1-5": 20, "11-20": 30}
