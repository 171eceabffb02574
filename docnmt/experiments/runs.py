"""Trainings that tables are made of: what determines each, where it lies, how far it is.

A run lies in a folder named after the hash of all that determines it (training/identity.py), so it is trained once,
however many tables need it, and taken up again where it was. The recipe's own model, both steps, is the one that
`docnmt train` makes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.base.files import Owner, owned, owner_of
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.config import Recipe
from docnmt.training.checkpoint import State, read_states
from docnmt.training.identity import changed, identity, key_of, length_of, settings_of
from docnmt.training.two_step import NOTHING, train


@dataclass(frozen=True)
class Run:
    """One training: a step of a recipe with changes."""

    name: str
    recipe: Recipe
    step: str  # "sentence" or "document"
    start: Run | None = None  # the sentence model that a document step builds on; None: from scratch

    @property
    def updates(self) -> int:
        return getattr(self.recipe, self.step).updates

    def identity(self, data: Mapping[str, str], processes: int = 1) -> dict[str, Any]:
        start = None
        if self.start is not None:
            start = {**self.start.identity(data, processes), "length": length_of(self.start.recipe, self.start.step)}
        return identity(self.recipe, self.step, data, processes, start)


@dataclass(frozen=True)
class Standing:
    """How far a run is."""

    update: int
    finished: bool


class Workshop:
    """Where the runs of one recipe lie, and what trains them, each in so many processes."""

    def __init__(self, recipe: Recipe, data: dict[str, str], progress: Progress, processes: int = 1):
        self.recipe, self.data, self.progress, self.processes = recipe, data, progress, processes
        self.output = Path(recipe.output)
        self.sentence = Run("sentence", recipe, "sentence")
        own = (self.sentence, Run("document", recipe, "document", self.sentence))
        self._own = [self._identity(run) for run in own]

    def _identity(self, run: Run) -> dict[str, Any]:
        return run.identity(self.data, self.processes)

    def folder(self, run: Run) -> Path:
        """The recipe's own two steps are those of `docnmt train`; a document step that lies there and is another run
        is left alone, and this one gets a folder like all others."""
        own = self._identity(run)
        if own == self._own[0]:
            return self.output
        runs, key = self.output / "runs", key_of(own)
        known = sorted(runs.glob(f"*-{key}"))  # another table may call the same training by another name
        if known:
            return known[0]
        return self.output if own == self._own[1] and self._is_there(run) else runs / f"{run.name}-{key}"

    def needs(self, run: Run) -> list[Run]:
        """What must be finished before it begins."""
        if run.start is not None:
            return [run.start]
        return [self.sentence] if run.recipe.seed != self.recipe.seed else []  # whose sub-words are all seeds'

    def model(self, run: Run) -> Path:
        return self.folder(run) / run.step / "model"

    def standing(self, run: Run) -> Standing:
        folder, config = self.folder(run) / run.step, getattr(run.recipe, run.step)
        states = read_states(folder / "checkpoints")
        if not states:
            return Standing(0, False)
        last = states[-1]
        # The folder of the recipe's own sentence model has no hash for a name: the recipe may have changed since.
        if folder == self.output / "sentence" and (others := self._changed(run, last)):
            raise DocnmtError(
                f"{folder}: was trained with other settings than the recipe's: {', '.join(others)}\n"
                "  Set them back, or give the recipe another output."
            )
        if last.update > config.updates:  # a sentence step, whose updates are not part of its hash
            raise DocnmtError(
                f"{folder}: has been trained for {last.update:,} updates, the recipe says {config.updates:,}\n"
                f"  Set {run.step}.updates to {last.update} or more, or give the recipe another output."
            )
        stopped = bool(config.patience) and last.without_gain >= config.patience
        enough = last.update >= config.updates or stopped
        made = (folder / "model" / "config.json").exists()
        return Standing(last.update, enough and made and self._same_start(run, last))

    def owner(self, run: Run) -> Owner | None:
        """Who trains it now."""
        return owner_of(self.folder(run) / run.step)

    def _changed(self, run: Run, state: State) -> list[str]:
        return changed(state.settings, settings_of(run.recipe, run.step, self.data, self.processes, state.update))

    def _is_there(self, run: Run) -> bool:
        """Whether the document step that `docnmt train` makes is this run, as far as there is one."""
        folder = self.output / "document"
        states = read_states(folder / "checkpoints")
        if not states:
            return not (folder / "model").exists()
        last = states[-1]
        return last.update <= run.updates and not self._changed(run, last) and self._same_start(run, last)

    def _same_start(self, run: Run, state: State) -> bool:
        """Whether what a document step built on is still there, and finished."""
        if run.start is None:
            return True
        weights = self.model(run.start) / "weights.safetensors"
        if not weights.exists():
            return False
        same = state.settings.get("start_from_sha256") == _sha256(weights, weights.stat().st_mtime_ns)
        return same and self.standing(run.start).finished

    def train(self, run: Run) -> Path:
        """Trains a run to its end, from where it is; what it starts from has been trained before."""
        recipe = run.recipe
        if run.step == "document":
            start = NOTHING if run.start is None else str(self.model(run.start))
            recipe = replace(recipe, document=replace(recipe.document, start_from=start))
        if run.start is None and recipe.seed != self.recipe.seed:
            recipe = self._with_subwords(recipe)
        with owned(self.output / "runs", wait=self.progress.say):  # who begin at once agree on its folder
            folder = self.folder(run)
            folder.mkdir(parents=True, exist_ok=True)
        return train(recipe, (run.step,), self.progress, folder)[run.step]

    def _with_subwords(self, recipe: Recipe) -> Recipe:
        """Other seeds change the training, not the sub-words: those stay the recipe's own."""
        model = self.output / "sentence" / "model"
        if not (model / "source.spm").exists():
            raise DocnmtError(
                f"{model}: the recipe's own sentence model comes first\n  Run its tables without --seeds."
            )
        subwords = replace(
            recipe.subwords, source_model=str(model / "source.spm"), target_model=str(model / "target.spm")
        )
        return replace(recipe, subwords=subwords)


@functools.lru_cache(maxsize=1024)
def _sha256(path: Path, written: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def all_needed(runs: list[Run]) -> list[Run]:
    """The runs and what they start from, each once, in an order in which they can be trained."""
    needed: dict[tuple[int, str], Run] = {}
    for each in (each for run in runs for each in (run.start, run) if each is not None):
        # Two tables may call the same training by two names.
        needed.setdefault((each.updates, key_of(each.identity({}))), each)
    return sorted(needed.values(), key=lambda run: run.step != "sentence")


def standings_table(workshop: Workshop, runs: list[Run]) -> Table:
    """Who does what: from locks and checkpoints."""
    names = ("run", "seed", "step", "updates", "done", "now")
    table = Table("Runs", [Column(name, text=name in ("run", "step", "now")) for name in names])
    for run in runs:
        standing, owner = workshop.standing(run), workshop.owner(run)
        waits = [other.name for other in workshop.needs(run) if not workshop.standing(other).finished]
        now = str(owner) if owner else f"waits for {waits[0]}" if waits else "nobody"
        done = "all" if standing.finished else f"{standing.update:,}"
        cells = (run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done)
        table.add(*cells, "finished" if standing.finished else now)
    return table
