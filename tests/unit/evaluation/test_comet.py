"""COMET through another Python: a stand-in for unbabel-comet answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from docnmt.cli import main

STAND_IN = """
import json, os, sys
from types import SimpleNamespace
__version__ = "9.9"

def download_model(name):
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        sys.exit("cannot find " + name + " in the cache")
    return name

class Model:
    encoder = SimpleNamespace(tokenizer=SimpleNamespace(sep_token="</s>"))
    def __init__(self, path):
        self.path = path
    CONTEXT
    def predict(self, segments, batch_size, gpus, progress_bar):
        print("noise on standard output")
        with open(os.environ["SEEN"], "w") as file:
            json.dump(segments, file)
        return {"scores": [float(s["mt"] == s["ref"]) for s in segments]}

load_from_checkpoint = Model
"""
CONTEXT = "def enable_context(self): pass"
ROWS = [("a", "un", "one"), ("a", "deux", "two"), ("a", "trois", "three"), ("b", "quatre", "four")]


@pytest.fixture
def python(tmp_path, monkeypatch) -> Path:
    """A Python that finds the stand-in; it writes what it was asked to SEEN."""
    package = tmp_path / "stand-in" / "comet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN.replace("CONTEXT", CONTEXT))
    (package.parent / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{package.parent}" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.delenv("DOCNMT_COMET_PYTHON", raising=False)
    return script


@pytest.fixture
def evaluate(tmp_path):
    reference, mine = tmp_path / "test.tsv", tmp_path / "mine.tsv"
    (tmp_path / "model.ckpt").touch()
    reference.write_text("".join("\t".join(row) + "\n" for row in ROWS), encoding="utf-8")
    mine.write_text(reference.read_text(encoding="utf-8").replace("three", "tree"), encoding="utf-8")
    files = ("evaluate", str(mine), str(reference), "--reference", str(reference), "--metric", "bleu")

    def run(*options) -> int:
        return main([*files, "--comet", *map(str, options)])

    return run


def test_scores_come_back_for_each_system_with_a_signature(python, evaluate, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    assert evaluate("--comet-python", python, "--comet-model", tmp_path / "model.ckpt", "--json", figures) == 0
    found = json.loads(figures.read_text())
    assert [row["score"] for row in found["results"] if row["metric"] == "COMET"] == [75, 100]
    assert found["signatures"]["COMET"].endswith("model.ckpt|context:0|scale:100|unbabel-comet:9.9")
    assert found["signatures"]["COMET"] in capsys.readouterr().out.replace("\n", "")
    (first, *_) = json.loads((tmp_path / "seen.json").read_text())
    assert first == {"src": "un", "mt": "one", "ref": "one"}


def test_the_context_is_the_references_and_ends_with_the_document(python, evaluate, tmp_path):
    assert evaluate("--comet-python", python, "--comet-model", tmp_path / "model.ckpt", "--comet-context", 2) == 0
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen[2] == {
        "src": "un </s> deux </s> trois",
        "mt": "one </s> two </s> tree",
        "ref": "one </s> two </s> three",
    }
    assert seen[3]["mt"] == "four"


def test_without_it_one_line_says_how_to_get_it(python, evaluate, tmp_path, capsys):
    assert evaluate() == 2
    first, how = capsys.readouterr().err.strip().splitlines()
    assert "none was given" in first and "pip install unbabel-comet" in how
    assert evaluate("--comet-python", tmp_path / "nothing") == 2
    assert "cannot be run" in capsys.readouterr().err
    (tmp_path / "stand-in" / "comet" / "__init__.py").unlink()
    (tmp_path / "stand-in" / "comet").rmdir()
    assert evaluate("--comet-python", python) == 2
    said = capsys.readouterr().err
    assert "No module named 'comet'" in said and "pip install unbabel-comet" in said


def test_nothing_is_downloaded_without_being_asked(python, evaluate, monkeypatch, capsys):
    monkeypatch.setenv("DOCNMT_COMET_PYTHON", str(python))
    assert evaluate() == 2
    assert "--comet-download fetches it" in capsys.readouterr().err
    assert evaluate("--comet-download") == 0
    assert "model:Unbabel/wmt22-comet-da|" in capsys.readouterr().out.replace("\n", "")


def test_a_version_without_context_says_so(python, evaluate, tmp_path, capsys):
    module = tmp_path / "stand-in" / "comet" / "__init__.py"
    module.write_text(module.read_text().replace(CONTEXT, ""))
    assert evaluate("--comet-python", python, "--comet-model", tmp_path / "model.ckpt", "--comet-context", 1) == 2
    assert "does not support context" in capsys.readouterr().err
