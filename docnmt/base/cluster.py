"""Work distributed over processes and machines by Ray (an extra): connecting to it and waiting for its tasks."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from docnmt.base.errors import DocnmtError, missing_extra

try:
    import ray
except ImportError:
    raise missing_extra("--on distributes work with Ray, which is not installed", "ray") from None

T = TypeVar("T")

HERE = "ray"  # --on ray: only this machine
STORE = 80 * 2**20  # bytes of memory for objects: shared data is on disk, and by default Ray takes 30 % of the memory
LOOK_AFTER = 30.0  # seconds without news after which the machines are counted


@dataclass(frozen=True)
class Need:
    """The resources that each task needs."""

    cpus: float = 1
    gpus: float = 0

    def __str__(self) -> str:
        cores = f"{self.cpus:g} core{'s' * (self.cpus != 1)}"
        return f"{cores} and {self.gpus:g} GPU{'s' * (self.gpus != 1)}" if self.gpus else cores


def connect(on: str) -> None:
    """Connects to the cluster at HOST:PORT, or to one on this machine that lives only as long as this command."""
    if ray.is_initialized():
        return
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": True}
    if on != HERE:
        _knock(on)  # Ray itself would retry for many minutes
        ray.init(address=on, **quiet)
    else:
        os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 gets next to nothing beside other work
        ray.init(address="local", object_store_memory=STORE, include_dashboard=False, **quiet)


def _knock(on: str) -> None:
    host, _, port = on.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise DocnmtError(
            f"--on {on}: no Ray cluster answers at this address ({error.strerror or error})\n"
            f"  Start one: ray start --head --port={port} (see docs/cluster.md)."
        ) from None


def gpus_there() -> bool:
    return bool(ray.cluster_resources().get("GPU"))


def as_they_finish(tasks: Mapping[Any, T], need: Need, say: Callable[[str], None]) -> Iterator[tuple[T, Any]]:
    """The values of `tasks` with their keys, which are Ray's references, in the order in which they finish.

    Ray waits silently for machines that may never come; this says so.
    """
    waiting, told = dict(tasks), ""
    while waiting:
        ready, _ = ray.wait(list(waiting), timeout=LOOK_AFTER)
        for reference in ready:
            yield waiting.pop(reference), reference
        if not ready and told != (told := _trouble(need)) and told:
            say(told)


def _trouble(need: Need) -> str:
    """Why the tasks may never finish; "" if some machine could run them."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    enough = [m for m in machines if m.get("CPU", 0) >= need.cpus and m.get("GPU", 0) >= need.gpus]
    return "" if enough else f"waiting: none of the cluster's {len(machines)} machines has {need}"


def cause(error: Exception) -> Exception:
    """What was raised in the task."""
    return getattr(error, "cause", None) or error
