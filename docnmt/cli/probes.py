"""`docnmt contrast make`: a contrastive set from any parallel corpus."""

from __future__ import annotations

import argparse

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import VerbParser, add_document_marks, add_json, check_outputs, corpus_files, languages_of


def add(contrast: VerbParser) -> None:
    make = contrast.add_job(
        "make",
        "Finds sentences whose reference has exactly one word of a class (his, her, its), and writes them with their "
        "contexts and with the other words in its place.",
        ["docnmt contrast make test.tsv --languages fr-en -o probes.jsonl"],
    )
    make.add_argument("files", nargs="+", metavar="CORPUS", help="one file with both sides, or source and target")
    make.add_argument("-o", "--output", required=True, metavar="SET", help="JSON lines, as docnmt contrast reads them")
    make.add_argument("--languages", required=True, metavar="SRC-TRG", help="fr-en, en-fr, zh-en, de-en have classes")
    make.add_argument(
        "--swap",
        dest="classes",
        action="append",
        default=[],
        metavar="WORD,...",
        help="a class of your own instead: his,her,its; gender: all pronouns of a person at once; may be repeated",
    )
    make.add_argument("--source", default="", metavar="WORD,...", help="with --swap: words of which the source has one")
    make.add_argument("--limit", type=int, default=0, metavar="N", help="of a class, cue and document (default: all)")
    make.add_argument("--seed", type=int, default=1, metavar="S", help="of what the limit draws")
    make.add_argument("--format", default="", help="where content does not tell it")
    add_document_marks(make)
    make.add_argument("--target-first", dest="swap", action="store_true", help="the target side comes first")
    add_json(make)
    make.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.corpus.read import read_corpus
    from docnmt.evaluation.contrastive_items import write_items
    from docnmt.evaluation.probe_words import chosen_classes, preset
    from docnmt.evaluation.probes import ProbeMaker, prior_table

    if options.source and not options.classes:
        raise DocnmtError("--source goes with --swap\n  The ready-made classes have their own source words.")
    if options.limit < 0:
        raise DocnmtError(f"--limit {options.limit}: not a number of items\n  Give 1 or more, or 0 for all.")
    check_outputs(options.output, options.json)
    languages = languages_of(options)
    swaps = [_listed(words) for words in options.classes]
    source = _listed(options.source)
    classes = chosen_classes(languages, swaps, source) if swaps else preset(languages)
    documents = list(read_corpus(corpus_files(options), languages=languages))
    items = ProbeMaker(documents, languages).make(classes, limit=options.limit, seed=options.seed)
    if not items:
        raise DocnmtError(
            f"{', '.join(options.files)}: no sentence to ask about\n"
            "  Check --languages and which side comes first (--target-first), or name other words with --swap."
        )
    write_items(options.output, items)
    table = prior_table(items, languages)
    if options.json:
        write_json(options.json, table.figures)
    table.print(Console())


def _listed(words: str) -> list[str]:
    return [word for part in words.split(",") if (word := part.strip().lower())]
