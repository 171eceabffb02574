"""Several processes do what one does: training under torchrun. A translation that was stopped goes on."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

import docnmt.decoding.files as files
from docnmt.decoding.translator import Options, Translator, load
from docnmt.model.context import is_document_parameter
from tests.system.conftest import (
    Tiny,
    command,
    first_documents,
    in_two_processes,
    leftovers,
    metrics,
    outcome,
    start_docnmt,
    weights,
)

# ---- training ----


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-5, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


def assert_same_record(one: list[dict], other: list[dict]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for key in a:
            assert a[key] == (pytest.approx(b[key], rel=1e-4, abs=1e-6) if isinstance(b[key], float) else b[key]), key


@pytest.fixture(scope="module")
def alone(tiny: Tiny) -> Path:
    """One process that takes two batches an update."""
    output = tiny.folder / "alone"
    accumulation = ("sentence.accumulation=2", "document.accumulation=2", "validation.decode=true")
    done = tiny.train(output, *accumulation)
    assert done.code == 0, done.err
    return output


@pytest.fixture(scope="module")
def together(tiny: Tiny) -> Path:
    """Two processes that take one each."""
    output = tiny.folder / "together"
    done = in_two_processes(*tiny.arguments(output, "validation.decode=true"))
    assert done.code == 0, done.err
    assert done.err.count("step 1:") == 1, "the second process speaks, too"
    return output


@pytest.mark.parametrize("step", ["sentence", "document"])
def test_two_processes_are_one_with_twice_the_accumulation(alone, together, step):
    assert_close(weights(alone, step), weights(together, step))


@pytest.mark.parametrize("step", ["sentence", "document"])
def test_the_records_agree(alone, together, step):
    assert_same_record(metrics(alone, step), metrics(together, step))


def test_what_is_frozen_is_the_same_to_the_bit_under_two_processes(together):
    sentence, document = weights(together, "sentence"), weights(together, "document")
    for name, value in document.items():
        assert is_document_parameter(name) or torch.equal(value, sentence[name]), name


def test_two_processes_leave_nothing_behind(together):
    assert leftovers(together) == []


def test_one_process_goes_on_where_two_were(tiny, alone, tmp_path):
    """Processes times accumulation is what counts."""
    done = in_two_processes(*tiny.arguments(tmp_path, "validation.decode=true", "sentence.updates=7", step="sentence"))
    assert done.code == 0, done.err
    (tmp_path / "sentence" / "metrics.jsonl").unlink()
    done = tiny.train(tmp_path, "validation.decode=true", "sentence.accumulation=2", step="sentence")
    assert done.code == 0 and "continuing from update 7" in done.err
    last = weights(alone, "sentence")
    for name, value in weights(tmp_path, "sentence").items():
        torch.testing.assert_close(value, last[name], rtol=1e-3, atol=1e-4)
    assert tiny.train(tmp_path, "validation.decode=true", step="sentence").code == 2


# ---- translating ----


@pytest.fixture(scope="module")
def text(tiny: Tiny) -> Path:
    """Eight documents with empty lines of all kinds around them."""
    path = tiny.folder / "eight.fr"
    documents: dict[str, list[str]] = {}
    for line in first_documents(tiny.folder / "corpus" / "test.tsv", 8):
        name, source, _ = line.split("\t")
        documents.setdefault(name, []).append(source)
    blank = ["\n" * (1 + number % 3) for number in range(8)]
    pieces = [
        f"{gap}{''.join(f'{line}{chr(10)}' for line in d[:2])}"
        for gap, d in zip(blank, documents.values(), strict=True)
    ]
    path.write_text("".join(pieces) + "\n\n", encoding="utf-8")
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents a block."""
    monkeypatch.setattr(files, "BLOCK", 4)


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n")


@pytest.fixture(scope="module")
def expected(model: Path, text: Path) -> str:
    """All in one block, straight to standard output."""
    done = command("translate", model, text)
    assert done.code == 0, done.err
    assert done.out.count("\n") == line_count(text)
    return done.out


def test_translating_is_one_process(model, text, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = command("translate", model, text)
    assert done.code == 2 and "docnmt translate runs as one process" in done.err


class Broken(BaseException):
    pass


def test_a_stopped_translation_goes_on_with_the_missing_blocks(
    model, text, expected, tmp_path, monkeypatch, small_blocks
):
    original, calls = Translator.translate_documents, []

    def breaking(translator, documents, **options):
        calls.append(documents)
        if len(calls) == 3:
            raise Broken
        return original(translator, documents, **options)

    monkeypatch.setattr(Translator, "translate_documents", breaking)
    out = tmp_path / "out.en"
    with pytest.raises(Broken):
        command("translate", model, text, "-o", out)
    assert not out.exists()
    (parts,) = (tmp_path / "out.en.parts").iterdir()
    assert sorted(path.name for path in parts.iterdir()) == ["00000000", "00000001"]
    done = command("translate", model, text, "-o", out)
    assert done.code == 0, done.err
    count = len(list(files.CorpusWork(str(text), "", load(model), Options()).blocks()))
    assert len(calls) == 3 + count - 2, "finished blocks are translated again"
    assert out.read_text(encoding="utf-8") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out.en"]


def test_finished_blocks_of_other_work_are_not_taken(model, text, tmp_path, monkeypatch, small_blocks):
    """Other options: what lies there does not fit."""
    original, broken = Translator.translate_documents, [True]

    def breaking(translator, documents, **options):
        if broken and len(list(tmp_path.rglob("0000000*"))) == 2:
            raise Broken
        return original(translator, documents, **options)

    monkeypatch.setattr(Translator, "translate_documents", breaking)
    out = tmp_path / "out.en"
    with pytest.raises(Broken):
        command("translate", model, text, "-o", out)
    broken.clear()
    done = command("translate", model, text, "-o", out, "--context", "off", "--beam", "1")
    assert done.code == 0, done.err
    assert out.read_text(encoding="utf-8") == command("translate", model, text, "--context", "off", "--beam", "1").out
    assert [path.name for path in tmp_path.iterdir()] == ["out.en"]


def test_a_killed_translation_goes_on(model, text, tmp_path):
    """SIGKILL a process that is at its second block of many (of the real size)."""
    long = tmp_path / "long.fr"
    long.write_text(text.read_text(encoding="utf-8") * 400, encoding="utf-8")
    out = tmp_path / "out" / "long.en"
    arguments = ("translate", model, long, "-o", out, "--beam", "1")
    process = start_docnmt(*arguments)
    deadline = time.monotonic() + 100
    while process.poll() is None and not list(tmp_path.glob("out/*.parts/*/00000000")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (part,) = tmp_path.glob("out/*.parts/*/00000000")
    kept, at = part.read_text(encoding="utf-8"), part.stat().st_mtime_ns
    assert not out.exists()

    process = start_docnmt(*arguments)
    while process.poll() is None and not list(tmp_path.glob("out/*.parts/*/00000001")):
        assert not part.exists() or part.stat().st_mtime_ns == at
        time.sleep(0.01)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    translated = out.read_text(encoding="utf-8")
    assert translated.startswith(kept)
    assert translated.count("\n") == line_count(long)
    assert [path.name for path in out.parent.iterdir()] == ["long.en"]


def test_two_processes_killed_in_training_go_on(tiny, tmp_path, together):
    """torchrun itself is stopped: its processes save, and the next start ends where the undisturbed run did."""
    import subprocess
    import sys

    from tests.system.conftest import environment

    output = tmp_path / "run"
    shutil.copytree(together / "data", output / "data")
    arguments = tiny.arguments(output, "validation.decode=true")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "docnmt"]
    process = subprocess.Popen([*launcher, *arguments], env=environment(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while process.poll() is None and not list(output.glob("sentence/checkpoints/update-00000004")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.terminate()
    process.wait(timeout=100)
    done = in_two_processes(*arguments)
    assert done.code == 0, done.err
    assert outcome(output) == outcome(together)
