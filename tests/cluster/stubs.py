"""Trainings that write a line a step, so that it can be seen who made which and how often."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path

import torch

from docnmt.base.errors import DocnmtError
from docnmt.base.files import HOST, owned
from docnmt.experiments.runs import Run, RunStatus, RunStore
from docnmt.training.parallel import join_group

STEPS = 8
STEP = 0.15  # seconds


class StubStore(RunStore):
    def steps(self, run: Run) -> list[str]:
        """The process that made each, in order; one that is half written does not count."""
        path = self.folder(run) / "steps"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def status(self, run: Run) -> RunStatus:
        count = len(self.steps(run))
        return RunStatus(count, count >= STEPS)

    def folder(self, run: Run) -> Path:
        return self.output / f"{run.name}-{run.recipe.seed}"

    def train(self, run: Run) -> Path:
        folder = self.folder(run)
        if run.name == "broken":
            raise DocnmtError("the gradient is not finite\n  Lower the learning rate.")
        group = join_group(torch.device("cpu"))  # of one, if it is no gang
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"rank-{group.rank}").write_text(str(os.getpid()))
        with owned(folder / run.step) if group.first else nullcontext():
            group.wait()
            for _ in range(len(self.steps(run)), STEPS):
                group.wait()
                time.sleep(STEP)
                if group.first:
                    with open(folder / "steps", "a") as file:
                        file.write(f"{HOST}:{os.getpid()}\n")
        return folder
