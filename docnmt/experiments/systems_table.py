"""All systems in one table: what they gain over their own base, what is left of it with shuffled contexts, what they
get right that only context can tell, and what they cost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError
from docnmt.base.report import Column, Table
from docnmt.config import Recipe
from docnmt.decoding.translator import Translator, load
from docnmt.evaluation.contrastive import Verdict, groups, judge, sees_translations
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.contrastive_layouts import read_set
from docnmt.evaluation.scores import signature_notes
from docnmt.experiments.pairs import told
from docnmt.experiments.paper import BASES, MODELS, OURS, OURS_NOTE, RIVALS
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import gain_word
from docnmt.experiments.tables import Systems
from docnmt.experiments.timing import Speed, setting

if TYPE_CHECKING:
    from docnmt.experiments.job import Job

SHUFFLED = "shuffled"


@dataclass(frozen=True)
class Entry:
    """A row: a system, or a base."""

    authors: str
    base: str
    runs: tuple[Run, ...]
    baseline: tuple[Run, ...] = ()  # none: it is a base itself

    @property
    def name(self) -> str:
        return self.runs[0].name

    @property
    def context(self) -> str:
        """What it is called in a recipe, and what it sees."""
        if not self.baseline:
            return "none"
        config = self.runs[0].recipe.context
        return f"{config.kind}, {config.previous} before"


def all_systems(systems: Systems) -> list[Entry]:
    entries = []
    for base, authors in BASES.items():
        baseline = systems.base(base)
        entries.append(Entry(authors, base, baseline))
        entries += [
            Entry(rival.authors, base, systems.rival(rival), baseline)
            for rival in RIVALS.values()
            if rival.base == base
        ]
    baseline = systems.sentence()
    return [
        *entries,
        Entry("this work", "transformer", systems.paper_model(), baseline),
        Entry(OURS, "transformer", systems.ours(), baseline),
    ]


def read_questions(recipe: Recipe) -> list[Item]:
    """The recipe's contrastive set."""
    path = recipe.evaluation.contrastive
    languages = recipe.data.source_language, recipe.data.target_language
    return read_set(path, languages=languages) if path else []


def with_foreign_contexts(items: Sequence[Item], seed: int) -> list[Item]:
    """Each item with the context of one from another document, with as many sentences before it if possible."""
    generator, found = random.Random(seed), []
    for item in items:
        other = _from_another_document(item, items, generator)
        first = max(0, len(other.previous) - len(item.previous))
        sides = other.previous[first:], other.previous_target[first:]
        found.append(replace(item, previous=sides[0], previous_target=sides[1], following=other.following))
    return found


def _from_another_document(item: Item, items: Sequence[Item], generator: random.Random) -> Item:
    drawn = generator.choices(items, k=50)  # some: large sets have many thousands
    others = [other for other in drawn if other.document != item.document]
    others = others or [other for other in items if other.document != item.document]
    if not others:
        raise DocnmtError(
            f"document {item.document}: the contrastive set has no other to take wrong contexts from\n"
            "  Use a set of two documents or more."
        )
    return max(others, key=lambda other: min(len(other.previous), len(item.previous)))


@dataclass(frozen=True)
class Answers:
    """Accuracies in percent, by heading; the last is with shuffled contexts."""

    percent: dict[str, float]
    shuffled: float
    sees_translations: bool


def answer(translator: Translator, items: Sequence[Item], foreign: Sequence[Item]) -> Answers:
    found = groups(items, {"": judge(translator, items, None)})
    shares = {_heading(group.kind, group.name): group.accuracy[""].percent for group in found}
    return Answers(shares, _share(judge(translator, foreign, None)), sees_translations(translator, None))


def _heading(kind: str, name: str) -> str:
    return {"all": "context words", "distance": f"{name} back"}.get(kind, name)


def _share(verdicts: Sequence[Verdict]) -> float:
    return 100 * sum(verdict.right for verdict in verdicts) / len(verdicts)


def systems_table(job: Job) -> Table:
    entries, items = all_systems(job.systems), job.questions
    foreign = with_foreign_contexts(items, job.recipe.seed) if items else []
    answers: dict[str, Answers] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for entry in job.progress.track(entries, "judge systems", total=len(entries), unit="systems"):
        translator = load(job.workshop.model(entry.runs[0]), job.recipe.hardware.device)
        sizes[entry.name] = _parameters(translator)
        if items:
            answers[entry.name] = answer(translator, items, foreign)
    speeds = job.speeds({entry.name: entry.runs[0] for entry in entries})
    headings = list(answers[entries[0].name].percent) if items else []
    return _table(job, entries, answers, headings, sizes, speeds)


def _parameters(translator: Translator) -> tuple[int, int]:
    """Of the base, and those that the system adds to it."""
    model = translator.model
    base, added = model.sentence_parameters(), model.document_parameters()
    return sum(p.numel() for _, p in base), sum(p.numel() for _, p in added)


def _table(
    job: Job,
    entries: Sequence[Entry],
    answers: dict[str, Answers],
    headings: Sequence[str],
    sizes: dict[str, tuple[int, int]],
    speeds: dict[str, Speed],
) -> Table:
    board, whole = job.scoreboard, job.parts.whole
    columns = [Column(name, text=True) for name in ("System", "Model", "Context")]
    columns += map(
        Column, (board.metric.name, gain_word(board.metric), "95 %", "p", f"{board.metric.name} shuffled", *headings)
    )
    columns += [Column("context words shuffled")] if headings else []
    columns += map(Column, ("updates", "parameters", "added", "training", "decoding"))
    table = Table("All systems, each after the same step 1 of its base", columns)
    for entry in entries:
        score, gain, shuffled = board.score(entry.runs, whole), ("", "", ""), ""
        if entry.baseline:
            gain = told(board.difference(entry.baseline, entry.runs, whole))
            shuffled = str(board.score(entry.runs, whole, SHUFFLED))
        cells = [str(score), *gain, shuffled]
        if headings:
            said = answers[entry.name]
            cells += [f"{said.percent[heading]:.1f}" for heading in headings]
            cells += [f"{said.shuffled:.1f}" if entry.baseline else ""]
        base, added = sizes[entry.name]
        cells += [f"{entry.runs[0].updates:,}", f"{base:,}", f"{added:,}" if entry.baseline else ""]
        cells += _rates(speeds[entry.name])
        table.add(
            entry.authors, MODELS[entry.base], entry.context, *cells, rule=not entry.baseline and bool(table.rows)
        )
        table.figures.append(_numbers(entry, board.score(entry.runs, whole).values, answers, sizes, speeds))
    table.notes = _notes(job, answers)
    return table


def _rates(speed: Speed) -> tuple[str, str]:
    return f"{speed.training:,.0f}", f"{speed.decoding:,.0f}"


def _numbers(
    entry: Entry,
    scores: tuple[float, ...],
    answers: dict[str, Answers],
    sizes: dict[str, tuple[int, int]],
    speeds: dict[str, Speed],
) -> dict[str, object]:
    said, speed = answers.get(entry.name), speeds[entry.name]
    return {
        "row": (entry.authors, entry.base),
        "scores": scores,  # one a seed
        "accuracy": said.percent if said else {},
        "accuracy_shuffled": said.shuffled if said else None,
        "parameters": sizes[entry.name],
        "training": speed.training,
        "decoding": speed.decoding,
    }


def _notes(job: Job, answers: dict[str, Answers]) -> list[str]:
    recipe, test = job.recipe, job.parts.whole.test
    notes = [
        *signature_notes([job.scoreboard.metric]),
        f"{gain_word(job.scoreboard.metric).capitalize()} over the system's own base on {len(test.documents):,} "
        f"documents, {len(test):,} sentences: interval by bootstrap, p by swaps, both over documents.",
        "Updates: of step 1 for a base, of step 2 for the others, which start from their base's.",
        "Shuffled: the same model, decoded or asked with contexts of other documents.",
        OURS_NOTE,
    ]
    if answers:
        notes.append(
            f"Context words: percent of {len(job.questions):,} items of "
            f"{recipe.evaluation.contrastive.rsplit('/')[-1]} in which the right translation is more probable than "
            "every wrong one, by what decides and how many sentences back it stands."
        )
    if any(said.sees_translations for said in answers.values()):
        notes.append("Systems that see translations are shown the gold ones of the set there, their own in decoding.")
    notes.append(f"Training and decoding: words a second; {setting(recipe)}")
    return notes
