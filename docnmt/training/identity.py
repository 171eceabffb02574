"""What determines a run: the one definition, used to resume it, to find it again and to reuse it.

A setting counts if it changes the resulting numbers. How often something is logged does not, nor does how
the dev documents are translated meanwhile if only the dev loss chooses the best update.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from docnmt.base.files import file_hash, json_hash
from docnmt.config import ContextConfig, Recipe
from docnmt.data.store import TokenStore

# Settings that say how long a step goes on. (Once the rate falls towards the end, `updates` determines what is
# computed: `step.cooldown` in a state says from where to where, None before.)
LENGTH_SETTINGS = ("updates", "patience")
# Settings that say what is written down meanwhile.
RECORD_SETTINGS = ("log_every", "checkpoint_every")
# What a step starts from counts by its content, not by its place.
LEFT_OUT = (*LENGTH_SETTINGS, *RECORD_SETTINGS, "start_from")


def context_of(recipe: Recipe, step: str) -> ContextConfig:
    """What the model of a step reads beside its sentence: nothing in step 1."""
    return recipe.context if step == "document" else ContextConfig(kind="none")


def roles_of(recipe: Recipe, step: str) -> tuple[str, ...]:
    """The corpora that a step is trained on."""
    return ("sentences", "documents") if step == "sentence" and recipe.sentence.corpora == "all" else ("documents",)


def data_keys(stores: Mapping[str, TokenStore]) -> dict[str, str]:
    """What tells corpora apart: the hash of their content, as prepared; empty ones are left out."""
    return {role: store.card["key"] for role, store in stores.items() if len(store) or role == "dev"}


def settings_of(
    recipe: Recipe, step: str, data: Mapping[str, str], processes: int = 1, update: int | None = None
) -> dict[str, Any]:
    """All that determines the numbers of a step, except what it starts from and how long it goes on.

    With `update`, as they are by then: if the rate has not begun to fall, when it will may still be changed.
    """
    config = getattr(recipe, step)
    flat = {f"step.{key}": value for key, value in asdict(config).items() if key not in LEFT_OUT}
    # P processes with accumulation A take the batches of one with P x A: either may resume the other's run.
    flat["step.accumulation"] = config.accumulation * processes
    if update is not None:
        flat["step.cooldown"] = config.cooling(update)
    flat |= {f"model.{key}": value for key, value in asdict(recipe.model).items()}
    flat |= {f"context.{key}": value for key, value in asdict(context_of(recipe, step)).items()}
    flat |= {f"validation.{key}": value for key, value in _choice(recipe).items()}
    flat |= {"seed": recipe.seed, "bf16": recipe.hardware.bf16}
    flat |= {"data": [data[role] for role in roles_of(recipe, step) if role in data], "dev": data.get("dev", "")}
    return json.loads(json.dumps(flat))  # as a checkpoint gives them back: tuples as lists


def _choice(recipe: Recipe) -> dict[str, Any]:
    """How the best update is chosen; if by its loss, nothing that is translated meanwhile matters."""
    if recipe.validation.metric == "loss":
        return {"metric": "loss"}
    penalty = recipe.decoding.length_penalty
    return {**asdict(recipe.validation), "beam": recipe.validation_beam, "length_penalty": penalty}


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings of `now` that a step was not trained with; any that did not exist yet had their defaults."""
    return [key for key, value in now.items() if before.get(key, _DEFAULTS.get(key)) != value]


def length_of(recipe: Recipe, step: str) -> dict[str, int]:
    return {key: getattr(getattr(recipe, step), key) for key in LENGTH_SETTINGS}


def identity(
    recipe: Recipe, step: str, data: Mapping[str, str], processes: int = 1, start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A whole run, with what it starts from; a sentence step that is given more updates is still the same run.

    Defaults are left out, so that a setting which a later version adds does not make it another run.
    """
    default = settings_of(Recipe(), step, {})
    own = settings_of(recipe, step, data, processes)
    found = {"kind": step, **{key: value for key, value in own.items() if value != default.get(key)}}
    if step == "document":
        found |= {"length": length_of(recipe, step), "start": start}
    return found


def weights_digest(model: Path) -> str:
    """What a step starts from counts by its weights, not by where it lies."""
    weights = model / "weights.safetensors"
    return _digest(weights, weights.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _digest(path: Path, written: int) -> str:
    return file_hash(path)


def key_of(identity: Mapping[str, Any]) -> str:
    """A short name for it."""
    return json_hash(identity)[:12]


_DEFAULTS = settings_of(Recipe(), "sentence", {}, update=0) | settings_of(Recipe(), "document", {}, update=0)
