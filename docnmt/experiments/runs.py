"""The trainings that tables are made of: what each one is, where it is, how far it is; and what trains missing ones.

A run is in a folder named after the hash of all that determines it (training/identity.py), so it is trained once,
however many tables need it, and resumed where it was. The recipe's own model, both steps, is the one that `docnmt
train` makes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.base.files import InUse, Owner, owned, owner_of
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.config import Recipe
from docnmt.recipes import NOTHING
from docnmt.training.checkpoint import State, read_states
from docnmt.training.identity import changed, identity, key_of, length_of, settings_of, weights_digest
from docnmt.training.two_step import train


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

    @property
    def frozen(self) -> bool:
        """Whether the sentence model stays as it is."""
        return self.start is not None and self.recipe.document.freeze

    def identity(self, data: Mapping[str, str], processes: int = 1) -> dict[str, Any]:
        start = None
        if self.start is not None:
            start = {**self.start.identity(data, processes), "length": length_of(self.start.recipe, self.start.step)}
        return identity(self.recipe, self.step, data, processes, start)


@dataclass(frozen=True)
class RunStatus:
    """How far a run is."""

    update: int
    finished: bool


class RunStore:
    """Where the runs of one recipe lie, and what trains them, each in so many processes."""

    def __init__(self, recipe: Recipe, data: dict[str, str], progress: Progress, processes: int = 1):
        self.recipe, self.data, self.progress, self.processes = recipe, data, progress, processes
        self.output = Path(recipe.output)
        self.sentence = Run("sentence", recipe, "sentence")
        self.document = Run("document", recipe, "document", self.sentence)

    def _key(self, run: Run) -> str:
        return key_of(run.identity(self.data, self.processes))

    def folder(self, run: Run) -> Path:
        """The recipe's own two steps are those of `docnmt train`. If the document step that lies there is another run
        it is left alone, and this one gets a folder like all others."""
        runs, key = self.output / "runs", self._key(run)
        if key == self._key(self.sentence):
            return self.output
        known = sorted(runs.glob(f"*-{key}"))  # another table may have another name for the same training
        if known:
            return known[0]
        return self.output if key == self._key(self.document) and self._is_there(run) else runs / f"{run.name}-{key}"

    def model(self, run: Run) -> Path:
        return self.folder(run) / run.step / "model"

    def needs(self, run: Run) -> list[Run]:
        """What must be finished before it begins."""
        if run.start is not None:
            return [run.start]
        return [self.sentence] if run.recipe.seed != self.recipe.seed else []  # its subwords serve all seeds

    def status(self, run: Run) -> RunStatus:
        folder, config = self.folder(run) / run.step, getattr(run.recipe, run.step)
        states = read_states(folder / "checkpoints")
        if not states:
            return RunStatus(0, False)
        last = states[-1]
        # The folder of the recipe's own sentence model is not named after a hash: the recipe may have changed since.
        if folder == self.output / "sentence" and (others := self._changed(run, last)):
            raise DocnmtError(
                f"{folder}: this run was trained with other settings than the recipe's: {', '.join(others)}\n"
                "  Restore them, or choose another `output` in the recipe."
            )
        if last.update > config.updates:  # a sentence step, whose updates are not part of its hash
            raise DocnmtError(
                f"{folder}: this run has {last.update:,} updates, but the recipe says {config.updates:,}\n"
                f"  Set {run.step}.updates to {last.update} or more, or choose another `output` in the recipe."
            )
        stopped = bool(config.patience) and last.without_gain >= config.patience
        enough = last.update >= config.updates or stopped
        made = (folder / "model" / "config.json").exists()
        return RunStatus(last.update, enough and made and self._same_start(run, last))

    def owner(self, run: Run) -> Owner | None:
        """Who trains it now."""
        return owner_of(self.folder(run) / run.step)

    def _changed(self, run: Run, state: State) -> list[str]:
        return changed(state.settings, settings_of(run.recipe, run.step, self.data, self.processes, state.update))

    def _is_there(self, run: Run) -> bool:
        """Whether the document step of `docnmt train` is this run, as far as there is one."""
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
        model = self.model(run.start)
        if not (model / "weights.safetensors").exists():
            return False
        return state.settings.get("start_from_sha256") == weights_digest(model) and self.status(run.start).finished

    def train(self, run: Run) -> Path:
        """Trains a run to its end, from where it is; what it starts from has been trained before."""
        recipe = run.recipe
        if run.step == "document":
            start = NOTHING if run.start is None else str(self.model(run.start))
            recipe = replace(recipe, document=replace(recipe.document, start_from=start))
        if run.start is None and recipe.seed != self.recipe.seed:
            recipe = self._with_subwords(recipe)
        with owned(self.output / "runs", wait=self.progress.say):  # processes that start together agree on its folder
            folder = self.folder(run)
            folder.mkdir(parents=True, exist_ok=True)
        return train(recipe, (run.step,), self.progress, folder)[run.step]

    def _with_subwords(self, recipe: Recipe) -> Recipe:
        """Other seeds change the training, not the subwords: those stay the recipe's own."""
        model = self.output / "sentence" / "model"
        if not (model / "source.spm").exists():
            raise DocnmtError(
                f"{model}: the recipe's own sentence model must be trained first\n  Run its tables without --seeds."
            )
        subwords = replace(
            recipe.subwords, source_model=str(model / "source.spm"), target_model=str(model / "target.spm")
        )
        return replace(recipe, subwords=subwords)


def all_needed(runs: Sequence[Run]) -> list[Run]:
    """The runs and what they start from, each once, in an order in which they can be trained."""
    needed: dict[tuple[int, str], Run] = {}
    for each in (each for run in runs for each in (run.start, run) if each is not None):
        # Two tables may have two names for the same training.
        needed.setdefault((each.updates, key_of(each.identity({}))), each)
    return sorted(needed.values(), key=lambda run: run.step != "sentence")


def status_table(store: RunStore, runs: Sequence[Run]) -> Table:
    """How far each run is and who trains it: from locks and checkpoints."""
    names = ("run", "seed", "step", "updates", "done", "now")
    table = Table("Runs", [Column(name, text=name in ("run", "step", "now")) for name in names])
    for run in runs:
        status, owner = store.status(run), store.owner(run)
        waits = [other.name for other in store.needs(run) if not store.status(other).finished]
        now = str(owner) if owner else f"waiting for {waits[0]}" if waits else "nobody"
        done = "all" if status.finished else f"{status.update:,}"
        cells = (run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done)
        table.add(*cells, "finished" if status.finished else now)
    return table


# ---- training, one run after another, in this process and in others that do the same ----

# The disk tells what is missing, and a run belongs to whoever has its folder's lock. So the same command, started
# several times, on one machine or on many that share a disk, shares the work: a process that finds a run in use goes
# on to the next and comes back to it.

COME_BACK = 5.0  # seconds, where all that is left is in use


def train_here(
    store: RunStore,
    runs: Sequence[Run],
    progress: Progress,
    train: Callable[[Run], object] | None = None,
    then: Callable[[Run], object] = lambda run: None,
) -> None:
    """Trains what is not finished, until all is, here or elsewhere; `then` is called for what was trained here."""
    train = train or store.train
    missing, told = list(runs), ""
    while missing:
        busy, idle = [], True
        for run in list(missing):
            if store.status(run).finished:
                missing.remove(run)
            elif owner := store.owner(run):
                busy.append(f"{run.name}: waiting for {owner}")
            elif all(store.status(other).finished for other in store.needs(run)):  # else somebody trains them
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
