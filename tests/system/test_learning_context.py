"""Step 2 with the keys that make it learn more from context, through `docnmt train`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from docnmt.model.context import is_document_parameter
from tests.system.conftest import metrics, same_bits, weights

KEYS = (
    "context.representation=encoder",
    "context.start=sentence",
    "document.base_dropout=0.0",
    'document.focus=["it", "he", "she"]',
    "document.focus_only=true",
    "document.word_dropout=0.3",
    "document.split_pairs=0.5",
    "document.choice_balance=true",
    'document.choices=["it,he,she"]',
)


@pytest.fixture
def step_2(tiny, finished, tmp_path):
    """Trains step 2 from the sentence model that is there, under a name of its own."""

    def train(name: str, *settings: str):
        if not (tmp_path / name).exists():
            shutil.copytree(finished / "sentence", tmp_path / name / "sentence")
        result = tiny.train(tmp_path / name, *settings, step="document")
        assert result.code == 0, result.err
        return tmp_path / name

    return train


def test_no_dropout_in_the_base_is_what_two_rates_gave(step_2):
    one = step_2("one", "document.base_dropout=0.0")  # context.dropout is model.dropout, 0.1
    two = step_2("two", "model.dropout=0.0", "context.dropout=0.1")
    assert same_bits(weights(one, "document"), weights(two, "document"))
    assert not same_bits(weights(one, "document"), weights(step_2("three"), "document"))


def test_with_all_of_them_the_base_stays_frozen_and_a_run_in_parts_is_the_same(step_2, finished):
    whole = step_2("whole", *KEYS)
    trained = weights(whole, "document")
    theta_s = {name: tensor for name, tensor in trained.items() if not is_document_parameter(name)}
    assert same_bits(theta_s, weights(finished, "sentence"))
    step_2("parts", *KEYS, "document.updates=7")
    last = [load_file(last_of(run)) for run in (whole, step_2("parts", *KEYS))]
    assert same_bits(*last)


def last_of(run: Path) -> Path:
    """The weights that a run ended with; its model is the mean of the best ones."""
    return max((run / "document" / "checkpoints").glob("update-*")) / "weights.safetensors"


def test_the_dev_loss_counts_every_word_once(step_2):
    """Before the first update moves anything the focus cannot change what is reported."""
    still = ("document.learning_rate=0.0", "document.updates=5")
    plain, focused = (
        [row["loss"] for row in metrics(step_2(name, *still, *more), "document") if row["kind"] == "validation"]
        for name, more in (("plain", ()), ("focused", ('document.focus=["it"]', "document.focus_weight=50.0")))
    )
    assert plain == focused != []


def test_words_that_are_nowhere_are_an_error(tiny, finished, tmp_path):
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    result = tiny.train(tmp_path, 'document.focus=["nowhere"]', "document.focus_only=true", step="document")
    assert result.code != 0 and "no sentence contains a word" in result.err
