"""`docnmt corpus`: make a demo corpus, look into a corpus."""

from __future__ import annotations

import argparse
from pathlib import Path

from docnmt.cli.options import Verbs, add_corpus, add_json, corpus_files, languages_of


def add(verbs: Verbs) -> None:
    corpus = verbs.add_parser("corpus", help="make a demo corpus, look into a corpus")
    jobs = corpus.add_subparsers(required=True, metavar="JOB")
    make = jobs.add_parser("demo", help="write the embedded French-English corpus as files")
    make.add_argument("folder", metavar="DIR")
    make.add_argument("--documents", type=int, default=4500, metavar="N")
    make.add_argument("--seed", type=int, default=1, metavar="S")
    make.set_defaults(run=run_corpus_demo)
    inspect = jobs.add_parser("inspect", help="count documents, sentences, words; show contexts")
    inspect.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    add_corpus(inspect)
    inspect.add_argument("--context", default="previous=2", metavar="SPEC", help="previous=N,following=N or none")
    inspect.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    add_json(inspect)
    inspect.set_defaults(run=run_corpus_inspect)


def run_corpus_demo(options: argparse.Namespace) -> None:
    from docnmt.corpora.demo import write_demo_corpus

    write_demo_corpus(Path(options.folder), options.documents, options.seed)
    print((Path(options.folder) / "README.txt").read_text(encoding="utf-8"), end="")


def run_corpus_inspect(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.corpora.inspection import inspect, print_inspection
    from docnmt.corpora.readers import read_corpus
    from docnmt.document import ContextSpec
    from docnmt.errors import SkipBad, raise_bad
    from docnmt.files_on_disk import write_json
    from docnmt.progress import Progress

    bad = SkipBad()
    documents = read_corpus(
        corpus_files(options), languages=languages_of(options), on_bad=bad if options.skip_bad else raise_bad
    )
    tracked = Progress().track(documents, "inspect", unit="sentences", size=len)
    result = inspect(tracked, ContextSpec.parse(options.context))
    print_inspection(Console(), result)
    if options.skip_bad:
        print(bad.report())
    if options.json:
        write_json(options.json, {**result.as_dict(), "skipped": dict(bad.counts)})
