"""Real corpora read whole and clean, where they are at hand (DOCNMT_SHARED, or ../shared beside the repository)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from docnmt.base.errors import SkipBad
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import detect_format, read_corpus

SHARED = Path(os.environ.get("DOCNMT_SHARED") or Path(__file__).parents[4] / "shared")
DATA = SHARED / "data"

# Documents and pairs as the README of the data tells them, and the bad places known to be in them.
CORPORA = {
    "debian-mix/fr-en.train.tsv": (7_880, 212_534, {}),
    "debian-mix/fr-en.dev.tsv": (96, 2_805, {}),
    "debian-mix/fr-en.test.tsv": (98, 2_990, {}),
    "debian-mix/zh-en.train.tsv": (5_317, 103_012, {"control character": 7}),
    "debian-mix/zh-en.dev.tsv": (78, 2_658, {}),
    "debian-mix/zh-en.test.tsv": (68, 1_986, {"control character": 1}),
    "ntrex/fr-en.tsv": (123, 1_997, {}),
    "ntrex/zh-en.tsv": (123, 1_997, {}),
}


@pytest.mark.parametrize("name", CORPORA)
def test_real_corpus(name: str) -> None:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{path} is not there; set DOCNMT_SHARED to the folder that holds data/")
    documents, pairs, bad = CORPORA[name]
    files = CorpusFiles(path=str(path))
    assert detect_format(files) == "tsv"
    skipped = SkipBad()
    lengths = [len(document) for document in read_corpus(files, on_bad=skipped)]
    assert skipped.counts == bad
    assert (len(lengths), sum(lengths)) == (documents, pairs - sum(bad.values()))
