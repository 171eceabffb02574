"""A look at what `docnmt tables` would do: the models built, a sample of the data read, the time estimated."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docnmt.base.errors import SkipBad, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.base.report import Column, Table
from docnmt.config import CORPUS_PATHS, ContextConfig, Recipe
from docnmt.corpus.read import detect_format, read_corpus, read_pairs
from docnmt.experiments.estimate import Shape, Stopwatch, build, missing_files
from docnmt.experiments.plan import planned
from docnmt.experiments.runs import Run, Standing
from docnmt.model_folder import choose_device

if TYPE_CHECKING:
    from docnmt.experiments.job import Job

SAMPLE = 3  # documents


def dry_run(job: Job) -> list[Table]:
    """Trains nothing and writes nothing; works before the data is there, too."""
    job.check()
    shape = Shape.expected(job.recipe)
    tables = []
    for make in (lambda: data_table(job.recipe), lambda: model_table(job.runs(), shape), lambda: _plan(job, shape)):
        tables.append(make())
        tables[-1].print(job.console)
        job.console.print()
    return tables


def _plan(job: Job, shape: Shape) -> Table:
    table = planned({run: Standing(0, False) for run in job.runs()}, Stopwatch(shape))
    table.notes.append(f"On this machine ({choose_device(job.recipe.hardware.device)}), if nothing is done yet.")
    return table


def data_table(recipe: Recipe) -> Table:
    columns = ("role", "file", "format", "sample")
    table = Table("Data", [Column(name, text=True) for name in columns])
    missing = {path for _, path in missing_files(recipe)}
    for role in ("documents", "sentences", "dev", "test"):
        if not getattr(recipe.data, role):
            table.add(role, "-", "", "optional" if role == "sentences" else f"not named: set data.{role}")
        for files in getattr(recipe.data, role):
            lacks = [path for path in (getattr(files, name) for name in CORPUS_PATHS) if path in missing]
            if lacks:
                table.add(role, str(files), files.format, f"not there: {', '.join(lacks)}")
            else:
                table.add(role, str(files), detect_format(files), _sample(files, role, recipe))
    if contrastive := recipe.evaluation.contrastive:
        table.add("contrastive", contrastive, "", "there" if Path(contrastive).exists() else "not there")
    return table


def _sample(files: CorpusFiles, role: str, recipe: Recipe) -> str:
    read = read_pairs if role == "sentences" else read_corpus
    languages = (recipe.data.source_language, recipe.data.target_language)
    on_bad = SkipBad() if recipe.data.skip_bad else raise_bad
    found = read(files, languages=languages, on_bad=on_bad, limit=recipe.data.max_characters)
    documents = list(islice(found, SAMPLE))
    first = documents[0]
    sizes = ", ".join(str(len(document)) for document in documents)
    return f"{len(documents)} read ({sizes} sentences); {first.id}: {first.source[0][:40]} | {first.target[0][:40]}"


def model_table(runs: list[Run], shape: Shape) -> Table:
    """The sizes of the models, from building them."""
    table = Table("Models", (Column("run", text=True), Column("parameters"), Column("trained")))
    for run in runs:
        context = run.recipe.context if run.step == "document" else ContextConfig(kind="none")
        with torch.device("meta"):  # its shape is all that is asked
            model = build(run.recipe, context, shape)
        total = sum(parameter.numel() for parameter in model.parameters())
        frozen = run.start is not None and run.recipe.document.freeze
        trained = sum(p.numel() for _, p in model.document_parameters()) if frozen else total
        table.add(run.name, f"{total:,}", f"{trained:,}")
    table.notes.append(f"With vocabularies of {shape.source_vocabulary:,} and {shape.target_vocabulary:,} pieces.")
    return table
