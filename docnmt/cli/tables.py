"""`docnmt tables`: the paper's tables for a recipe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import (
    Verbs,
    add_cluster,
    add_recipe,
    add_set,
    add_tables,
    check_cluster,
    check_outputs,
    recipe_of,
)


def add(verbs: Verbs) -> None:
    tables = verbs.add_parser(
        "tables",
        examples=["docnmt tables demo --dry-run", "docnmt tables demo --only gating --markdown tables.md"],
        help="run and print the paper's tables for a recipe",
        description="Lists the trainings that the tables need, runs those that are missing, and prints the tables. "
        "It can be stopped at any time and continues where it was.",
    )
    add_recipe(tables)
    tables.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="context-length, context-layers, comparison, french-english, two-step, integration, gating, efficiency, "
        "example (default: all of these) or systems, which has more systems than the paper; may be given "
        "several times",
    )
    tables.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="train everything N times; show mean and standard deviation"
    )
    tables.add_argument(
        "--compare",
        nargs=2,
        action="append",
        default=[],
        metavar=("ROW", "OTHER"),
        help="show the difference of two rows on each set, with interval and p; may be given several times",
    )
    tables.add_argument("--dry-run", action="store_true", help="build the models, look at the data, estimate the time")
    tables.add_argument("--status", action="store_true", help="show how far each run is and who is training it")
    add_cluster(tables, "run")
    add_set(tables)
    add_tables(tables)
    tables.add_argument("--html", default="", metavar="FILE", help="a report with plots")
    tables.set_defaults(run=run_tables)


def run_tables(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.base.progress import Progress
    from docnmt.base.report import write_tables
    from docnmt.experiments import job
    from docnmt.model_folder import set_threads

    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise DocnmtError(
            "docnmt tables runs as one process\n  Run it without torchrun, which is for single models (docnmt train)."
        )
    check_cluster(options)
    console, progress = Console(), Progress()
    recipe = recipe_of(options)
    set_threads(recipe.hardware.threads)  # for what is timed, too
    experiment = job.make_experiment(recipe, options.only or job.PAPER, options.seeds, options.compare)
    if options.status:
        job.status(experiment, progress, max(1, int(options.gpus or 1))).print(console)
        return
    written = [path for path in (options.json, options.markdown, options.latex, options.html) if path]
    if options.dry_run:
        if written:
            raise DocnmtError(
                f"--dry-run makes no tables, so it cannot write {written[0]}\n  Leave out one of the two options."
            )
        job.dry_run(experiment, console)
        return
    from docnmt.experiments import report
    from docnmt.experiments.results import results

    if options.html:
        report.need_matplotlib()  # found missing now, not after hours
    check_outputs(*written)
    if options.on:
        from docnmt.base.cluster import connect
        from docnmt.experiments.ray_pool import Places, train_on

        connect(options.on)
        places = Places.of(options.cpus, options.gpus)
        lab = job.open_lab(experiment, progress, places.processes)
        job.plan(lab).print(console)
        train_on(
            options.on, lab.store, job.runs_of(experiment), places, progress, lambda run: job.sets_of(experiment, run)
        )
    else:
        lab = job.open_lab(experiment, progress)
        job.plan(lab).print(console)
        job.train(lab)
    tables = []
    for table in results(lab):
        console.print()
        table.print(console)
        tables.append(table)
    write_tables(tables, options.markdown, options.latex)
    if options.json:
        write_json(options.json, [table.as_dict() for table in tables])
    if options.html:
        report.write_report(Path(options.html), lab, tables)
