"""Damaged checkpoints, full disks, changed settings, and what lies in a run's folder."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
import signal
from pathlib import Path

import pytest
from safetensors import SafetensorError

import docnmt.model_folder
import docnmt.training.checkpoint
import docnmt.training.loop
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, leftovers, metrics, outcome
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


def count(path: Path) -> None:
    """One digit, of where in the data training goes on."""
    path.write_bytes(re.sub(rb'"index": \d', rb'"index": 9', path.read_bytes()))


def flip(path: Path) -> None:
    """One bit, near the end: in the numbers, which all look alike."""
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


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
        ("weights.safetensors", flip),
        ("optimizer.safetensors", flip),
        ("state.json", count),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_taken(tiny, finished, broken_off, file, damage):
    last = broken_off / "sentence" / "checkpoints" / "update-00000008"
    damage(last / file)
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0, done.err
    assert f"{last} is damaged" in done.message
    assert "continuing from update 5" in done.err
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
    assert "continuing from update 7" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


def test_all_checkpoints_damaged_starts_nothing_over_however_often_it_is_tried(tiny, finished, broken_off):
    record = (broken_off / "sentence" / "metrics.jsonl").read_bytes()
    for folder in (broken_off / "sentence" / "checkpoints").iterdir():
        cut(folder / "weights.safetensors")
    for attempt in range(2):
        done = tiny.train(broken_off, step="sentence")
        assert done.code == 2 and "no checkpoint can be read; 2 are damaged" in done.err
        assert "--from-scratch" in done.err
        assert done.err.count("is damaged") == (2 if attempt == 0 else 0)
        assert (broken_off / "sentence" / "metrics.jsonl").read_bytes() == record
    done = command(*tiny.arguments(broken_off, step="sentence"), "--from-scratch")
    assert done.code == 0 and "continuing" not in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


@pytest.mark.parametrize("model", [True, False])
def test_checkpoints_that_are_gone_start_nothing_over(tiny, finished, tmp_path, model):
    folder = tmp_path / "output"
    shutil.copytree(finished, folder)
    shutil.rmtree(folder / "sentence" / "checkpoints")
    if not model:  # then the record tells
        shutil.rmtree(folder / "sentence" / "model")
    record = (folder / "sentence" / "metrics.jsonl").read_bytes()
    done = tiny.train(folder, step="sentence")
    assert done.code == 2 and "its checkpoints are gone" in done.err and "--from-scratch" in done.err
    assert (folder / "sentence" / "metrics.jsonl").read_bytes() == record
    assert (folder / "sentence" / "model").exists() == model


def test_from_scratch_starts_a_finished_run_again(tiny, finished, tmp_path):
    output = tmp_path / "output"
    shutil.copytree(finished, output)
    before = (output / "sentence" / "model" / "weights.safetensors").read_bytes()
    done = command(*tiny.arguments(output, "seed=4", step="sentence"), "--from-scratch")
    assert done.code == 0, done.err
    assert (output / "sentence" / "model" / "weights.safetensors").read_bytes() != before


def test_what_somebody_else_put_there_is_left_alone(tiny, finished, broken_off):
    strange = [broken_off / "sentence" / inside / "update-old" for inside in ("best", "checkpoints")]
    for folder in strange:
        folder.mkdir()
    with open(broken_off / "sentence" / "metrics.jsonl", "ab") as record:
        record.write(b'[1, 2]\n{"kind": "train"}\n' + b"[" * 100_000 + b"\n")
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0, done.err
    for folder in strange:
        folder.rmdir()
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_best_weights_that_changed_on_disk_do_not_become_the_model(tiny, broken_off, damage):
    """And that is told before any update is made, not after the last."""
    for folder in (broken_off / "sentence" / "best").iterdir():
        damage(folder / "weights.safetensors")
    record = (broken_off / "sentence" / "metrics.jsonl").read_bytes()
    done = tiny.train(broken_off, "sentence.updates=9", step="sentence")
    assert done.code == 2 and "damaged" in done.err and str(broken_off / "sentence" / "best") in done.message
    assert not (broken_off / "sentence" / "model").exists()
    assert (broken_off / "sentence" / "metrics.jsonl").read_bytes() == record


def test_a_checkpoint_of_an_older_docnmt_knows_sizes_alone(tiny, finished, broken_off):
    for folder in (broken_off / "sentence" / "checkpoints").iterdir():
        state = json.loads((folder / "state.json").read_text())
        state["files"] = {file.name: file.stat().st_size for file in folder.glob("*.safetensors")}
        (folder / "state.json").write_text(json.dumps(state))
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0 and "continuing from update 8" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))


def test_an_unwritten_checkpoint_of_a_killed_run_is_not_taken_for_one_and_is_cleared_away(tiny, finished, broken_off):
    """What SIGKILL leaves in the middle of writing: a folder under its temporary name."""
    checkpoints = broken_off / "sentence" / "checkpoints"
    shutil.copytree(checkpoints / "update-00000008", checkpoints / ".update-00000009.4194000.part")
    cut(checkpoints / ".update-00000009.4194000.part" / "weights.safetensors")
    done = tiny.train(broken_off, step="sentence")
    assert done.code == 0 and "continuing from update 8" in done.err
    assert outcome(broken_off, ("sentence",)) == outcome(finished, ("sentence",))
    assert leftovers(broken_off) == []


# ---- full disks ----

FULL = [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("I/O error: No space left on device")]


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """How long training waits for room each time, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr(docnmt.training.checkpoint.time, "sleep", waited.append)
    return waited


def full_for(times: int, error: Exception, write):
    """What writes, on a disk that is full so many times after the first."""
    calls = []

    def full(path: Path, *values: object) -> None:
        calls.append(path)
        if 2 <= len(calls) <= 1 + times:
            path.write_bytes(b"half")
            raise error
        write(path, *values)

    return full


@pytest.mark.parametrize("error", FULL)
@pytest.mark.parametrize(
    ("module", "name", "waiting"),
    [
        (docnmt.training.checkpoint, "save_weights", "checkpoints/update-0000000"),
        (docnmt.training.loop, "save_weights", "best/update-0000001"),
    ],
)
def test_a_full_disk_is_waited_for(tiny, finished, tmp_path, monkeypatch, waits, error, module, name, waiting):
    monkeypatch.setattr(module, name, full_for(4, error, getattr(module, name)))
    done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0, done.err
    assert len(waits) == 4
    assert done.err.count("the disk is full") == 1 and waiting in done.err
    assert done.err.count("the disk has space again") == 1
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))
    assert leftovers(tmp_path) == []


def test_so_it_is_when_the_model_is_saved(tiny, finished, tmp_path, monkeypatch, waits):
    whole, calls = docnmt.model_folder.save_weights, []

    def full(path: Path, weights: dict) -> None:
        calls.append(path)
        if len(calls) < 4:
            raise FULL[1]
        whole(path, weights)

    monkeypatch.setattr(docnmt.model_folder, "save_weights", full)
    done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0 and len(waits) == 3
    assert f"{tmp_path / 'sentence' / 'model'}: the disk is full" in done.message
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


def test_and_when_a_line_is_added_to_the_record(tiny, finished, tmp_path, monkeypatch, waits):
    class HalfFull(io.TextIOWrapper):
        """Takes half a line, then finds that there is no room."""

        def write(self, text: str) -> int:
            super().write(text[: len(text) // 2])
            self.flush()
            raise FULL[0]

    left = [2]

    def opened(path, mode="r", **settings):
        if mode == "a" and Path(path).name == "metrics.jsonl" and left[0]:
            left[0] -= 1
            return HalfFull(open(path, "ab"), encoding="utf-8")
        return open(path, mode, **settings)

    monkeypatch.setattr(docnmt.training.checkpoint, "open", opened, raising=False)
    done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0, done.err
    assert len(waits) == 2 and "metrics.jsonl: the disk is full" in done.err
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


def test_a_run_that_waits_can_be_stopped_and_goes_on_later(tiny, finished, tmp_path, monkeypatch):
    whole = docnmt.training.checkpoint.save_weights

    def full(path: Path, weights: dict) -> None:
        if "update-00000004" not in path.parent.name:
            raise FULL[0]
        whole(path, weights)

    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.checkpoint, "save_weights", full)
        patch.setattr(docnmt.training.checkpoint.time, "sleep", lambda _: signal.raise_signal(signal.SIGTERM))
        done = tiny.train(tmp_path, step="sentence")
    assert done.code == 143 and "stopped, but could not save" in done.err
    assert names(tmp_path) == ["update-00000004"]
    done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0 and "continuing from update 4" in done.err
    assert outcome(tmp_path, ("sentence",)) == outcome(finished, ("sentence",))


def test_a_disk_that_fails_otherwise_keeps_the_checkpoint_before_and_training_goes_on(
    tiny, finished, tmp_path, monkeypatch
):
    broken = OSError(errno.EIO, "Input/output error")
    patched = full_for(3, broken, docnmt.training.checkpoint.save_weights)
    with monkeypatch.context() as patch:
        patch.setattr(docnmt.training.checkpoint, "save_weights", patched)
        done = tiny.train(tmp_path, step="sentence")
    assert done.code == 0, done.err
    assert "could not save a checkpoint" in done.err and "Input/output error" in done.err
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
    assert done.code == 0 and "continuing from update 8" in done.err
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
            assert state["files"].keys() == {"weights.safetensors", "optimizer.safetensors", "state.json"}
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
