"""`docnmt quantize` from the command line: a small model folder that the other verbs take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.conftest import Tiny, command, environment


@pytest.fixture(scope="module")
def quantized(models: dict[str, Path], tmp_path_factory) -> dict[str, Path]:
    made = {}
    for name, folder in models.items():
        made[name] = tmp_path_factory.mktemp("quantized") / name
        done = command("quantize", folder, "-o", made[name])
        assert done.code == 0, done.err
        assert done.lines[0] == f"int8 model: {made[name]}"
        assert "decoder source attention" in done.out and "the whole folder" in done.out
        assert ("context gate" in done.out) == (name == "document")
    return made


def test_beside_the_model_where_nothing_else_is_said(models, tmp_path, monkeypatch):
    shutil.copytree(models["document"], tmp_path / "model")
    done = command("quantize", f"{tmp_path / 'model'}{os.sep}", "--json", tmp_path / "out" / "sizes.json")
    assert done.code == 0, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model-int8", "out"]
    found = json.loads((tmp_path / "out" / "sizes.json").read_text())
    assert found["int8"] == str(tmp_path / "model-int8")
    assert found["bytes_after"] < found["bytes_before"]
    assert all(kind["bytes_after"] < kind["bytes_before"] / 2 for kind in found["kinds"])
    monkeypatch.chdir(tmp_path / "model")
    assert command("quantize", ".").lines[0] == f"int8 model: {tmp_path / 'model-int8'}"


@pytest.mark.parametrize("name", ["sentence", "document"])
def test_other_verbs_take_it(tiny: Tiny, quantized, tmp_path, name):
    lines = (tiny.folder / "corpus" / "small-dev.tsv").read_text(encoding="utf-8").splitlines()
    test = tmp_path / "test.tsv"
    test.write_text("\n".join(lines[:12]) + "\n", encoding="utf-8")
    done = command("translate", quantized[name], test, "-o", tmp_path / "out.en")
    assert done.code == 0, done.err
    assert len((tmp_path / "out.en").read_text(encoding="utf-8").split("\n")) >= 12
    done = command("score", quantized[name], test)
    assert done.code == 0, done.err
    assert len(done.lines) >= 12


def test_errors_are_said_without_a_traceback(models, quantized, tmp_path):
    for arguments, message in (
        ((quantized["document"],), "is already int8"),
        ((models["document"], "-o", models["sentence"]), "already exists and is not an int8 model"),
        ((tmp_path / "nowhere",), "not a model folder"),
        ((models["document"], "-o", tmp_path / "out", "--json", tmp_path), "is a folder, not a file"),
    ):
        done = command("quantize", *arguments)
        assert done.code == 2 and message in done.message and "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_training_does_not_go_on_from_int8(tiny: Tiny, quantized, tmp_path):
    done = tiny.train(tmp_path / "run", f"document.start_from={quantized['sentence']}")
    assert done.code == 2
    assert f"{quantized['sentence']}: this is an int8 model" in done.message
    assert "document.start_from" in done.message
    assert not (tmp_path / "run").exists()


def test_loading_does_not_import_torchs_compiler(quantized):
    """That would take longer than the loading itself."""
    code = (
        "import sys; from docnmt.model_folder import load_model; load_model(sys.argv[1]);"
        "print(sorted({'torch._dynamo', 'sympy'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(quantized["document"])], env=environment(), text=True, capture_output=True
    )
    assert done.stdout == "[]\n", done.stderr
