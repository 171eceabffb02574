"""`docnmt tables`: lists the runs that the tables need, trains those that are missing, and fills the tables in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.config import Recipe
from docnmt.data.prepare import Prepared, prepare, prepared_stores
from docnmt.evaluation.comparison import few_note
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.scores import signature_notes
from docnmt.evaluation.significance import Difference
from docnmt.experiments.estimate import Shape, Stopwatch, missing_files, planned
from docnmt.experiments.pairs import asked_pairs, labelled, pairs_table, told
from docnmt.experiments.pool import train_here
from docnmt.experiments.report import examples_table, find_examples
from docnmt.experiments.runs import Run, Workshop, all_needed, standings_table
from docnmt.experiments.scores import Parts, Score, Scoreboard, Translations, gain_word, metric_of, parts_of
from docnmt.experiments.systems_table import all_systems, read_questions, systems_table
from docnmt.experiments.tables import TABLES, PaperTable, Row, Systems, make_table, needed_by
from docnmt.experiments.timing import Speed, efficiency_table, measure
from docnmt.training.identity import data_keys

EFFICIENCY, EXAMPLE, SYSTEMS = "efficiency", "example", "systems"
PAPER = (*TABLES, EFFICIENCY, EXAMPLE)  # the paper's own
NAMES = (*PAPER, SYSTEMS)

# What is not as in the paper where step 2 starts as exactly the sentence model.
_STARTS = {
    "gating": "Both rows start as exactly the sentence model: they add to it, gated or not, with no layer norm after.",
    "two-step": "Documents alone, with no sentence model to start from, has the paper's gates, with a layer norm after "
    "each; the other rows start as exactly the sentence model and have none.",
}


@dataclass
class Job:
    """The tables of one recipe."""

    recipe: Recipe
    names: Sequence[str]
    seeds: int
    progress: Progress
    console: Console
    compare: Sequence[Sequence[str]] = ()  # pairs of rows, by name
    processes: int = 1  # that train a run together
    prepared: Prepared = field(init=False)
    workshop: Workshop = field(init=False)
    scoreboard: Scoreboard = field(init=False)
    parts: Parts = field(init=False)
    questions: list[Item] = field(init=False)

    def __post_init__(self) -> None:
        unknown = [name for name in self.names if name not in NAMES]
        if unknown:
            raise DocnmtError(f"no table is called {unknown[0]!r}\n  Choose from {', '.join(NAMES)}.")
        if self.seeds < 1:
            raise DocnmtError(f"{self.seeds} seeds: nothing would be trained\n  Use --seeds 1 or more.")
        if not self.recipe.context.active:
            raise DocnmtError(
                "the recipe's model has no context: the tables compare models that have one\n"
                '  Set context.kind = "attention" and context.integration.'
            )
        step = self.recipe.document
        if step.start_from or step.context_from != "own":
            raise DocnmtError(
                "the recipe sets document.start_from or document.context_from: the tables choose both for each row\n"
                "  Take them out of the recipe."
            )
        kinds = (self.recipe.model.kind, self.recipe.context.kind)
        if kinds != ("transformer", "attention"):
            raise DocnmtError(
                f"the tables are about the paper's model, and the recipe's is {' with '.join(kinds)}\n"
                f'  Set model.kind = "transformer" and context.kind = "attention"; --only {SYSTEMS} has every system.'
            )
        self.systems = Systems(self.recipe, self.seeds)
        self.tables = {name: make_table(name, self.systems) for name in self.names if name in TABLES}
        self.pairs = asked_pairs(self._rows(), self.compare)

    def _rows(self) -> dict[str, dict[str, tuple[Run, ...]]]:
        """All rows with scores of ours, by table and by what stands in front of them."""
        rows = {name: labelled(table.rows) for name, table in self.tables.items()}
        if SYSTEMS in self.names:
            rows[SYSTEMS] = {entry.authors: entry.runs for entry in all_systems(self.systems)}
        return rows

    def runs(self) -> list[Run]:
        # The recipe's own model is what controls, efficiency, examples and plots are about, in a table's row or not.
        own = [self.systems.sentence()[0], self.systems.document()[0]]
        compared = [run for each in all_systems(self.systems) for run in each.runs] if SYSTEMS in self.names else []
        return all_needed([*own, *needed_by(list(self.tables.values())), *compared])

    def prepare(self) -> None:
        # What cannot be read or measured is found now, before hours of training.
        metric = metric_of(self.recipe)
        self._check_documents()
        self.parts, self.questions = parts_of(self.recipe), self._questions()
        self.prepared = prepare(self.recipe, self.progress)
        if self.tables and self.prepared.documents.card["documents"] < 2:
            raise DocnmtError(
                "data.documents is a single document: the controls take contexts from others\n"
                "  Mark where documents begin: see docs/formats.md."
            )
        self.workshop = Workshop(self.recipe, data_keys(self.prepared.stores), self.progress, self.processes)
        self.scoreboard = Scoreboard(self.workshop, Translations(self.recipe, self.progress), metric)

    def check(self) -> None:
        """What `prepare` would find wrong with the recipe, as far as its files are there."""
        metric_of(self.recipe)
        self._check_documents()
        named = self.recipe.data.dev and self.recipe.data.test
        if named and not any(role in ("dev", "test") for role, _ in missing_files(self.recipe)):
            parts_of(self.recipe)
        if Path(self.recipe.evaluation.contrastive).exists():
            self._questions()

    def _check_documents(self) -> None:
        if not self.recipe.data.documents:
            raise DocnmtError("the tables need parallel documents\n  Set data.documents in the recipe.")

    def _questions(self) -> list[Item]:
        """The contrastive set, which one table alone asks for."""
        return read_questions(self.recipe) if SYSTEMS in self.names else []

    def plan(self) -> Table:
        """Every run, how far it is and how long the rest will take."""
        standings = {run: self.workshop.standing(run) for run in self.runs()}
        return planned(standings, Stopwatch(Shape.of(self.prepared)))

    def train(self) -> None:
        train_here(self.workshop, self.runs(), self.progress, then=self._translate)

    def sets_of(self, run: Run) -> tuple[str, ...]:
        """What the tables want translated by a run: who trains it does that, too, so that scoring is shared out."""
        rows = [
            (each, table.on_dev) for table in self.tables.values() for each in (*table.rows, Row((), table.baseline))
        ]
        in_rows = {on_dev for row, on_dev in rows if run in (*row.runs, *row.baseline)}
        if not in_rows:
            return ()
        return ("dev",) if in_rows == {True} else ("dev", "whole")

    def _translate(self, run: Run) -> None:
        for name in self.sets_of(run):
            self.scoreboard.texts(run, getattr(self.parts, name).test)

    def status(self) -> Table:
        """How far every run is and who trains it, from what lies on disk; prepares nothing and waits for nobody."""
        data = data_keys(prepared_stores(self.recipe))
        return standings_table(Workshop(self.recipe, data, self.progress, self.processes), self.runs())

    def results(self) -> Iterable[Table]:
        for name in self.names:
            if name == EFFICIENCY:
                yield self._efficiency()
            elif name == EXAMPLE:
                yield self._example()
            elif name == SYSTEMS:
                yield systems_table(self)
            else:
                yield filled_in(self.tables[name], self.parts, self.scoreboard)
        if self.pairs:
            yield pairs_table(self.pairs, self.parts, self.scoreboard)

    def _efficiency(self) -> Table:
        runs = {"Transformer": self.systems.sentence()[0], "this work": self.systems.document()[0]}
        return efficiency_table(self.speeds(runs), self.recipe)

    def speeds(self, runs: dict[str, Run]) -> dict[str, Speed]:
        models = {name: (run, self.workshop.model(run)) for name, run in runs.items()}
        return measure(models, self.prepared, self.parts.whole.test.sources, self.progress)

    def _example(self) -> Table:
        test = self.parts.whole.test
        plain, informed = (
            self.scoreboard.texts(runs[0], test) for runs in (self.systems.sentence(), self.systems.document())
        )
        return examples_table(find_examples(test, plain, informed, self.recipe.context.spec))


def filled_in(table: PaperTable, parts: Parts, scoreboard: Scoreboard) -> Table:
    """A paper's table with our figures and, beside them, the paper's."""
    columns = (parts.dev,) if table.on_dev else (parts.dev, *parts.tests)
    judged = parts.dev if table.on_dev else parts.whole
    result = Table(
        table.title,
        (
            *(Column(heading, text=True) for heading in table.headings),
            *(Column(part.title) for part in columns),
            *(Column(heading) for heading in (f"{gain_word(scoreboard.metric)} on {judged.title}", "95 %", "p")),
            *(Column(f"paper: {heading}", paper=True) for heading in table.paper_columns),
        ),
    )
    for row in table.rows:
        figures = row.paper or ("",) * len(table.paper_columns)
        if row.runs:
            scores = {part.title: scoreboard.score(row.runs, part) for part in columns}
            baseline = row.baseline or table.baseline
            against = None if row.runs == baseline else scoreboard.difference(baseline, row.runs, judged)
            result.add(*row.labels, *map(str, scores.values()), *told(against), *figures, rule=row.rule)
            result.figures.append(_numbers(row, scores, against))
        else:
            result.add(*row.labels, *("-" for _ in columns), "", "", "", *figures, rule=row.rule)
    result.notes = _notes(table, parts, scoreboard, judged.title)
    return result


def _numbers(row: Row, scores: dict[str, Score], against: Difference | None) -> dict[str, Any]:
    return {
        "row": row.labels,
        "scores": {title: score.values for title, score in scores.items()},  # one a seed
        "gain": None if against is None else asdict(against),
    }


def _over_control(table: PaperTable, row: Row, scoreboard: Scoreboard, parts: Parts) -> str:
    found = scoreboard.difference(row.runs, table.own, parts.dev if table.on_dev else parts.whole)
    gain, interval, p = told(found)
    return f"The recipe's own model over its {row.labels[0]}: {gain} ({interval}), p {p}."


def _notes(table: PaperTable, parts: Parts, scoreboard: Scoreboard, judged: str) -> list[str]:
    seeds = max(len(row.runs) for row in table.rows)
    test = parts.dev.test if table.on_dev else parts.whole.test
    recipe = table.baseline[0].recipe
    notes = [
        *signature_notes([scoreboard.metric]),
        f"{gain_word(scoreboard.metric).capitalize()} over the sentence model on {judged} "
        f"({len(test.documents):,} documents, {len(test):,} sentences): "
        "interval by bootstrap, p by swaps, both over documents.",
        *(f"{note}." for note in few_note(len(test.documents), "documents")),
        f"Step 1: {recipe.sentence.updates:,} updates; step 2, controls included: {recipe.document.updates:,}.",
        "Controls: the recipe's own model with wrong contexts, decoded as they were trained. What they gain is no gain "
        "from context; what its true context gives is its gain over them.",
        *(_over_control(table, row, scoreboard, parts) for row in table.rows if row.control),
    ]
    if table.name == "context-length":
        notes.append(
            "All rows have the same sentences in each update, those of the recipe's own, however long contexts are."
        )
    if table.name == "comparison":
        notes.append("Systems on RNNsearch gain over RNNsearch alone, which stands in the table of all systems.")
    if seeds > 1:
        notes.append(f"Mean ± standard deviation of {seeds} seeds; gain, interval and p of all seeds together.")
    if table.name == "two-step":
        both = recipe.sentence.updates + recipe.document.updates
        notes.append(
            f"Documents alone (sent. -): everything from scratch, {both:,} updates, as both steps together, "
            "at step 1's rate."
        )
    notes += table.notes
    if recipe.context.start == "sentence" and table.name in _STARTS:
        notes.append(f'{_STARTS[table.name]} Set context.start = "paper" for the paper\'s own.')
    if table.name == "two-step" and not recipe.data.sentences:
        notes.append("This recipe has no sentence pairs beside its documents: D_s is empty, so rows repeat.")
    return notes
