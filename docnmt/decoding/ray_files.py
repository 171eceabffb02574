"""Files translated as Ray tasks, on whatever machines there are; imported only where somebody asks for it.

A file is a task. Its blocks lie beside its translation while it is under way, as they do in one process, so a task that
Ray starts again goes on with the blocks that are missing; and the command that shares the files out clears them away
when all are done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayTaskError

from docnmt.base.cluster import Need, as_they_finish, cause
from docnmt.base.errors import DocnmtError
from docnmt.decoding.file_batch import Done
from docnmt.decoding.jobs import FileJob
from docnmt.decoding.results import Options
from docnmt.decoding.translator import Translator, load


@dataclass(frozen=True)
class Order:
    """What a task is told."""

    model: str
    model_key: str
    device: str
    options: Options
    format: str


def share_out(order: Order, need: Need, files: Mapping[str, Path], say: Callable[[str], None]) -> Iterator[Done]:
    """Each file as it is done, wherever that was."""
    largest_first = sorted(files, key=os.path.getsize, reverse=True)  # so that none is left over at the end
    told = ray.put(order)  # once, not with each of thousands of files
    task = _translate.options(num_cpus=need.cpus, num_gpus=need.gpus)
    tasks = {task.remote(told, os.path.abspath(path), files[path].absolute()): path for path in largest_first}
    for path, reference in as_they_finish(tasks, need, say):
        try:
            parts, seconds = ray.get(reference)
            yield Done(path, parts, seconds)
        except RayTaskError as error:
            text = str(cause(error)).replace(os.path.abspath(path), path)
            yield Done(path, error=DocnmtError(text))


_TRANSLATORS: dict[str, Translator] = {}  # of this process: a model is loaded once


@ray.remote(max_retries=-1)
def _translate(order: Order, path: str, out: Path) -> Any:
    started = time.monotonic()
    if order.model_key not in _TRANSLATORS:
        _TRANSLATORS.clear()
        _TRANSLATORS[order.model_key] = load(order.model, order.device)
    job = FileJob(_TRANSLATORS[order.model_key], order.options, order.model_key)
    try:
        job.translate(path, out, order.format)
    except DocnmtError as error:
        raise DocnmtError(str(error)) from None  # as Ray can carry it from one process to another
    return job.kept[0], time.monotonic() - started
