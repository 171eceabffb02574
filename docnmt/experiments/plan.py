"""The list of runs that comes before they start: how far each is, and how long the rest will take."""

from __future__ import annotations

from docnmt.base.report import Column, Table
from docnmt.experiments.estimate import Stopwatch, spoken
from docnmt.experiments.runs import Run, Standing


def planned(standings: dict[Run, Standing], stopwatch: Stopwatch) -> Table:
    columns = (Column("run", text=True), Column("seed"), Column("step", text=True), Column("updates"), Column("done"))
    table = Table("Runs", (*columns, Column("time left")))
    total = 0.0
    for run, standing in standings.items():
        left = 0.0 if standing.finished else stopwatch.seconds(run, max(0, run.updates - standing.update))
        total += left
        done = "all" if standing.finished else f"{standing.update:,}"
        cells = (run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done)
        table.add(*cells, "-" if standing.finished else spoken(left))
    if total:
        table.notes.append(
            f"About {spoken(total)} of training to go, by the time that one small batch took just now; validation and "
            "translation come on top. A run that is stopped goes on where it was."
        )
    return table
