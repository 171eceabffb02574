"""`like = "paper"` and `like = "released"`: what the docs say of them, and what a recipe changes."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.config import Recipe, from_table
from docnmt.recipes import load_recipe, preset

ROOT = Path(__file__).parents[3]
SECTIONS = ("subwords", "model", "context", "sentence", "document", "decoding", "evaluation")
# Of other systems, of sources of other programs, or of no bearing on what is learnt.
NOT_THE_PAPERS = re.compile(
    r"subwords.(source|target)_model|model.forbidden|context.(translate_previous|mark|cache_words|topic_words|stop_.*)"
    r"|.*_every|document.(start_from|context_from|focus.*|choice.*|word_dropout.*|split_pairs|batches_for)"
    r"|decoding.batch_tokens|evaluation.(?!metric).*"
)


def read(tmp_path: Path, text: str, *settings: str) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, settings)


def listed() -> dict[str, tuple[str, str, str, str]]:
    """Key -> default, paper, released, source, as the docs have them."""
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", page, re.M)
    return {key: tuple(cell.strip("`") for cell in cells) for key, *cells in rows}


def value_in(recipe: Recipe, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(recipe, section), name)


def as_toml(text: str) -> object:
    return tomllib.loads(f"value = {text}")["value"]


@pytest.mark.parametrize(("like", "column"), [("", 0), ("paper", 1), ("released", 2)])
def test_values_are_those_that_the_docs_list(tmp_path, like, column):
    recipe = read(tmp_path, f'like = "{like}"')
    for key, cells in listed().items():
        assert value_in(recipe, key) == as_toml(cells[column] or cells[0]), key


def test_the_docs_list_all_values_and_no_others():
    for column, like in ((1, "paper"), (2, "released")):
        said = {key for key, cells in listed().items() if cells[column]}
        assert said == {f"{section}.{key}" for section, table in preset(like).items() for key in table}


def test_every_key_of_the_papers_model_has_its_source():
    hints = typing.get_type_hints(Recipe)
    keys = {f"{section}.{field.name}" for section in SECTIONS for field in dataclasses.fields(hints[section])}
    table = listed()
    assert {key for key in keys if not NOT_THE_PAPERS.fullmatch(key)} <= set(table) <= keys
    for key, (_, papers, released, source) in table.items():
        assert re.match(r"the paper|released code|the same|ours", source), key
        if papers:
            assert source.startswith(("the paper", "the same")), key
        elif released:
            assert source.startswith("released code"), key


def test_what_the_paper_names_is_in_its_preset():
    """Section 3.1 of the paper."""
    paper = from_table(Recipe, preset("paper"), "paper")
    model, context = paper.model, paper.context
    assert (model.width, model.filter_width, model.heads, model.encoder_layers, model.decoder_layers) == (
        512, 2048, 8, 6, 6,
    )  # fmt: skip
    assert (context.previous, context.layers, context.integration, context.connection) == (2, 1, "both", "gate")
    assert (paper.subwords.vocabulary, paper.subwords.counts, model.tie) == (32_000, "merges", "none")
    assert (paper.decoding.beam, paper.decoding.length_penalty, paper.evaluation.metric) == (4, 0.6, "multi-bleu")
    assert paper.document.freeze and context.start == "paper"


def test_a_recipes_own_keys_come_first(tmp_path):
    recipe = read(tmp_path, 'like = "released"\n[model]\nwidth = 256\n[subwords]\nvocabulary = 8000')
    assert (recipe.model.width, recipe.model.filter_width, recipe.model.tie) == (256, 2048, "none")
    assert (recipe.subwords.vocabulary, recipe.subwords.counts) == (8000, "merges")
    recipe = read(tmp_path, "[model]\nwidth = 256", "like=released", "document.learning_rate=0.5")
    assert (recipe.document.learning_rate, recipe.context.residual_dropout) == (0.5, 0.1)


def test_another_name_is_refused(tmp_path):
    with pytest.raises(DocnmtError, match=r"like: unknown value 'papre'\n  Did you mean 'paper'\?"):
        read(tmp_path, 'like = "papre"')


@pytest.mark.parametrize("name", ["paper-fr-en", "paper-zh-en"])
def test_the_papers_recipes_are_as_its_authors_code(name):
    recipe, released = load_recipe(name), from_table(Recipe, preset("released"), name)
    assert recipe.like == "released"
    assert recipe.model == released.model and recipe.context == released.context
    assert recipe.document.learning_rate == 0.1 and recipe.document.warmup < recipe.document.updates / 2
