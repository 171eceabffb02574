"""`docnmt translate` and `score`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_json
from docnmt.base.progress import Progress
from docnmt.base.report import Table, columns
from docnmt.cli.options import check_cluster, check_outputs, corpus_files, languages_of, only_gaps
from docnmt.documents.segment import KINDS, PACKED, kind_of

if TYPE_CHECKING:
    from docnmt.decoding.jobs import ShareOut
    from docnmt.decoding.scoring import SentenceScore
    from docnmt.decoding.terms import TermCheck
    from docnmt.decoding.translator import Options, Translator


def run_translate(options: argparse.Namespace) -> None:
    from docnmt.decoding.files import read_previous
    from docnmt.decoding.jobs import FileJob, say_encoding, translate_files
    from docnmt.decoding.terms import Glossary
    from docnmt.decoding.translator import load
    from docnmt.model_folder import model_key

    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise DocnmtError(
            "docnmt translate runs as one process\n  Run it without torchrun; several commands can share the files."
        )
    if options.glossary_report and not options.glossary:
        raise DocnmtError("--glossary-report needs a glossary\n  Give one with --glossary.")
    check_cluster(options)
    if options.on and (not options.output or options.previous):
        raise DocnmtError(
            "--on needs -o and cannot be used with --previous\n  Give a folder with -o, and leave --previous out."
        )
    check_outputs(options.glossary_report)
    glossary = Glossary.read(options.glossary) if options.glossary else None
    translator = load(options.model, options.device)
    chosen = translator.options.changed(
        beam=options.beam,
        length_penalty=options.length_penalty,
        context=options.context,
        glossary=glossary,
        nbest=options.nbest,
        shortlist=options.shortlist,
    )
    files, left_out = in_folders(options.files)
    with_layout = [file for file in files if kind_of(file) and not options.format]
    if with_layout and options.nbest > 1:
        raise DocnmtError(
            f"{with_layout[0]}: only one translation can be written into this kind of file\n"
            "  For n-best lists translate it as lines of text: --format text."
        )
    if options.previous and len(files) > 1:
        raise DocnmtError("--previous can only be used with one file\n  Translate the files one by one.")
    previous = read_previous(options.previous, translator) if options.previous else ()
    progress = Progress()
    progress.say(f"decoding with {translator.way(chosen)}")
    if left_out:
        progress.say(f"skipped {len(left_out):,} files of unknown kinds, such as {left_out[0]}")
    with _terms_told(translator, options.glossary_report, progress) if glossary else nullcontext():
        if options.output:
            if "-" in files:
                raise DocnmtError(
                    "-o cannot be used with standard input\n"
                    "  Give an input file, or redirect standard output to a file."
                )
            into_folder = any(map(os.path.isdir, options.files))
            paths, key = output_paths(files, options.output, into_folder), model_key(options.model)
            share_out = _shared(options, chosen, key, progress) if options.on else None
            job = FileJob(translator, chosen, key, previous=previous, encoding=options.encoding)
            translate_files(job, paths, options.format, progress, share_out)
            return
        if with_layout and (len(files) > 1 or kind_of(with_layout[0]) in PACKED):
            raise DocnmtError(
                f"{with_layout[0]}: the translation cannot go to standard output\n  Give a file or a folder with -o."
            )
        job = FileJob(translator, chosen, previous=previous, encoding=options.encoding)
        opened = [job.open(path, options.format) for path in files]
        for path, work in zip(files, opened, strict=True):
            say_encoding(path, work, progress)
        total = None if "-" in files else sum(len(block) for work in opened for block in work.blocks())
        sys.stdout.flush()
        with progress.bar("translate", total, "sentences") as tick:
            for work in opened:
                work.join((work.translate(block, tick) for block in work.blocks()), sys.stdout.buffer)


def in_folders(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The files that are given, each with its name in an output folder, and of folders what is in them at any depth;
    and those in folders that are left out, as no reader knows their kind."""

    found: dict[str, str] = {}
    left_out: list[str] = []
    for name in given:
        if not os.path.isdir(name):
            if name in found:
                raise DocnmtError(f"{name}: given twice\n  Give it once.")
            found[name] = Path(name).name.removesuffix(".gz")
            continue
        inside = sorted(path for path in Path(name).rglob("*") if path.is_file())
        visible = [path for path in inside if not any(p.startswith(".") for p in path.relative_to(name).parts)]
        known = {str(path): str(path.relative_to(name)) for path in visible if kind_of(path.name)}
        if not known:
            raise DocnmtError(
                f"{name}: no file in this folder can be translated\n  Supported file types: {', '.join(KINDS)}."
            )
        found |= known
        left_out += (str(path) for path in visible if str(path) not in known)
    return found, left_out


def output_paths(files: Mapping[str, str], out: str, into_folder: bool = False) -> dict[str, Path]:
    """Where each file's translation goes: one file to `out` itself, several into the folder `out` under the names they
    come with."""
    if len(files) == 1 and not into_folder and not Path(out).is_dir() and not out.endswith(os.sep):
        paths = {file: Path(out) for file in files}
    else:
        paths = {file: Path(out) / name for file, name in files.items()}
    first: dict[Path, str] = {}
    for file, path in paths.items():
        if path in first:
            raise DocnmtError(
                f"{first[path]} and {file} would both be written to {path}\n  Translate them into different folders."
            )
        first[path] = file
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    inputs = {_identity(file): file for file in files}
    for file, path in paths.items():
        clash = inputs.get(_identity(path)) if path.exists() else None
        if clash is not None:
            by = "its own translation" if clash == file else f"the translation of {file}"
            raise DocnmtError(f"{clash}: would be overwritten by {by}\n  Give -o another name.")
    return paths


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What a file is, whatever it is called; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _shared(options: argparse.Namespace, chosen: Options, key: str, progress: Progress) -> ShareOut:
    from docnmt.base.cluster import Need, connect, gpus_there
    from docnmt.decoding.jobs import Order, share_out_with_ray

    connect(options.on)
    need = Need(options.cpus, float(gpus_there()) if options.gpus is None else options.gpus)
    order = Order(os.path.abspath(options.model), key, options.device, chosen, options.format, options.encoding)
    return lambda files: share_out_with_ray(order, need, files, progress.say)


@contextmanager
def _terms_told(translator: Translator, report: str, progress: Progress) -> Iterator[None]:
    """At the end the terms that could not be met; of those files that could be translated, if some could not."""
    try:
        yield
    except DocnmtError:
        if translator.terms.found:
            _tell_terms(translator.terms, report, progress)
        raise
    _tell_terms(translator.terms, report, progress)


def _tell_terms(terms: TermCheck, report: str, progress: Progress) -> None:
    if progress.quiet:
        return
    if terms.unmet:
        heads = ("document", "term", "wanted", "sentence", "translation")
        table = Table("Glossary terms missing in translations", columns(*heads, text=5))
        for term in terms.unmet:
            table.add(term.document, term.term, term.wanted, _short(term.sentence), _short(term.translation))
        table.print(progress.console)
    progress.say(terms.summary())
    if report:
        write_json(report, terms.as_dict())


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def run_score(options: argparse.Namespace) -> None:
    """One line a sentence: document, number, log-probability with context, without, pieces; then a summary."""
    from docnmt.corpus.read import read_corpus
    from docnmt.decoding.translator import load
    from docnmt.decoding.units import SENTENCE_RULE
    from docnmt.document import NO_CONTEXT

    check_outputs(options.json)
    translator = load(options.model, options.device)
    languages = languages_of(options, translator.card.languages)
    first, second, third = tee(read_corpus(corpus_files(options), languages=languages), 3)
    informed_scores = translator.score(second, context=options.context)
    if translator.card.context.active:
        plain_scores = translator.score(third, context=NO_CONTEXT)
    else:  # a sentence model: there is no other way to score
        informed_scores, plain_scores = tee(informed_scores)
    scored = zip(first, informed_scores, plain_scores, strict=True)
    total = without_total = 0.0
    pieces = sentences = 0
    if not options.tokens:
        print("document\tsentence\tlog_probability\twithout_context\tpieces")
    for document, informed, plain in Progress().track(scored, "score", unit="sentences", size=lambda row: len(row[0])):
        for number, (with_context, without) in enumerate(zip(informed, plain, strict=True), 1):
            if options.tokens:
                print(json.dumps(_as_json(document.id, number, with_context, without), ensure_ascii=False))
            else:
                print(
                    f"{document.id}\t{number}\t{with_context.total:.4f}\t{without.total:.4f}\t{len(with_context.pieces)}"
                )
            total += with_context.total
            without_total += without.total
            pieces += len(with_context.pieces)
            sentences += 1
    if not pieces:
        raise only_gaps(options)
    summary = {
        "sentences": sentences,
        "pieces": pieces,
        "log_probability_per_piece": total / pieces,
        "without_context_per_piece": without_total / pieces,
        "gain_per_piece": (total - without_total) / pieces,
    }
    told = f"{sentences:,} sentences, {pieces:,} pieces: {summary['log_probability_per_piece']:.4f} per piece"
    if translator.rule(options.context) is SENTENCE_RULE:
        told += " by the sentence model"
    else:
        told += f" with context, {summary['without_context_per_piece']:.4f} without"
        told += f", gain {summary['gain_per_piece']:+.4f}"
    print(told, file=sys.stderr)
    if options.json:
        write_json(options.json, summary)


def _as_json(document: str, number: int, informed: SentenceScore, plain: SentenceScore) -> dict[str, object]:
    return {
        "document": document,
        "sentence": number,
        "log_probability": informed.total,
        "without_context": plain.total,
        "pieces": informed.pieces,
        "log_probabilities": informed.log_probabilities,
        "log_probabilities_without_context": plain.log_probabilities,
    }
