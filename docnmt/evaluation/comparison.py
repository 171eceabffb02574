"""Systems compared with a baseline: how much they differ, whether by more than chance, and in which sentences."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docnmt.base.progress import Progress
from docnmt.base.report import Table, columns, page
from docnmt.evaluation import static
from docnmt.evaluation.metrics import Metric, make_metric
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.scores import FEW, RESAMPLES, SEED, Measured, Part, drawn_units, signature_notes
from docnmt.evaluation.significance import Difference, compare

TRIALS = 10_000
LEVEL = 0.05


@dataclass(frozen=True)
class Compared:
    part: Part
    metric: Metric
    baseline: str
    system: str
    difference: Difference

    @property
    def is_significant(self) -> bool:
        return self.difference.p_bootstrap < LEVEL and self.difference.p_randomisation < LEVEL


def compare_systems(
    measured: dict[str, list[Measured]], parts: Sequence[Part], progress: Progress, resample: str = "documents"
) -> list[Compared]:
    """Every system against the first, by each metric on each part."""
    baseline, *systems = measured
    results = []
    with progress.bar("compare", len(parts) * len(systems) * len(measured[baseline]), "tests") as tick:
        for part in parts:
            for number, first in enumerate(measured[baseline]):
                theirs, drawn = first.on(part, resample)
                for system in systems:
                    ours, _ = measured[system][number].on(part, resample)
                    found = compare(first.metric, theirs, ours, drawn, resamples=RESAMPLES, trials=TRIALS, seed=SEED)
                    results.append(Compared(part, first.metric, baseline, system, found))
                    tick()
    return results


def comparison_tables(results: Sequence[Compared]) -> list[Table]:
    """One for the whole and one for each domain."""
    parts = dict.fromkeys(result.part for result in results)
    return [_comparison_table(part, [result for result in results if result.part is part]) for part in parts]


def _comparison_table(part: Part, results: Sequence[Compared]) -> Table:
    title = "Comparison" if part.kind == "all" else part.name
    heads = ("metric", "system", "score", "difference", "95 % interval", "p bootstrap", "p swaps")
    table = Table(f"{title}: {part.title}", columns(*heads, text=2))
    table.strong_means = f"p < {LEVEL} in both tests, each by itself"
    metrics = list(dict.fromkeys(result.metric for result in results))
    for metric in metrics:
        own = [result for result in results if result.metric is metric]
        score = f"{own[0].difference.baseline:.2f}"
        table.add(metric.name, own[0].baseline, score, "baseline", "", "", "", rule=True)
        for result in own:
            found, around = result.difference, result.difference.interval
            table.add(
                "",
                result.system,
                f"{found.system:.2f}",
                _signed(found.difference),
                f"[{_signed(around.low)}, {_signed(around.high)}]" if around.is_known else "",
                f"{found.p_bootstrap:.4f}",
                f"{found.p_randomisation:.4f}",
                strong=(3,) if result.is_significant else (),
            )
    units = {result.difference.unit for result in results}  # a metric of documents never draws sentences
    resample = "sentences" if "sentences" in units else "documents"
    few = few_note(len(part.documents) if resample == "documents" else part.sentences, resample)
    if len(units) > 1 and len(part.documents) < FEW:
        whole = ", ".join(metric.name for metric in metrics if metric.segment == "document")
        few.append(f"{whole}: only {len(part.documents)} documents to draw from")
    if part.kind == "all":
        tested = next(each.difference for each in results if each.difference.unit == resample)
        table.notes += [
            f"Tests: paired bootstrap ({tested.resamples:,} resamples) and swaps ({tested.swaps}) of "
            f"{drawn_units(metrics, resample)}, seed {SEED}",
            *few,
            *signature_notes(metrics),
        ]
    else:
        table.notes += ["Tests and metrics as in the first table", *few]
    return table


def _signed(number: float) -> str:
    text = f"{number:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def few_note(units: int, unit: str) -> list[str]:
    """A warning if there is little to draw from."""
    if units == 1:
        return ["A single document says nothing about others; --resample sentences tests within it"]
    if units < FEW:
        least = f"p by swaps cannot fall below {2 / 2**units:.2g}"
        return [f"Only {units} {unit}: the bootstrap is rough, and {least}"]
    return []


def comparison_figures(results: Sequence[Compared]) -> dict[str, Any]:
    """For a JSON file."""
    rows = []
    for result in results:
        values = asdict(result.difference) | result.difference.interval.as_dict()
        del values["interval"]
        values["baseline_score"], values["system_score"] = values.pop("baseline"), values.pop("system")
        names = {"metric": result.metric.name, "baseline": result.baseline, "system": result.system}
        rows.append({**result.part.as_dict(), **names, **values})
    signatures = {result.metric.name: result.metric.signature for result in results}
    return {"signatures": signatures, "seed": SEED, "results": rows}


# ---- a page of sentences that differ ----


def comparison_page(
    tables: Sequence[Table], outputs: Sequence[Output], references: References, progress: Progress
) -> str:
    """The first output is the baseline. The sentences are data in the page; a script shows them as
    the user scrolls, so that thousands stay fast."""
    metric = make_metric("chrf")
    scores = []
    for output in progress.track(outputs, "sentence chrF", total=len(outputs), unit="systems"):
        rows = metric.statistics(output.sentences, references.texts)
        scores.append([round(metric.score(row), 2) for row in rows])
    sentences = [
        {
            "document": int(references.documents[number]),
            "position": references.position(number),
            "source": references.sources[number] if references.sources else None,
            "references": [text[number] for text in references.texts],
            "outputs": [output.sentences[number] for output in outputs],
            "scores": [score[number] for score in scores],
        }
        for number in range(len(references))
    ]
    names = [output.name for output in outputs]
    data = {"systems": names, "documents": references.ids, "sentences": sentences}
    baseline = html.escape(names[0])
    lead = (
        f'<p class="lead">Words that differ from those of {baseline} are underlined: <mark class="right">with a line'
        '</mark> if a reference has the word, <mark class="wrong">with a wave</mark> if none has. Next to each '
        "translation are its sentence chrF and the difference from the baseline's.</p>"
        f'<p class="note">sentence chrF: {html.escape(metric.signature)}</p>'
    )
    title = f"{', '.join(names[1:])} against {names[0]}"
    parts: list[str | Table] = [*tables, "<h2>Sentences</h2>", lead, _controls(names), _RESULTS]
    return page(title, parts, static("comparison.css"), static("comparison.js"), data)


def _controls(names: Sequence[str]) -> str:
    orders = ['<option value="">document order</option>']
    for number, name in enumerate(names[1:], 1):
        for value, label in (("gain", "largest gain"), ("loss", "largest loss")):
            of = f" of {html.escape(name)}" if len(names) > 2 else ""
            orders.append(f'<option value="{value} {number}">{label}{of} first</option>')
    return (
        '<form id="controls" role="search">'
        '<label>Find <input type="search" id="find" placeholder="in all text; press /" autocomplete="off"></label>'
        f'<label>Order <select id="order">{"".join(orders)}</select></label>'
        '<label><input type="checkbox" id="differing" checked> only where they differ</label>'
        '<output id="count" aria-live="polite"></output></form>'
    )


_RESULTS = (
    '<div id="sentences"></div><button type="button" id="more" hidden>Show more</button>'
    "<noscript><p>The sentences need JavaScript, which this browser does not run.</p></noscript>"
)
