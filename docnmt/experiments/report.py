"""The report of `docnmt tables`: the tables, and plots of what lies behind them, in one page that needs no network."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from docnmt.base.errors import missing_extra
from docnmt.base.report import Table, columns, page, write_page
from docnmt.decoding.translator import load
from docnmt.document import ContextSpec, context_sentences
from docnmt.evaluation.context_gain import in_ranges
from docnmt.evaluation.context_trace import gate_by_layer
from docnmt.evaluation.significance import compare
from docnmt.evaluation.test_sets import TestSet
from docnmt.experiments.job import Lab, plan
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import gain_word
from docnmt.training.checkpoint import read_record

# ---- plots, as SVG that stands in the page and takes its colours from it ----

INK = "#010203"  # stands for the page's own colour of text, light or dark
COLOURS = ("#0b7285", "#c2410c", "#6b46c1", "#868e96", "#2f9e44", "#1c7ed6")


def need_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plots need matplotlib", "plots") from None
    matplotlib.use("svg")
    return matplotlib


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    colour: int = 0


@dataclass(frozen=True)
class Bar:
    value: float
    low: float  # ends of the interval
    high: float


def line_plot(title: str, x: str, y: str, lines: Sequence[Line], level: tuple[str, float] | None = None) -> str:
    """`level` is a value to compare with, drawn across."""

    def draw(axes: Any) -> None:
        for line in lines:
            xs, ys = zip(*line.points, strict=True)
            style = "--" if line.dashed else "-"
            axes.plot(xs, ys, style, marker="o", markersize=3, color=COLOURS[line.colour], label=line.name)
        if level is not None:
            axes.axhline(level[1], color=INK, linewidth=1, linestyle=":", label=level[0])
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False, fontsize=9)

    return _svg(title, x, y, draw)


def bar_plot(title: str, x: str, y: str, groups: Sequence[str], series: Mapping[str, Sequence[Bar]]) -> str:
    """Bars with their intervals, a colour a series, side by side in each group."""

    def draw(axes: Any) -> None:
        width = 0.8 / len(series)
        for number, (name, bars) in enumerate(series.items()):
            places = [group - 0.4 + width * (number + 0.5) for group in range(len(groups))]
            spread = [[bar.value - bar.low for bar in bars], [bar.high - bar.value for bar in bars]]
            axes.bar(places, [bar.value for bar in bars], 0.9 * width, color=COLOURS[number], label=name)
            axes.errorbar(
                places, [bar.value for bar in bars], yerr=spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2
            )
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(range(len(groups)), groups)
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=9)

    return _svg(title, x, y, draw)


def _svg(title: str, x: str, y: str, draw: Callable[[Any], None]) -> str:
    matplotlib = need_matplotlib()
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,  # the same plot is the same text each time
        "font.family": "sans-serif",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"font: [^;\"]*?(\d+(?:\.\d+)?px)[^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    # Ids are unique in a plot but not in a page with several.
    mark = re.sub(r"\W+", "-", title)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", svg)
    return re.sub(r'href="#([^"]+)"', rf'href="#{mark}-\1"', svg)


# ---- example analysis: sentences that context changed, in the paper's layout ----

# Chosen by a rule and not by hand: those whose translation gained most in sentence chrF over the sentence model's,
# and, as no choice of winners is the whole story, the one that lost most.

WINNERS = 3


@dataclass(frozen=True)
class Example:
    document: str
    position: int
    context: tuple[str, ...]
    source: str
    reference: str
    plain: str
    informed: str
    gain: float


def find_examples(test: TestSet, plain: list[str], informed: list[str], spec: ContextSpec) -> list[Example]:
    """The winners and the loser, among sentences that have a context."""
    measure = sacrebleu.CHRF(lowercase=True)
    found, place = [], 0
    for document in test.documents:
        for position, source in enumerate(document.source):
            context = context_sentences(document.source, position, spec)
            references = [side[place] for side in test.references]
            if context and plain[place] != informed[place]:
                scores = [measure.sentence_score(text, references).score for text in (plain[place], informed[place])]
                texts = (context, source, references[0], plain[place], informed[place])
                found.append(Example(document.id, position, *texts, scores[1] - scores[0]))
            place += 1
    found.sort(key=lambda example: -example.gain)
    winners = [example for example in found[:WINNERS] if example.gain > 0]
    return winners + [example for example in found[-1:] if example.gain < 0]


def examples_table(examples: list[Example]) -> Table:
    table = Table("Example analysis", columns("", "text", text=2))
    for example in examples:
        where = f"{example.document}, sentence {example.position + 1}: {example.gain:+.1f} chrF"
        rows = {
            "Context": " … ".join(example.context),
            "Source": example.source,
            "Reference": example.reference,
            "Transformer": example.plain,
            "Our work": example.informed,
            "": where,
        }
        for number, (name, text) in enumerate(rows.items()):
            table.add(name, text, rule=number == 0 and bool(table.rows))
    won, lost = (sum(sign * example.gain > 0 for example in examples) for sign in (1, -1))
    gained = {0: "No test sentence with a context gained", 1: "The test sentence with a context that gained most"}
    chosen = gained.get(won, f"The {won} test sentences with a context that gained most")
    last = "the one that lost most" if lost else "none that lost"
    table.notes.append(f"{chosen} in sentence chrF over the sentence model, and {last}.")
    return table


# ---- the page ----

LENGTHS = ((1, 5), (6, 10), (11, 20), (21, 30), (31, None))  # source pieces: Chinese has no words to count
POSITIONS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, None))  # in the document, from 1
CONTROLS = {"shuffled": "shuffled", "none": "no"}  # document.context_from -> how the tables call it
FEWEST = 20  # sentences in a bin, to say anything about it


def write_report(path: Path, lab: Lab, tables: Sequence[Table]) -> None:
    data, documents, seeds = lab.experiment.recipe.data, lab.prepared.documents, len(lab.experiment.systems.seeds)
    lead = (
        f"{data.source_language} to {data.target_language}, {documents.pairs:,} sentence pairs in "
        f"{documents.card['documents']:,} documents and {lab.prepared.sentences.pairs:,} more sentence pairs. Figures "
        "in italics are the paper's (Zhang et al., 2018), on other data: compare the trends, not the "
        "values."
    )
    if seeds > 1:
        lead += f" Scores are over {seeds} seeds; plots, gates, speeds and examples are from the first."
    parts: list[str | Table] = [f'<p class="lead">{html.escape(lead)}</p>', "<h2>Tables</h2>", *tables]
    parts += ["<h2>Learning curves</h2>", learning_curves(lab)]
    parts += ["<h2>Where the gain comes from</h2>", *gains(lab)]
    parts += ["<h2>How far the gates are open</h2>", gates(lab), "<h2>Runs</h2>", plan(lab)]
    write_page(path, page(f"docnmt tables: {Path(lab.experiment.recipe.output).name}", parts))
    lab.progress.say(f"report: {path}")


def _validations(lab: Lab, run: Run, value: str) -> list[tuple[float, float]]:
    lines = read_record(lab.store.folder(run) / run.step / "metrics.jsonl")
    return [(line["update"], line[value]) for line in lines if line["kind"] == "validation" and value in line]


def learning_curves(lab: Lab) -> str:
    systems, plots = lab.experiment.systems, []
    document = systems.document()[0]
    first = _validations(lab, systems.sentence()[0], "loss")
    if first:
        plots.append(
            figure(line_plot("Step 1", "updates", "dev loss (nats per piece)", [Line("sentence model", first)]))
        )
    lines = [
        Line("true context", _validations(lab, document, "loss")),
        Line("the same model, no context", _validations(lab, document, "loss_without_context"), dashed=True),
    ]
    for number, contexts in enumerate(CONTROLS, 1):
        losses = _validations(lab, systems.control(contexts)[0], "loss")
        lines.append(Line(f"control: {CONTROLS[contexts]} context", losses, colour=number))
    lines = [line for line in lines if line.points]
    if lines:
        level = ("sentence model", min(loss for _, loss in first)) if first else None
        plots.append(figure(line_plot("Step 2", "updates", "dev loss (nats per piece)", lines, level)))
    return side_by_side(*plots)


def gains(lab: Lab) -> list[str]:
    """The document model over the sentence model, by sentence length and by place in the document."""
    if lab.scoreboard.metric.segment != "sentence":
        return []
    test = lab.parts.whole.test
    sources = [sentence for document in test.documents for sentence in document.source]
    lengths = np.array([len(pieces) for pieces in lab.prepared.source.encode(sources)])
    places = np.array([place for document in test.documents for place in range(1, len(document) + 1)])
    filled = np.array([bool(sentence) for sentence in sources])
    figures = []
    word = gain_word(lab.scoreboard.metric).capitalize()
    for title, x, values, bins in (
        (f"{word} by sentence length", "source pieces", lengths, LENGTHS),
        (f"{word} by position in the document", "sentence", places, POSITIONS),
    ):
        masks = {name: mask & filled for name, mask in in_ranges(values, bins).items()}
        masks = {name: mask for name, mask in masks.items() if mask.sum() >= FEWEST}
        if masks:
            figures.append(_gain_figure(lab, title, x, masks))
    return figures


def _gain_figure(lab: Lab, title: str, x: str, masks: dict[str, NDArray[np.bool_]]) -> str:
    metric, whole = lab.scoreboard.metric, lab.parts.whole
    base, documents = lab.scoreboard.rows(lab.experiment.systems.sentence()[0], whole)
    systems = {"document model": lab.experiment.systems.document()[0]}
    for contexts in CONTROLS:
        control = lab.experiment.systems.control(contexts)[0]
        if lab.store.status(control).finished:
            systems[f"control: {CONTROLS[contexts]} context"] = control
    table = Table(title, columns(x, "sentences", *systems))
    series: dict[str, list[Bar]] = {name: [] for name in systems}
    for group, mask in masks.items():
        cells = []
        for name, run in systems.items():
            rows, _ = lab.scoreboard.rows(run, whole)
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
    return side_by_side(figure(plot), table.html())


def gates(lab: Lab) -> str:
    if lab.experiment.recipe.context.connection != "gate":
        return "<p>This recipe has residual connections instead of gates.</p>"
    translator = load(lab.store.model(lab.experiment.systems.document()[0]), lab.experiment.recipe.hardware.device)
    shares = gate_by_layer(translator, lab.parts.whole.test.documents)
    table = Table("Context let in by each layer's gate", columns("layer", "1 - lambda"))
    for name, share in shares.items():
        table.add(name, f"{share:.3f}")
    table.notes.append(
        "Mean over positions and dimensions, for sentences with a context. One half: the gate has not moved."
    )
    bars = [Bar(share, share, share) for share in shares.values()]
    plot = bar_plot("Gates", "layer", "mean of 1 - lambda", list(shares), {"": bars})
    return side_by_side(figure(plot), table.html())


def figure(svg: str) -> str:
    return f"<figure>{svg}</figure>"


def side_by_side(*parts: str) -> str:
    return f'<div class="side-by-side">{"".join(parts)}</div>'
