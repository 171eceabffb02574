"""`docnmt evaluate` and `compare`: by metrics; `judge` and `judgements`: by people."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError, missing_extra
from docnmt.base.files import write_atomically
from docnmt.base.progress import Progress
from docnmt.cli.options import check_outputs, show

if TYPE_CHECKING:
    from docnmt.evaluation.outputs import Output, References
    from docnmt.evaluation.scores import Measured, Part


def run_evaluate(options: argparse.Namespace) -> None:
    from docnmt.base.report import page
    from docnmt.evaluation.scores import documents_of, evaluate, figures, result_tables

    progress = Progress()
    references, _, measured, parts = _measured(options, progress)
    parts += documents_of(references) if options.by_document else []
    results = evaluate(measured, parts, progress, options.resample)
    tables = result_tables(results, options.resample)
    show(options, tables, figures(results, options.resample), lambda: page("Evaluation", tables))


def run_compare(options: argparse.Namespace) -> None:
    from docnmt.evaluation.comparison import compare_systems, comparison_figures, comparison_page, comparison_tables

    if len(options.files) < 2:
        raise DocnmtError("a comparison needs a baseline and a system\n  Give two or more files of translations.")
    progress = Progress()
    references, outputs, measured, parts = _measured(options, progress)
    results = compare_systems(measured, parts, progress, options.resample)
    tables = comparison_tables(results)
    show(options, tables, comparison_figures(results), lambda: comparison_page(tables, outputs, references, progress))


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


# ---- `docnmt judge` and `judgements`: people compare two systems ----


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
