"""The recipe's own sentence model has no hash in its folder's name: a changed recipe must not take it for its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from docnmt.config import Recipe
from docnmt.errors import DocnmtError
from docnmt.experiments.runs import Run, Standing, Workshop
from docnmt.progress import Progress
from docnmt.training.checkpoint import State

SETTINGS = {"model.width": 512, "step.warmup": 4000, "seed": 1, "data": ["key-s", "key-d"], "dev": "key-v"}


def standing(recipe: Recipe, documents: str = "key-d") -> Standing:
    keys = {"documents": documents, "sentences": "key-s", "dev": "key-v"}
    prepared: Any = SimpleNamespace(**{name: SimpleNamespace(card={"key": key}) for name, key in keys.items()})
    return Workshop(recipe, prepared, Progress(quiet=True)).standing(Run("sentence", recipe, "sentence"))


@pytest.fixture
def trained(tmp_path: Path) -> Recipe:
    """A recipe whose sentence step is done."""
    recipe = Recipe(output=str(tmp_path))
    recipe = replace(recipe, sentence=replace(recipe.sentence, updates=10, warmup=4000))
    at = tmp_path / "sentence" / "checkpoints" / "update-00000010"
    at.mkdir(parents=True)
    at.joinpath("state.json").write_text(json.dumps({**State(10, settings=SETTINGS).as_json(), "files": {}}))
    (tmp_path / "sentence" / "model").mkdir()
    (tmp_path / "sentence" / "model" / "config.json").write_text("{}")
    return recipe


def test_an_unchanged_recipe_has_its_model(trained):
    assert standing(trained) == Standing(10, True)
    more = replace(trained.sentence, updates=20, average=3, accumulation=4)  # how long, and how many share the work
    assert standing(replace(trained, sentence=more)) == Standing(10, False)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.width", lambda recipe: replace(recipe, model=replace(recipe.model, width=256))),
        ("step.warmup", lambda recipe: replace(recipe, sentence=replace(recipe.sentence, warmup=1))),
        ("step.corpora", lambda recipe: replace(recipe, sentence=replace(recipe.sentence, corpora="documents"))),
        ("seed", lambda recipe: replace(recipe, seed=2)),
    ],
)
def test_a_changed_setting_is_named(trained, name, change):
    with pytest.raises(DocnmtError, match=f"other settings than the recipe's: {name}\n"):
        standing(change(trained))


def test_changed_data_is_named(trained):
    with pytest.raises(DocnmtError, match="other settings than the recipe's: data\n"):
        standing(trained, documents="other")
