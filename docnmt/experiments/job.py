"""`docnmt tables`, up to the results: what is requested, which runs that needs, how long they take, training them.

An `Experiment` is what is requested, checked before hours are spent on it; a `Lab` is an experiment with its data
prepared and its test sets read.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table, columns
from docnmt.config import Recipe
from docnmt.corpus.read import detect_format, read_named
from docnmt.data.prepare import Prepared, prepare, prepared_stores
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.contrastive_layouts import read_set
from docnmt.experiments.runs import Run, RunStatus, RunStore, all_needed, status_table, train_here
from docnmt.experiments.scores import Scoreboard, Subsets, Translations, metric_of, parts_of
from docnmt.experiments.tables import TABLES, PaperTable, Row, Systems, all_systems, make_table, needed_by
from docnmt.experiments.timing import Estimates, Range, Shape
from docnmt.model_folder import choose_device
from docnmt.recipes import CORPUS_PATHS
from docnmt.training.identity import context_of, data_keys

EFFICIENCY, EXAMPLE, SYSTEMS = "efficiency", "example", "systems"
PAPER = (*TABLES, EFFICIENCY, EXAMPLE)  # the paper's own
NAMES = (*PAPER, SYSTEMS)
ROLES = ("documents", "sentences", "dev", "test")


@dataclass(frozen=True)
class Pair:
    """A row and what it is compared with."""

    name: str
    against: str
    runs: tuple[Run, ...]
    baseline: tuple[Run, ...]
    claimed: bool = False  # by the paper


@dataclass(frozen=True)
class Experiment:
    """Tables of one recipe."""

    recipe: Recipe
    names: Sequence[str]
    systems: Systems
    tables: Mapping[str, PaperTable]
    pairs: Sequence[Pair]


def make_experiment(
    recipe: Recipe, names: Sequence[str], seeds: int = 1, compare: Iterable[Sequence[str]] = ()
) -> Experiment:
    """`compare` has pairs of rows, by name."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise DocnmtError(f"unknown table {unknown[0]!r}\n  Choose from {', '.join(NAMES)}.")
    if seeds < 1:
        raise DocnmtError(f"--seeds {seeds}: nothing would be trained\n  Use 1 or more.")
    if not recipe.context.active:
        raise DocnmtError(
            "the recipe's model has no context, but the tables compare models with context\n"
            '  Set context.kind = "attention" and context.integration.'
        )
    if recipe.document.start_from or recipe.document.context_from != "own":
        raise DocnmtError(
            "the recipe sets document.start_from or document.context_from, but the tables choose both for each row\n"
            "  Remove them from the recipe."
        )
    kinds = (recipe.model.kind, recipe.context.kind)
    if kinds != ("transformer", "attention"):
        raise DocnmtError(
            f"the paper's tables need the paper's model, but the recipe has {' with '.join(kinds)}\n"
            f'  Set model.kind = "transformer" and context.kind = "attention"; --only {SYSTEMS} has every system.'
        )
    systems = Systems(recipe, seeds)
    tables = {name: make_table(name, systems) for name in names if name in TABLES}
    rows = {name: labelled(table.rows) for name, table in tables.items()}
    if SYSTEMS in names:
        rows[SYSTEMS] = {row.labels[0]: row.runs for row in all_systems(systems)}
    return Experiment(recipe, names, systems, tables, asked_pairs(rows, compare))


def runs_of(experiment: Experiment) -> list[Run]:
    """All that its tables need, in an order in which they can be trained."""
    systems = experiment.systems
    # The recipe's own model is what controls, efficiency, examples and plots are about, in a table's row or not.
    runs = [systems.sentence()[0], systems.document()[0], *needed_by(list(experiment.tables.values()))]
    if SYSTEMS in experiment.names:
        runs += [run for row in all_systems(systems) for run in row.runs]
    return all_needed(runs)


def sets_of(experiment: Experiment, run: Run) -> tuple[str, ...]:
    """What the tables want translated by a run: whoever trains it does that, too, so that scoring is shared out."""
    in_rows = {
        table.on_dev
        for table in experiment.tables.values()
        for row in (*table.rows, Row((), table.baseline))
        if run in (*row.runs, *row.baseline)
    }
    if not in_rows:
        return ()
    return ("dev",) if in_rows == {True} else ("dev", "whole")


# ---- pairs of rows to compare ----

# "Significant improvements over the original Transformer (p < 0.01)", and over Kuang et al.'s cache on it, likewise.
CLAIMS = {"comparison": (("this work", "Vaswani et al. (2017)"), ("this work", "Kuang et al. (2017)*"))}

Rows = Mapping[str, Mapping[str, tuple[Run, ...]]]  # table -> label -> runs, one a seed


def labelled(rows: Sequence[Row]) -> dict[str, tuple[Run, ...]]:
    """A table's rows by all their labels, and by the first one alone where that is unique."""
    ours = [row for row in rows if row.runs]
    first = Counter(row.labels[0] for row in ours)
    named = {row.labels[0]: row.runs for row in ours if first[row.labels[0]] == 1}
    return named | {", ".join(filter(None, row.labels)): row.runs for row in ours}


def asked_pairs(rows: Rows, names: Iterable[Sequence[str]]) -> list[Pair]:
    """The paper's claims about the tables that are made, and the pairs that are named with --compare."""
    claims = [
        Pair(name, other, rows[table][name], rows[table][other], claimed=True)
        for table, pairs in CLAIMS.items()
        if table in rows
        for name, other in pairs
    ]
    asked = [Pair(name, other, _find(rows, name), _find(rows, other)) for name, other in names]
    for pair in asked:
        if pair.runs == pair.baseline:
            raise DocnmtError(
                f"--compare {pair.name!r} {pair.against!r}: both rows are the same runs\n  Give two different rows."
            )
    return [*claims, *asked]


def _find(rows: Rows, name: str) -> tuple[Run, ...]:
    """By its label; where several tables use it for different runs, by TABLE:LABEL."""
    placed = {f"{table}:{label}": runs for table, each in rows.items() for label, runs in each.items()}
    if name in placed:
        return placed[name]
    found = {each[name] for each in rows.values() if name in each}
    if len(found) > 1:
        where = [place for place in placed if place.endswith(f":{name}")]
        raise DocnmtError(
            f"--compare {name!r}: several tables have a row of this name\n  Write one of {', '.join(where)}."
        )
    if not found:
        labels = list(dict.fromkeys(label for each in rows.values() for label in each))
        near = difflib.get_close_matches(name, [*labels, *placed], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Rows: {'; '.join(labels) or 'none'}."
        raise DocnmtError(f"--compare {name!r}: none of the chosen tables has such a row\n  {hint}")
    return found.pop()


# ---- from data to trained runs ----


@dataclass(frozen=True)
class Lab:
    """An experiment with all that its tables are made of."""

    experiment: Experiment
    prepared: Prepared
    store: RunStore
    scoreboard: Scoreboard
    parts: Subsets
    questions: Sequence[Item]
    progress: Progress


def open_lab(experiment: Experiment, progress: Progress, processes: int = 1) -> Lab:
    """Prepares the data for runs in so many processes each."""
    recipe = experiment.recipe
    # What cannot be read or measured is found now, before hours of training.
    metric = metric_of(recipe)
    _check_documents(recipe)
    parts, questions = parts_of(recipe), questions_of(experiment)
    prepared = prepare(recipe, progress)
    if experiment.tables and prepared.documents.card["documents"] < 2:
        raise DocnmtError(
            "data.documents is a single document, but the controls take contexts from other documents\n"
            "  Mark where documents begin: see docs/formats.md."
        )
    store = RunStore(recipe, data_keys(prepared.stores), progress, processes)
    board = Scoreboard(store, Translations(recipe, progress), metric)
    return Lab(experiment, prepared, store, board, parts, questions, progress)


def _check_documents(recipe: Recipe) -> None:
    if not recipe.data.documents:
        raise DocnmtError("the tables need parallel documents\n  Set data.documents in the recipe.")


def questions_of(experiment: Experiment) -> list[Item]:
    """The recipe's contrastive set, which one table alone asks for."""
    data, path = experiment.recipe.data, experiment.recipe.evaluation.contrastive
    wanted = path and SYSTEMS in experiment.names
    return read_set(path, languages=data.languages) if wanted else []


def plan(lab: Lab) -> Table:
    """Every run, how far it is and how long the rest will take."""
    return planned({run: lab.store.status(run) for run in runs_of(lab.experiment)}, Estimates(Shape.of(lab.prepared)))


def planned(runs: Mapping[Run, RunStatus], estimates: Estimates) -> Table:
    names = ("run", "seed", "step", "updates", "done", "time left")
    table = Table("Runs", [Column(name, text=name in ("run", "step")) for name in names])
    left: list[Range | None] = []
    for run, status in runs.items():
        done, time_left = "all", "-"
        if not status.finished:
            left.append(estimates.seconds(run, max(0, run.updates - status.update)))
            done, time_left = f"{status.update:,}", str(left[-1] or "unknown")
        table.add(run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done, time_left)
    known = [each for each in left if each is not None]
    if left and len(known) == len(left):
        table.notes.append(
            f"{sum(known, Range(0.0, 0.0))} of training left, one run after another on this machine: estimated, with "
            "a margin, from a few batches of short, usual and long sentences, timed just now. "
            "Validation and translation take extra time. A run that was stopped resumes where it was."
        )
    elif left:
        table.notes.append("Unknown: there is too little memory here to time enough batches.")
    return table


def train(lab: Lab) -> None:
    """Trains what is missing in this process, and translates with it."""

    def translate(run: Run) -> None:
        for name in sets_of(lab.experiment, run):
            lab.scoreboard.texts(run, getattr(lab.parts, name).test)

    train_here(lab.store, runs_of(lab.experiment), lab.progress, then=translate)


def status(experiment: Experiment, progress: Progress, processes: int = 1) -> Table:
    """How far every run is and who trains it, from what lies on disk; prepares nothing and waits for nobody."""
    data = data_keys(prepared_stores(experiment.recipe))
    return status_table(RunStore(experiment.recipe, data, progress, processes), runs_of(experiment))


# ---- --dry-run: the models built, a sample of the data read, the time estimated ----

SAMPLE = 3  # documents


def dry_run(experiment: Experiment, console: Console) -> list[Table]:
    """Trains nothing and writes nothing; works before the data is there, too."""
    recipe, runs, shape = experiment.recipe, runs_of(experiment), Shape.expected(experiment.recipe)
    metric_of(recipe)
    _check_documents(recipe)
    # What `open_lab` would find wrong, as far as the files are there.
    missing = [role for role, _ in missing_files(recipe)]
    if recipe.data.dev and recipe.data.test and "dev" not in missing and "test" not in missing:
        parts_of(recipe)
    if Path(recipe.evaluation.contrastive).exists():
        questions_of(experiment)
    tables = []
    for table in _overview(recipe, runs, shape):
        table.print(console)
        console.print()
        tables.append(table)
    return tables


def _overview(recipe: Recipe, runs: list[Run], shape: Shape) -> Iterator[Table]:
    """One after another, as some take a while."""
    yield data_table(recipe)
    yield model_table(runs, shape)
    table = planned({run: RunStatus(0, False) for run in runs}, Estimates(shape))
    table.notes.append(f"On this machine ({choose_device(recipe.hardware.device)}), if nothing is done yet.")
    yield table


def missing_files(recipe: Recipe) -> list[tuple[str, str]]:
    """(role, path) of every data file that the recipe names and that is not there."""
    return [(role, path) for role in ROLES for files in getattr(recipe.data, role) for path in _missing(files)]


def _missing(files: CorpusFiles) -> list[str]:
    paths = (getattr(files, name) for name in CORPUS_PATHS)
    return [path for path in paths if path and not Path(path).exists()]


def data_table(recipe: Recipe) -> Table:
    table = Table("Data", columns("role", "file", "format", "sample", text=4))
    for role in ROLES:
        if not getattr(recipe.data, role):
            table.add(role, "-", "", "optional" if role == "sentences" else f"not given: set data.{role}")
        for files in getattr(recipe.data, role):
            if lacks := _missing(files):
                table.add(role, str(files), files.format, f"missing: {', '.join(lacks)}")
            else:
                table.add(role, str(files), detect_format(files), _contents(files, role, recipe))
    if contrastive := recipe.evaluation.contrastive:
        table.add("contrastive", contrastive, "", "found" if Path(contrastive).exists() else "missing")
    return table


def _contents(files: CorpusFiles, role: str, recipe: Recipe) -> str:
    found = read_named(recipe.data, files, recipe.data.on_bad(), sentence_level=role == "sentences")
    documents = list(islice(found, SAMPLE))
    first = documents[0]
    sizes = ", ".join(str(len(document)) for document in documents)
    return f"{len(documents)} read ({sizes} sentences); {first.id}: {first.source[0][:40]} | {first.target[0][:40]}"


def model_table(runs: list[Run], shape: Shape) -> Table:
    """The sizes of the models, from building them."""
    table = Table("Models", columns("run", "parameters", "trained"))
    for run in runs:
        with torch.device("meta"):  # only its shape is asked for
            model = shape.build(run.recipe, context_of(run.recipe, run.step))
        total = sum(parameter.numel() for parameter in model.parameters())
        trained = sum(p.numel() for _, p in model.document_parameters()) if run.frozen else total
        table.add(run.name, f"{total:,}", f"{trained:,}")
    table.notes.append(f"With vocabularies of {shape.source_vocabulary:,} and {shape.target_vocabulary:,} pieces.")
    return table
