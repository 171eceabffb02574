"""Verbs that turn one model into another: `docnmt quantize`, `shortlist`, `import` and `export`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.base.progress import Progress
from docnmt.base.report import Table, columns
from docnmt.cli.options import check_outputs, corpus_files, languages_of, one_or_two, show
from docnmt.config import DataConfig
from docnmt.recipes import OWN, load_recipe

if TYPE_CHECKING:
    from docnmt.document import ParallelDocument
    from docnmt.engine.shortlist import Shortlist, TrainingPairs
    from docnmt.model_folder import Kind, ModelCard, Quantized

# ---- `docnmt quantize`: a small model folder for translating ----


def run_quantize(options: argparse.Namespace) -> None:
    from docnmt.model_folder import quantize_folder

    check_outputs(options.json)
    folder = Path(options.model)
    named = folder if folder.name not in ("", "..") else folder.resolve()
    out = Path(options.output or named.with_name(f"{named.name}-int8"))
    done = quantize_folder(folder, out)
    print(f"int8 model: {out}")
    show(options, [quantized_table(done)], {"model": str(folder), "int8": str(out), **asdict(done)})


def quantized_table(done: Quantized) -> Table:
    def megabytes(made: Quantized | Kind) -> list[str]:
        return [f"{count / 1e6:,.2f}" for count in (made.bytes_before, made.bytes_after)]

    heads = ("kind of matrix", "matrices", "before", "after", "error", "worst row")
    table = Table("int8 weights", columns(*heads))
    for kind in done.kinds:
        table.add(kind.name, str(kind.matrices), *megabytes(kind), f"{kind.error:.2%}", f"{kind.worst_row:.2%}")
    matrices = sum(kind.matrices for kind in done.kinds)
    table.add("the whole folder", str(matrices), *megabytes(done), "", "", rule=True)
    table.notes.append("Sizes in MB. Error: norm of the difference divided by the norm of the original.")
    return table


# ---- `docnmt shortlist`: which words a model can need for a sentence ----


def run_shortlist(options: argparse.Namespace) -> None:
    from docnmt.data.subwords import Subwords
    from docnmt.engine.shortlist import FILE, TrainingPairs, learn_lexicon, make_shortlist, subwords_key
    from docnmt.model_folder import load_card

    check_outputs(options.json)
    folder, out, progress = Path(options.model), Path(options.output or options.model), Progress()
    data = _data(options, load_card(folder))
    if options.json and not data.dev:
        raise DocnmtError("--json needs a corpus to test the shortlist on\n  Give one with --dev.")
    load_card(out)
    if subwords_key(folder) != subwords_key(out):
        raise DocnmtError(f"{out}: its subwords differ from those of {folder}\n  Make its shortlist from {out} itself.")
    source, target = (Subwords.load(folder / f"{side}.spm") for side in ("source", "target"))
    dev = TrainingPairs.read(_documents(data, ("dev",), progress), source, target)
    pairs = TrainingPairs.read(_documents(data, ("documents", "sentences"), progress), source, target)
    if not len(pairs):
        raise DocnmtError("there are no sentence pairs to learn from\n  Give the corpus that the model was trained on.")
    progress.say(f"learning from {pairs}")
    lexicon = learn_lexicon(pairs, progress)

    def with_candidates(n: int) -> Shortlist:
        return make_shortlist(lexicon, pairs, source, target, options.frequent, n)

    chosen = options.candidates
    with_candidates(chosen).write(out)
    print(f"shortlist: {out / FILE}")
    if data.dev:
        others = sorted({chosen // 2, chosen, 2 * chosen, 4 * chosen})
        table = coverage_table(((n, with_candidates(n)) for n in others), dev, chosen)
        show(options, [table], table.as_dict())


def coverage_table(shortlists: Iterable[tuple[int, Shortlist]], pairs: TrainingPairs, chosen: int) -> Table:
    """A row for each shortlist, under its number of candidates for a source piece; the chosen one stands out."""
    from docnmt.engine.shortlist import BATCH, coverage

    names = ("translations", "covered", "candidates", f"of {BATCH} sentences")
    table = Table("Pieces of the references that the shortlist covers", columns(*names, text=0))
    for candidates, shortlist in shortlists:
        found = coverage(shortlist, pairs)
        cells = [f"{candidates}", f"{100 * found.covered:.2f} %", f"{found.size:,.0f}", f"{found.together:,.0f}"]
        table.add(*cells, strong={0} if candidates == chosen else ())
        table.figures.append(
            {
                "candidates": candidates,
                "written": candidates == chosen,
                "frequent": len(shortlist.always),
                "covered": found.covered,
                "pieces": found.size,
                f"pieces_of_{BATCH}": found.together,
            }
        )
    table.strong_means = "the shortlist that is written"
    table.notes = [
        f"{pairs}, {len(pairs.target.tokens):,} pieces.",
        "Translations: how many a source piece has in addition to the frequent pieces.",
        f"Candidates: of one sentence, and of {BATCH} sentences of one length together.",
        "References are sometimes free translations: the shortlist covers more of what a model writes.",
    ]
    return table


def _data(options: argparse.Namespace, card: ModelCard) -> DataConfig:
    """The corpora that the command line names, or the recipe on it."""

    if any(file.endswith(".toml") or file in OWN for file in options.files):
        if len(options.files) > 1:
            raise DocnmtError(
                "a recipe already says which corpora to use\n  Give only the recipe, or the files of one corpus."
            )
        data = load_recipe(options.files[0]).data
    else:
        languages = languages_of(options, card.languages)
        data = DataConfig(*languages, documents=(corpus_files(options),))
    if options.dev:
        data = replace(data, dev=(one_or_two(options.dev, format=options.format, swap=options.swap),))
    return replace(data, skip_bad=data.skip_bad or options.skip_bad)


def _documents(data: DataConfig, roles: Iterable[str], progress: Progress) -> Iterator[ParallelDocument]:
    from docnmt.corpus.read import read_named

    on_bad = data.on_bad()
    for role in roles:
        for files in getattr(data, role):
            found = read_named(data, files, on_bad, sentence_level=True)
            yield from progress.track(found, f"read {files.title}", unit="sentences", size=len)
    if isinstance(on_bad, SkipBad) and on_bad.counts:
        progress.say(on_bad.report())


# ---- `docnmt import`: a model that Marian trained, as those of OPUS-MT ----


def run_import(options: argparse.Namespace) -> None:
    from docnmt.interop.convert import import_model

    card = import_model(options.source, options.output, options.kind, languages_of(options))
    size = f"{card.model.encoder_layers}+{card.model.decoder_layers} layers, {card.model.width} wide"
    print(f"model: {options.output} ({card.source_language}-{card.target_language}, {size})")


# ---- `docnmt export`: a model for another program ----


def run_export(options: argparse.Namespace) -> None:
    from docnmt.interop.convert import export
    from docnmt.model_folder import load_card

    if load_card(options.model).context.active:
        print("this is a document model: only the sentence model inside is written, without context")
    export(options.model, options.output, options.to)
    print(f"model for {options.to}: {options.output}")
