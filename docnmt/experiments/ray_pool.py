"""Runs trained as Ray tasks, on whatever machines there are; imported only for --on.

The state is on disk: a task checks how far its run is, as `docnmt tables` does in one process, and continues from the
last checkpoint. So a task that Ray restarts, because its machine or its process was killed, loses only what came after
that checkpoint; and it waits for a run that another process trains, as its folder is locked.

A run in several processes is a gang: one task per rank, all in a placement group, with the variables torchrun would
set. (torchrun itself, as a child of a task, would outlive it.)
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.placement_group import get_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from docnmt.base.cluster import Need, as_they_finish, cause, connect, gpus_there
from docnmt.base.errors import DocnmtError, Interrupted
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.experiments.runs import Run, RunStore, train_here
from docnmt.experiments.scores import Translations, as_trained, parts_of
from docnmt.recipes import resolve_paths
from docnmt.training.parallel import leave_group

GANG_ENDS = 30.0  # seconds in which the others of a gang notice that one is gone


class Stopped(Exception):
    """The machine was told to stop, and the run is saved: it may go on elsewhere."""


@dataclass(frozen=True)
class Places:
    """What each run is given: so many processes with so much each."""

    need: Need
    processes: int = 1

    @classmethod
    def of(cls, cpus: float, gpus: float | None) -> Places:
        """One process a GPU, or a share of one; by default one GPU if the cluster has any."""
        gpus = float(gpus_there()) if gpus is None else gpus
        if gpus > 1 and gpus != int(gpus):
            raise DocnmtError(
                f"--gpus-per-run {gpus:g}: several GPUs cannot be shared in fractions\n  Use a whole number."
            )
        return cls(Need(cpus, min(gpus, 1.0)), max(1, int(gpus)))


@dataclass(frozen=True)
class Order:
    """What a task is told: a run, where it belongs, and who asked for it."""

    run: Run
    kind: type[RunStore]
    recipe: Recipe  # the tables' own, whose output the runs lie in
    data: dict[str, str]
    places: Places
    sets: tuple[str, ...]  # of the recipe, to be translated when the run is trained
    command: tuple[str, ...]

    def store(self, progress: Progress) -> RunStore:
        """In the task's own process."""
        sys.argv = list(self.command)  # locks name the command; Ray's own would tell nobody anything
        if not self.places.need.gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        return self.kind(self.recipe, self.data, progress, self.places.processes)


def train_on(
    on: str,
    store: RunStore,
    runs: Sequence[Run],
    places: Places,
    progress: Progress,
    sets_of: Callable[[Run], tuple[str, ...]] = lambda run: (),
) -> None:
    """Trains what is missing wherever there is room; if one run fails the others go on."""
    connect(on)
    here, command = Path.cwd(), ("docnmt", *sys.argv[1:])  # tasks have another folder
    recipe = resolve_paths(store.recipe, here)
    tasks: dict[Run, Any] = {}
    for run in runs:
        if not store.status(run).finished:
            order = Order(resolved(run, here), type(store), recipe, store.data, places, sets_of(run), command)
            tasks[run] = _submit(order, [tasks[other] for other in store.needs(run) if other in tasks])
    progress.say(f"{len(tasks)} of {len(runs)} runs to train, with {places.need} per process")
    started, failed = {task: run for run, task in tasks.items()}, {}
    for number, (run, reference) in enumerate(as_they_finish(started, places.need, progress.say), 1):
        became = "finished"
        try:
            ray.get(reference)
        except RayTaskError as error:
            failed[run.name], became = str(cause(error)), "failed"
        progress.say(f"{run.name}, seed {run.recipe.seed}: {became} ({number} of {len(tasks)})")
    if failed:
        first = next(iter(failed))
        raise DocnmtError(f"{len(failed)} of {len(tasks)} runs failed: {', '.join(failed)}\n  {first}: {failed[first]}")


def resolved(run: Run, folder: Path) -> Run:
    start = resolved(run.start, folder) if run.start is not None else None
    return replace(run, recipe=resolve_paths(run.recipe, folder), start=start)


def _submit(order: Order, before: Sequence[Any]) -> Any:
    need, name = order.places.need, f"{order.run.name}-{order.run.recipe.seed}"
    again: dict[str, Any] = {"max_retries": -1, "retry_exceptions": [Stopped], "name": name}
    if order.places.processes == 1:
        task = _train.options(num_cpus=need.cpus, num_gpus=need.gpus, **again)
    else:
        task = _train_gang.options(num_cpus=0, **again)
    return task.remote(order, *before)


@ray.remote(max_calls=1)  # a process of its own: all memory is given back
def _train(order: Order, *before: None) -> None:
    progress = Progress()
    with _told_plainly():
        store = order.store(progress)
        train_here(store, [order.run], progress)
        _translate(order, store, progress)


def _translate(order: Order, store: RunStore, progress: Progress) -> None:
    if order.sets:
        parts, translations = parts_of(order.recipe), Translations(order.recipe, progress)
        for name in order.sets:
            translations.of(store.model(order.run), getattr(parts, name).test, as_trained(order.run))


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Errors as Ray can carry them from one process to another."""
    try:
        yield
    except Interrupted as error:
        raise Stopped(str(error)) from None
    except DocnmtError as error:
        raise DocnmtError(str(error)) from None


# ---- a run in several processes ----


@ray.remote(max_calls=1)
def _train_gang(order: Order, *before: None) -> None:
    progress = Progress()
    with _told_plainly():
        train_here(order.store(progress), [order.run], progress, lambda run: _gang(order, progress))


def _gang(order: Order, progress: Progress) -> None:
    """All ranks to the end; if one is lost all are started again from the last checkpoint."""
    need, size, name = order.places.need, order.places.processes, f"{order.run.name}-{order.run.recipe.seed}"
    with suppress(ValueError):  # left by a task that was killed; it would keep its machines for ever
        remove_placement_group(get_placement_group(name))
    while True:
        group = placement_group([{"CPU": need.cpus, **({"GPU": need.gpus} if need.gpus else {})}] * size, name=name)
        try:
            ray.get(group.ready())
            where = [PlacementGroupSchedulingStrategy(group, index) for index in range(size)]
            place = _free_port.options(num_cpus=need.cpus, scheduling_strategy=where[0], max_retries=0)
            address = ray.get(place.remote())
            ranks = [
                _rank.options(
                    num_cpus=need.cpus, num_gpus=need.gpus, scheduling_strategy=where[rank], max_retries=0
                ).remote(order, rank, address)
                for rank in range(size)
            ]
            errors = _outcome(ranks)
        except RayError as error:  # a machine was lost before they could begin
            errors = [error]
        finally:
            remove_placement_group(group)
        if not errors:
            return
        told = [error for error in errors if isinstance(cause(error), DocnmtError)]
        lost = [error for error in errors if not isinstance(error, RayTaskError) or isinstance(cause(error), Stopped)]
        if told or not lost:
            raise cause((told or errors)[0])
        progress.say(f"{order.run.name}: a process was lost; all {size} continue from the last checkpoint")
        time.sleep(1)


def _outcome(ranks: list[Any]) -> list[Exception]:
    """What went wrong in which rank; once one is gone the others have a while to notice."""
    errors: list[Exception] = []
    left = ranks
    while left:
        ready, left = ray.wait(left, timeout=GANG_ENDS if errors else None)
        for reference in ready:
            try:
                ray.get(reference)
            except RayError as error:
                errors.append(error)
        if not ready:
            for reference in left:
                ray.cancel(reference, force=True)
            break
    return errors


@ray.remote
def _free_port() -> tuple[str, int]:
    with socket.socket() as trial:
        trial.bind(("", 0))
        return ray.util.get_node_ip_address(), trial.getsockname()[1]


@ray.remote(max_calls=1)
def _rank(order: Order, rank: int, address: tuple[str, int]) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(order.places.processes),
        "LOCAL_RANK": "0",  # Ray shows each process its own GPU alone
        "MASTER_ADDR": address[0],
        "MASTER_PORT": str(address[1]),
    }
    progress = Progress(quiet=rank > 0)
    with _told_plainly():
        try:
            order.store(progress).train(order.run)
        finally:
            leave_group()
