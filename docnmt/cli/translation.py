"""`docnmt translate` and `score`."""

from __future__ import annotations

import argparse
import os
import sys

from docnmt.cli.options import Verbs, add_context, add_corpus, add_json, corpus_files, languages_of
from docnmt.errors import DocnmtError


def add(verbs: Verbs) -> None:
    translate = verbs.add_parser(
        "translate",
        help="translate documents",
        description="Plain text has one sentence a line and an empty line between documents; other formats are told "
        "by their content.",
    )
    translate.add_argument("model", metavar="MODEL")
    translate.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="- or nothing: standard input")
    translate.add_argument("-o", "--output", default="", metavar="OUT", help="a file, or a folder for several files")
    translate.add_argument("--format", default="", help="of the input, where content does not tell it")
    translate.add_argument("--beam", type=int, help="hypotheses a sentence; 1 is greedy")
    translate.add_argument("--length-penalty", type=float, metavar="ALPHA")
    translate.add_argument("--nbest", type=int, default=1, metavar="N", help="print N translations a sentence")
    add_context(translate)
    translate.add_argument("--device", default="auto")
    translate.set_defaults(run=run_translate)

    score = verbs.add_parser("score", help="log-probabilities of given translations, with context and without")
    score.add_argument("model", metavar="MODEL")
    score.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    add_corpus(score)
    add_context(score)
    score.add_argument("--tokens", action="store_true", help="one JSON object a sentence, with every piece's value")
    score.add_argument("--device", default="auto")
    add_json(score)
    score.set_defaults(run=run_score)


def run_translate(options: argparse.Namespace) -> None:
    from dataclasses import replace

    from docnmt.decoding.jobs import FileJob, count_sentences, output_paths, translate_stream
    from docnmt.decoding.translator import load
    from docnmt.model_folder import model_key
    from docnmt.progress import Progress

    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if size > 1 and not options.output:
        raise DocnmtError("several processes cannot share standard output\n  Name an output file with -o.")
    translator = load(options.model, options.device)
    given = {"beam": options.beam, "length_penalty": options.length_penalty, "context": options.context}
    chosen = replace(
        translator.options, nbest=options.nbest, **{key: value for key, value in given.items() if value is not None}
    )
    progress = Progress(quiet=rank > 0)
    if not options.output:
        total = None if "-" in options.files else count_sentences(options.files, options.format)
        with progress.bar("translate", total, "sentences") as tick:
            for path in options.files:
                translate_stream(translator, path, sys.stdout, chosen, options.format, tick)
        return
    if "-" in options.files:
        raise DocnmtError("-o goes with named files\n  Name an input file, or send standard output to a file.")
    paths, key = output_paths(options.files, options.output), model_key(options.model)
    total = count_sentences(options.files, options.format) // size
    with progress.bar("translate", total, "sentences") as tick:
        job = FileJob(translator, chosen, key, rank, size, tick)
        for path, out in paths.items():
            job.translate(path, out, options.format)
        job.finish(progress.say)


def run_score(options: argparse.Namespace) -> None:
    from docnmt.decoding.scoring import print_scores
    from docnmt.decoding.translator import load

    translator = load(options.model, options.device)
    print_scores(
        translator, corpus_files(options), languages_of(options), options.context, options.tokens, options.json
    )
