"""Damaged checkpoints, full disks, changed settings, and what lies in a run's folder."""

from __future__ import annotations

import errno
import json
import shutil
import signal
from pathlib import Path

import pytest
from safetensors import SafetensorError

import docnmt.model_folder
import docnmt.training.checkpoint
import docnmt.training.loop
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, leftovers, metrics, outcome
from tests.system.test_resume import Killed, send_at


@pytest.fixture
def broken_off(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sentence step that was killed in update 10: checkpoints at 5 (a validation) and 8."""
    original = Trainer._update

    def dying(trainer, state):
        if state.update == 9:
            raise Killed
        return original(trainer, state)

    output = tmp_path / "output"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            tiny.train(output, step="sentence")
    assert names(output) == ["update-00000005", "update-00000008"]
    return output


def names(output: Path) -> list[str]:
    return sorted(path.name for path in (output / "sentence" / "checkpoints").iterdir())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil(path: Path) -> None:
    """The same size, but not what was written."""
    path.write_bytes(bytes(path.stat().st_size))


# ---- damage ----


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("weights.safetensors", cut),
        ("state.json", cut),
        ("optimizer.safetensors", Path.unlink),
        ("state.json", Path.unlink),
        ("weights.safetensors", spoil),
        ("optimizer.safetensors", spoil),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_taken(tiny, finished, broken_off, file, damage):
    last = broken_off / "sentence" / "checkpoints" / "update-00000008"
    damage(last / file)
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0, done.err
    assert f"{last} is damaged" in done.message
    assert "going on from update 5" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))
    assert leftovers(broken_off) == []


@pytest.mark.parametrize("file", ["weights.safetensors", "state.json"])
def test_a_damaged_checkpoint_does_not_stand_in_the_way_of_new_ones(tiny, finished, broken_off, monkeypatch, file):
    """Saved at an update before the damaged one's: stopped by a signal there, or with another checkpoint_every."""
    cut(broken_off / "sentence" / "checkpoints" / "update-00000008" / file)
    with monkeypatch.context() as patch:
        send_at(patch, "sentence", 7, signal.SIGTERM)
        done = tiny.train(broken_off, "sentence.checkpoint_every=6", step="sentence")
    assert done.code == 143, done.err
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0, done.err
    assert "going on from update 7" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


def test_all_checkpoints_damaged_starts_nothing_over(tiny, broken_off):
    record = (broken_off / "sentence" / "metrics.jsonl").read_bytes()
    for folder in (broken_off / "sentence" / "checkpoints").iterdir():
        cut(folder / "weights.safetensors")
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 2 and "no checkpoint can be read" in done.err
    assert done.err.count("is damaged") == 2
    assert (broken_off / "sentence" / "metrics.jsonl").read_bytes() == record


def test_an_unwritten_checkpoint_of_a_killed_run_is_not_taken_for_one_and_is_cleared_away(tiny, finished, broken_off):
    """What SIGKILL leaves in the middle of writing: a folder under its temporary name."""
    checkpoints = broken_off / "sentence" / "checkpoints"
    shutil.copytree(checkpoints / "update-00000008", checkpoints / ".update-00000009.4194000.part")
    cut(checkpoints / ".update-00000009.4194000.part" / "weights.safetensors")
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0 and "going on from update 8" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))
    assert leftovers(broken_off) == []


# ---- full disks ----


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("I/O error: No space left on device")]
)
def test_a_full_disk_keeps_the_checkpoint_before_and_training_goes_on(tiny, finished, tmp_path, monkeypatch, error):
    whole = docnmt.training.checkpoint.save_weights
    calls = []

    def full(path: Path, weights: dict) -> None:
        calls.append(path)
        if 3 <= len(calls) <= 6:  # two files a checkpoint: the second checkpoint and the ones after it
            path.write_bytes(b"half")
            raise error
        whole(path, weights)

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.checkpoint, "save_weights", full)
        done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0, done.err
    assert done.err.count("could not save a checkpoint") == 4
    assert "No space left on device" in done.err
    assert "the one of update-00000004 stays" in done.message
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))
    assert leftovers(tmp_path) == []


def test_the_checkpoint_before_a_full_disk_is_usable(tiny, finished, tmp_path, monkeypatch):
    whole, original = docnmt.training.checkpoint.save_weights, Trainer._update

    def full(path: Path, weights: dict) -> None:
        if "update-00000004" not in path.parent.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, weights)

    def dying(trainer, state):
        if state.update == 12:
            raise Killed
        return original(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.checkpoint, "save_weights", full)
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            tiny.train(tmp_path, step="sentence")
    assert names(tmp_path) == ["update-00000004"]
    done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0 and "going on from update 4" in done.err
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


def test_a_disk_that_is_full_from_the_start(tiny, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.checkpoint, "save_weights", full)
        done = tiny.train(tmp_path, "data.dev=[]", step="sentence")
    assert done.code == 0
    assert "there is none before it" in done.message


def test_a_disk_that_is_full_while_the_best_weights_are_kept_loses_nothing(tiny, finished, tmp_path, monkeypatch):
    """No traceback: training goes on, or stops with a message; the next run ends as if nothing had been."""
    whole = docnmt.training.loop.save_weights

    def full(path: Path, weights: dict) -> None:
        if "update-00000010" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, weights)

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.loop, "save_weights", full)
        done = tiny.train(tmp_path, step="sentence")
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    if done.code != 0:
        assert done.code == 2
        assert tiny.train(tmp_path, step="sentence").code == 0
        assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


def test_a_disk_that_is_full_when_the_model_is_saved_is_a_message(tiny, finished, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.model_folder, "save_weights", full)
        done = tiny.train(tmp_path, step="sentence")
    assert done.code == 2
    assert "No space left on device" in done.err and str(tmp_path / "sentence" / "model") in done.message
    assert tiny.train(tmp_path, step="sentence").code == 0
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


# ---- resuming under other settings ----


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("seed=9", "seed"),
        ("sentence.batch_tokens=3000", "batch_tokens"),
        ("sentence.accumulation=2", "accumulation"),
        ("sentence.learning_rate=2.0", "learning_rate"),
        ("sentence.warmup=7", "warmup"),
        ("sentence.smoothing=0.2", "smoothing"),
        ("sentence.average=3", "average"),
        ("model.dropout=0.2", "model.dropout"),
        ("model.width=32", "model.width"),
        ("model.encoder_layers=2", "model.encoder_layers"),
        ("model.tie=none", "model.tie"),
        ("subwords.source_model=", "data"),
    ],
)
def test_a_changed_setting_is_named(tiny, broken_off, setting, named):
    settings = [setting, "subwords.target_model="] if setting == "subwords.source_model=" else [setting]
    if named == "data":
        settings.append("subwords.vocabulary=420")
    kept = {path: path.read_bytes() for path in (broken_off / "sentence").rglob("*") if path.is_file()}
    done = tiny.train(broken_off, *settings, step="sentence")
    assert done.code == 2
    assert "other settings" in done.err and named in done.err
    assert str(broken_off / "sentence") in done.message
    assert {path: path.read_bytes() for path in (broken_off / "sentence").rglob("*") if path.is_file()} == kept


@pytest.mark.parametrize("setting", ["document.freeze=false", "context.integration=encoder", "context.previous=1"])
def test_a_changed_setting_of_step_2_is_named(tiny, finished, tmp_path, setting):
    output = tmp_path / "output"
    shutil.copytree(finished, output)
    done = tiny.train(output, setting, step="document")
    assert done.code == 2
    assert "other settings" in done.err
    assert setting.partition("=")[0].partition(".")[2] in done.err


def test_another_sentence_model_under_a_begun_step_2_is_noticed(tiny, finished, tmp_path):
    output = tmp_path / "output"
    shutil.copytree(finished, output)
    shutil.rmtree(output / "sentence")
    assert tiny.train(output, "sentence.updates=3", step="sentence").code == 0
    done = tiny.train(output, step="document")
    assert done.code == 2 and "start_from_sha256" in done.err


@pytest.mark.parametrize("setting", ["sentence.checkpoint_every=3", "sentence.patience=50"])
def test_settings_that_may_change_change_nothing(tiny, finished, broken_off, setting):
    assert tiny.train(broken_off, setting, step="sentence").code == 0
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


def test_a_moved_run_goes_on(tiny, finished, broken_off, tmp_path):
    """Nothing in a run's folder says where it lies."""
    moved = tmp_path / "elsewhere"
    broken_off.rename(moved)
    done = tiny.train(moved, step="sentence")
    assert done.code == 0 and "going on from update 8" in done.err
    assert outcome(moved, ("sentence",)) == outcome(finished, ("sentence",))


# ---- what lies there ----


def test_nothing_in_a_run_could_run_code_and_nothing_is_left_over(finished):
    store = {"documents.ends", "documents.ids", "source.ends", "source.tokens", "target.ends", "target.tokens"}
    for path in finished.rglob("*"):
        if path.is_file():
            assert path.suffix in (".safetensors", ".json", ".jsonl", ".spm", ".lock") or path.name in store, path
            assert path.read_bytes()[:2] not in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05"), f"{path} is a pickle"
    assert leftovers(finished) == []


def test_two_checkpoints_are_kept_and_the_best_they_need(finished):
    for step in ("sentence", "document"):
        folders = sorted((finished / step / "checkpoints").iterdir())
        assert [folder.name for folder in folders] == ["update-00000012", "update-00000014"]
        needed = set()
        for folder in folders:
            state = json.loads((folder / "state.json").read_text())
            assert state["files"].keys() == {"weights.safetensors", "optimizer.safetensors"}
            needed |= {f"update-{update:08d}" for _, update in state["best"]}
        assert {folder.name for folder in (finished / step / "best").iterdir()} == needed


def test_a_checkpoint_of_step_2_holds_theta_d_alone(finished):
    from safetensors.torch import load_file

    from docnmt.model.context import is_document_parameter

    for file in finished.glob("document/checkpoints/*/weights.safetensors"):
        assert all(map(is_document_parameter, load_file(file)))


def test_every_line_of_the_record_is_there_once(finished):
    for step in ("sentence", "document"):
        keys = [(line["kind"], line["update"]) for line in metrics(finished, step)]
        assert len(keys) == len(set(keys))
