"""Options that several verbs share, and what they stand for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docnmt.base.errors import DocnmtError, nearest

if TYPE_CHECKING:
    from docnmt.base.lines import CorpusFiles
    from docnmt.base.report import Table
    from docnmt.config import Recipe

Verbs = argparse._SubParsersAction


class VerbParser(argparse.ArgumentParser):
    """The parser of a verb. Its help ends with examples, and it has a suggestion for what is mistyped.

    A verb may have jobs beside what it does without naming one: `docnmt contrast MODEL SET` and `docnmt contrast make
    CORPUS`.
    """

    def __init__(self, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.examples = examples
        self.jobs: dict[str, VerbParser] = {}

    def add_job(self, name: str, description: str, examples: Sequence[str]) -> VerbParser:
        self.jobs[name] = VerbParser(examples, prog=f"{self.prog} {name}", description=description)
        return self.jobs[name]

    def format_help(self) -> str:
        lines = "".join(f"\n  {example}" for example in self.examples)
        return super().format_help() + (f"\nexample{'s' * (len(self.examples) > 1)}:{lines}\n" if lines else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(str(value), map(str, action.choices), "Choose from")
            raise argparse.ArgumentError(action, f"unknown value {value!r}. {hint}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args and args[0] in self.jobs:
            return self.jobs[args[0]].parse_known_args(args[1:], namespace)
        options, left = super().parse_known_args(args, namespace)
        for word in left:
            if word.startswith("--"):
                known = [name for name in self._option_string_actions if name.startswith("--")]
                self.error(f"unknown option {word!r}. {nearest(word.partition('=')[0], known, 'It has')}")
        return options, left


def add_json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", default="", metavar="FILE", help="write the figures to a file as well")


def add_tables(verb: argparse.ArgumentParser) -> None:
    add_json(verb)
    verb.add_argument("--markdown", default="", metavar="FILE", help="write the tables as Markdown as well")
    verb.add_argument("--latex", default="", metavar="FILE", help="write the tables as LaTeX as well")


def show(options: argparse.Namespace, tables: Sequence[Table], figures: object) -> None:
    """Writes the requested files and prints the tables: last, as a reader may close the pipe on them."""
    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.base.report import write_tables

    if options.json:
        write_json(options.json, figures)
    if "markdown" in options:
        write_tables(tables, options.markdown, options.latex)
    for table in tables:
        table.print(Console())


def add_domains(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--by-domain", action="store_true", help="the beginning of a document's id, up to a colon")
    verb.add_argument(
        "--domains", nargs="+", default=[], metavar="NAME=PREFIX,...", help="domains of your own, by prefixes of ids"
    )


def add_recipe(verb: argparse.ArgumentParser, default: str = "") -> None:
    optional: dict[str, Any] = {"nargs": "?", "default": default} if default else {}
    said = f" (default {default})" if default else ""
    verb.add_argument(
        "recipe", metavar="RECIPE", help=f"a TOML file, or the name of one of docnmt's own{said}", **optional
    )


def add_set(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the recipe")


def add_corpus(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--format", default="", help="if the content does not tell")
    add_document_marks(verb)
    verb.add_argument("--languages", default="", metavar="SRC-TRG", help="for files with several languages")
    verb.add_argument("--swap", action="store_true", help="the target side comes first")


def add_document_marks(verb: argparse.ArgumentParser) -> None:
    """Of plain text whose documents are told by another file."""
    verb.add_argument("--document-ids", default="", metavar="FILE", help="the document id of each line")
    verb.add_argument("--document-starts", default="", metavar="FILE", help="index of each document's first line")


def add_context(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--context",
        metavar="SPEC",
        help="previous=N,following=N; none: an empty context; off: the sentence model. Default: as trained",
    )


def add_cluster(verb: argparse.ArgumentParser, work: str) -> None:
    """For work that can be shared out."""
    verb.add_argument(
        "--on", default="", metavar="WHERE", help="distribute the work with Ray: `ray` (this machine) or HOST:PORT"
    )
    verb.add_argument(f"--cpus-per-{work}", dest="cpus", type=float, default=1, metavar="N", help="with --on: cores")
    verb.add_argument(
        f"--gpus-per-{work}", dest="gpus", type=float, metavar="N", help="with --on: GPUs (default: 1 if there are any)"
    )


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
