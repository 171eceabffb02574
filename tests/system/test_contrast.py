"""`docnmt contrast` from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docnmt.decoding.translator import load
from docnmt.document import ParallelDocument
from tests.system.conftest import Tiny, command

COLUMNS = ("with_context", "no_context", "sentence_model")


@pytest.fixture(scope="session")
def contrastive(tiny: Tiny) -> Path:
    """The first items of the demo corpus's set."""
    text = (tiny.folder / "corpus" / "contrastive.jsonl").read_text(encoding="utf-8")
    path = tiny.folder / "contrastive.jsonl"
    path.write_text("".join(text.splitlines(keepends=True)[:12]), encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_set_from_scores_to_figures(model, contrastive, tmp_path):
    items, figures, saved = tmp_path / "items.jsonl", tmp_path / "figures.json", tmp_path / "set.jsonl"
    options = ("--items", items, "--json", figures, "--write", saved)
    done = command("contrast", model, contrastive, *options)
    assert done.code == 0, done.err

    given, found = rows(contrastive), rows(items)
    assert rows(saved) == given
    assert [row["item"] for row in found] == list(range(1, 13))
    assert [{key: row[key] for key in given[0]} for row in found] == given
    translator = load(model)
    for use, context in zip(COLUMNS, (None, "none", "off"), strict=True):
        for row in found:
            # The whole document as the reference translates it, up to the sentence that is asked about.
            at = len(row["previous"])
            for score, target in zip(
                (row[use]["right"], *row[use]["wrong"]), (row["right"], *row["wrong"]), strict=True
            ):
                source = (*row["previous"], row["source"])
                document = ParallelDocument("d", source, (*row["previous_target"], target))
                (scores,) = translator.score([document], context=context)
                assert score == pytest.approx(scores[at].total, abs=1e-2)
            assert row[use]["preferred"] == all(row[use]["right"] > wrong for wrong in row[use]["wrong"])

    result = json.loads(figures.read_text(encoding="utf-8"))
    everything = result["groups"][0]
    assert (everything["name"], everything["items"]) == ("all", 12)
    for use in COLUMNS:
        assert everything[use]["right"] == sum(row[use]["preferred"] for row in found)
    assert len({row[use]["right"] for row in found[:1] for use in COLUMNS}) == 3  # three ways to score it
    assert {group["name"] for group in result["groups"] if group["group"] == "phenomenon"} == {
        row["phenomenon"] for row in given
    }
    for said in ("with context", "no context", "sentence model", "distance 1", result["signature"]):
        assert said in done.out
    assert "The set has gold target context, which this model does not use." in done.out


def test_the_table_as_markdown_and_latex(model, contrastive, tmp_path):
    markdown, latex = tmp_path / "table.md", tmp_path / "table.tex"
    done = command("contrast", model, contrastive, "--markdown", markdown, "--latex", latex)
    assert done.code == 0, done.err
    assert "| all | 12 |" in markdown.read_text(encoding="utf-8")
    assert "\nall & 12 &" in latex.read_text(encoding="utf-8")


def test_one_column_where_nothing_is_to_compare(models, contrastive):
    for model, options, column in (
        (models["sentence"], (), "sentence model"),
        (models["document"], ("--context", "off"), "sentence model"),
        (models["document"], ("--context", "none"), "no context"),
    ):
        done = command("contrast", model, contrastive, *options)
        assert done.code == 0, done.err
        heading = done.lines[2]
        assert column in heading and "with context" not in heading and " p " not in heading


def test_the_sentence_model_says_the_same_inside_the_document_model(models, contrastive, tmp_path):
    found = {}
    for name, options in (("sentence", ()), ("document", ("--context", "off"))):
        path = tmp_path / f"{name}.jsonl"
        assert command("contrast", models[name], contrastive, *options, "--items", path).code == 0
        found[name] = [row["sentence_model"]["right"] for row in rows(path)]
    assert found["sentence"] == pytest.approx(found["document"], abs=1e-3)


def test_what_goes_wrong_is_said(model, contrastive, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text(contrastive.read_text(encoding="utf-8") + '{"document": "x"}\n', encoding="utf-8")
    for arguments, said in (
        ((bad,), f"{bad}, line 13: the field 'phenomenon' is missing"),
        ((contrastive, "--layout", "other"), "unknown layout 'other'"),
        ((contrastive, "--context", "two"), "invalid context 'two'"),
        ((contrastive, "--context-from", tmp_path), "contain their contexts"),
        ((tmp_path / "none",), "no such file"),
    ):
        done = command("contrast", model, *arguments, "--json", tmp_path / "figures.json")
        assert done.code == 2 and said in done.err and done.out == ""
    assert not (tmp_path / "figures.json").exists()


def test_translations_and_shuffled_contexts_beside_the_scores(model, contrastive, tmp_path):
    items, figures = tmp_path / "items.jsonl", tmp_path / "figures.json"
    extra = ("--translate", "--shuffled", "--resample", "documents")
    done = command("contrast", model, contrastive, *extra, "--items", items, "--json", figures)
    assert done.code == 0, done.err
    assert "Contrastive accuracy" in done.out and "Generative accuracy" in done.out and "bootstrap" in done.out
    columns = ("with_context", "shuffled_context", "no_context", "sentence_model")
    translator = load(model)
    for row in rows(items):
        assert all({"preferred", "translation", "generative"} <= row[use].keys() for use in columns)
        told = translator.translate([*row["previous"], row["source"]])
        assert row["with_context"]["translation"] == told[-1]
    (everything, *_) = json.loads(figures.read_text(encoding="utf-8"))["generative"]
    for use in columns:
        assert sum(everything[use][kind] for kind in ("right", "wrong", "neither")) == everything["items"] == 12
