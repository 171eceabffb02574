"""`docnmt translate` and `score`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import (
    Verbs,
    add_cluster,
    add_context,
    add_corpus,
    add_json,
    check_cluster,
    check_outputs,
    corpus_files,
    languages_of,
)

if TYPE_CHECKING:
    from docnmt.base.progress import Progress
    from docnmt.decoding.file_batch import ShareOut
    from docnmt.decoding.results import Options
    from docnmt.decoding.terms import TermCheck
    from docnmt.decoding.translator import Translator


def add(verbs: Verbs) -> None:
    translate = verbs.add_parser(
        "translate",
        examples=[
            "docnmt translate runs/demo/document/model letter.docx -o letter.en.docx",
            "docnmt translate runs/demo/document/model < sentences.fr > sentences.en",
        ],
        help="translate documents",
        description="Files with layout (txt, md, html, docx, odt, epub, po, xliff, json, srt, vtt) keep it. "
        "All others, and those with --format, are corpora: plain text has one sentence a line and an empty line "
        "between documents, other formats are told by their content.",
    )
    translate.add_argument("model", metavar="MODEL")
    translate.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="or a folder; - or nothing: standard input"
    )
    translate.add_argument("-o", "--output", default="", metavar="OUT", help="a file, or a folder for several files")
    translate.add_argument("--format", default="", help="of the input, where content does not tell it")
    translate.add_argument("--beam", type=int, help="hypotheses a sentence; 1 is greedy (default: the model's)")
    translate.add_argument("--length-penalty", type=float, metavar="ALPHA", help="default: the model's")
    translate.add_argument("--nbest", type=int, default=1, metavar="N", help="print N translations a sentence")
    translate.add_argument("--glossary", default="", metavar="FILE", help="a term, a tab and its translation a line")
    translate.add_argument("--glossary-report", default="", metavar="FILE", help="terms that could not be met, as JSON")
    translate.add_argument("--no-shortlist", dest="shortlist", action="store_false", help="any word of the vocabulary")
    add_context(translate)
    translate.add_argument("--previous", default="", metavar="FILE", help="what was said before: seen, not translated")
    translate.add_argument("--device", default="auto")
    add_cluster(translate, "file")
    translate.set_defaults(run=run_translate)

    score = verbs.add_parser(
        "score",
        help="log-probabilities of given translations, with context and without",
        examples=["docnmt score runs/demo/document/model runs/demo/corpus/test.tsv"],
    )
    score.add_argument("model", metavar="MODEL")
    score.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    add_corpus(score)
    add_context(score)
    score.add_argument("--tokens", action="store_true", help="one JSON object a sentence, with every piece's value")
    score.add_argument("--device", default="auto")
    add_json(score)
    score.set_defaults(run=run_score)


def run_translate(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.decoding.file_batch import translate_files
    from docnmt.decoding.files import FileMachine, languages_of
    from docnmt.decoding.jobs import count_sentences, in_folders, output_paths, read_previous, translate_stream
    from docnmt.decoding.terms import Glossary
    from docnmt.decoding.translator import load
    from docnmt.documents.segment import PACKED, kind_of
    from docnmt.documents.translate import FileSentences, read_bytes
    from docnmt.model_folder import model_key

    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise DocnmtError("docnmt translate is one process\n  Run it without torchrun, on a share of the files each.")
    if options.glossary_report and not options.glossary:
        raise DocnmtError("--glossary-report goes with a glossary\n  Name one with --glossary.")
    check_cluster(options)
    if options.on and (not options.output or options.previous):
        raise DocnmtError("--on shares out files that go to -o, with nothing before them\n  Name a folder with -o.")
    check_outputs(options.glossary_report)
    glossary = Glossary.read(options.glossary) if options.glossary else None
    translator = load(options.model, options.device)
    chosen = translator.options.changed(
        beam=options.beam,
        length_penalty=options.length_penalty,
        context=options.context,
        glossary=glossary,
        nbest=options.nbest,
        shortlist=options.shortlist,
    )
    files, left_out = in_folders(options.files)
    with_layout = [file for file in files if kind_of(file) and not options.format]
    if with_layout and options.nbest > 1:
        raise DocnmtError(f"{with_layout[0]}: a file keeps one translation\n  --nbest goes with lines: --format text.")
    if options.previous and len(files) > 1:
        raise DocnmtError("--previous stands before one file\n  Translate the files one by one.")
    previous = read_previous(options.previous, translator) if options.previous else ()
    progress = Progress()
    progress.say(f"decoding with {translator.way(chosen)}")
    if left_out:
        progress.say(f"left out, of kinds that are not read: {len(left_out):,} files, such as {left_out[0]}")
    with _terms_told(translator, options.glossary_report, progress) if glossary else nullcontext():
        if options.output:
            if "-" in files:
                raise DocnmtError("-o goes with named files\n  Name an input file, or send standard output to a file.")
            into_folder = any(map(os.path.isdir, options.files))
            paths, key = output_paths(files, options.output, into_folder), model_key(options.model)
            share_out = _shared(options, chosen, key, progress) if options.on else None
            translate_files(translator, chosen, paths, options.format, key, progress, previous, share_out)
        elif with_layout:
            if len(files) > 1 or kind_of(with_layout[0]) in PACKED:
                raise DocnmtError(
                    f"{with_layout[0]}: its translation needs a place\n  Name a file or a folder with -o."
                )
            file = FileSentences(read_bytes(with_layout[0]), with_layout[0], languages_of(translator))
            with progress.bar("translate", len(file), "sentences") as tick:
                translated = file.translated(FileMachine(translator, chosen, previous), tick)
            sys.stdout.flush()
            sys.stdout.buffer.write(translated)
        else:
            total = None if "-" in files else count_sentences(list(files), options.format)
            with progress.bar("translate", total, "sentences") as tick:
                for path in files:
                    translate_stream(translator, path, sys.stdout, chosen, options.format, tick, previous)


def _shared(options: argparse.Namespace, chosen: Options, key: str, progress: Progress) -> ShareOut:
    from docnmt.base.cluster import Need, connect, gpus_there
    from docnmt.decoding.ray_files import Order, share_out

    connect(options.on)
    need = Need(options.cpus, float(gpus_there()) if options.gpus is None else options.gpus)
    order = Order(os.path.abspath(options.model), key, options.device, chosen, options.format)
    return lambda files: share_out(order, need, files, progress.say)


@contextmanager
def _terms_told(translator: Translator, report: str, progress: Progress) -> Iterator[None]:
    """At the end the terms that could not be met; of those files that could be translated, if some could not."""
    try:
        yield
    except DocnmtError:
        if translator.terms.found:
            _tell_terms(translator.terms, report, progress)
        raise
    _tell_terms(translator.terms, report, progress)


def _tell_terms(terms: TermCheck, report: str, progress: Progress) -> None:
    from docnmt.base.files import write_json

    if progress.quiet:
        return
    if terms.unmet:
        terms.table().print(progress.console)
    progress.say(terms.summary())
    if report:
        write_json(report, terms.as_dict())


def run_score(options: argparse.Namespace) -> None:
    from docnmt.decoding.scoring import print_scores
    from docnmt.decoding.translator import load

    translator = load(options.model, options.device)
    print_scores(
        translator, corpus_files(options), languages_of(options), options.context, options.tokens, options.json
    )
