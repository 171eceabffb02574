"""The trainings of a table one after another, and as Ray tasks on two nodes of one core each: the same weights, to the
byte, and how much sooner.

    python benchmarks/cluster.py [--updates 150] [--kill]

With --kill a training's process is killed on the way, once in each run that builds on the sentence model.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from docnmt.base.cluster import Need, connect
from docnmt.base.files import owner_of
from docnmt.base.progress import Progress
from docnmt.config import Recipe, from_table
from docnmt.demo import write_demo_corpus
from docnmt.experiments.job import Lab, make_experiment, open_lab, runs_of
from docnmt.experiments.ray_pool import Places, train_on
from docnmt.experiments.runs import train_here

TABLES = ("gating",)  # a sentence step, and four document steps that build on it


def recipe_for(folder: Path, output: str, updates: int) -> Recipe:
    step = {"updates": updates, "batch_tokens": 3000, "warmup": 100, "validate_every": 50, "checkpoint_every": 25}
    table = {
        "seed": 1,
        "output": str(folder / output),
        "data": {
            "source_language": "fr",
            "target_language": "en",
            "documents": str(folder / "corpus" / "train.tsv"),
            "dev": str(folder / "corpus" / "dev.tsv"),
            "test": str(folder / "corpus" / "test.tsv"),
        },
        "subwords": {"vocabulary": 600},
        "model": {"width": 96, "filter_width": 192, "heads": 4, "encoder_layers": 2, "decoder_layers": 2},
        "sentence": {**step, "updates": max(1, updates // 3)},
        "document": step,
        "validation": {"decode": False},
        "hardware": {"device": "cpu", "threads": 1},
    }
    return from_table(Recipe, table, "cluster.py")


def lab_for(recipe: Recipe) -> Lab:
    return open_lab(make_experiment(recipe, TABLES), Progress(quiet=True))


def hashes(lab: Lab) -> dict[str, str]:
    """Of the weights and the record of every run."""
    found = {}
    for run in runs_of(lab.experiment):
        for path in (lab.store.model(run) / "weights.safetensors", lab.store.model(run).parent / "metrics.jsonl"):
            found[f"{run.name}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def kill_each_once(lab: Lab, until: threading.Event, killed: list[str]) -> None:
    """The process of each document step, once it has a checkpoint."""
    runs = [run for run in runs_of(lab.experiment) if run.step == "document"]
    while not until.wait(0.1):
        for run in runs:
            folder = lab.store.folder(run) / run.step
            if run.name not in killed and list((folder / "checkpoints").glob("update-*")) and (who := owner_of(folder)):
                os.kill(who.pid, signal.SIGKILL)
                killed.append(run.name)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=150, help="of a document step; a third of it before")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_demo_corpus(folder / "corpus", 300, seed=1)
        alone = lab_for(recipe_for(folder, "alone", options.updates))
        started = time.monotonic()
        train_here(alone.store, runs_of(alone.experiment), alone.progress)
        sequential = time.monotonic() - started
        print(f"one after another: {len(runs_of(alone.experiment))} runs in {sequential:.1f} s", flush=True)

        small = {"object_store_memory": 80 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
        for _ in range(2):
            cluster.add_node(num_cpus=1, **small)
        connect(cluster.address)
        shared = lab_for(replace(alone.experiment.recipe, output=str(folder / "shared")))
        done, killed = threading.Event(), []
        watch = threading.Thread(target=kill_each_once, args=(shared, done, killed), daemon=True)
        if options.kill:
            watch.start()
        started = time.monotonic()
        train_on(cluster.address, shared.store, runs_of(shared.experiment), Places(Need(1)), shared.progress)
        seconds = time.monotonic() - started
        done.set()
        same = hashes(alone) == hashes(shared)
        print(f"two nodes of one core: {seconds:.1f} s, {sequential / seconds:.2f} times as fast; killed: {killed}")
        print(f"{len(hashes(alone))} files compared: {'the same, to the byte' if same else 'DIFFERENT'}")
        if not same:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
