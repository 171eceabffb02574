"""`docnmt evaluate` and `compare`: by metrics; `judge` and `judgements`: by people."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docnmt.base.errors import DocnmtError, missing_extra
from docnmt.cli.options import Verbs, add_document_marks, add_domains, add_tables, check_outputs, show

if TYPE_CHECKING:
    from docnmt.base.progress import Progress
    from docnmt.base.report import Table
    from docnmt.evaluation.outputs import Output, References
    from docnmt.evaluation.scores import Measured, Part

PORT = 5001
STORE = "judgements.sqlite"
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

    _add_judge(verbs)


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
    verb.add_argument(
        "--terms", action="store_true", help="also check whether terms are translated consistently in a document"
    )
    _add_comet(verb)
    verb.add_argument(
        "--language", default="", metavar="CODE", help="language of the translations: chooses the tokenizer"
    )
    verb.add_argument("--lowercase", action="store_true", help="ignore case")
    verb.add_argument("--tokenized", action="store_true", help="the text is already tokenised")
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
        "--comet-python",
        default="",
        metavar="PATH",
        help="the Python with unbabel-comet (default: $DOCNMT_COMET_PYTHON)",
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
    from docnmt.evaluation.scores import documents_of, evaluate, figures, result_tables

    progress = Progress()
    references, _, measured, parts = _measured(options, progress)
    parts += documents_of(references) if options.by_document else []
    results = evaluate(measured, parts, progress, options.resample)
    tables = result_tables(results, options.resample)
    _write(options, tables, figures(results, options.resample), lambda: page("Evaluation", tables))


def run_compare(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.evaluation.comparison import compare_systems, comparison_figures, comparison_page, comparison_tables

    if len(options.files) < 2:
        raise DocnmtError("a comparison needs a baseline and a system\n  Give two or more files of translations.")
    progress = Progress()
    references, outputs, measured, parts = _measured(options, progress)
    results = compare_systems(measured, parts, progress, options.resample)
    tables = comparison_tables(results)
    _write(options, tables, comparison_figures(results), lambda: comparison_page(tables, outputs, references, progress))


def _measured(
    options: argparse.Namespace, progress: Progress
) -> tuple[References, list[Output], dict[str, list[Measured]], list[Part]]:
    """The references, the systems' outputs, what each metric finds in each of them, and the parts to score them on."""
    from docnmt.evaluation.comet import MODEL, PYTHON, CometScorer
    from docnmt.evaluation.metrics import make_metric
    from docnmt.evaluation.outputs import read_outputs, read_references
    from docnmt.evaluation.scores import all_of, domains_of, measure, warn_of_language, warn_of_tokens
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
    parts = [all_of(references)]
    parts += domains_of(references, options.domains) if options.by_domain or options.domains else []
    return references, outputs, measured, parts


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


# ---- `docnmt judge` and `judgements`: people compare two systems ----


def _add_judge(verbs: Verbs) -> None:
    judge = verbs.add_parser(
        "judge",
        examples=["docnmt judge baseline.txt ours.txt --source test.tsv --documents 10"],
        help="serve a page where people judge which of two systems is better, without knowing which is which",
        description="Draws whole documents and serves a page that shows each sentence in its document with both "
        "translations. Judges may stop and continue at any time; the same command continues with the same judgements.",
    )
    judge.add_argument("one", metavar="A", help="translations of the baseline")
    judge.add_argument("other", metavar="B", help="translations of the other system")
    judge.add_argument("--source", required=True, metavar="S", help="the source of both, with its documents")
    judge.add_argument("--documents", type=int, default=20, metavar="N", help="how many to judge (default 20)")
    judge.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the sample and of the sides (default 1)"
    )
    judge.add_argument("--store", default=STORE, metavar="FILE", help=f"where judgements are kept (default {STORE})")
    judge.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (default 127.0.0.1)")
    judge.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 for any free one")
    judge.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="a host name under which judges reach it"
    )
    judge.set_defaults(run=run_judge)

    judgements = verbs.add_parser(
        "judgements",
        help="what the judges found: shares, agreement, sign test, CSV",
        examples=["docnmt judgements judgements.sqlite --csv judgements.csv"],
    )
    judgements.add_argument("store", metavar="STORE", help="the --store of `docnmt judge`")
    judgements.add_argument("--judges", nargs="+", default=[], metavar="NAME", help="only of these judges")
    judgements.add_argument("--csv", default="", metavar="FILE", help="write all judgements as CSV")
    add_tables(judgements)
    judgements.set_defaults(run=run_judgements)


def run_judge(options: argparse.Namespace) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise missing_extra(f"{error.name} is needed to judge", "serve") from None
    import asyncio

    from docnmt.judging.app import judging_app
    from docnmt.judging.store import Store, read_sample
    from docnmt.serving.server import address, listen, serve

    check_outputs(options.store)
    sample = read_sample(options.source, (options.one, options.other), options.documents, options.seed)
    bound = listen(options.host, options.port)
    store = Store(options.store, sample)
    try:
        asked = f"{len(sample.questions):,} of {len(sample.sentences):,} sentences, which differ"
        print(f"documents: {len(sample.documents):,}; judges are asked about {asked}")
        print(f"judgements are saved in {options.store}; to see them: docnmt judgements {options.store}")
        for name, secret in store.secrets().items():
            print(f"{name} continues at {address(bound)}as/{secret}")
        print(f"judge at {address(bound)} (Ctrl-C stops it, the same command continues)", flush=True)
        asyncio.run(serve(judging_app(store, options.name), bound, seconds=5))
    finally:
        store.close()


def run_judgements(options: argparse.Namespace) -> None:
    from docnmt.base.files import write_atomically
    from docnmt.judging.store import Store
    from docnmt.judging.summary import as_csv, figures, summarise, summary_table

    check_outputs(options.csv, options.json, options.markdown, options.latex)
    store = Store(options.store)
    summary = summarise(store, options.judges)
    if options.csv:
        with write_atomically(options.csv) as file:
            file.write(as_csv(store, options.judges))
    store.close()
    show(options, [summary_table(summary)], figures(summary))
