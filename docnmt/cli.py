"""The command line: one verb a job. Heavy imports stay inside the verbs, so that --help is instant."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docnmt.errors import DocnmtError, Interrupted
from docnmt.version import __version__

if TYPE_CHECKING:
    from docnmt.config import Recipe
    from docnmt.corpora.files import CorpusFiles


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        options.run(options)
    except DocnmtError as error:
        print(f"docnmt: {error}", file=sys.stderr)
        return 2
    except Interrupted as stopped:
        print(f"docnmt: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that is not there: the system's own words say it
        print(f"docnmt: {error.filename or 'error'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("docnmt: interrupted", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="docnmt", description="Document-level translation.")
    root.add_argument("--version", action="version", version=f"docnmt {__version__}")
    verbs = root.add_subparsers(title="verbs", required=True, metavar="VERB")

    demo = verbs.add_parser("demo", help="train and judge a small document-level translator, in minutes")
    demo.add_argument("recipe", nargs="?", default="recipes/demo.toml", metavar="RECIPE")
    _add_set(demo)
    _add_json(demo)
    demo.set_defaults(run=run_demo)

    corpus = verbs.add_parser("corpus", help="make a demo corpus, look into a corpus")
    jobs = corpus.add_subparsers(required=True, metavar="JOB")
    make = jobs.add_parser("demo", help="write the embedded French-English corpus as files")
    make.add_argument("folder", metavar="DIR")
    make.add_argument("--documents", type=int, default=3000, metavar="N")
    make.add_argument("--seed", type=int, default=1, metavar="S")
    make.set_defaults(run=run_corpus_demo)
    inspect = jobs.add_parser("inspect", help="count documents, sentences, words; show contexts")
    inspect.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    _add_corpus(inspect)
    inspect.add_argument("--context", default="previous=2", metavar="SPEC", help="previous=N,following=N or none")
    inspect.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    _add_json(inspect)
    inspect.set_defaults(run=run_corpus_inspect)

    prepare = verbs.add_parser("prepare", help="train sub-words and turn a recipe's corpora into token stores")
    prepare.add_argument("recipe", metavar="RECIPE")
    prepare.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    _add_set(prepare)
    prepare.set_defaults(run=run_prepare)

    train = verbs.add_parser("train", help="train a recipe's model: the sentence step, then the document step")
    train.add_argument("recipe", metavar="RECIPE")
    train.add_argument("--step", choices=("sentence", "document"), help="run one of the steps alone")
    train.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    _add_set(train)
    train.set_defaults(run=run_train)

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
    _add_context(translate)
    translate.add_argument("--device", default="auto")
    translate.set_defaults(run=run_translate)

    score = verbs.add_parser("score", help="log-probabilities of given translations, with context and without")
    score.add_argument("model", metavar="MODEL")
    score.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    _add_corpus(score)
    _add_context(score)
    score.add_argument("--tokens", action="store_true", help="one JSON object a sentence, with every piece's value")
    score.add_argument("--device", default="auto")
    _add_json(score)
    score.set_defaults(run=run_score)
    return root


def _add_json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", default="", metavar="FILE", help="write the figures to a file as well")


def _add_set(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the recipe")


def _add_corpus(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--format", default="", help="where content does not tell it")
    verb.add_argument("--document-ids", default="", metavar="FILE", help="the document id of each line")
    verb.add_argument("--document-starts", default="", metavar="FILE", help="index of each document's first line")
    verb.add_argument("--languages", default="", metavar="SRC-TRG", help="for files that hold several languages")
    verb.add_argument("--swap", action="store_true", help="the target side comes first")


def _add_context(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--context",
        metavar="SPEC",
        help="previous=N,following=N; none: an empty context; off: the sentence model. Default: as trained",
    )


def _corpus(options: argparse.Namespace) -> CorpusFiles:
    from docnmt.corpora.files import CorpusFiles

    if len(options.files) > 2:
        raise DocnmtError("a corpus is one file with both sides, or a source and a target file\n  Name one or two.")
    names = dict(zip(("source", "target"), options.files, strict=False)) if len(options.files) == 2 else {}
    return CorpusFiles(
        path=options.files[0] if len(options.files) == 1 else "",
        **names,
        document_ids=options.document_ids,
        document_starts=options.document_starts,
        format=options.format,
        swap=options.swap,
    )


def _languages(options: argparse.Namespace) -> tuple[str, str]:
    source, _, target = options.languages.partition("-")
    return source, target


def _recipe(options: argparse.Namespace) -> Recipe:
    from docnmt.config import load_recipe

    settings = list(options.set)
    if getattr(options, "skip_bad", False):
        settings.append("data.skip_bad=true")
    return load_recipe(options.recipe, settings)


# ---- the verbs ----


def run_demo(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.demo import run_demo as run
    from docnmt.progress import Progress

    run(_recipe(options), Progress(), Console(), options.json)


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
        _corpus(options), languages=_languages(options), on_bad=bad if options.skip_bad else raise_bad
    )
    tracked = Progress().track(documents, "inspect", unit="sentences", size=len)
    result = inspect(tracked, ContextSpec.parse(options.context))
    print_inspection(Console(), result)
    if options.skip_bad:
        print(bad.report())
    if options.json:
        write_json(options.json, {**result.as_dict(), "skipped": dict(bad.counts)})


def run_prepare(options: argparse.Namespace) -> None:
    from docnmt.corpora.prepare import prepare
    from docnmt.progress import Progress

    prepare(_recipe(options), Progress())


def run_train(options: argparse.Namespace) -> None:
    from docnmt.progress import Progress
    from docnmt.training.parallel import leave_group
    from docnmt.training.steps import train

    recipe = _recipe(options)
    steps = (options.step,) if options.step else ("sentence", "document") if recipe.context.active else ("sentence",)
    if recipe.document.start_from and not options.step:
        steps = ("document",)  # what step 2 starts from is given, so there is no step 1 to run
    try:
        train(recipe, steps, Progress())
    finally:
        leave_group()


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
    print_scores(translator, _corpus(options), _languages(options), options.context, options.tokens, options.json)
