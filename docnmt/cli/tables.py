"""`docnmt tables`: the paper's tables for a recipe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_json
from docnmt.base.progress import Progress
from docnmt.base.report import write_tables
from docnmt.cli.options import check_cluster, check_outputs, recipe_of


def run_tables(options: argparse.Namespace) -> None:
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
