"""How fast `docnmt prepare` is beside SentencePiece's own encoder, and how much memory it takes on a large corpus.

    python benchmarks/prepare.py [--rounds 5] [--quick] [--json FILE]

SentencePiece encodes lines that are in memory already, with the number of threads and the batch size that suit it best
here, and keeps nothing. `prepare` does all it does for a user: hashes the file, reads and checks it, encodes, writes
the store and syncs it to disk. The two take turns, round after round; the ratio is the median of the rounds' ratios.

Memory is the peak of a process of its own, less what it took with everything imported and the sub-words loaded.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import sentencepiece
from rich.console import Console
from rich.table import Table

from docnmt.base.files import write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import DataConfig, Recipe, SubwordConfig
from docnmt.corpus.read import read_corpus
from docnmt.data.prepare import prepare
from docnmt.data.store import SIDES, sentences_of
from docnmt.data.subwords import Subwords, train_subwords
from docnmt.demo import write_demo_corpus

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("DOCNMT_SHARED", ROOT.parent / "shared"))
# What `python -m tools.debian.get runs/corpora/debian-fr-en --languages fr-en` makes, or one like it beside us.
CORPORA = (
    ROOT / "runs" / "corpora" / "debian-fr-en" / "train.tsv",
    SHARED / "data" / "debian-mix" / "fr-en.train.tsv",
)
VOCABULARY, SAMPLE = 32_000, 1_000_000
BATCHES = (1_024, 8_192, 1 << 62)  # lines a call; the last: all in one
LARGE = 4_000_000

Lines = dict[str, list[str]]
Processors = dict[str, sentencepiece.SentencePieceProcessor]


def encode(processors: Processors, lines: Lines, threads: int, batch: int) -> int:
    """SentencePiece's own encoder; the number of tokens."""
    tokens = 0
    for side, processor in processors.items():
        for start in range(0, len(lines[side]), batch):
            encoded = processor.encode(lines[side][start : start + batch], num_threads=threads)
            tokens += sum(map(len, encoded))
    return tokens


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and seconds of all cores, which other programs on this machine disturb less."""
    clock, cores = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cores


def best_settings(processors: Processors, lines: Lines, rounds: int) -> tuple[int, int]:
    """The threads and batch size SentencePiece is fastest with, tried on a part of the lines."""
    part = {side: texts[:30_000] for side, texts in lines.items()}
    choices = [(threads, batch) for threads in sorted({1, 2, os.cpu_count() or 1}) for batch in BATCHES]
    seconds: dict[tuple[int, int], list[float]] = {choice: [] for choice in choices}
    for _ in range(rounds):
        for choice in choices:
            seconds[choice].append(measured(lambda choice=choice: encode(processors, part, *choice))[0])
    return min(choices, key=lambda choice: median(seconds[choice]))


def prepare_once(corpus: Path, folder: Path) -> dict[str, Any]:
    """What `docnmt prepare` does for a recipe that brings its sub-words along; the store's card."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    models = [str(folder / f"{side}.spm") for side in SIDES]
    recipe = Recipe(
        output=str(folder / "run"),
        data=DataConfig(documents=(CorpusFiles(path=str(corpus)),)),
        subwords=SubwordConfig(source_model=models[0], target_model=models[1]),
    )
    return prepare(recipe, Progress(quiet=True)).documents.card


def speed(corpus: Path, folder: Path, rounds: int) -> dict[str, Any]:
    documents = list(read_corpus(CorpusFiles(path=str(corpus))))
    lines = {side: list(sentences_of(documents, side)) for side in SIDES}
    del documents
    processors = {side: sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm")) for side in SIDES}
    card = prepare_once(corpus, folder)  # warms up, too
    tokens = card["source_tokens"] + card["target_tokens"]
    threads, batch = best_settings(processors, lines, min(rounds, 3))
    if encode(processors, lines, threads, batch) != tokens:
        raise SystemExit("the store does not hold the tokens that SentencePiece gives")
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(measured(lambda: encode(processors, lines, threads, batch)))
        ours.append(measured(lambda: prepare_once(corpus, folder)))
    ratios = [their[0] / our[0] for their, our in zip(theirs, ours, strict=True)]
    systems = {
        name: {
            "seconds": median(clock for clock, _ in times),
            "core_seconds": median(cores for _, cores in times),
            "pairs_per_second": card["sentences"] / median(clock for clock, _ in times),
            "tokens_per_second": tokens / median(clock for clock, _ in times),
        }
        for name, times in (("SentencePiece", theirs), ("docnmt prepare", ours))
    }
    return {
        "pairs": card["sentences"],
        "tokens": tokens,
        "threads": threads,
        "batch": min(batch, card["sentences"]),
        "rounds": rounds,
        "systems": systems,
        "ratio": median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "core_seconds_ratio": median(their[1] / our[1] for their, our in zip(theirs, ours, strict=True)),
    }


# ---- memory ----


def memory(corpus: Path, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", str(corpus), str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    pairs, before, peak = map(float, output.split())
    return {"pairs": int(pairs), "before_mb": before, "peak_mb": peak, "taken_mb": peak - before}


def worker(corpus: Path, folder: Path) -> None:
    models = [Subwords.load(folder / f"{side}.spm") for side in SIDES]
    before = megabytes("VmRSS")
    del models  # prepare loads its own in their place
    card = prepare_once(corpus, folder)
    print(card["sentences"], before, megabytes("VmHWM"))


def megabytes(name: str) -> float:
    """VmRSS: memory now; VmHWM: the most there was. Elsewhere than on Linux both are the peak so far.

    Not ru_maxrss on Linux: there a process starts with the peak of the process that started it.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) / 1024


def repeat(corpus: Path, pairs: int, path: Path) -> None:
    """The corpus over and over, its documents under new names, until there are so many pairs."""

    def copies(copy: int = 0) -> Any:
        while True:
            with corpus.open(encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    name, tab, rest = line.rstrip("\n").partition("\t")
                    yield f"{name}#{copy}{tab}{rest}\n"
            copy += 1

    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(islice(copies(), pairs))


# ---- the whole ----


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed and memory of docnmt prepare.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small generated corpus, for tests")
    parser.add_argument("--json", metavar="FILE", default="")
    parser.add_argument("--worker", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker)
        return
    console = Console(highlight=False)
    scratch = ROOT / "runs" / "benchmarks"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="prepare-") as name:
        folder = Path(name)
        real = None if options.quick else next((path for path in CORPORA if path.exists()), None)
        corpus = real or folder / "demo" / "train.tsv"
        if not real:
            write_demo_corpus(folder / "demo", 200 if options.quick else 20_000, seed=1)
        absent = "" if real or options.quick else f" (there is no {CORPORA[0]})"
        origin = str(real or "generated demo corpus")
        console.print(f"Corpus: {origin}{absent}")
        for side in SIDES:
            config = SubwordConfig(500 if options.quick else VOCABULARY, sample=SAMPLE)
            lines = partial(sentences_of, read_corpus(CorpusFiles(path=str(corpus))), side)  # they are read once
            train_subwords(lines, config, 1).save(folder / f"{side}.spm")
        figures: dict[str, Any] = {"corpus": origin, "cores": os.cpu_count()}
        figures["speed"] = speed(corpus, folder, 2 if options.quick else options.rounds)
        large = folder / "large.tsv"
        repeat(corpus, 4 * figures["speed"]["pairs"] if options.quick else LARGE, large)
        figures["memory"] = [memory(path, folder) for path in (corpus, large)]
    show(figures, console)
    if options.json:
        write_json(options.json, figures)


def show(figures: dict[str, Any], console: Console) -> None:
    result = figures["speed"]
    table = Table("", "pairs/s", "tokens/s", "seconds", "core seconds", title=f"{result['pairs']:,} pairs, both sides")
    for name, system in result["systems"].items():
        rates = (f"{system[key]:,.0f}" for key in ("pairs_per_second", "tokens_per_second"))
        table.add_row(name, *rates, f"{system['seconds']:.2f}", f"{system['core_seconds']:.2f}")
    console.print(table)
    low, high = result["ratio_range"]
    console.print(
        f"docnmt prepare / SentencePiece: {result['ratio']:.2f} (median of {result['rounds']} "
        f"rounds, {low:.2f} to {high:.2f}; by core seconds {result['core_seconds_ratio']:.2f})\n"
        f"SentencePiece's best here: {result['threads']} threads, {result['batch']:,} lines a call\n"
    )
    table = Table("pairs", "before, MB", "peak, MB", "taken, MB", title="Memory of docnmt prepare")
    for row in figures["memory"]:
        table.add_row(f"{row['pairs']:,}", *(f"{row[key]:,.1f}" for key in ("before_mb", "peak_mb", "taken_mb")))
    console.print(table)


if __name__ == "__main__":
    main()
