"""Runs trained one after another in this process, beside other processes that do the same.

What is missing is told by the disk, and a run belongs to whoever has its folder's lock. So the same command, started
several times, on one machine or on many that share a disk, shares the work: who finds a run in use goes on to the next
and comes back to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from docnmt.base.files import InUse
from docnmt.base.progress import Progress
from docnmt.experiments.runs import Run, Workshop

COME_BACK = 5.0  # seconds, where all that is left is in use


def train_here(
    workshop: Workshop,
    runs: Sequence[Run],
    progress: Progress,
    train: Callable[[Run], object] | None = None,
    then: Callable[[Run], object] = lambda run: None,
) -> None:
    """Trains what is not finished, until all is, here or elsewhere; `then` is for what was trained here."""
    train = train or workshop.train
    missing, told = list(runs), ""
    while missing:
        busy, idle = [], True
        for run in list(missing):
            if workshop.standing(run).finished:
                missing.remove(run)
            elif owner := workshop.owner(run):
                busy.append(f"{run.name}: waiting for {owner}")
            elif all(workshop.standing(other).finished for other in workshop.needs(run)):  # else somebody trains them
                progress.say(f"\nrun {runs.index(run) + 1} of {len(runs)}: {run.name}, seed {run.recipe.seed}")
                idle = False
                with suppress(InUse):  # somebody was faster
                    train(run)
                    missing.remove(run)
                    then(run)
        if missing and idle:
            if told != (told := "\n".join(busy)):
                progress.say(told)
            time.sleep(COME_BACK)
