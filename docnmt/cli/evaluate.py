"""`docnmt evaluate` and `compare`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import Verbs, add_document_marks, add_domains, add_tables, check_outputs

if TYPE_CHECKING:
    from docnmt.base.progress import Progress
    from docnmt.base.report import Table
    from docnmt.evaluation.outputs import Output, References
    from docnmt.evaluation.scores import Measured

_METRICS = ("bleu", "chrf", "ter", "multi-bleu", "document-bleu")


def add(verbs: Verbs) -> None:
    evaluate = verbs.add_parser(
        "evaluate",
        help="score translations against references, by domain and by document",
        examples=["docnmt evaluate ours.txt --reference test.en --metric bleu chrf"],
    )
    evaluate.add_argument("files", nargs="+", metavar="HYP", help="translations, one file for each system")
    _add_common(evaluate, page="a page with the tables")
    evaluate.add_argument("--by-document", action="store_true", help="also a row for each document")
    evaluate.set_defaults(run=run_evaluate)

    compare = verbs.add_parser(
        "compare",
        help="test whether translations are better than a baseline's",
        examples=["docnmt compare baseline.txt ours.txt --reference test.en --html side-by-side.html"],
    )
    compare.add_argument(
        "files", nargs="+", metavar="HYP", help="translations, one file for each system; the baseline first"
    )
    _add_common(compare, page="a page with the tables and all sentences side by side")
    compare.set_defaults(run=run_compare)


def _add_common(verb: argparse.ArgumentParser, page: str) -> None:
    verb.add_argument(
        "--reference",
        nargs="+",
        required=True,
        metavar="R",
        help="references in any corpus format; several files are several references",
    )
    add_document_marks(verb)
    verb.add_argument(
        "--metric", nargs="+", default=_METRICS, metavar="NAME", help=f"some of {', '.join(_METRICS)} (default: all)"
    )
    verb.add_argument(
        "--words", action="append", default=[], metavar="WORD,...", help="also the F1 of these words; may be repeated"
    )
    verb.add_argument("--terms", action="store_true", help="also: are terms translated the same way in a document?")
    _add_comet(verb)
    verb.add_argument(
        "--language", default="", metavar="CODE", help="language of the translations: chooses the tokenizer"
    )
    verb.add_argument("--lowercase", action="store_true", help="ignore case")
    verb.add_argument("--tokenized", action="store_true", help="the text is tokenised already")
    add_domains(verb)
    verb.add_argument(
        "--resample",
        choices=("documents", "sentences"),
        default="documents",
        help="what is resampled for intervals and tests",
    )
    add_tables(verb)
    verb.add_argument("--html", default="", metavar="FILE", help=page)


def _add_comet(verb: argparse.ArgumentParser) -> None:
    comet = verb.add_argument_group("COMET, by unbabel-comet in a Python of its own")
    comet.add_argument("--comet", action="store_true", help="also COMET")
    comet.add_argument(
        "--comet-python", default="", metavar="PATH", help="the Python that has it (default: $DOCNMT_COMET_PYTHON)"
    )
    comet.add_argument(
        "--comet-model", default="", metavar="NAME", help="a model or a checkpoint (default: wmt22-comet-da)"
    )
    comet.add_argument(
        "--comet-context", type=int, default=0, metavar="N", help="sentences of context before each (default: none)"
    )
    comet.add_argument("--comet-download", action="store_true", help="download the model if it is missing")


def run_evaluate(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.base.report import page
    from docnmt.evaluation.scores import all_of, documents_of, domains_of, evaluate, figures, result_tables

    progress = Progress()
    references, _, measured = _measured(options, progress)
    parts = [all_of(references)]
    parts += domains_of(references, options.domains) if options.by_domain or options.domains else []
    parts += documents_of(references) if options.by_document else []
    results = evaluate(measured, parts, progress, options.resample)
    tables = result_tables(results, options.resample)
    _write(options, tables, figures(results, options.resample), lambda: page("Evaluation", tables))


def run_compare(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.evaluation.comparison import compare_systems, comparison_figures, comparison_page, comparison_tables
    from docnmt.evaluation.scores import all_of, domains_of

    if len(options.files) < 2:
        raise DocnmtError("a comparison needs a baseline and a system\n  Name two files of translations or more.")
    progress = Progress()
    references, outputs, measured = _measured(options, progress)
    parts = [all_of(references)]
    parts += domains_of(references, options.domains) if options.by_domain or options.domains else []
    results = compare_systems(measured, parts, progress, options.resample)
    tables = comparison_tables(results)
    _write(options, tables, comparison_figures(results), lambda: comparison_page(tables, outputs, references, progress))


def _measured(
    options: argparse.Namespace, progress: Progress
) -> tuple[References, list[Output], dict[str, list[Measured]]]:
    """The references, the systems' outputs, and what each metric finds in each of them."""
    from docnmt.evaluation.comet import MODEL, PYTHON, CometScorer
    from docnmt.evaluation.metrics import make_metric
    from docnmt.evaluation.outputs import read_outputs, read_references
    from docnmt.evaluation.scores import measure, warn_of_language, warn_of_tokens
    from docnmt.evaluation.words import WordClassF1, measure_consistency

    check_outputs(options.json, options.markdown, options.latex, options.html)
    metrics = [
        make_metric(name, language=options.language, lowercase=options.lowercase, tokenized=options.tokenized)
        for name in dict.fromkeys(options.metric)
    ]
    metrics += [WordClassF1([word.strip() for word in words.split(",")]) for words in options.words]
    scorer = None
    if options.comet:
        python, model = options.comet_python or os.environ.get(PYTHON, ""), options.comet_model or MODEL
        scorer = CometScorer(python, model, options.comet_context, options.comet_download)
    references = read_references(
        options.reference, options.language, ids=options.document_ids, starts=options.document_starts
    )
    outputs = read_outputs(options.files, references, options.language)
    if not options.tokenized:
        warn_of_tokens({output.name: output.sentences for output in outputs})
        if not options.language:
            warn_of_language(references)
    measured = measure(outputs, references, metrics, progress)
    further = [measure_consistency(outputs, references)] if options.terms else []
    further += [scorer.measure(outputs, references, progress)] if scorer else []
    for found in further:
        for output, each in zip(outputs, found, strict=True):
            measured[output.name].append(each)
    return references, outputs, measured


def _write(
    options: argparse.Namespace, tables: list[Table], figures: dict[str, Any], make_page: Callable[[], str]
) -> None:
    """Writes the files that were asked for and prints the tables: last, as a reader may close the pipe on them."""
    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.base.report import write_page, write_tables

    if options.json:
        write_json(options.json, figures)
    write_tables(tables, options.markdown, options.latex)
    if options.html:
        write_page(options.html, make_page())
    console = Console()
    for table in tables:
        table.print(console)
        console.print()
