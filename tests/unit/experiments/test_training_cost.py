"""`docnmt train --dry-run`: what an update takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docnmt.config import ContextConfig, DocumentStepConfig, ModelConfig, Recipe, SentenceStepConfig, SubwordConfig
from docnmt.experiments import timing
from docnmt.experiments.timing import GIGABYTE, Cost, cost_of, cost_table

MODEL = ModelConfig(width=16, filter_width=32, heads=2, encoder_layers=1, decoder_layers=1)
RECIPE = Recipe(
    model=MODEL,
    context=ContextConfig(),
    subwords=SubwordConfig(vocabulary=300),
    sentence=SentenceStepConfig(batch_tokens=600),
    document=DocumentStepConfig(batch_tokens=1200),
)


def test_in_step_2_the_sentence_model_is_frozen_and_all_else_is_trained():
    sentence, document = cost_of(RECIPE, "sentence"), cost_of(RECIPE, "document")
    assert sentence.frozen == 0 and document.frozen == sentence.trained and document.trained > 0
    free = cost_of(replace(RECIPE, document=replace(RECIPE.document, freeze=False)), "document")
    assert (free.frozen, free.trained) == (0, document.frozen + document.trained)
    assert min(sentence.seconds, document.seconds) > 0 and document.memory >= sentence.memory > 10**7


def test_the_batch_that_fits_grows_with_the_room_that_is_left():
    cost = Cost(1, 1, 1.0, memory=2 * GIGABYTE, more=1e6)  # 6 GB are left, a megabyte a token
    assert cost.fitting(1_000) == 7_000
    assert replace(cost, memory=20 * GIGABYTE).fitting(1_000) == 0


def test_the_table_has_a_row_for_each_step(monkeypatch, tmp_path):
    class Here:
        """A pool that is this process."""

        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, function, *arguments):
            value = function(*arguments)
            return type("Done", (), {"result": lambda self: value})()

    monkeypatch.setattr(timing, "ProcessPoolExecutor", Here)
    monkeypatch.chdir(tmp_path)
    table = cost_table(RECIPE, ("sentence", "document"))
    assert [row[0] for row in table.rows] == ["sentence", "document"]
    assert [figures["trained"] > 0 for figures in table.figures] == [True, True]
    assert not any(tmp_path.iterdir())


def test_what_step_2_starts_from_must_be_there(tmp_path):
    recipe = replace(RECIPE, document=replace(RECIPE.document, start_from=str(tmp_path / "nothing")))
    with pytest.raises(Exception, match="no sentence model to start from"):
        cost_table(recipe, ("document",))
