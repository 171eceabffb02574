"""Runs shared by processes that know nothing of each other: they go by what is on disk and who holds which lock."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import docnmt.base.files as files
import docnmt.experiments.runs as runs_module
from docnmt.base.errors import DocnmtError
from docnmt.base.files import InUse, owned
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.experiments.runs import Run, status_table, train_here
from tests.cluster import stubs
from tests.cluster.stubs import STEPS, StubStore

ROOT = Path(runs_module.__file__).parents[2]


class Said(Progress):
    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text.strip())


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    monkeypatch.setattr(runs_module, "COME_BACK", 0.0)
    monkeypatch.setattr(stubs, "STEP", 0.0)


def bench(output: Path, *names: str) -> tuple[StubStore, list[Run], Said]:
    recipe, progress = Recipe(output=str(output)), Said()
    sentence = Run("sentence", recipe, "sentence")
    runs = [sentence, *(Run(name, recipe, "document", sentence) for name in names)]
    return StubStore(recipe, {}, progress), runs, progress


def test_what_is_missing_is_trained_in_order_and_then_looked_after(tmp_path):
    store, runs, progress = bench(tmp_path, "one", "two")
    done: list[str] = []
    train_here(store, runs, progress, then=lambda run: done.append(run.name))
    assert done == ["sentence", "one", "two"]
    assert progress.lines == [f"run {n} of 3: {name}, seed 1" for n, name in enumerate(done, 1)]
    train_here(store, runs, progress, then=lambda run: done.append(run.name))
    assert len(done) == 3  # finished is finished


def test_who_finds_a_run_in_use_goes_on_and_comes_back(tmp_path, monkeypatch):
    store, runs, progress = bench(tmp_path, "one", "two")
    train_here(store, runs[:1], progress)
    taken = owned(store.folder(runs[1]) / "document")
    taken.__enter__()
    waits = []

    def wait(seconds: float) -> None:
        waits.append(progress.lines[-1])
        if len(waits) == 3:
            taken.__exit__(None, None, None)

    monkeypatch.setattr(runs_module, "time", SimpleNamespace(sleep=wait))
    trained: list[str] = []
    train_here(store, runs, progress, then=lambda run: trained.append(run.name))
    assert trained == ["two", "one"]
    assert len(waits) == 3 and waits[0].startswith("one: waiting for process ")
    assert progress.lines.count(waits[0]) == 1  # told once, not every few seconds


def test_what_builds_on_a_run_that_another_trains_waits_for_it(tmp_path, monkeypatch):
    store, runs, progress = bench(tmp_path, "one")
    other = owned(store.folder(runs[0]) / "sentence")
    other.__enter__()

    def wait(seconds: float) -> None:
        other.__exit__(None, None, None)
        (store.folder(runs[0])).mkdir(exist_ok=True)
        (store.folder(runs[0]) / "steps").write_text("elsewhere\n" * STEPS)

    monkeypatch.setattr(runs_module, "time", SimpleNamespace(sleep=wait))
    trained: list[str] = []
    train_here(store, runs, progress, then=lambda run: trained.append(run.name))
    assert trained == ["one"]


def test_somebody_who_is_faster_by_a_moment_does_no_harm(tmp_path, monkeypatch):
    store, runs, progress = bench(tmp_path)
    tries = []

    def train(run: Run) -> None:
        tries.append(run)
        if len(tries) == 1:
            raise InUse(Path("x"), None)
        store.train(run)

    train_here(store, runs, progress, train)
    assert len(tries) == 2 and store.status(runs[0]).finished


def test_other_seeds_wait_for_the_recipes_own_sentence_step(tmp_path):
    store, runs, progress = bench(tmp_path)
    other = replace(runs[0], recipe=replace(runs[0].recipe, seed=2))
    assert store.needs(other) == [runs[0]] and store.needs(runs[0]) == []
    trained: list[int] = []
    train_here(store, [other, runs[0]], progress, then=lambda run: trained.append(run.recipe.seed))
    assert trained == [1, 2]


def test_what_cannot_be_trained_stops_it(tmp_path):
    store, runs, progress = bench(tmp_path, "broken", "one")
    with pytest.raises(DocnmtError, match="not finite"):
        train_here(store, runs, progress)


WORKER = """\
import sys
from pathlib import Path
from types import SimpleNamespace
import docnmt.experiments.runs as runs_module
runs_module.COME_BACK = 0.05
from tests.unit.experiments.test_train_here import bench
store, runs, progress = bench(Path(sys.argv[1]), *"abcdef")
runs_module.train_here(store, runs, progress)
"""


@pytest.mark.slow
def test_the_same_command_twice_shares_the_work(tmp_path):
    both = [subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], cwd=ROOT) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    store, runs, _ = bench(tmp_path, *"abcdef")
    makers = {run.name: store.steps(run) for run in runs}
    assert all(len(steps) == STEPS and len(set(steps)) == 1 for steps in makers.values())
    assert len({steps[0] for steps in makers.values()}) == 2, "one of them did it all"


def test_the_status_tells_who_does_what(tmp_path):
    store, runs, progress = bench(tmp_path, "one", "two")
    assert [row[-1] for row in status_table(store, runs).rows] == [
        "nobody",
        "waiting for sentence",
        "waiting for sentence",
    ]
    train_here(store, runs[:2], progress)
    (store.folder(runs[2])).mkdir()
    (store.folder(runs[2]) / "steps").write_text("x\nx\n")
    with owned(store.folder(runs[2]) / "document"):
        rows = status_table(store, runs).rows
    assert [row[4] for row in rows] == ["all", "all", "2"]
    assert rows[1][-1] == "finished" and rows[2][-1].startswith("process ")
    assert status_table(store, runs).rows[2][-1] == "nobody"
