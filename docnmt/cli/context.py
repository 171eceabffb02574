"""`docnmt context-gain`, `contrast` and `contrast make`: whether a model uses its context."""

from __future__ import annotations

import argparse
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.cli.options import (
    VerbParser,
    Verbs,
    add_context,
    add_corpus,
    add_document_marks,
    add_domains,
    add_json,
    add_tables,
    check_outputs,
    corpus_files,
    languages_of,
    show,
)


def add(verbs: Verbs) -> None:
    _add_context_gain(verbs)
    _add_contrast(verbs)


# ---- `docnmt context-gain` ----


def _add_context_gain(verbs: Verbs) -> None:
    gain = verbs.add_parser(
        "context-gain",
        examples=["docnmt context-gain runs/demo/document/model runs/demo/corpus/test.tsv --html gain.html"],
        help="does a model use its context? by how much, and for which words?",
        description="Scores and translates a corpus with the true context, none, a shuffled one (of other documents) "
        "and the sentence itself repeated.",
    )
    gain.add_argument("model", metavar="MODEL", help="a document model")
    gain.add_argument("files", nargs="+", metavar="FILE", help="one file with both sides, or source and target")
    add_corpus(gain)
    add_domains(gain)
    gain.add_argument(
        "--words",
        action="append",
        default=[],
        metavar="WORD,...",
        help="the gain of these words; may be repeated (default: those of docnmt contrast make)",
    )
    gain.add_argument(
        "--no-translate", action="store_true", help="skip BLEU: translating under four contexts takes longest"
    )
    gain.add_argument(
        "--html", default="", metavar="FILE", help="write a page of words coloured by their gain from context"
    )
    gain.add_argument(
        "--sentences",
        type=int,
        default=100,
        metavar="N",
        help="sentences on the page: N that gain and N/5 that lose (default 100)",
    )
    gain.add_argument("--markdown", default="", metavar="FILE", help="write the tables to a file as well")
    gain.add_argument(
        "--tokens", default="", metavar="FILE", help="write the log-probabilities of all pieces, as JSON lines"
    )
    add_json(gain)
    gain.add_argument("--seed", type=int, default=1, metavar="S", help="seed of shuffled contexts and resamples")
    gain.add_argument("--device", default="auto")
    gain.set_defaults(run=run_context_gain)


def run_context_gain(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.base.files import write_atomically, write_json
    from docnmt.base.progress import Progress
    from docnmt.base.report import write_page
    from docnmt.corpus.read import read_corpus
    from docnmt.decoding.translator import load
    from docnmt.evaluation.context_gain import classes_of, context_gain, translation_quality, write_tokens
    from docnmt.evaluation.context_report import Figures, context_gain_page
    from docnmt.evaluation.context_trace import gate_by_layer
    from docnmt.evaluation.scores import by_domain

    if options.sentences < 1:
        raise DocnmtError(f"--sentences {options.sentences}: the page needs at least one sentence\n  Give 1 or more.")
    if options.seed < 0:
        raise DocnmtError(f"--seed {options.seed}: a seed cannot be negative\n  Give 0 or more.")
    check_outputs(options.html, options.json, options.markdown, options.tokens)
    translator, progress, console = load(options.model, options.device), Progress(), Console()
    languages = languages_of(options, translator.card.languages)
    documents = list(read_corpus(corpus_files(options), languages=languages))
    domains = {}
    if options.by_domain or options.domains:
        domains = by_domain([document.id for document in documents], options.domains)
    gain = context_gain(translator, documents, seed=options.seed, progress=progress)
    if options.tokens:
        write_tokens(options.tokens, gain)
    quality = None
    if not options.no_translate:
        quality = translation_quality(translator, documents, seed=options.seed, progress=progress)
    own = {words.replace(",", "/"): [word.strip() for word in words.split(",")] for words in options.words}
    classes = own or classes_of(translator.card.languages)
    figures = Figures(gain, quality, gate_by_layer(translator, documents), domains, classes)
    tables = figures.tables()
    if options.json:
        write_json(options.json, {"model": options.model, "corpus": options.files, **figures.as_dict()})
    if options.markdown:
        with write_atomically(options.markdown) as file:
            file.write("\n".join([f"{figures.verdict()}\n", *(table.markdown() for table in tables)]))
    if options.html:
        names = f"model {options.model}, corpus {' and '.join(options.files)}"
        write_page(options.html, context_gain_page(names, translator, documents, figures, options.sentences))
        progress.say(f"page: {options.html}")
    for table in tables:  # last, as a reader may close the pipe on them
        table.print(console)
        console.print()
    console.print(figures.verdict(), style="bold")


# ---- `docnmt contrast`: contrastive sets ----


def _add_contrast(verbs: Verbs) -> None:
    contrast = verbs.add_parser(
        "contrast",
        examples=["docnmt contrast runs/demo/document/model runs/demo/corpus/contrastive.jsonl --shuffled"],
        help="measure how often the right translation is more probable than wrong ones",
        description="Reads contrastive sets in docnmt's JSON lines and in the layouts of ContraPro, Lopes et al., "
        "Bawden et al., Voita et al. and ctxpro, recognised by their content.",
        epilog="docnmt contrast make CORPUS -o SET makes a set from a parallel corpus: docnmt contrast make --help",
    )
    _add_make(contrast)
    contrast.add_argument("model", metavar="MODEL")
    contrast.add_argument("file", metavar="SET")
    contrast.add_argument(
        "--layout", default="", help="docnmt, contrapro, bawden, voita or ctxpro (default: by content)"
    )
    contrast.add_argument(
        "--context-from",
        nargs="+",
        default=[],
        metavar="PATH",
        help="contrapro: the documents, a folder or a corpus; ctxpro: the input file",
    )
    add_context(contrast)
    contrast.add_argument(
        "--translate", action="store_true", help="also check whether the model's own translation has the right word"
    )
    contrast.add_argument("--shuffled", action="store_true", help="also score with contexts of other documents")
    contrast.add_argument("--seed", type=int, default=1, metavar="S", help="seed of shuffled contexts")
    contrast.add_argument(
        "--resample", choices=("items", "documents"), default="items", help="what intervals and p treat as independent"
    )
    contrast.add_argument("--write", default="", metavar="FILE", help="save the set as docnmt's JSON lines")
    contrast.add_argument("--items", default="", metavar="FILE", help="write all scores, one JSON object for each item")
    contrast.add_argument("--device", default="auto")
    add_tables(contrast)
    contrast.set_defaults(run=run_contrast)


def run_contrast(options: argparse.Namespace) -> None:
    import json

    from docnmt.base.files import write_atomically
    from docnmt.base.progress import Progress
    from docnmt.decoding.translator import load
    from docnmt.evaluation.contrastive_items import write_items
    from docnmt.evaluation.contrastive_layouts import read_set
    from docnmt.evaluation.contrastive_report import ContrastReport

    check_outputs(options.write, options.items, options.json, options.markdown, options.latex)
    translator = load(options.model, options.device)
    languages = translator.card.languages
    items = read_set(options.file, layout=options.layout, context_from=options.context_from, languages=languages)
    if options.write:
        write_items(options.write, items)
    report = ContrastReport(translator, items, options.context, options.shuffled, options.resample, options.seed)
    report.ask(options.translate, Progress())
    if options.items:
        with write_atomically(options.items) as file:
            for row in report.item_rows():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    show(options, report.tables(Path(options.file).name), report.as_dict())


# ---- `docnmt contrast make`: a contrastive set from any parallel corpus ----


def _add_make(contrast: VerbParser) -> None:
    make = contrast.add_job(
        "make",
        "Finds sentences whose reference has exactly one word of a class (his, her, its), and writes them with their "
        "contexts and with the other words in its place.",
        ["docnmt contrast make test.tsv --languages fr-en -o probes.jsonl"],
    )
    make.add_argument("files", nargs="+", metavar="CORPUS", help="one file with both sides, or source and target")
    make.add_argument("-o", "--output", required=True, metavar="SET", help="JSON lines, as docnmt contrast reads them")
    make.add_argument(
        "--languages", required=True, metavar="SRC-TRG", help="fr-en, en-fr, zh-en and de-en have ready-made classes"
    )
    make.add_argument(
        "--swap",
        dest="classes",
        action="append",
        default=[],
        metavar="WORD,...",
        help="a class of your own instead: his,her,its; gender: all pronouns of a person at once; may be repeated",
    )
    make.add_argument(
        "--source", default="", metavar="WORD,...", help="with --swap: words, one of which the source must have"
    )
    make.add_argument(
        "--limit",
        type=int,
        default=0,
        metavar="N",
        help="at most N items per class and cue in a document (default: all)",
    )
    make.add_argument("--seed", type=int, default=1, metavar="S", help="seed of what --limit draws")
    make.add_argument("--format", default="", help="format of the corpus (default: by content)")
    add_document_marks(make)
    make.add_argument("--target-first", dest="swap", action="store_true", help="the target side comes first")
    add_json(make)
    make.set_defaults(run=run_make)


def run_make(options: argparse.Namespace) -> None:
    from docnmt.corpus.read import read_corpus
    from docnmt.evaluation.contrastive_items import write_items
    from docnmt.evaluation.probe_words import chosen_classes
    from docnmt.evaluation.probes import ProbeMaker, prior_table

    if options.source and not options.classes:
        raise DocnmtError(
            "--source only goes with --swap\n  Leave it out: the ready-made classes have their own source words."
        )
    if options.limit < 0:
        raise DocnmtError(f"--limit {options.limit}: a limit cannot be negative\n  Give 1 or more, or 0 for all.")
    check_outputs(options.output, options.json)
    languages = languages_of(options)
    classes = chosen_classes(languages, [_listed(words) for words in options.classes], _listed(options.source))
    documents = list(read_corpus(corpus_files(options), languages=languages))
    items = ProbeMaker(documents, languages).make(classes, limit=options.limit, seed=options.seed)
    if not items:
        raise DocnmtError(
            f"{', '.join(options.files)}: no sentence contains such a word\n"
            "  Check --languages and which side comes first (--target-first), or give other words with --swap."
        )
    write_items(options.output, items)
    table = prior_table(items, languages)
    show(options, [table], table.figures)


def _listed(words: str) -> list[str]:
    return [word for part in words.split(",") if (word := part.strip().lower())]
