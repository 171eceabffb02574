"""All systems beside each other: which stand in the table, and contexts that do not belong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.config import DocumentStepConfig, EvaluationConfig, Recipe, SentenceStepConfig
from docnmt.evaluation.contrastive_items import Item
from docnmt.experiments.job import SYSTEMS as ALL_SYSTEMS
from docnmt.experiments.job import make_experiment, questions_of
from docnmt.experiments.tables import Systems, all_systems
from docnmt.systems import SYSTEMS

RECIPE = Recipe(sentence=SentenceStepConfig(updates=100), document=DocumentStepConfig(updates=50))


def item(document: str, *previous: str) -> Item:
    return Item(
        document,
        "sense",
        (f"source of {document}",),
        (f"right of {document}",),
        ((f"wrong of {document}",),),
        distance=1,
        previous=previous,
        previous_target=tuple(text.upper() for text in previous),
    )


ITEMS = [
    item("one", "a1", "a2"),
    item("one", "a1", "a2", "a3"),
    item("two", "b1"),
    item("three", "c1", "c2", "c3", "c4"),
]


def test_every_system_of_the_registry_is_compared_once():
    kinds = [
        (run.recipe.model.kind, run.recipe.context.kind if run.step == "document" else "none", row.labels[0])
        for row in all_systems(Systems(RECIPE))
        for run in row.runs
    ]
    assert {kind[:2] for kind in kinds} == set(SYSTEMS)
    assert len(set(kinds)) == len(kinds) == len(SYSTEMS) + 5  # concat comes in five kinds, the paper's beside ours


def test_each_starts_from_the_base_that_it_is_told_against():
    for row in all_systems(Systems(RECIPE, seeds=2)):
        assert len(row.runs) == 2
        for run, base in zip(row.runs, row.baseline, strict=bool(row.baseline)):
            assert run.start == base and run.recipe.model.kind == base.recipe.model.kind


def test_this_work_is_the_recipes_own_model_as_the_paper_has_it_and_ours_follows():
    systems = Systems(replace(RECIPE, context=replace(RECIPE.context, previous=3)))
    this_work, ours = all_systems(systems)[-2:]
    assert this_work.labels[0] == "this work" and this_work.runs == systems.document()
    assert ours.runs == systems.document("sentence-start", start="sentence")


def test_without_a_contrastive_set_there_are_no_questions():
    assert questions_of(make_experiment(RECIPE, [ALL_SYSTEMS])) == []


def test_a_contrastive_set_that_is_not_there_is_found_before_training(tmp_path):
    recipe = replace(RECIPE, evaluation=EvaluationConfig(contrastive=str(tmp_path / "none.jsonl")))
    with pytest.raises(DocnmtError, match=r"none\.jsonl"):
        questions_of(make_experiment(recipe, [ALL_SYSTEMS]))
