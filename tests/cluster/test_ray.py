"""Runs and files shared out by Ray: machines, processes and commands killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
import ray
from ray.cluster_utils import Cluster

import docnmt.base.cluster
from docnmt.base.cluster import Need, connect
from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.experiments.ray_pool import Places, train_on
from docnmt.experiments.runs import Run
from tests.cluster.stubs import STEPS, StubStore

ROOT = Path(__file__).parents[2]
SMALL = {"object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head without cores, and machines of one core each, which tests add and take away."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **SMALL})
    made.add_node(num_cpus=1, **SMALL)
    made.add_node(num_cpus=1, **SMALL)
    connect(made.address)
    yield made
    ray.shutdown()
    made.shutdown()


class Said(Progress):
    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


class Bench:
    """A sentence step, and document steps that build on it."""

    def __init__(self, output: Path, *names: str):
        self.recipe, self.progress = Recipe(output=str(output)), Said()
        self.store = StubStore(self.recipe, {}, self.progress)
        sentence = Run("sentence", self.recipe, "sentence")
        self.runs = [sentence, *(Run(name, self.recipe, "document", sentence) for name in names)]

    def train(self, cluster: Cluster, processes: int = 1) -> None:
        train_on(cluster.address, self.store, self.runs, Places(Need(1), processes), self.progress)

    def makers(self, name: str) -> list[str]:
        """The process of each step, in their order."""
        (run,) = (run for run in self.runs if run.name == name)
        return self.store.steps(run)

    def check(self) -> None:
        """Every step of every run was made once."""
        assert {run.name: len(self.store.steps(run)) for run in self.runs} == {run.name: STEPS for run in self.runs}


@contextmanager
def once(condition: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Does something as soon as a condition holds, while the test goes on."""

    def watch() -> None:
        deadline = time.monotonic() + 120
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = Thread(target=watch)
    thread.start()
    yield
    thread.join()


def process_of(maker: str) -> int:
    return int(maker.rpartition(":")[2])


def test_a_killed_process_and_a_killed_machine_lose_nothing(cluster, tmp_path):
    bench = Bench(tmp_path, "one", "two")

    def begun(name: str, steps: int) -> bool:
        return len(bench.makers(name)) >= steps

    def kill_process() -> None:
        os.kill(process_of(bench.makers("sentence")[-1]), signal.SIGKILL)

    def kill_machine() -> None:
        """The one on which a document step runs, without grace: its raylet, and so all that is on it."""
        worker = process_of(bench.makers("one")[-1])
        raylet = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(raylet, signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)

    with once(lambda: begun("sentence", 3), kill_process), once(lambda: begun("one", 3), kill_machine):
        bench.train(cluster)
    bench.check()
    assert len(set(bench.makers("sentence"))) == 2 and len(set(bench.makers("one"))) == 2
    assert bench.progress.lines[-1].endswith("finished (3 of 3)")
    cluster.add_node(num_cpus=1, **SMALL)


DRIVER = """\
import sys
from pathlib import Path
from docnmt.base.cluster import Need
from docnmt.experiments.ray_pool import Places, train_on
from tests.cluster.test_ray import Bench
bench = Bench(Path(sys.argv[2]), "one")
train_on(sys.argv[1], bench.store, bench.runs, Places(Need(1)), bench.progress)
"""


def test_a_killed_command_and_two_at_once_train_nothing_twice(cluster, tmp_path):
    bench = Bench(tmp_path, "one")

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DRIVER, cluster.address, str(tmp_path)]
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

    first = start()
    while len(bench.makers("sentence")) < 3:
        time.sleep(0.02)
        assert first.poll() is None
    first.kill()
    first.wait()
    second = start()  # and this process, at the same time
    bench.train(cluster)
    assert second.wait(60) == 0
    bench.check()
    assert len(set(bench.makers("sentence"))) == 2


def test_a_run_in_several_processes_begins_again_with_all_of_them(cluster, tmp_path):
    bench = Bench(tmp_path)
    second = tmp_path / "sentence-1" / "rank-1"
    with once(lambda: len(bench.makers("sentence")) >= 3, lambda: os.kill(int(second.read_text()), signal.SIGKILL)):
        bench.train(cluster, processes=2)
    bench.check()
    assert len(set(bench.makers("sentence"))) == 2  # rank 0 was lost with rank 1


def test_what_fails_does_not_keep_the_others_and_is_told_at_the_end(cluster, tmp_path):
    bench = Bench(tmp_path, "broken", "one")
    with pytest.raises(DocnmtError, match="1 of 3 runs failed: broken\n  broken: the gradient is not finite"):
        bench.train(cluster)
    assert len(bench.makers("one")) == STEPS
    bench.runs = [run for run in bench.runs if run.name != "broken"]
    bench.train(cluster)
    assert bench.progress.lines[-1] == "0 of 2 runs to train, with 1 core per process"


def test_who_waits_for_a_machine_is_told(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(docnmt.base.cluster, "LOOK_AFTER", 0.5)
    bench = Bench(tmp_path)
    task = ray.remote(num_cpus=3)(lambda: None)
    waiting = docnmt.base.cluster.as_they_finish({task.remote(): "x"}, Need(3), bench.progress.say)
    monkeypatch.setattr(ray, "wait", lambda references, timeout: (references, []) if bench.progress.lines else ([], []))
    assert next(waiting)[0] == "x"
    assert bench.progress.lines == ["waiting: none of the cluster's 3 machines has 3 cores"]


def test_a_cluster_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(DocnmtError, match=r"--on 127.0.0.1:1: no Ray cluster answers .*\n.*ray start --head"):
        connect("127.0.0.1:1")
