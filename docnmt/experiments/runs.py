"""Trainings that tables are made of: what determines each, where it lies, how far it is.

A run lies in a folder named after the hash of all that determines it, so it is trained once, however many tables need
it, and taken up again where it was. The recipe's own sentence model is the one that `docnmt train` makes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.config import ContextConfig, Recipe
from docnmt.data.prepare import Prepared
from docnmt.training.checkpoint import Checkpoints, State
from docnmt.training.loop import FREE_SETTINGS, LENGTH_SETTINGS, RECORD_SETTINGS
from docnmt.training.two_step import NOTHING, sentence_stores, train


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

    def settings(self, data: dict[str, str]) -> dict[str, Any]:
        """All that determines what comes out, but for how long a sentence step goes on.

        Values that are the defaults stay out: a setting that a later version adds changes no hash.
        """
        recipe, config = self.recipe, getattr(self.recipe, self.step)
        context = recipe.context if self.step == "document" else ContextConfig(kind="none")
        parts = {"model": recipe.model, "context": context, "step": config}
        table: dict[str, Any] = {name: _changed(part) for name, part in parts.items()}
        table["validation"] = _choice(recipe)
        left_out = ("start_from", *(FREE_SETTINGS if self.step == "sentence" else RECORD_SETTINGS))
        table["step"] = {key: value for key, value in table["step"].items() if key not in left_out}
        if self.start is not None:
            length = {key: getattr(self.start.recipe.sentence, key) for key in LENGTH_SETTINGS}
            table["start"] = [self.start.settings(data), length]
        return {"kind": self.step, "seed": recipe.seed, "bf16": recipe.hardware.bf16, "data": data, **table}


def _choice(recipe: Recipe) -> dict[str, Any]:
    """How the best update is chosen; by its loss, nothing that is translated meanwhile matters."""
    if recipe.validation.metric == "loss":
        return {"metric": "loss"}
    return {**asdict(recipe.validation), "length_penalty": recipe.decoding.length_penalty}


def _changed(part: Any) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in fields(part) if getattr(part, f.name) != f.default}


@dataclass(frozen=True)
class Standing:
    """How far a run is."""

    update: int
    finished: bool


class Workshop:
    """Where the runs of one recipe lie, and what trains them."""

    def __init__(self, recipe: Recipe, prepared: Prepared, progress: Progress):
        self.recipe, self.progress = recipe, progress
        self.output = Path(recipe.output)
        stores = {"documents": prepared.documents, "sentences": prepared.sentences, "dev": prepared.dev}
        self.data: dict[str, str] = {name: store.card["key"] for name, store in stores.items()}
        self._sentence_data = [store.card["key"] for store in sentence_stores(recipe, prepared)]

    def folder(self, run: Run) -> Path:
        settings = run.settings(self.data)
        if run.step == "sentence" and settings == self._own_sentence_step().settings(self.data):
            return self.output
        key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        runs = self.output / "runs"
        known = sorted(runs.glob(f"*-{key}"))  # another table may call the same training by another name
        return known[0] if known else runs / f"{run.name}-{key}"

    def model(self, run: Run) -> Path:
        return self.folder(run) / run.step / "model"

    def standing(self, run: Run) -> Standing:
        folder, config = self.folder(run) / run.step, getattr(run.recipe, run.step)
        try:
            states = Checkpoints(folder / "checkpoints", self.progress).states()
        except (OSError, ValueError):  # damaged: training will say so and go back to the one before
            states = []
        if not states:
            return Standing(0, False)
        last = states[-1]
        if folder.parent == self.output:
            self._check_own(run, last)
        if last.update > config.updates:  # a sentence step, whose updates are not part of its hash
            raise DocnmtError(
                f"{folder}: has been trained for {last.update:,} updates, the recipe says {config.updates:,}\n"
                f"  Set {run.step}.updates to {last.update} or more, or give the recipe another output."
            )
        stopped = bool(config.patience) and last.without_gain >= config.patience
        enough = last.update >= config.updates or stopped
        made = (folder / "model" / "config.json").exists()
        return Standing(last.update, enough and made and self._same_start(run, last))

    def _check_own(self, run: Run, state: State) -> None:
        """The recipe's own sentence model lies in a folder that no hash names: the recipe may have changed since."""
        recipe, before = run.recipe, state.settings
        wanted = {f"step.{key}": value for key, value in asdict(recipe.sentence).items()}
        wanted |= {f"model.{key}": value for key, value in asdict(recipe.model).items()}
        wanted |= {f"validation.{key}": value for key, value in _choice(recipe).items()}
        wanted |= {"seed": recipe.seed, "bf16": recipe.hardware.bf16}
        wanted |= {"data": self._sentence_data, "dev": self.data["dev"]}
        wanted["step.cooldown"] = recipe.sentence.cooling(state.update)
        for key in (*RECORD_SETTINGS, "accumulation"):  # several processes count in the last one, too
            del wanted[f"step.{key}"]
        wanted = json.loads(json.dumps(wanted))  # as a state has it: lists for tuples
        changed = [key for key, value in wanted.items() if before.get(key, value) != value]
        if changed:
            raise DocnmtError(
                f"{self.output / run.step}: was trained with other settings than the recipe's: {', '.join(changed)}\n"
                "  Set them back, or give the recipe another output."
            )

    def _same_start(self, run: Run, state: State) -> bool:
        """Whether the sentence model is still the one that a document step built on."""
        if run.start is None:
            return True
        weights = self.model(run.start) / "weights.safetensors"
        if not weights.exists():
            return False
        with open(weights, "rb") as file:
            return state.settings["start_from_sha256"] == hashlib.file_digest(file, "sha256").hexdigest()

    def train(self, run: Run) -> Path:
        """Trains a run to its end, from where it is; what it starts from has been trained before."""
        recipe = run.recipe
        if run.step == "document":
            start = NOTHING if run.start is None else str(self.model(run.start))
            recipe = replace(recipe, document=replace(recipe.document, start_from=start))
        if run.start is None and recipe.seed != self.recipe.seed:
            recipe = self._with_subwords(recipe)
        return train(recipe, (run.step,), self.progress, self.folder(run))[run.step]

    def _own_sentence_step(self) -> Run:
        return Run("sentence", self.recipe, "sentence")

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


def all_needed(runs: list[Run]) -> list[Run]:
    """The runs and what they start from, each once, in an order in which they can be trained."""
    needed: dict[tuple[int, str], Run] = {}
    for each in (each for run in runs for each in (run.start, run) if each is not None):
        # Two tables may call the same training by two names.
        needed.setdefault((each.updates, json.dumps(each.settings({}), sort_keys=True)), each)
    return sorted(needed.values(), key=lambda run: run.step != "sentence")
