"""The tables of an experiment, filled in: our scores next to the paper's figures, pairs of rows, all systems, speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docnmt.base.report import Column, Table
from docnmt.decoding.translator import Translator, load
from docnmt.evaluation.comparison import few_note
from docnmt.evaluation.contrastive import judge, sees_translations, with_shuffled_contexts
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.contrastive_report import groups
from docnmt.evaluation.scores import signature_notes
from docnmt.evaluation.significance import Difference
from docnmt.experiments import job
from docnmt.experiments.job import Lab, Pair
from docnmt.experiments.report import examples_table, find_examples
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import Score, Scoreboard, Subset, Subsets, gain_word
from docnmt.experiments.tables import EFFICIENCY, OURS_NOTE, PaperTable, Row, all_systems
from docnmt.experiments.timing import Speed, measure, setting


def results(lab: Lab) -> Iterator[Table]:
    """One after another, as some take a while."""
    experiment = lab.experiment
    for name in experiment.names:
        if name == job.EFFICIENCY:
            yield _efficiency(lab)
        elif name == job.EXAMPLE:
            yield _example(lab)
        elif name == job.SYSTEMS:
            yield _systems(lab)
        else:
            yield filled_in(experiment.tables[name], lab.parts, lab.scoreboard)
    if experiment.pairs:
        yield pairs_table(experiment.pairs, lab.parts, lab.scoreboard)


def shown(difference: Difference | None) -> tuple[str, str, str]:
    """Difference, interval and p as tables show them; nothing where there is nothing to compare with."""
    if difference is None:
        return "", "", ""
    low, high = difference.interval.low, difference.interval.high
    return f"{difference.difference:+.2f}", f"{low:+.2f} … {high:+.2f}", f"{difference.p_randomisation:.4f}"


# ---- a table of the paper ----

# What is not as in the paper where step 2 starts as exactly the sentence model.
_STARTS = {
    "gating": "Both rows start as exactly the sentence model: they add to it, gated or not, without a layer norm.",
    "two-step": "Documents alone, with no sentence model to start from, has the paper's gates, with a layer norm after "
    "each; the other rows start as exactly the sentence model and have none.",
}


def filled_in(table: PaperTable, parts: Subsets, scoreboard: Scoreboard) -> Table:
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
            gain = None if row.runs == baseline else scoreboard.difference(baseline, row.runs, judged)
            result.add(*row.labels, *map(str, scores.values()), *shown(gain), *figures, rule=row.rule)
            result.figures.append(
                {
                    "row": row.labels,
                    "scores": {title: score.values for title, score in scores.items()},  # one a seed
                    "gain": None if gain is None else asdict(gain),
                }
            )
        else:
            result.add(*row.labels, *("-" for _ in columns), "", "", "", *figures, rule=row.rule)
    result.notes = _notes(table, judged, scoreboard)
    return result


def _notes(table: PaperTable, judged: Subset, scoreboard: Scoreboard) -> list[str]:
    seeds = max(len(row.runs) for row in table.rows)
    recipe, test = table.baseline[0].recipe, judged.test
    notes = [
        *signature_notes([scoreboard.metric]),
        f"{gain_word(scoreboard.metric).capitalize()} over the sentence model on {judged.title} "
        f"({len(test.documents):,} documents, {len(test):,} sentences): "
        "interval by bootstrap, p by swaps, both over documents.",
        *(f"{note}." for note in few_note(len(test.documents), "documents")),
        f"Step 1: {recipe.sentence.updates:,} updates; step 2, controls included: {recipe.document.updates:,}.",
        "Controls: the recipe's own model with wrong contexts, decoded as it was trained. What they gain is not a gain "
        "from context; the gain from the true context is the model's gain over them.",
    ]
    for row in table.rows:
        if row.control:
            gain, interval, p = shown(scoreboard.difference(row.runs, table.own, judged))
            notes.append(f"The recipe's own model over its {row.labels[0]}: {gain} ({interval}), p {p}.")
    if table.name == "context-length":
        notes.append(
            "All rows have the same sentences in each update as the recipe's own model, however long contexts are."
        )
    if table.name == "comparison":
        notes.append("The gain of systems on RNNsearch is over RNNsearch alone, which is in the table of all systems.")
    if seeds > 1:
        notes.append(f"Mean ± standard deviation over {seeds} seeds; gain, interval and p over all seeds together.")
    if table.name == "two-step":
        both = recipe.sentence.updates + recipe.document.updates
        notes.append(
            f"Documents alone (sent. -): everything from scratch, {both:,} updates, as many as both steps together, "
            "at step 1's rate."
        )
    notes += table.notes
    if recipe.context.start == "sentence" and table.name in _STARTS:
        notes.append(f'{_STARTS[table.name]} Set context.start = "paper" for the paper\'s own.')
    if table.name == "two-step" and not recipe.data.sentences:
        notes.append("This recipe has no sentence pairs besides its documents: D_s is empty, so rows repeat.")
    return notes


# ---- any two rows beside each other ----


def pairs_table(pairs: Sequence[Pair], parts: Subsets, scoreboard: Scoreboard) -> Table:
    """How much they differ on each set, and whether that could be chance."""
    texts = [Column(name, text=True) for name in ("row", "against", "set")]
    figures = [Column(name) for name in (scoreboard.metric.name, "the other's", "difference", "95 %", "p")]
    claimed = any(pair.claimed for pair in pairs)
    table = Table("Pairs of rows", (*texts, *figures, *([Column("paper: p", paper=True)] if claimed else [])))
    for pair in pairs:
        for part in (parts.dev, *parts.tests):
            found = scoreboard.difference(pair.baseline, pair.runs, part)
            first = part is parts.dev
            names = (pair.name, pair.against) if first else ("", "")
            scores = f"{found.system:.2f}", f"{found.baseline:.2f}"
            claim = ["< 0.01" if pair.claimed and part is parts.whole else ""] if claimed else []
            table.add(*names, part.title, *scores, *shown(found), *claim, rule=first and bool(table.rows))
            table.figures.append({"row": pair.name, "against": pair.against, "set": part.title, **asdict(found)})
    whole = parts.whole
    table.notes += [
        *signature_notes([scoreboard.metric]),
        "Intervals by bootstrap, p by swapping the two rows' outputs, both over documents. For a set of few documents, "
        "all ways to swap them are counted.",
        *(f"{whole.title}: {note[0].lower()}{note[1:]}." for note in few_note(len(whole.test.documents), "documents")),
    ]
    return table


# ---- speed, examples ----


def _speeds(lab: Lab, runs: Mapping[str, Run]) -> dict[str, Speed]:
    models = {name: (run, lab.store.model(run)) for name, run in runs.items()}
    return measure(models, lab.prepared, lab.parts.whole.test.sources, lab.progress)


def _efficiency(lab: Lab) -> Table:
    systems = lab.experiment.systems
    speeds = _speeds(lab, {"Transformer": systems.sentence()[0], "this work": systems.document()[0]})
    headings = ("Training", "Decoding")
    columns = (
        Column("Method", text=True),
        *map(Column, headings),
        *(Column(f"paper: {h}", paper=True) for h in headings),
    )
    table = Table("Evaluation of training and decoding speed, in words per second", columns)
    for name, speed in speeds.items():
        table.add(name, f"{speed.training:,.0f}", f"{speed.decoding:,.0f}", *EFFICIENCY[name])
    base, ours = speeds.values()
    pairs = (ours.training, base.training), (ours.decoding, base.decoding)
    shares = [f"{one / other:.2f}" if other else "-" for one, other in pairs]  # a model may say nothing at all
    both = "this work / Transformer"
    table.add(both, *shares, *EFFICIENCY[both], rule=True)
    table.notes += [
        f"Ours: {setting(lab.experiment.recipe)}",
        "The paper's: Tesla P40 GPUs, four for training and one for decoding; its shares follow from its figures.",
    ]
    return table


def _example(lab: Lab) -> Table:
    systems, test = lab.experiment.systems, lab.parts.whole.test
    plain, informed = (lab.scoreboard.texts(runs[0], test) for runs in (systems.sentence(), systems.document()))
    return examples_table(find_examples(test, plain, informed, lab.experiment.recipe.context.spec))


# ---- all systems: what they gain, what is left with shuffled contexts, what only context can tell, what they cost ----


@dataclass(frozen=True)
class Measured:
    """A system: accuracies in percent on the contrastive set, if there is one, parameters and speed."""

    score: Score
    parameters: tuple[int, int]  # of the base, and those that the system adds to it
    speed: Speed
    accuracy: Mapping[str, float]  # by heading
    accuracy_shuffled: float | None
    sees_translations: bool


def _systems(lab: Lab) -> Table:
    board, whole, rows = lab.scoreboard, lab.parts.whole, all_systems(lab.experiment.systems)
    measured = _measured(lab, rows)
    headings = list(measured[0].accuracy)
    name = board.metric.name
    columns = [Column(heading, text=True) for heading in ("System", "Model", "Context")]
    columns += map(Column, (name, gain_word(board.metric), "95 %", "p", f"{name} shuffled", *headings))
    columns += [Column("context words shuffled")] if headings else []
    columns += map(Column, ("updates", "parameters", "added", "training", "decoding"))
    table = Table("All systems, each after the same step 1 of its base", columns)
    for row, found in zip(rows, measured, strict=True):
        cells = [str(found.score)]
        if row.baseline:
            cells += shown(board.difference(row.baseline, row.runs, whole))
            cells += [str(board.score(row.runs, whole, "shuffled"))]
        else:
            cells += [""] * 4
        cells += [f"{found.accuracy[heading]:.1f}" for heading in headings]
        if headings:
            cells += [f"{found.accuracy_shuffled:.1f}" if row.baseline else ""]
        base, added = found.parameters
        cells += [f"{row.runs[0].updates:,}", f"{base:,}", f"{added:,}" if row.baseline else ""]
        cells += [f"{found.speed.training:,.0f}", f"{found.speed.decoding:,.0f}"]
        table.add(*row.labels, *cells, rule=row.rule and bool(table.rows))
        table.figures.append(_figures(row, found))
    table.notes = _systems_notes(lab, measured)
    return table


def _measured(lab: Lab, rows: Sequence[Row]) -> list[Measured]:
    recipe, items = lab.experiment.recipe, lab.questions
    foreign = with_shuffled_contexts(items, recipe.seed) if items else []
    looked_at = []
    for row in lab.progress.track(rows, "judge systems", total=len(rows), unit="systems"):
        translator = load(lab.store.model(row.runs[0]), recipe.hardware.device)
        sides = translator.model.sentence_parameters(), translator.model.document_parameters()
        base, added = (sum(parameter.numel() for _, parameter in side) for side in sides)
        answers = _answers(translator, items, foreign) if items else ({}, None, False)
        looked_at.append(((base, added), answers))
    speeds = _speeds(lab, {row.runs[0].name: row.runs[0] for row in rows})
    return [
        Measured(lab.scoreboard.score(row.runs, lab.parts.whole), sizes, speeds[row.runs[0].name], *answers)
        for row, (sizes, answers) in zip(rows, looked_at, strict=True)
    ]


def _answers(
    translator: Translator, items: Sequence[Item], foreign: Sequence[Item]
) -> tuple[dict[str, float], float, bool]:
    found = groups(items, {"": judge(translator, items, None)})
    headings = [
        {"all": "context words", "distance": f"{group.name} back"}.get(group.kind, group.name) for group in found
    ]
    shares = {heading: group.accuracy[""].percent for heading, group in zip(headings, found, strict=True)}
    verdicts = judge(translator, foreign, None)
    shuffled = 100 * sum(verdict.right for verdict in verdicts) / len(verdicts)
    return shares, shuffled, sees_translations(translator, None)


def _figures(row: Row, found: Measured) -> dict[str, Any]:
    return {
        "row": (row.labels[0], row.runs[0].recipe.model.kind),
        "scores": found.score.values,  # one a seed
        "accuracy": found.accuracy,
        "accuracy_shuffled": found.accuracy_shuffled,
        "parameters": found.parameters,
        "training": found.speed.training,
        "decoding": found.speed.decoding,
    }


def _systems_notes(lab: Lab, measured: Sequence[Measured]) -> list[str]:
    recipe, test, metric = lab.experiment.recipe, lab.parts.whole.test, lab.scoreboard.metric
    notes = [
        *signature_notes([metric]),
        f"{gain_word(metric).capitalize()} over the system's own base on {len(test.documents):,} "
        f"documents, {len(test):,} sentences: interval by bootstrap, p by swaps, both over documents.",
        "Updates: of step 1 for a base, of step 2 for the others, which start from their base.",
        "Shuffled: the same model, decoded or scored with contexts of other documents.",
        OURS_NOTE,
    ]
    if lab.questions:
        notes.append(
            f"Context words: percent of {len(lab.questions):,} items of "
            f"{recipe.evaluation.contrastive.rsplit('/')[-1]} in which the right translation is more probable than "
            "every wrong one, by what decides and how many sentences back it is."
        )
    if any(found.sees_translations for found in measured):
        notes.append("There, systems that see translations are shown the set's gold ones; in decoding, their own.")
    notes.append(f"Training and decoding: words per second; {setting(recipe)}")
    return notes
