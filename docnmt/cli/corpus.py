"""`docnmt corpus`: make a demo corpus, inspect a corpus, clean it."""

from __future__ import annotations

import argparse
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import Verbs, add_corpus, add_json, check_outputs, corpus_files, languages_of, show


def add(verbs: Verbs) -> None:
    corpus = verbs.add_parser(
        "corpus",
        help="make, inspect or clean a corpus",
        examples=["docnmt corpus inspect train.tsv", "docnmt corpus clean --help"],
    )
    jobs = corpus.add_subparsers(required=True, metavar="JOB")
    make = jobs.add_parser(
        "demo", help="write the embedded French-English corpus as files", examples=["docnmt corpus demo my-corpus"]
    )
    make.add_argument("folder", metavar="DIR")
    make.add_argument("--documents", type=int, default=4500, metavar="N", help="default 4500")
    make.add_argument("--seed", type=int, default=1, metavar="S")
    make.set_defaults(run=run_corpus_demo)
    inspect = jobs.add_parser(
        "inspect",
        help="count documents, sentences, words; show contexts",
        examples=["docnmt corpus inspect train.tsv", "docnmt corpus inspect train.fr train.en --languages fr-en"],
    )
    inspect.add_argument(
        "files", nargs="+", metavar="FILE", help="one with both sides, or source and target, or a recipe"
    )
    add_corpus(inspect)
    inspect.add_argument("--context", default="previous=2", metavar="SPEC", help="previous=N,following=N or none")
    inspect.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    inspect.add_argument(
        "--expect",
        default="",
        metavar="NAME",
        help="show where it differs from the paper's data: zh-en, fr-en, fr-en-dev ...",
    )
    add_json(inspect)
    inspect.set_defaults(run=run_corpus_inspect)
    _add_clean(jobs)
    _add_align(jobs)


def _add_clean(jobs: Verbs) -> None:
    clean = jobs.add_parser(
        "clean",
        help="remove bad pairs, leaving gaps in their place",
        examples=["docnmt corpus clean raw.tsv -o train.tsv --languages fr-en --report gone.md"],
    )
    clean.add_argument(
        "files", nargs="+", metavar="FILE", help="each with both sides; with --sides, a source and a target file"
    )
    clean.add_argument("-o", "--output", required=True, metavar="FILE", help=".tsv or .jsonl; add .gz to compress")
    clean.add_argument("--sides", action="store_true", help="the two files are a source and a target file")
    add_corpus(clean)
    clean.add_argument("--without", default="", metavar="FILTER,...", help="filters to leave out")
    clean.add_argument(
        "--max-words", type=int, default=200, metavar="N", help="maximum words of a sentence (default 200)"
    )
    clean.add_argument(
        "--max-ratio", type=float, default=4.0, metavar="X", help="maximum ratio of the two lengths (default 4)"
    )
    clean.add_argument("--max-repeats", type=int, default=5, metavar="N", help="of pairs under four words (default 5)")
    clean.add_argument("--report", default="", metavar="FILE", help="what was removed and why, as .json or .md")
    clean.set_defaults(run=run_corpus_clean)


def _add_align(jobs: Verbs) -> None:
    align = jobs.add_parser(
        "align",
        help="align two books sentence by sentence: by chapters, lengths and words",
        examples=["docnmt corpus align book.fr.epub book.en.epub --languages fr-en -o book.tsv"],
    )
    align.add_argument("source", metavar="SOURCE", help="a book: text, Markdown, HTML, EPUB, Word, OpenDocument")
    align.add_argument("target", metavar="TARGET", help="its translation")
    align.add_argument("-o", "--output", required=True, metavar="FILE", help=".tsv or .jsonl; add .gz to compress")
    align.add_argument("--languages", required=True, metavar="SRC-TRG", help="fr-en, de-en ...")
    add_json(align)
    align.set_defaults(run=run_corpus_align)


def run_corpus_demo(options: argparse.Namespace) -> None:
    from docnmt.demo import write_demo_corpus

    write_demo_corpus(Path(options.folder), options.documents, options.seed)
    print((Path(options.folder) / "README.txt").read_text(encoding="utf-8"), end="")


def run_corpus_inspect(options: argparse.Namespace) -> None:
    from itertools import chain

    from rich.console import Console

    from docnmt.base.errors import SkipBad, raise_bad
    from docnmt.base.files import write_json
    from docnmt.base.progress import Progress
    from docnmt.config import one_of
    from docnmt.corpus.inspect import PAPER, comparison, expected_of, inspect, print_inspection, sizes_table
    from docnmt.corpus.read import read_corpus
    from docnmt.document import ContextSpec
    from docnmt.recipes import OWN, load_recipe

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
    from rich.console import Console

    from docnmt.base.files import write_atomically, write_json
    from docnmt.base.lines import CorpusFiles
    from docnmt.base.progress import Progress
    from docnmt.corpus import clean as report
    from docnmt.corpus.clean import Cleaner, Limits, read_all
    from docnmt.corpus.rows import LeaveGaps, writer_for

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
    from docnmt.base.lines import InputFile
    from docnmt.base.progress import Progress
    from docnmt.corpus.align import align_books, alignment_table, good_chapters, read_book
    from docnmt.corpus.rows import writer_for

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
