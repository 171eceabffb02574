"""How long it will take, what is missing, how large the models are: all of it before anything is trained."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import spoken
from docnmt.config import (
    ContextConfig,
    DataConfig,
    EvaluationConfig,
    HardwareConfig,
    ModelConfig,
    Recipe,
    SubwordConfig,
)
from docnmt.document import ContextSpec
from docnmt.experiments import timing
from docnmt.experiments.job import data_table, dry_run, experiment, missing_files, model_table, planned
from docnmt.experiments.runs import Run, RunStatus
from docnmt.experiments.tables import Systems
from docnmt.experiments.timing import Estimates, Range, Shape
from docnmt.recipes import load_recipe

SHAPE = Shape(300, 310, 6, 7)
SMALL = Recipe(
    model=ModelConfig(width=16, filter_width=24, heads=4, encoder_layers=1, decoder_layers=1),
    subwords=SubwordConfig(vocabulary=300),
    hardware=HardwareConfig(device="cpu"),
)


def runs_of(recipe: Recipe) -> dict[str, Run]:
    systems = Systems(recipe)
    found = [systems.sentence(), systems.document(), systems.from_scratch(), systems.control("none")]
    return {run.name: run for (run,) in found}


# ---- shapes ----


def test_the_shape_is_that_of_the_prepared_data():
    cards = [
        {"sentences": 3, "source_tokens": 20, "target_tokens": 25},
        {"sentences": 1, "source_tokens": 4, "target_tokens": 3},
    ]
    stores = [SimpleNamespace(card=card) for card in cards]
    prepared = SimpleNamespace(source=range(300), target=range(310), documents=stores[0], sentences=stores[1])
    assert Shape.of(prepared) == Shape(300, 310, 7, 8)  # 24 and 28 pieces in four sentences, and the end mark


def test_before_there_is_data_the_recipe_tells_the_vocabulary():
    shape = Shape.expected(SMALL)
    assert (shape.source_vocabulary, shape.target_vocabulary) == (300, 300)


# ---- the estimates ----


@pytest.fixture
def estimates(monkeypatch) -> Estimates:
    """One that does not look at the clock but counts: a sentence takes a second."""
    estimates = Estimates(SHAPE)
    estimates.timed = []

    def second(recipe, context, frozen):
        estimates.timed.append((context, frozen))
        return Range(1.0, 2.0)

    monkeypatch.setattr(estimates, "_sentence_seconds", second)
    return estimates


def test_time_goes_with_updates_and_the_size_of_batches(estimates):
    run = runs_of(SMALL)["sentence"]
    once = estimates.seconds(run, 10)
    assert 0 < once.low == once.high / 2
    assert estimates.seconds(run, 30).low == pytest.approx(3 * once.low) and estimates.seconds(run, 0) == Range(0, 0)
    twice = replace(SMALL, sentence=replace(SMALL.sentence, batch_tokens=2 * SMALL.sentence.batch_tokens))
    assert estimates.seconds(runs_of(twice)["sentence"], 10).high == pytest.approx(2 * once.high)
    thrice = replace(SMALL, sentence=replace(SMALL.sentence, accumulation=3))
    assert estimates.seconds(runs_of(thrice)["sentence"], 10).low == pytest.approx(3 * once.low)
    assert len(estimates.timed) == 1  # the model is the same in all of them


def test_runs_that_cost_the_same_are_timed_once(estimates):
    for name in ("sentence", "document", "control-none", "from-scratch"):
        for seed in (1, 2):
            estimates.seconds(runs_of(replace(SMALL, seed=seed))[name], 10)
    none = ContextConfig(kind="none")
    without = replace(SMALL.context, previous=0)  # what the control reads
    assert estimates.timed == [(none, False), (SMALL.context, True), (without, True), (SMALL.context, False)]


def test_where_sentences_are_the_same_in_each_update_a_longer_context_takes_longer(monkeypatch):
    """Whatever fills the batches, time goes with what is read: here a second for each sentence of the context."""
    estimates = Estimates(SHAPE)
    monkeypatch.setattr(
        estimates, "_sentence_seconds", lambda recipe, context, frozen: Range(1.0 + context.previous, 9.0)
    )
    systems = Systems(SMALL)
    named = {f"previous-{n}": systems.document(f"previous-{n}", previous=n) for n in (1, 3)}
    named |= {"own": systems.document(), "none": systems.control("none"), "shuffled": systems.control("shuffled")}
    taken = {name: estimates.seconds(runs[0], 1).low for name, runs in named.items()}
    a_sentence = taken["none"]
    expected = {"previous-1": 2, "own": 3, "previous-3": 4, "none": 1, "shuffled": 3}
    assert taken == pytest.approx({name: count * a_sentence for name, count in expected.items()})


def test_a_batch_has_the_sentences_and_contexts_that_the_recipe_means():
    device = torch.device("cpu")
    assert SHAPE.sentences(SMALL, ContextConfig(kind="none")).batch(device).context is None
    for previous in (1, 3):
        context = ContextConfig(previous=previous)
        assert context.spec == ContextSpec(previous)
        sentences = SHAPE.sentences(SMALL, context)
        batch = sentences.batch(device)
        assert batch.context.segments.lengths.unique().tolist() == [5 * previous + 1]
        assert batch.source.segments.lengths.unique().tolist() == [6]
        assert batch.target_in.segments.lengths.unique().tolist() == [7]
        total = sum(len(part.tokens) for part in (batch.source, batch.context, batch.target_in))
        assert 900 < total == sentences.tokens * sentences.count <= 1000
    trimmed = SHAPE.sentences(SMALL, ContextConfig(previous=3, max_tokens=5)).batch(device)
    assert trimmed.context.segments.lengths.unique().tolist() == [5]


def test_a_real_model_takes_some_time():
    found = Estimates(SHAPE).seconds(runs_of(SMALL)["document"], 1)
    assert 0 < found.low < found.high < 600


def test_an_estimate_rests_on_batches_of_several_lengths(monkeypatch):
    """The fastest and the slowest, of each length at least one; each token takes as long as the clock says."""
    made, ticks = [], iter(range(10**6))
    original = timing.Sentences.batch

    def noted(sentences, device):
        made.append(len(sentences.source))
        return original(sentences, device)

    monkeypatch.setattr(timing.Sentences, "batch", noted)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(ticks)))  # every look at it takes a second
    found = Estimates(SHAPE)._sentence_seconds(SMALL, ContextConfig(kind="none"), False)
    usual, short, long = made[0], made[1], made[3]
    assert made == [usual, short, usual, long] and short < usual < long
    assert 0 < found.low <= found.high


def test_what_rests_on_less_is_not_told(monkeypatch):
    def out_of_memory(sentences, device):
        if len(sentences.source) > SHAPE.source_length:
            raise torch.OutOfMemoryError
        return original(sentences, device)

    original = timing.Sentences.batch
    monkeypatch.setattr(timing.Sentences, "batch", out_of_memory)
    run = runs_of(SMALL)["sentence"]
    estimates = Estimates(SHAPE)
    assert estimates.seconds(run, 10) is None
    table = planned({run: RunStatus(0, False)}, estimates)
    assert table.rows[0][-1] == "unknown" and table.notes[0].startswith("Unknown:")


# ---- the plan ----


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
    assert table.notes[0].startswith(f"{document + scratch} of training to go")


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
    assert dev["sample"] == f"not there: {tmp_path / 'gone.ids'}"
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
    tables = dry_run(experiment(recipe, ("gating",), 2), console)
    assert [table.title for table in tables] == ["Data", "Models", "Runs"]
    shown = console.file.getvalue()
    assert "not there" in shown and "gating-residual" in shown and "cpu" in shown
    assert len(tables[2].rows) == 10 and {row[4] for row in tables[2].rows} == {"0"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        (EvaluationConfig(metric="blue"), "unknown metric 'blue'"),
        (EvaluationConfig(domains=("x=nothing",)), "no document is in the domain 'x'"),
    ],
)
def test_a_dry_run_finds_what_the_run_would_stop_at(evaluation, message, tmp_path):
    pairs = tmp_path / "own.tsv"
    pairs.write_text("a\tun\tone\nb\tdeux\ttwo\n", encoding="utf-8")
    files = (CorpusFiles(str(pairs)),)
    recipe = replace(SMALL, data=DataConfig(documents=files, dev=files, test=files), evaluation=evaluation)
    with pytest.raises(DocnmtError, match=message):
        dry_run(experiment(recipe, ("gating",)), Console(file=io.StringIO()))


def test_a_contrastive_set_that_is_missing_is_said(tmp_path):
    recipe = replace(SMALL, evaluation=EvaluationConfig(contrastive=str(tmp_path / "gone.jsonl")))
    assert rows_of(recipe)[-1]["role"] == "contrastive" and rows_of(recipe)[-1]["sample"] == "not there"
