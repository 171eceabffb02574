"""What the options that several verbs share stand for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docnmt.base.errors import DocnmtError

if TYPE_CHECKING:
    from docnmt.base.lines import CorpusFiles
    from docnmt.base.report import Table
    from docnmt.config import Recipe


def show(
    options: argparse.Namespace, tables: Sequence[Table], figures: object, page: Callable[[], str] | None = None
) -> None:
    """Writes the requested files and prints the tables: last, as a reader may close the pipe on them. `page` makes the
    one for --html; verbs that have it print an empty line after each table."""
    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.base.report import write_page, write_tables

    if options.json:
        write_json(options.json, figures)
    if "markdown" in options:
        write_tables(tables, options.markdown, options.latex)
    if page and options.html:
        write_page(options.html, page())
    console = Console()
    for table in tables:
        table.print(console)
        if page:
            console.print()


def check_cluster(options: argparse.Namespace) -> None:
    where, _, port = options.on.rpartition(":")
    if options.on and options.on != "ray" and not (where and port.isdigit()):
        raise DocnmtError(f"--on {options.on}: must be `ray` or HOST:PORT\n  Write `ray`, or the address of a cluster.")
    if options.cpus <= 0 or (options.gpus is not None and options.gpus < 0):
        raise DocnmtError(
            "the number of cores must be above 0 and that of GPUs not negative\n  Use 1 or more cores, 0 or more GPUs."
        )


def check_outputs(*paths: str) -> None:
    """Makes the folders of output files, and finds out now, not after hours of work, if they cannot be written."""
    for path in map(Path, filter(None, paths)):
        if path.is_dir():
            raise DocnmtError(f"{path}: this is a folder, not a file\n  Give a file inside it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            raise DocnmtError(f"{path}: its folder cannot be written to\n  Choose a file in another folder.")


def corpus_files(options: argparse.Namespace) -> CorpusFiles:
    return one_or_two(
        options.files,
        document_ids=options.document_ids,
        document_starts=options.document_starts,
        format=options.format,
        swap=options.swap,
    )


def only_gaps(options: argparse.Namespace) -> DocnmtError:
    return DocnmtError(f"{' and '.join(options.files)}: all pairs are gaps\n  Give a corpus that has sentences.")


def one_or_two(files: Sequence[str], **how: Any) -> CorpusFiles:
    """A corpus in one file or in two; `how` has the other fields of CorpusFiles."""
    from docnmt.base.lines import CorpusFiles

    if len(files) > 2:
        raise DocnmtError(
            "a corpus is one file with both sides, or a source and a target file\n  Give one file or two."
        )
    if len(files) == 1:
        return CorpusFiles(files[0], **how)
    source, target = files
    return CorpusFiles(source=source, target=target, **how)


def languages_of(options: argparse.Namespace, otherwise: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Of source and target; `otherwise` if the command line does not tell."""
    source, _, target = options.languages.partition("-")
    if options.languages and not (source and target):
        raise DocnmtError(
            f"--languages {options.languages}: not a language pair\n  Write source and target, such as fr-en."
        )
    return (source, target) if options.languages else otherwise


def recipe_of(options: argparse.Namespace) -> Recipe:
    from docnmt.recipes import load_recipe
    from docnmt.systems import check_kinds

    settings = list(options.set)
    if getattr(options, "skip_bad", False):
        settings.append("data.skip_bad=true")
    recipe = load_recipe(options.recipe, settings)
    check_kinds(recipe.model.kind, recipe.context.kind)
    return recipe
