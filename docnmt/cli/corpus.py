"""`docnmt corpus`: make a demo corpus, inspect a corpus, clean it."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

from rich.console import Console

from docnmt.base.errors import DocnmtError, SkipBad, raise_bad
from docnmt.base.files import write_atomically, write_json
from docnmt.base.lines import CorpusFiles, InputFile
from docnmt.base.progress import Progress
from docnmt.cli.options import check_outputs, corpus_files, languages_of, show
from docnmt.config import one_of
from docnmt.corpus import clean as report
from docnmt.corpus.clean import Cleaner, Limits, read_all
from docnmt.corpus.inspect import PAPER, comparison, expected_of, inspect, print_inspection, sizes_table
from docnmt.corpus.read import read_corpus
from docnmt.corpus.rows import LeaveGaps, writer_for
from docnmt.document import ContextSpec
from docnmt.recipes import OWN, load_recipe


def run_corpus_demo(options: argparse.Namespace) -> None:
    from docnmt.demo import write_demo_corpus

    write_demo_corpus(Path(options.folder), options.documents, options.seed)
    print((Path(options.folder) / "README.txt").read_text(encoding="utf-8"), end="")


def run_corpus_inspect(options: argparse.Namespace) -> None:

    name = options.files[0]
    recipe = load_recipe(name) if len(options.files) == 1 and (name.endswith(".toml") or name in OWN) else None
    if recipe:  # the sizes of all that it names, dev and test together where the paper counts them so
        if options.expect:
            one_of("--expect", options.expect, tuple(PAPER))
        expected = PAPER[options.expect] if options.expect else {}
        corpora = {
            part: [files for role in part.split(" and ") for files in getattr(recipe.data, role)]
            for part in expected or ("documents", "dev", "test")
        }
        languages, spec = recipe.data.languages, recipe.context.spec
    else:
        expected = {"corpus": expected_of(options.expect)} if options.expect else {}
        corpora = {"corpus": [corpus_files(options)]}
        languages, spec = languages_of(options), ContextSpec.parse(options.context)
    bad, found, console = SkipBad(), {}, Console()
    on_bad = bad if options.skip_bad or (recipe and recipe.data.skip_bad) else raise_bad
    for part, files in corpora.items():
        if not files:
            raise DocnmtError(f"{name}: the recipe has no {part}\n  Set data.{part.split()[0]}.")
        documents = chain.from_iterable(read_corpus(each, languages=languages, on_bad=on_bad) for each in files)
        title = f"inspect {part}" if recipe else "inspect"
        found[part] = inspect(Progress().track(documents, title, unit="sentences", size=len), spec)
    if recipe:
        sizes_table(found).print(console)
    else:
        print_inspection(console, found["corpus"])
    if expected:
        comparison(found, expected).print(console)
    if bad.counts or (options.skip_bad and not recipe):
        print(bad.report())
    if options.json:
        figures = {part: inspection.as_dict() for part, inspection in found.items()}
        write_json(options.json, figures if recipe else {**figures["corpus"], "skipped": dict(bad.counts)})


def run_corpus_clean(options: argparse.Namespace) -> None:

    if options.report and not options.report.endswith((".json", ".md")):
        raise DocnmtError(f"--report {options.report}: must end in .json or .md\n  Choose such a name.")
    write = writer_for(options.output)
    check_outputs(options.output, options.report)
    for path in options.files:
        if Path(options.output).exists() and Path(path).exists() and Path(options.output).samefile(path):
            raise DocnmtError(f"{path}: this input file would be overwritten\n  Give another file with -o.")
    if (options.document_ids or options.document_starts) and not options.sides:
        raise DocnmtError("--document-ids and --document-starts need a source and a target file\n  Add --sides.")
    limits = Limits(options.max_words, options.max_ratio, options.max_repeats)
    without = filter(None, map(str.strip, options.without.split(",")))
    cleaner, bad = Cleaner(languages_of(options), limits, without), LeaveGaps()
    if options.sides:
        corpora = [corpus_files(options)]
    else:
        corpora = [CorpusFiles(path, format=options.format, swap=options.swap) for path in options.files]
    documents = read_all(corpora, languages_of(options), bad)
    tracked = Progress().track(documents, "clean", unit="sentences", size=len)
    write(options.output, cleaner.clean(tracked))
    console = Console()
    report.table(cleaner).print(console)
    report.examples(cleaner).print(console)
    if bad.counts:
        print(f"{bad.report()}\n  If the format allows, they are left as gaps.")
    if options.report.endswith(".json"):
        write_json(options.report, {**report.as_dict(cleaner), "unreadable": dict(bad.counts)})
    elif options.report:
        with write_atomically(options.report) as file:
            file.write(report.markdown(cleaner))


def run_corpus_align(options: argparse.Namespace) -> None:
    from docnmt.corpus.align import align_books, alignment_table, good_chapters, read_book

    write = writer_for(options.output)
    check_outputs(options.output, options.json)
    books = []
    for path, language in zip((options.source, options.target), languages_of(options), strict=True):
        with InputFile(path) as file:
            books.append(read_book(file.content(), file.name.removesuffix(".gz"), language))
    aligned = align_books(books[0], books[1], Progress())
    good = good_chapters(aligned, (options.source, options.target))
    write(options.output, [chapter.document(Path(options.source).name.partition(".")[0]) for chapter in good])
    table = alignment_table(books[0], books[1], aligned, good)
    show(options, [table], table.figures)
