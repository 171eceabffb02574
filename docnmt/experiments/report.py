"""The report of `docnmt tables`: the tables, and plots of what lies behind them, in one page without a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from docnmt.base.report import Column, Table, page, write_page
from docnmt.decoding.translator import load
from docnmt.evaluation.context_trace import gate_by_layer
from docnmt.evaluation.significance import compare
from docnmt.experiments.plots import Bar, Line, bar_plot, line_plot
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import gain_word
from docnmt.training.checkpoint import read_record

if TYPE_CHECKING:
    from docnmt.experiments.job import Job

LENGTHS = ((1, 5), (6, 10), (11, 20), (21, 30), (31, None))  # source pieces: Chinese has no words to count
POSITIONS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, None))  # in the document, from 1
CONTROLS = {"shuffled": "shuffled", "none": "no"}  # document.context_from -> how the tables call it
FEWEST = 20  # sentences in a bin, to say anything about it


def write_report(path: Path, job: Job, tables: Sequence[Table]) -> None:
    data, documents = job.recipe.data, job.prepared.documents
    lead = (
        f"{data.source_language} to {data.target_language}, {documents.pairs:,} sentence pairs in "
        f"{documents.card['documents']:,} documents and {job.prepared.sentences.pairs:,} more sentence pairs. Figures "
        "in italics are the paper's (Zhang et al., 2018), on other data: compare what follows from what, not their "
        "size."
    )
    if job.seeds > 1:
        lead += f" Scores are of {job.seeds} seeds; plots, gates, speeds and examples are of the first."
    parts: list[str | Table] = [f'<p class="lead">{html.escape(lead)}</p>', "<h2>Tables</h2>", *tables]
    parts += ["<h2>Learning curves</h2>", *learning_curves(job)]
    parts += ["<h2>Where the gain comes from</h2>", *gains(job)]
    parts += ["<h2>How far the gates are open</h2>", *gates(job), "<h2>Runs</h2>", job.plan()]
    write_page(path, page(f"docnmt tables: {Path(job.recipe.output).name}", parts))
    job.progress.say(f"report: {path}")


def _validations(job: Job, run: Run, value: str) -> list[tuple[float, float]]:
    lines = read_record(job.workshop.folder(run) / run.step / "metrics.jsonl")
    return [(line["update"], line[value]) for line in lines if line["kind"] == "validation" and value in line]


def learning_curves(job: Job) -> list[str | Table]:
    sentence, document = job.systems.sentence()[0], job.systems.document()[0]
    plots: list[str] = []
    first = _validations(job, sentence, "loss")
    if first:
        plots.append(figure(line_plot("Step 1", "updates", "dev loss (nats a piece)", [Line("sentence model", first)])))
    lines = [
        Line("true context", _validations(job, document, "loss")),
        Line("the same model, no context", _validations(job, document, "loss_without_context"), dashed=True),
    ]
    for number, contexts in enumerate(CONTROLS, 1):
        control = job.systems.control(contexts)[0]
        lines.append(Line(f"control: {CONTROLS[contexts]} context", _validations(job, control, "loss"), colour=number))
    lines = [line for line in lines if line.points]
    if lines:
        level = ("sentence model", min(loss for _, loss in first)) if first else None
        plots.append(figure(line_plot("Step 2", "updates", "dev loss (nats a piece)", lines, level)))
    return [side_by_side(*plots)]


def gains(job: Job) -> list[str | Table]:
    """The document model over the sentence model, by sentence length and by place in the document."""
    if job.scoreboard.metric.segment != "sentence":
        return []
    test = job.parts.whole.test
    sources = [sentence for document in test.documents for sentence in document.source]
    lengths = np.array([len(pieces) for pieces in job.prepared.source.encode(sources)])
    places = np.array([place for document in test.documents for place in range(1, len(document) + 1)])
    filled = np.array([bool(sentence) for sentence in sources])
    figures: list[str | Table] = []
    word = gain_word(job.scoreboard.metric).capitalize()
    for title, x, values, bins in (
        (f"{word} by sentence length", "source pieces", lengths, LENGTHS),
        (f"{word} by position in the document", "sentence", places, POSITIONS),
    ):
        masks = {_range(*each): _inside(values, *each) & filled for each in bins}
        masks = {name: mask for name, mask in masks.items() if mask.sum() >= FEWEST}
        if masks:
            figures += _gain_figure(job, title, x, masks)
    return figures


def _gain_figure(job: Job, title: str, x: str, masks: dict[str, NDArray[np.bool_]]) -> list[str | Table]:
    metric, whole = job.scoreboard.metric, job.parts.whole
    base, documents = job.scoreboard.rows(job.systems.sentence()[0], whole)
    systems = {"document model": job.systems.document()[0]}
    for contexts in CONTROLS:
        control = job.systems.control(contexts)[0]
        if job.workshop.standing(control).finished:
            systems[f"control: {CONTROLS[contexts]} context"] = control
    table = Table(title, (Column(x, text=True), Column("sentences"), *(Column(name) for name in systems)))
    series: dict[str, list[Bar]] = {name: [] for name in systems}
    for group, mask in masks.items():
        cells = []
        for name, run in systems.items():
            rows, _ = job.scoreboard.rows(run, whole)
            found = compare(metric, base[mask], rows[mask], documents[mask], trials=100)
            low, high = found.interval.low, found.interval.high
            series[name].append(
                Bar(found.difference, np.nanmin([low, found.difference]), np.nanmax([high, found.difference]))
            )
            # Sentences of one document alone tell nothing about others: there is no interval.
            known = f" ({low:+.2f} … {high:+.2f})" if np.isfinite(low) else ""
            cells.append(f"{found.difference:+.2f}{known}")
        table.add(group, f"{int(mask.sum()):,}", *cells)
    table.notes.append(f"{metric.name} over the sentence model's, 95 % by bootstrap over documents.")
    plot = bar_plot(title, x, f"{metric.name} {gain_word(metric)}", list(masks), series)
    return [side_by_side(figure(plot), table.html())]


def gates(job: Job) -> list[str | Table]:
    if job.recipe.context.connection != "gate":
        return ["<p>This recipe has residual connections instead of gates.</p>"]
    translator = load(job.workshop.model(job.systems.document()[0]), job.recipe.hardware.device)
    shares = gate_by_layer(translator, job.parts.whole.test.documents)
    table = Table("Context let in by each layer's gate", (Column("layer", text=True), Column("1 - lambda")))
    for name, share in shares.items():
        table.add(name, f"{share:.3f}")
    table.notes.append("Mean over positions and dimensions, for sentences with a context. One half is a gate unmoved.")
    bars = [Bar(share, share, share) for share in shares.values()]
    plot = bar_plot("Gates", "layer", "mean of 1 - lambda", list(shares), {"": bars})
    return [side_by_side(figure(plot), table.html())]


def figure(svg: str) -> str:
    return f"<figure>{svg}</figure>"


def side_by_side(*parts: str) -> str:
    return f'<div class="side-by-side">{"".join(parts)}</div>'


def _range(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"


def _inside(values: NDArray, first: int, last: int | None) -> NDArray[np.bool_]:
    return (values >= first) & (values <= (last or np.inf))
