"""What `docnmt tables` does before its results: the plan, the dry run."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import spoken
from docnmt.config import DataConfig, EvaluationConfig, Recipe
from docnmt.experiments.job import data_table, dry_run, make_experiment, missing_files, model_table, planned
from docnmt.experiments.runs import RunStatus
from docnmt.experiments.timing import Estimates, Shape
from docnmt.recipes import load_recipe
from tests.unit.experiments.test_timing import SMALL, counting, runs_of

# ---- the plan ----


@pytest.fixture
def estimates(monkeypatch) -> Estimates:
    return counting(monkeypatch)


def test_the_plan_lists_every_run_with_what_is_left_of_it(estimates):
    runs = runs_of(SMALL)
    statuses = dict(
        zip(runs.values(), (RunStatus(100_000, True), RunStatus(400, False), RunStatus(0, False)), strict=False)
    )
    table = planned(statuses, estimates)
    rows = [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]
    assert [row["run"] for row in rows] == ["sentence", "document", "from-scratch"]
    assert [row["done"] for row in rows] == ["all", "400", "0"]
    assert [row["updates"] for row in rows] == ["100,000", "100,000", "200,000"]
    document, scratch = estimates.seconds(runs["document"], 99_600), estimates.seconds(runs["from-scratch"], 200_000)
    assert [row["time left"] for row in rows] == ["-", str(document), str(scratch)]
    assert str(document) == f"{spoken(document.low)} to {spoken(document.high)}"
    assert table.notes[0].startswith(f"{document + scratch} of training left")


def test_a_plan_of_nothing_to_do_promises_nothing(estimates):
    run = runs_of(SMALL)["sentence"]
    table = planned({run: RunStatus(100_000, True)}, estimates)
    assert table.notes == [] and estimates.timed == []


# ---- a dry run ----


def test_missing_files_are_named_with_what_they_are_for(tmp_path):
    there = tmp_path / "there.tsv"
    there.write_text("a\tb\tc\n")
    gone = [str(tmp_path / name) for name in ("gone.tsv", "gone.fr", "gone.en", "gone.ids")]
    data = DataConfig(
        documents=(CorpusFiles(str(there)), CorpusFiles(gone[0])),
        test=(CorpusFiles(source=gone[1], target=gone[2], document_ids=gone[3]),),
    )
    found = missing_files(Recipe(data=data))
    assert found == [("documents", gone[0]), ("test", gone[1]), ("test", gone[2]), ("test", gone[3])]


def rows_of(recipe: Recipe) -> list[dict[str, str]]:
    table = data_table(recipe)
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def test_the_data_is_looked_at_in_its_format_or_said_to_be_missing(tmp_path):
    pairs, source, target = tmp_path / "own.tsv", tmp_path / "own.fr", tmp_path / "own.en"
    pairs.write_text("".join(f"d{n}\tune {n}\tone {n}\n" * (n + 1) for n in range(5)), encoding="utf-8")
    source.write_text("un\n", encoding="utf-8")
    target.write_text("one\n", encoding="utf-8")
    sides = CorpusFiles(source=str(source), target=str(target))
    data = DataConfig(
        documents=(CorpusFiles(str(pairs)),),
        sentences=(sides,),
        dev=(replace(sides, document_ids=str(tmp_path / "gone.ids")),),
    )
    documents, sentences, dev, test = rows_of(Recipe(data=data))
    assert (documents["role"], documents["format"]) == ("documents", "tsv")
    assert documents["sample"] == "3 read (1, 2, 3 sentences); d0: une 0 | one 0"
    assert (sentences["role"], sentences["format"]) == ("sentences", "text") and "un | one" in sentences["sample"]
    assert dev["sample"] == f"missing: {tmp_path / 'gone.ids'}"
    assert "data.test" in test["sample"]


def test_a_bad_line_is_passed_over_where_the_recipe_says_so(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text("a\tun\x07e\tone\na\tdeux\ttwo\n", encoding="utf-8")
    recipe = Recipe(data=DataConfig(documents=(CorpusFiles(str(path)),), skip_bad=True))
    assert "deux | two" in rows_of(recipe)[0]["sample"]


def test_the_models_of_the_paper_have_the_papers_sizes():
    recipe = load_recipe("paper-zh-en")
    shape = Shape.expected(recipe)
    runs = runs_of(recipe)
    table = model_table(list(runs.values()), shape)
    sizes = {name: (int(total.replace(",", "")), int(trained.replace(",", ""))) for name, total, trained in table.rows}
    added = 22_063_616  # as in the authors' code
    assert sizes["sentence"][0] == sizes["sentence"][1]
    assert sizes["document"] == (sizes["sentence"][0] + added, added) == sizes["control-none"]
    assert sizes["from-scratch"] == (sizes["document"][0],) * 2
    assert "32,000" in table.notes[0]


def test_a_dry_run_shows_data_models_and_time_and_writes_nothing(tmp_path):
    recipe = replace(
        SMALL,
        output=str(tmp_path / "out"),
        data=DataConfig(documents=(CorpusFiles(str(tmp_path / "gone.tsv")),), dev=(), test=()),
    )
    console = Console(file=io.StringIO(), width=160)
    tables = dry_run(make_experiment(recipe, ("gating",), 2), console)
    assert [table.title for table in tables] == ["Data", "Models", "Runs"]
    shown = console.file.getvalue()
    assert "missing" in shown and "gating-residual" in shown and "cpu" in shown
    assert len(tables[2].rows) == 10 and {row[4] for row in tables[2].rows} == {"0"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        (EvaluationConfig(metric="blue"), "unknown metric 'blue'"),
        (EvaluationConfig(domains=("x=nothing",)), "no document id begins with a prefix of the domain 'x'"),
    ],
)
def test_a_dry_run_finds_what_the_run_would_stop_at(evaluation, message, tmp_path):
    pairs = tmp_path / "own.tsv"
    pairs.write_text("a\tun\tone\nb\tdeux\ttwo\n", encoding="utf-8")
    files = (CorpusFiles(str(pairs)),)
    recipe = replace(SMALL, data=DataConfig(documents=files, dev=files, test=files), evaluation=evaluation)
    with pytest.raises(DocnmtError, match=message):
        dry_run(make_experiment(recipe, ("gating",)), Console(file=io.StringIO()))


def test_a_contrastive_set_that_is_missing_is_said(tmp_path):
    recipe = replace(SMALL, evaluation=EvaluationConfig(contrastive=str(tmp_path / "gone.jsonl")))
    assert rows_of(recipe)[-1]["role"] == "contrastive" and rows_of(recipe)[-1]["sample"] == "missing"
