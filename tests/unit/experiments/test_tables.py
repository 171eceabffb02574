"""The tables say what the paper's say: the same rows, the same figures, and runs that differ in what they are about."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.config import ContextConfig, DataConfig, DocumentStepConfig, Recipe, SentenceStepConfig
from docnmt.document import ParallelDocument
from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.significance import Difference, Interval
from docnmt.evaluation.test_sets import TestSet
from docnmt.experiments.job import NAMES, Experiment, make_experiment, runs_of, sets_of
from docnmt.experiments.results import filled_in
from docnmt.experiments.runs import Run, all_needed
from docnmt.experiments.scores import Score, Subset, Subsets
from docnmt.experiments.tables import (
    EFFICIENCY,
    OURS,
    RIVALS,
    TABLES,
    PaperTable,
    Systems,
    all_systems,
    make_table,
    needed_by,
)
from docnmt.recipes import OWN, load_recipe

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("DOCNMT_SHARED") or ROOT.parent / "shared")
TEX = SHARED / "paper" / "document-transformer.tex"

FILES = (CorpusFiles("x.tsv"),)
RECIPE = Recipe(
    data=DataConfig(documents=FILES, sentences=FILES, dev=FILES, test=FILES),
    sentence=SentenceStepConfig(updates=100),
    document=DocumentStepConfig(updates=50),
)


def table(name: str, recipe: Recipe = RECIPE, seeds: int = 1) -> PaperTable:
    return make_table(name, Systems(recipe, seeds))


def rows_of(name: str, recipe: Recipe = RECIPE) -> dict[tuple[str, ...], Run | None]:
    return {row.labels: row.runs[0] if row.runs else None for row in table(name, recipe).rows}


def changes(run: Run, base: Run) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ: (this one's, the other's)."""
    found = {}
    mine, others = asdict(run.recipe), asdict(base.recipe)
    for section, value in mine.items():
        pairs = value.items() if isinstance(value, dict) else [("", value)]
        for key, item in pairs:
            before = others[section][key] if key else others[section]
            if item != before:
                found[f"{section}.{key}" if key else section] = (item, before)
    return found


def own_document() -> Run:
    return Systems(RECIPE).document()[0]


# ---- rows ----


def test_there_is_a_table_for_each_of_the_papers_that_a_command_can_make():
    assert set(TABLES) | {"efficiency", "example", "systems"} == set(NAMES)
    assert set(NAMES) == {
        "context-length", "context-layers", "comparison", "french-english", "two-step", "integration", "gating",
        "efficiency", "example", "systems",
    }  # fmt: skip


def test_context_length_has_one_two_and_three_sentences():
    rows = rows_of("context-length")
    for number in (1, 2, 3):
        assert rows[(str(number),)].recipe.context == replace(RECIPE.context, previous=number)
    assert rows[("2",)] == own_document()


def test_context_layers_has_one_to_six():
    rows = rows_of("context-layers")
    for number in range(1, 7):
        assert rows[(str(number),)].recipe.context == replace(RECIPE.context, layers=number)
    assert rows[("1",)] == own_document()


def test_integration_has_none_encoder_decoder_and_both():
    rows = rows_of("integration")
    assert rows[("none",)] == Systems(RECIPE).sentence()[0]
    for name in ("encoder", "decoder", "both"):
        assert rows[(name,)].recipe.context == replace(RECIPE.context, integration=name)


def test_contexts_of_other_lengths_are_trained_on_the_batches_of_the_recipes_own():
    rows = rows_of("context-length")
    assert rows[("2",)] == own_document()
    for n in (1, 3):
        wanted = {"context.previous": (n, 2), "document.batches_for": (2, -1)}
        assert changes(rows[(str(n),)], own_document()) == wanted
    chosen = replace(RECIPE, document=replace(RECIPE.document, batches_for=4))
    assert rows_of("context-length", chosen)[("1",)].recipe.document == chosen.document


def test_gating_has_residual_connections_and_gates():
    rows = rows_of("gating")
    assert rows[("w/o",)].recipe.context == replace(RECIPE.context, connection="residual")
    assert rows[("w/",)] == own_document()


@pytest.mark.parametrize("start", ["paper", "sentence"])
def test_this_work_is_the_papers_own_model_and_ours_stands_beside_it(start):
    recipe = replace(RECIPE, context=replace(RECIPE.context, start=start))
    sentence, own = Systems(recipe).sentence()[0], Systems(recipe).document()[0]
    rows = {labels[0]: run for labels, run in rows_of("french-english", recipe).items() if "control" not in labels[0]}
    assert list(rows) == ["Transformer", "this work", OURS] and rows["Transformer"] == sentence
    starts = {"this work": "paper", OURS: "sentence"}
    for name, wanted in starts.items():
        assert rows[name].recipe == replace(recipe, context=replace(recipe.context, start=wanted))
        assert (rows[name] == own) == (wanted == start)
    assert {labels[0]: run for labels, run in rows_of("comparison", recipe).items()}.items() >= {
        name: rows[name] for name in starts
    }.items()
    assert "H + (1 - lambda) Sub(H)" in " ".join(table("french-english", recipe).notes)


def test_the_comparison_trains_every_row_of_the_paper():
    rows = {labels: run for labels, run in rows_of("comparison").items() if not labels[0].startswith("control")}
    assert [(run.recipe.model.kind, run.step, run.recipe.context.kind) for run in rows.values()] == [
        ("rnnsearch", "document", "hierarchical"),
        ("rnnsearch", "document", "cache"),
        ("transformer", "sentence", "attention"),
        ("transformer", "document", "cache"),
        ("transformer", "document", "attention"),
        ("transformer", "document", "attention"),
    ]
    assert rows["Vaswani et al. (2017)", "Transformer"] == Systems(RECIPE).sentence()[0]
    assert rows["this work", "Transformer"] == own_document()


def test_systems_on_rnnsearch_start_from_it_and_are_told_against_it():
    base = Systems(RECIPE).base("rnnsearch")
    for row in table("comparison").rows:
        on_rnnsearch = row.labels[1:] == ("RNNsearch",)
        assert (row.baseline == base) == on_rnnsearch
        assert not on_rnnsearch or row.runs[0].start == base[0]
    assert base[0] in needed_by([table("comparison")])


def test_a_system_changes_what_its_authors_do_differently_and_nothing_else():
    for rival in RIVALS.values():
        (run,) = Systems(RECIPE).rival(rival.name)
        changed = {key.partition(".")[0] for key in changes(run, own_document())}
        assert changed <= {"context", "document", "model"}
        assert run.recipe.model == replace(RECIPE.model, kind=rival.base)
        assert run.updates == rival.longer * RECIPE.document.updates


def test_gradients_of_rnnsearch_are_clipped_in_both_steps_and_those_of_the_transformer_are_not():
    runs = [Systems(RECIPE).rival(rival.name)[0] for rival in RIVALS.values()]
    for run in runs:
        wanted = 1.0 if run.recipe.model.kind == "rnnsearch" else 0.0  # Bahdanau et al.: a norm of 1
        assert run.recipe.document.clip == wanted and run.start.recipe.sentence.clip == wanted
    own = replace(RECIPE, sentence=replace(RECIPE.sentence, clip=3.0), document=replace(RECIPE.document, clip=2.0))
    (run,) = Systems(own).rival("hierarchical")
    assert (run.start.recipe.sentence.clip, run.recipe.document.clip) == (3.0, 2.0)


def test_two_step_training_has_the_papers_five_rows():
    rows = list(rows_of("two-step").items())[:5]
    labels, runs = zip(*rows, strict=True)
    both = "D_s + D_d"
    assert labels == (("D_d", "-"), (both, "-"), ("-", "D_d"), ("D_d", "D_d"), (both, "D_d"))
    on_documents, on_all, scratch, after_documents, after_all = runs
    assert [run.step for run in runs] == ["sentence", "sentence", "document", "document", "document"]
    assert on_all.recipe == RECIPE and after_all == own_document()
    assert changes(on_documents, on_all) == {"sentence.corpora": ("documents", "all")}
    assert after_documents.start == on_documents and after_documents.recipe == RECIPE
    assert after_all.start == on_all
    assert scratch.start is None and not scratch.recipe.document.freeze


def test_training_from_scratch_is_given_the_updates_of_both_steps_the_rate_of_the_first_and_the_papers_start():
    """A start that equals the sentence model makes no sense where there is none, nor does the rate of one."""
    recipe = replace(RECIPE, context=replace(RECIPE.context, start="sentence"))
    recipe = replace(recipe, sentence=replace(recipe.sentence, warmup=70, cooldown=30))
    recipe = replace(recipe, document=replace(recipe.document, warmup=7, learning_rate=0.2))
    (scratch,) = Systems(recipe).from_scratch()
    assert scratch.updates == 150
    assert changes(scratch, Systems(recipe).document()[0]) == {
        "document.freeze": (False, True),
        "document.updates": (150, 50),
        "document.learning_rate": (1.0, 0.2),
        "document.warmup": (70, 7),
        "document.cooldown": (30, 0),
        "context.start": ("paper", "sentence"),
    }


def test_without_sentence_pairs_beside_the_documents_rows_are_the_same_runs():
    recipe = replace(RECIPE, data=replace(RECIPE.data, sentences=()))
    runs = list(rows_of("two-step", recipe).values())
    assert runs[0] == runs[1] and runs[3] == runs[4] != runs[2]


# ---- controls, baselines ----


@pytest.mark.parametrize("name", TABLES)
def test_every_table_that_claims_a_gain_from_context_ends_with_its_controls(name):
    *_, shuffled, none = table(name).rows
    assert "shuffled context" in shuffled.labels[0] and "no context" in none.labels[0] and shuffled.rule
    for row, contexts in ((shuffled, "shuffled"), (none, "none")):
        (run,) = row.runs
        # As the recipe's own step 2 in everything: updates, seed, the sentence model it starts from.
        assert changes(run, own_document()) == {"document.context_from": (contexts, "own")}
        assert run.start == own_document().start and run.step == "document"
        assert row.paper == ()  # the paper has none


@pytest.mark.parametrize("name", TABLES)
def test_gains_are_told_against_the_sentence_model(name):
    assert table(name).baseline == Systems(RECIPE).sentence()


@pytest.mark.parametrize("name", TABLES)
def test_rows_fit_the_headings_and_the_papers_columns(name):
    found = table(name)
    for row in found.rows:
        assert len(row.labels) == len(found.headings)
        assert len(row.paper) in (0, len(found.paper_columns))


@pytest.mark.parametrize("name", TABLES)
def test_every_seed_has_its_own_runs_all_the_way_down(name):
    recipe = replace(RECIPE, seed=5)
    found = table(name, recipe, seeds=3)
    for runs in [found.baseline, *(row.runs for row in found.rows if row.runs)]:
        assert [run.recipe.seed for run in runs] == [5, 6, 7]
        assert [run.start.recipe.seed for run in runs if run.start] in ([5, 6, 7], [])
        assert len({replace(run.recipe, seed=0) for run in runs}) == 1


# ---- runs shared between tables ----


def needed(recipe: Recipe, names: tuple[str, ...] = tuple(TABLES), seeds: int = 1) -> list[Run]:
    return all_needed(needed_by([table(name, recipe, seeds) for name in names]))


def test_all_tables_together_train_nothing_twice():
    runs = needed(RECIPE)
    assert [run.name for run in runs if run.step == "sentence"] == [
        "sentence",
        "sentence-rnnsearch",
        "sentence-documents",
    ]
    assert {run.name for run in runs if run.step == "document"} == {
        "document", "control-shuffled", "control-none", "from-scratch", "after-sentence-documents", "gating-residual",
        "previous-1", "previous-3", *(f"layers-{n}" for n in range(2, 7)), "integration-encoder", "integration-decoder",
        "hierarchical", "rnnsearch-cache", "cache", "sentence-start",
    }  # fmt: skip
    settings = [str(run.identity({})) for run in runs]
    assert len(set(settings)) == len(runs) == 22


@pytest.mark.parametrize(
    "context",
    [
        ContextConfig(previous=1, layers=3, integration="decoder", connection="residual", start="sentence"),
        ContextConfig(previous=3, following=1, layers=6),
    ],
)
def test_nor_do_they_where_the_recipe_is_another_than_the_papers(context):
    runs = needed(replace(RECIPE, context=context))
    settings = [str(run.identity({})) for run in runs]
    assert len(set(settings)) == len(runs)
    assert [run.recipe.context for run in runs if run.name == "document"] == [context]


@pytest.mark.parametrize("name", OWN)
def test_every_recipe_of_the_repository_has_tables(name):
    recipe = load_recipe(name)
    assert recipe.data.documents and recipe.data.dev and recipe.data.test
    assert all(row.runs or row.paper for kind in TABLES for row in table(kind, recipe).rows)
    assert len(needed(recipe)) == (22 if recipe.data.sentences else 20)


# ---- the figures of the paper ----


def papers_tables() -> dict[str, list[list[str]]]:
    """The tables of the paper's source by what their caption begins with: rows of cells as printed."""
    if not TEX.is_file():
        pytest.skip(f"{TEX} is not there; set DOCNMT_SHARED to the folder that holds paper/")
    found = {}
    for text in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", TEX.read_text(encoding="utf-8"), re.S):
        body = re.search(r"\\begin\{tabular\}\{.*?\}\n(.*?)\\end\{tabular\}", text, re.S)[1]
        caption = re.search(r"\\caption\{(.*?)[.(]", text)[1].strip()
        lines = [line for line in body.replace("\\hline", "").split("\\\\") if line.strip()]
        found[caption] = [[_plain(cell) for cell in line.split("&")] for line in lines]
    return found


def _plain(cell: str) -> str:
    return re.sub(r"\\(?:textbf|em|cite)\b|[{}]|\\(?=[#%])", "", cell).strip()


AUTHORS = {"Wang:17": "Wang et al. (2017)", "Kuang:17": "Kuang et al. (2017)", "Vaswani:17": "Vaswani et al. (2017)"}
CAPTIONS = {
    "context-layers": "Effect of self-attention layer number",
    "comparison": "Comparison with previous works on Chinese-English translation task",
    "french-english": "Comparison with Transformer on French-English translation task",
    "two-step": "Effect of two-step training",
    "integration": "Effect of context integration",
    "gating": "Effect of context gating",
}


@pytest.mark.parametrize("name", CAPTIONS)
def test_figures_rows_and_columns_are_as_the_paper_prints_them(name):
    head, *body = papers_tables()[CAPTIONS[name]]
    found = table(name)
    count = len(found.headings)
    assert (*found.headings, *found.paper_columns) == tuple(head)
    sizes = {"-": "-", "D_d": "940K", "D_s + D_d": "2M"}
    rows = []
    for row in found.rows:
        if row.paper:
            labels = row.labels
            if name == "two-step":  # sizes of the paper's corpora, which other recipes do not have
                labels = (sizes[labels[0]], "940K" if labels[1] == "D_d" else labels[1])
            rows.append([*labels, *row.paper])
    expected = []
    for row in body:
        author = row[0].rstrip("*")
        expected.append([AUTHORS.get(author, author) + "*" * row[0].endswith("*"), *row[1:]])
    assert rows == expected
    assert all(len(row) == count + len(found.paper_columns) for row in rows)


def test_context_length_has_the_figures_that_the_paper_prints_across():
    numbers, figures = papers_tables()["Effect of context length on translation quality"]
    assert {(*row.labels, *row.paper) for row in table("context-length").rows if row.paper} == set(
        zip(numbers[1:], figures[1:], strict=True)
    )
    assert (*table("context-length").headings, *table("context-length").paper_columns) == (numbers[0], figures[0])


def test_efficiency_has_the_figures_that_the_paper_prints():
    _, *rows = papers_tables()["Evaluation of training and decoding speed"]
    *printed, shares = EFFICIENCY.values()
    assert {name: tuple(figures) for name, *figures in rows} == dict(zip(EFFICIENCY, printed, strict=False))
    speeds = [[float(figure.removesuffix("K")) for figure in figures] for figures in printed]
    assert tuple(f"{ours / base:.2f}" for base, ours in zip(*speeds, strict=True)) == shares


# ---- our figures beside them ----


class Told:
    """A scoreboard that knows a score for each run by its name, and tells what it was asked."""

    class metric:
        name, signature, higher_is_better = "BLEU", "nrefs:4|case:lc", True

    def __init__(self) -> None:
        self.compared: list[tuple[str, str, str]] = []

    def score(self, runs, part):
        return Score(tuple(len(run.name) + run.recipe.seed + len(part.title) / 10 for run in runs))

    def difference(self, baseline, runs, part):
        self.compared.append((baseline[0].name, runs[0].name, part.title))
        return Difference(1, 2, 1.25, Interval(0.5, 2.0), 0.5, 0.0123, 1000, 10_000, "documents")


def some_parts() -> Subsets:
    documents = [ParallelDocument(f"d{n}", ("a", "b"), ("c", "d")) for n in range(3)]
    dev, whole = TestSet("MT06", documents[:2], [["r"] * 4]), TestSet("All", documents, [["r"] * 6])
    parts = (Subset("MT02", whole, frozenset([0])), Subset("MT03", whole, frozenset([1, 2])), Subset("All", whole))
    return Subsets(Subset("MT06", dev), parts, parts[-1])


def test_a_table_has_our_scores_the_gain_and_the_papers_figures():
    board = Told()
    found = filled_in(table("integration"), some_parts(), board)
    names = [column.name for column in found.columns]
    ours = ["MT06", "MT02", "MT03", "All", "gain on All", "95 %", "p"]
    assert names == ["Integration", *ours, *(f"paper: {name}" for name in table("integration").paper_columns)]
    assert [column.paper for column in found.columns] == [False] * 8 + [True] * 7
    none, encoder, *_, control = (dict(zip(names, row, strict=True)) for row in found.rows)
    assert none["gain on All"] == none["95 %"] == none["p"] == ""  # the baseline itself
    assert (encoder["gain on All"], encoder["95 %"], encoder["p"]) == ("+1.25", "+0.50 … +2.00", "0.0123")
    assert encoder["paper: MT02"] == "50.30" and encoder["MT02"] == f"{len('integration-encoder') + 1.4:.2f}"
    assert control["paper: All"] == "" and control["All"] and control["p"]
    rows = ["integration-encoder", "integration-decoder", "document", "control-shuffled", "control-none"]
    assert [name for base, name, _ in board.compared if base == "sentence"] == rows
    over = [(base, name) for base, name, _ in board.compared if base != "sentence"]
    assert over == [("control-shuffled", "document"), ("control-none", "document")]
    assert sum("over its control: " in note and "+1.25 (+0.50 … +2.00), p 0.0123" in note for note in found.notes) == 2
    assert {part for _, _, part in board.compared} == {"All"}
    assert found.as_dict()["figures"][1]["gain"]["p_randomisation"] == 0.0123


def test_what_is_better_when_it_is_lower_has_no_gain():
    """A gain of -1.25 would be read as a loss."""
    board = Told()
    board.metric = make_metric("ter")
    board.metric.statistics(["a"], [["a"]])  # a signature is known once something was measured
    found = filled_in(table("integration"), some_parts(), board)
    assert "difference on All" in [column.name for column in found.columns]
    assert found.notes[0].startswith("TER (lower is better): ") and "Difference over" in found.notes[1]


def test_gaps_are_no_sentences():
    documents = [ParallelDocument(f"d{n}", ("a", "", "b"), ("c", "", "d")) for n in range(2)]
    test = TestSet("Test", documents, [["c", "", "d"] * 2])
    assert len(test) == 4 and len(test.document_of) == 6


@pytest.mark.parametrize("name", ["context-length", "context-layers"])
def test_settings_that_the_paper_chose_on_its_development_set_are_compared_there(name):
    board = Told()
    found = filled_in(table(name), some_parts(), board)
    columns = [column.name for column in found.columns]
    assert columns[1:] == ["MT06", "gain on MT06", "95 %", "p", "paper: MT06"]
    assert {part for _, _, part in board.compared} == {"MT06"}
    assert any("MT06 (2 documents, 4 sentences)" in note for note in found.notes)


def test_the_papers_figures_stand_beside_ours():
    wang = filled_in(table("comparison"), some_parts(), Told()).rows[0]
    assert wang[:2] == ("Wang et al. (2017)", "RNNsearch") and "-" not in wang[2:6]
    assert wang[9:] == ("37.76", "-", "-", "-", "36.89", "27.57", "-")


def test_notes_tell_the_signature_what_was_compared_and_for_how_long():
    notes = filled_in(table("gating"), some_parts(), Told()).notes
    assert notes[0] == "BLEU: nrefs:4|case:lc"
    text = " ".join(notes)
    assert "All (3 documents, 6 sentences)" in text and "over documents" in text
    assert "Step 1: 100 updates; step 2, controls included: 50" in text
    assert "Controls" in text and "±" not in text


def test_several_seeds_give_mean_and_deviation():
    found = filled_in(table("gating", seeds=3), some_parts(), Told())
    assert found.rows[1][1] == f"{len('document') + 2.4:.2f} ± 1.00"
    assert any("3 seeds" in note for note in found.notes)


def test_a_recipe_without_other_sentence_pairs_says_why_rows_repeat():
    recipe = replace(RECIPE, data=replace(RECIPE.data, sentences=()))
    assert any("D_s is empty" in note for note in filled_in(table("two-step", recipe), some_parts(), Told()).notes)
    assert not any("D_s is empty" in note for note in filled_in(table("two-step"), some_parts(), Told()).notes)


# ---- an experiment ----


def asked(recipe: Recipe = RECIPE, names: tuple[str, ...] = NAMES, seeds: int = 1) -> Experiment:
    return make_experiment(recipe, names, seeds)


def test_an_experiment_needs_what_its_tables_need():
    assert set(runs_of(asked(names=tuple(TABLES)))) == set(needed(RECIPE))
    assert set(runs_of(asked())) == {
        *needed(RECIPE),
        *(run for each in all_systems(Systems(RECIPE)) for run in each.runs),
    }
    names = [run.name for run in runs_of(asked(names=("gating",)))]
    assert names == ["sentence", "document", "gating-residual", "control-shuffled", "control-none"]
    assert [run.name for run in runs_of(asked(names=("example",), seeds=3))] == ["sentence", "document"]


def test_the_recipes_own_model_is_trained_even_if_no_row_of_the_table_has_it():
    """Its controls stand in the table, and plots are about it."""
    recipe = replace(RECIPE, context=replace(RECIPE.context, previous=4))
    assert Systems(recipe).document()[0] in runs_of(asked(recipe, ("context-length",)))


def test_who_trains_a_run_translates_what_its_tables_want():
    made = asked(names=("context-layers", "gating", "efficiency"))
    sets = {run.name: sets_of(made, run) for run in runs_of(made)}
    assert sets["layers-3"] == ("dev",)  # the paper chose that on its development set
    assert sets["gating-residual"] == sets["document"] == sets["sentence"] == ("dev", "whole")
    alone = asked(names=("efficiency",))
    assert {sets_of(alone, run) for run in runs_of(alone)} == {()}


def test_seeds_are_trained_in_an_order_in_which_the_recipes_own_comes_first():
    """The others take over its subwords."""
    runs = runs_of(asked(seeds=2))
    assert runs[0] == Systems(RECIPE).sentence()[0]
    assert len(runs) == 2 * len(runs_of(asked()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ("gatings",)}, "unknown table 'gatings'\n.*gating, efficiency"),
        ({"seeds": 0}, "--seeds 0.*\n.*1 or more"),
        ({"recipe": replace(RECIPE, context=ContextConfig(kind="none"))}, "no context.*\n.*context.kind"),
        ({"recipe": replace(RECIPE, context=ContextConfig(integration="none"))}, "no context.*\n.*integration"),
        # Its layers, gates and integration are others: rows would be the same training under several names.
        ({"recipe": replace(RECIPE, context=ContextConfig(kind="voita"))}, "has transformer with voita\n.*systems"),
    ],
)
def test_what_no_table_can_be_made_of_is_refused(change, message):
    with pytest.raises(DocnmtError, match=message):
        asked(**change)
