"""`docnmt context-gain`, `contrast` and `contrast make`: whether a model uses its context."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_atomically, write_json, write_json_lines
from docnmt.base.progress import Progress
from docnmt.base.report import write_page
from docnmt.cli.options import check_outputs, corpus_files, languages_of, only_gaps, show
from docnmt.corpus.read import read_corpus

# ---- `docnmt context-gain` ----


def run_context_gain(options: argparse.Namespace) -> None:
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
    if not any(document.filled for document in documents):
        raise only_gaps(options)
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


def run_contrast(options: argparse.Namespace) -> None:
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
        write_json_lines(options.items, report.item_rows())
    show(options, report.tables(Path(options.file).name), report.as_dict())


# ---- `docnmt contrast make`: a contrastive set from any parallel corpus ----


def run_make(options: argparse.Namespace) -> None:
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
