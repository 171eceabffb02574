"""Systems beside a baseline: how much they differ, and whether that could be chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.evaluation.metrics import Metric
from docnmt.evaluation.scores import (
    FEW,
    RESAMPLES,
    SEED,
    Measured,
    Part,
    drawn_units,
    interval_figures,
    part_figures,
    signature_notes,
)
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
            for number, column in enumerate(measured[baseline]):
                theirs, documents = column.on(part)
                drawn = documents if resample == "documents" else None
                for system in systems:
                    ours, _ = measured[system][number].on(part)
                    found = compare(column.metric, theirs, ours, drawn, resamples=RESAMPLES, trials=TRIALS, seed=SEED)
                    results.append(Compared(part, column.metric, baseline, system, found))
                    tick()
    return results


def comparison_tables(results: Sequence[Compared]) -> list[Table]:
    """One for the whole and one for each domain."""
    return [
        _table(part, [result for result in results if result.part is part])
        for part in dict.fromkeys(result.part for result in results)
    ]


def _table(part: Part, results: Sequence[Compared]) -> Table:
    headings = ("score", "difference", "95 % interval", "p bootstrap", "p swaps")
    columns = [Column("metric", text=True), Column("system", text=True), *map(Column, headings)]
    title = "Comparison" if part.kind == "all" else part.name
    table = Table(f"{title}: {part.title}", columns)
    metrics = list(dict.fromkeys(result.metric for result in results))
    for metric in metrics:
        own = [result for result in results if result.metric is metric]
        score = f"{own[0].difference.baseline:.2f}"
        table.add(metric.name, own[0].baseline, score, "baseline", "", "", "", rule=True)
        for result in own:
            found = result.difference
            strong = (3,) if result.is_significant else ()
            table.add("", result.system, f"{found.system:.2f}", *_cells(found), strong=strong)
    units = {result.difference.unit for result in results}  # a metric of whole documents draws these in any case
    resample = "sentences" if "sentences" in units else "documents"
    few = few_note(len(part.documents) if resample == "documents" else part.sentences, resample)
    if len(units) > 1 and len(part.documents) < FEW:
        whole = ", ".join(metric.name for metric in metrics if metric.segment == "document")
        few.append(f"{whole}: {len(part.documents)} documents are few to draw from")
    if part.kind == "all":
        tested = next(each.difference for each in results if each.difference.unit == resample)
        table.notes += [_test_note(metrics, tested, resample), *few, *signature_notes(metrics)]
    else:
        table.notes += ["Tests and metrics as in the first table", *few]
    return table


def _cells(found: Difference) -> tuple[str, ...]:
    low, high = found.interval.low, found.interval.high
    spread = "" if math.isnan(low) else f"[{_signed(low)}, {_signed(high)}]"
    return _signed(found.difference), spread, f"{found.p_bootstrap:.4f}", f"{found.p_randomisation:.4f}"


def _signed(number: float) -> str:
    text = f"{number:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def _test_note(metrics: Sequence[Metric], found: Difference, resample: str) -> str:
    return (
        f"Bold: p < {LEVEL} by paired bootstrap ({found.resamples:,} resamples) and by swaps ({found.swaps}) of "
        f"{drawn_units(metrics, resample)}, seed {SEED}; each test is taken by itself"
    )


def few_note(units: int, unit: str) -> list[str]:
    """What to be wary of where there is little to draw from."""
    if units == 1:
        return ["A single document proves nothing about others; --resample sentences tests within it"]
    if units < FEW:
        least = f"p by swaps cannot fall below {2 / 2**units:.2g}"
        return [f"Only {units} {unit}: the bootstrap is rough, and {least}"]
    return []


def comparison_figures(results: Sequence[Compared]) -> dict[str, Any]:
    """For a JSON file."""
    rows = []
    for result in results:
        values = asdict(result.difference)
        values |= interval_figures(result.difference.interval)
        del values["interval"]
        values["baseline_score"], values["system_score"] = values.pop("baseline"), values.pop("system")
        names = {"metric": result.metric.name, "baseline": result.baseline, "system": result.system}
        rows.append({**part_figures(result.part), **names, **values})
    signatures = {result.metric.name: result.metric.signature for result in results}
    return {"signatures": signatures, "seed": SEED, "results": rows}
