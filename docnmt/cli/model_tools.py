"""Verbs that turn one model into another: `docnmt quantize`, `shortlist`, `import` and `export`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.cli.options import (
    Verbs,
    add_corpus,
    add_json,
    check_outputs,
    corpus_files,
    languages_of,
    one_or_two,
    show,
)

if TYPE_CHECKING:
    from docnmt.base.progress import Progress
    from docnmt.base.report import Table
    from docnmt.config import DataConfig
    from docnmt.document import ParallelDocument
    from docnmt.engine.shortlist import Shortlist, TrainingPairs
    from docnmt.model_folder import Kind, ModelCard, Quantized


def add(verbs: Verbs) -> None:
    _add_quantize(verbs)
    _add_shortlist(verbs)
    _add_import(verbs)
    _add_export(verbs)


# ---- `docnmt quantize`: a small model folder for translating ----


def _add_quantize(verbs: Verbs) -> None:
    quantize = verbs.add_parser(
        "quantize",
        examples=["docnmt quantize runs/demo/document/model -o small-model"],
        help="write a model folder a quarter of the size, with its matrices in int8",
        description="All verbs except train accept the folder like any other model.",
    )
    quantize.add_argument("model", metavar="MODEL")
    quantize.add_argument("-o", "--output", default="", metavar="FOLDER", help="default: MODEL-int8")
    add_json(quantize)
    quantize.set_defaults(run=run_quantize)


def run_quantize(options: argparse.Namespace) -> None:
    from dataclasses import asdict
    from pathlib import Path

    from docnmt.model_folder import quantize_folder

    check_outputs(options.json)
    folder = Path(options.model)
    named = folder if folder.name not in ("", "..") else folder.resolve()
    out = Path(options.output or named.with_name(f"{named.name}-int8"))
    done = quantize_folder(folder, out)
    print(f"int8 model: {out}")
    show(options, [quantized_table(done)], {"model": str(folder), "int8": str(out), **asdict(done)})


def quantized_table(done: Quantized) -> Table:
    from docnmt.base.report import Table, columns

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


def _add_shortlist(verbs: Verbs) -> None:
    shortlist = verbs.add_parser(
        "shortlist",
        examples=["docnmt shortlist runs/demo/document/model demo"],
        help="learn which words a sentence may need, so that a CPU computes only those",
        description="Learns from the training pairs, and writes shortlist.safetensors into the model folder: the most "
        "frequent target pieces, and for each source piece its most probable translations and what copies it.",
    )
    shortlist.add_argument("model", metavar="MODEL")
    shortlist.add_argument(
        "files", nargs="+", metavar="FILE", help="the recipe (.toml), one file with both sides, or source and target"
    )
    add_corpus(shortlist)
    shortlist.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    shortlist.add_argument(
        "--dev", nargs="+", default=[], metavar="FILE", help="a corpus to test it on; default: the recipe's"
    )
    shortlist.add_argument(
        "--frequent", type=_number, metavar="N", help="frequent pieces, for every sentence; default 500"
    )
    shortlist.add_argument("--candidates", type=_number, metavar="N", help="translations per source piece; default 20")
    shortlist.add_argument(
        "-o", "--output", default="", metavar="FOLDER", help="write into another model folder with the same subwords"
    )
    add_json(shortlist)
    shortlist.set_defaults(run=run_shortlist)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def run_shortlist(options: argparse.Namespace) -> None:
    from pathlib import Path

    from docnmt.base.progress import Progress
    from docnmt.data.subwords import Subwords
    from docnmt.engine.shortlist import (
        CANDIDATES,
        FILE,
        FREQUENT,
        TrainingPairs,
        learn_lexicon,
        make_shortlist,
        subwords_key,
    )
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
    frequent = FREQUENT if options.frequent is None else options.frequent
    candidates = CANDIDATES if options.candidates is None else options.candidates
    dev = TrainingPairs.read(_documents(data, ("dev",), progress), source, target)
    pairs = TrainingPairs.read(_documents(data, ("documents", "sentences"), progress), source, target)
    if not len(pairs):
        raise DocnmtError("there are no sentence pairs to learn from\n  Give the corpus that the model was trained on.")
    progress.say(f"learning from {pairs}")
    lexicon = learn_lexicon(pairs, progress)
    make_shortlist(lexicon, pairs, source, target, frequent, candidates).write(out)
    print(f"shortlist: {out / FILE}")
    if data.dev:
        others = sorted({candidates // 2, candidates, 2 * candidates, 4 * candidates})
        made = ((n, make_shortlist(lexicon, pairs, source, target, frequent, n)) for n in others)
        table = coverage_table(made, dev, candidates)
        show(options, [table], table.as_dict())


def coverage_table(shortlists: Iterable[tuple[int, Shortlist]], pairs: TrainingPairs, chosen: int) -> Table:
    """A row for each shortlist, under its number of candidates for a source piece; the chosen one stands out."""
    from docnmt.base.report import Table, columns
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
    from dataclasses import replace

    from docnmt.config import DataConfig
    from docnmt.recipes import OWN, load_recipe

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


def _add_import(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "import",
        examples=["docnmt import Helsinki-NLP/opus-mt-fr-en -o opus-fr-en"],
        help="turn a Marian or OPUS-MT model into a model folder",
        description="SOURCE is a folder or .zip as OPUS-MT releases them, a folder in Hugging Face's layout, or a name "
        "on its hub such as Helsinki-NLP/opus-mt-fr-en. All verbs accept the result like any other model.",
    )
    verb.add_argument("source", metavar="SOURCE")
    verb.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the new folder")
    verb.add_argument(
        "--as",
        dest="kind",
        default="marian",
        choices=("marian", "huggingface"),
        help="compute as Marian does (default), or as transformers does, which differs",
    )
    verb.add_argument(
        "--languages",
        default="",
        metavar="SRC-TRG",
        help="if the source does not say; for several target languages, the one to translate into",
    )
    verb.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> None:
    from docnmt.interop.convert import import_model

    card = import_model(options.source, options.output, options.kind, languages_of(options))
    size = f"{card.model.encoder_layers}+{card.model.decoder_layers} layers, {card.model.width} wide"
    print(f"model: {options.output} ({card.source_language}-{card.target_language}, {size})")


# ---- `docnmt export`: a model for another program ----


def _add_export(verbs: Verbs) -> None:
    export = verbs.add_parser(
        "export",
        examples=["docnmt export runs/demo/sentence/model --to marian -o marian-model"],
        help="write a sentence model for Marian or Hugging Face transformers",
        description="Writes a folder that the other program loads, including the subword models. Of a document "
        "model it is the sentence model inside, as neither program supports context.",
    )
    export.add_argument("model", metavar="MODEL")
    export.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the new folder")
    export.add_argument("--to", required=True, choices=("marian", "huggingface"))
    export.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    from docnmt.interop.convert import export
    from docnmt.model_folder import load_card

    if load_card(options.model).context.active:
        print("this is a document model: only the sentence model inside is written, without context")
    export(options.model, options.output, options.to)
    print(f"model for {options.to}: {options.output}")
