"""`context.kind = "concat"` from the command line; what it has in common with other systems is in test_systems.py."""

from __future__ import annotations

import json

import pytest

from tests.every_system import CASES
from tests.system.conftest import command, metrics

both = pytest.mark.parametrize("name", ["concat-2-to-1", "concat-2-to-2"])


def test_there_is_nothing_to_freeze_and_that_is_said_before_the_first_step(tiny, tmp_path):
    done = tiny.train(tmp_path, *CASES["concat-2-to-1"].settings, "document.freeze=true")
    assert done.code == 2
    assert '"concat" adds no parameters' in done.message and "Set document.freeze = false" in done.message
    assert not (tmp_path / "sentence").exists()


def test_shuffled_contexts_in_training(systems, tmp_path):
    settings = ("document.context_from=shuffled", "validation.decode=true", "document.updates=2")
    systems.train("concat-2-to-2", tmp_path, *settings)
    (line,) = metrics(tmp_path, "document", "validation")
    assert line["loss"] != line["loss_without_context"] and line["bleu"] is not None


@both
def test_sentences_after_are_refused(systems, name):
    folder = systems.trained(name) / "document" / "model"
    done = command("translate", folder, "--context", "following=1", stdin=b"Fin.\n")
    assert done.code == 2 and "only uses sentences before the current one" in done.message


@both
def test_contrast_says_what_became_of_gold_target_context(tiny, systems, tmp_path, name):
    text = (tiny.folder / "corpus" / "contrastive.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    bare = json.dumps(json.loads(text[0]) | {"previous_target": []})
    (tmp_path / "set.jsonl").write_text("\n".join([*text, bare]) + "\n", encoding="utf-8")
    done = command("contrast", systems.trained(name) / "document" / "model", tmp_path / "set.jsonl")
    assert done.code == 0, done.err
    if name == "concat-2-to-2":
        assert "sees the set's gold target context" in done.out and "translated the previous sentences: 1" in done.out
    else:
        assert "The set has gold target context, which this model does not use" in done.out


@both
def test_context_gain(tiny, systems, tmp_path, name):
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    corpus = tiny.folder / "corpus" / "small-dev.tsv"
    model = systems.trained(name) / "document" / "model"
    done = command("context-gain", model, corpus, "--html", page, "--json", figures)
    assert done.code == 0, done.err
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert set(found["gain_over"]) == {"none", "shuffled"} | ({"repeated"} if name == "concat-2-to-1" else set())
    assert set(found["bleu"]["scores"]) == {"true", "none", "shuffled", "repeated"}
    assert found["by_position"]["none"]["1"]["mean"] == 0
    assert page.stat().st_size > 10_000
