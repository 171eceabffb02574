"""int8 and shortlists on a model that is worth something: the demo's, where `make demo` has been run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.corpus.read import read_corpus

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "runs" / "demo"


@pytest.mark.skipif(not (DEMO / "document" / "model").exists(), reason="no demo model: run `make demo` first")
def test_they_cost_next_to_nothing(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    from quality import measure

    corpus = DEMO / "corpus"
    test = list(read_corpus(CorpusFiles(path=str(corpus / "test.tsv"))))
    exact, int8, shortlist = measure(
        DEMO / "document" / "model",
        test,
        str(corpus / "train.tsv"),
        str(corpus / "context-words.jsonl"),
        Progress(quiet=True),
    )
    assert exact["bleu"] - int8["bleu"] <= 0.2
    assert int8["bleu"] - shortlist["bleu"] <= 0.1
    for row in (int8, shortlist):
        assert row["context_words"] == pytest.approx(exact["context_words"], abs=0.5)
