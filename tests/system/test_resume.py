"""A run that was stopped, however and whenever, ends as if it had never been."""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import docnmt.base.files
import docnmt.training.checkpoint
import docnmt.training.loop
import docnmt.training.two_step
from docnmt.training.checkpoint import Record
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, leftovers, metrics, outcome, start_docnmt

# ---- simulated kills, anywhere, in this process ----


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


class Killer:
    """Counts the moments of a run, before and after each thing that writes or trains, and kills it at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self.moment, self.fatal, self.names = 0, -1, []
        places = [
            (Trainer, "_update"),
            (Trainer, "_validate"),
            (Trainer, "_save"),
            (docnmt.training.checkpoint, "save_weights"),
            (docnmt.training.checkpoint, "write_card"),
            (docnmt.training.loop, "save_weights"),
            (docnmt.training.two_step, "save_model"),
            (docnmt.base.files.os, "rename"),
            (docnmt.base.files.os, "replace"),
            (docnmt.training.checkpoint.shutil, "rmtree"),
        ]
        for place, name in places:
            self._watch(patch, place, name)
        append = Record._append

        def append_half(record: Record, name: str, line: dict) -> None:
            if self.moment + 1 == self.fatal:
                with open(record.folder / name, "a", encoding="utf-8") as file:
                    file.write('{"kind": "train", "upda')
            self._tick("half a line of the record")
            append(record, name, line)

        patch.setattr(Record, "_append", append_half)

    def _watch(self, patch: pytest.MonkeyPatch, place: object, name: str) -> None:
        original = getattr(place, name)

        @functools.wraps(original)
        def watched(*arguments: object, **named: object) -> object:
            self._tick(f"before {name}")
            result = original(*arguments, **named)
            self._tick(f"after {name}")
            return result

        patch.setattr(place, name, watched)

    def _tick(self, name: str) -> None:
        self.moment += 1
        self.names.append(name)
        if self.moment == self.fatal:
            self.fatal = -1  # what is cleaned up on the way out may go through
            raise Killed(name)

    def until(self, fatal: int) -> None:
        self.moment, self.fatal, self.names = 0, fatal, []


def run_until_finished(tiny: Tiny, output: Path, killer: Killer, moments: list[int], *settings: str) -> int:
    """Trains, killed at the given moment of each part of the run; returns how many kills there were."""
    kills = 0
    for moment in [*moments, -1]:
        killer.until(moment)
        try:
            done = tiny.train(output, *settings)
        except Killed:
            kills += 1
            continue
        assert done.code == 0, done.err
        return kills
    raise AssertionError("never finished")


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(tiny, finished, tmp_path, monkeypatch, seed):
    dice = random.Random(seed)
    killer = Killer(monkeypatch)
    kills = run_until_finished(tiny, tmp_path, killer, [dice.randint(1, 130) for _ in range(8)])
    assert kills >= 2
    assert outcome(tmp_path) == outcome(finished)
    assert leftovers(tmp_path) == []


def test_killed_at_many_moments(tiny, tmp_path, monkeypatch):
    """A third of all moments of a short run, each in a run of its own: one kill, one more start."""
    settings = ("sentence.updates=5", "document.updates=5", "sentence.validate_every=2", "document.validate_every=2",
                "sentence.checkpoint_every=3", "document.checkpoint_every=3")  # fmt: skip
    whole = tmp_path / "whole"
    with monkeypatch.context() as patch:
        killer = Killer(patch)
        assert run_until_finished(tiny, whole, killer, [], *settings) == 0
        names = killer.names
    assert len(names) > 200
    moments = sorted(random.Random(1).sample(range(1, len(names) + 1), 60))
    wrong = []
    for moment in moments:
        output = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            assert run_until_finished(tiny, output, Killer(patch), [moment], *settings) == 1
        if outcome(output) != outcome(whole) or leftovers(output):
            wrong.append((moment, names[moment - 1]))
    assert wrong == []


def output_for(step: str, finished: Path, tmp_path: Path) -> Path:
    """Where the step can be trained alone: with the sentence model there already if it needs one."""
    output = tmp_path / step
    if step == "document":
        shutil.copytree(finished / "sentence", output / "sentence")
    return output


@pytest.mark.parametrize(("step", "update"), [("sentence", 1), ("sentence", 6), ("document", 5), ("document", 14)])
def test_killed_in_an_update(tiny, finished, tmp_path, monkeypatch, step, update):
    """At the first and the last, at a validation and directly after it."""
    original = Trainer._update

    def dying(trainer, state):
        if state.update == update - 1:
            raise Killed
        return original(trainer, state)

    output = output_for(step, finished, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            tiny.train(output, step=step)
    done = tiny.train(output, step=step)
    assert done.code == 0, done.err
    assert ("continuing from update" in done.err) == (update > 4)
    assert outcome(output, (step,)) == outcome(finished, (step,))


def test_each_part_says_where_it_goes_on(tiny, finished, tmp_path, monkeypatch):
    original = Trainer._update

    def dying(trainer, state):
        if state.update == 9:
            raise Killed
        return original(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            tiny.train(tmp_path, step="sentence")
    assert [line["update"] for line in metrics(tmp_path, "sentence", "train")] == [3, 6, 9]
    assert "continuing from update 8" in tiny.train(tmp_path, step="sentence").err


# ---- real kills of a process of its own ----

LONG = (  # long enough to be met in the middle, with epochs that end inside
    "sentence.updates={updates}",
    "document.updates={updates}",
    "sentence.checkpoint_every=5",
    "document.checkpoint_every=5",
    "sentence.validate_every=16",
    "document.validate_every=16",
)


def long_run(updates: int) -> tuple[str, ...]:
    return tuple(setting.format(updates=updates) for setting in LONG)


def has_begun(folder: Path, before: str) -> bool:
    """Whether training has begun (or, after a restart, gone on): there are new lines in the record."""
    record = folder / "metrics.jsonl"
    return record.exists() and record.read_text(encoding="utf-8") not in ("", before)


def wait_until_training(process: subprocess.Popen, folder: Path, before: str = "") -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and not has_begun(folder, before):
        assert time.monotonic() < deadline, "training does not begin"
        time.sleep(0.002)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def kill_until_finished(
    tiny: Tiny, output: Path, kills: int, longest: float, seed: int, settings: tuple, step: str
) -> int:
    """Starts training, kills it a random while after it has begun, starts it again; the last start is left alone."""
    dice, done = random.Random(seed), 0
    folder = output / step
    for _ in range(kills):
        before = text_of(folder / "metrics.jsonl")
        process = start_docnmt(*tiny.arguments(output, *settings, step=step))
        wait_until_training(process, folder, before)
        time.sleep(dice.uniform(0, longest))
        process.kill()
        process.communicate()
        if process.returncode == 0:
            return done
        assert process.returncode == -signal.SIGKILL
        done += 1
    process = start_docnmt(*tiny.arguments(output, *settings, step=step))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return done


@pytest.fixture(scope="module")
def whole(tiny: Tiny) -> Path:
    """A longer run that was never stopped."""
    output = tiny.folder / "whole"
    assert tiny.train(output, *long_run(60)).code == 0
    return output


def test_two_kills_of_a_process(tiny, whole, tmp_path):
    killed = kill_until_finished(tiny, tmp_path, 2, 0.1, 7, long_run(60), "sentence")
    assert killed >= 1
    assert outcome(tmp_path, ("sentence",)) == outcome(whole, ("sentence",))


def test_ten_kills_in_each_step(tiny, tmp_path):
    settings = long_run(400)
    assert tiny.train(tmp_path / "whole", *settings).code == 0
    for seed, step in enumerate(("sentence", "document")):
        killed = kill_until_finished(tiny, tmp_path / "killed", 10, 0.2, seed, settings, step)
        assert killed == 10
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    assert leftovers(tmp_path / "killed") == []


# ---- being asked to stop ----


@pytest.mark.parametrize(
    ("number", "code", "step"), [(signal.SIGINT, 130, "sentence"), (signal.SIGTERM, 143, "document")]
)
def test_asked_to_stop(tiny, whole, tmp_path, number, code, step):
    output = output_for(step, whole, tmp_path)
    arguments = tiny.arguments(output, *long_run(60), step=step)
    process = start_docnmt(*arguments)
    wait_until_training(process, output / step)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    newest = max((output / step / "checkpoints").iterdir())
    update = int(newest.name.removeprefix("update-"))
    assert 0 < update < 60
    assert f"update {update:,}" in err and "same command" in err
    assert "Traceback" not in err and not out

    done = command(*arguments)
    assert done.code == 0, done.err
    assert f"continuing from update {update:,}" in done.err
    assert outcome(output, (step,)) == outcome(whole, (step,))


def send_at(patch: pytest.MonkeyPatch, step: str, update: int, number: int) -> None:
    """This process gets a signal while it computes an update."""
    original = Trainer._update

    def signalled(trainer, state):
        if trainer.folder.name == step and state.update == update - 1:
            os.kill(os.getpid(), number)
        return original(trainer, state)

    patch.setattr(Trainer, "_update", signalled)


@pytest.mark.parametrize(("step", "update"), [("sentence", 1), ("sentence", 5), ("document", 3), ("document", 8)])
def test_stopped_at_an_update(tiny, finished, tmp_path, monkeypatch, step, update):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    output = output_for(step, finished, tmp_path)
    with monkeypatch.context() as patch:
        send_at(patch, step, update, signal.SIGINT)
        done = tiny.train(output, step=step)
    assert done.code == 130
    assert f"saved at update {update}" in done.err
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert tiny.train(output, step=step).code == 0
    assert outcome(output, (step,)) == outcome(finished, (step,))


def test_stopped_at_the_last_update_of_step_1_does_not_begin_step_2(tiny, finished, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        send_at(patch, "sentence", 14, signal.SIGINT)
        done = tiny.train(tmp_path)
    assert done.code == 130
    assert not (tmp_path / "document").exists()
    assert tiny.train(tmp_path).code == 0
    assert outcome(tmp_path) == outcome(finished)


def test_stopped_with_a_full_disk_does_not_say_saved(tiny, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        send_at(patch, "sentence", 7, signal.SIGINT)
        patch.setattr(docnmt.training.checkpoint, "save_weights", full)
        # Its first checkpoint is that of the stop: before it, training would wait for room.
        done = tiny.train(tmp_path, "sentence.checkpoint_every=100", "sentence.validate_every=100")
    assert done.code == 130
    assert "the disk is full" in done.err
    assert "saved at update 7" not in done.err
