"""Translating files on disk: layouts are kept, N lines in give N lines out, and no finished work is lost.

A corpus is cut into blocks of whole documents, a file with a layout into blocks of sentences. Each finished block is a
small file of its own next to the output until all are done and the output is assembled from them in order. So a run
that was stopped continues with the missing blocks.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError
from docnmt.base.files import file_hash, write_atomically, write_json
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table, columns
from docnmt.decoding.files import BLOCK, Tick, Work, open_work
from docnmt.decoding.translator import Options, Translator, load
from docnmt.documents.segment import kind_of

if TYPE_CHECKING:
    from docnmt.base.cluster import Need

TERMS = ".terms"  # next to a block: which of the glossary's terms were met in it
KEEP = 96 << 20  # bytes of memory for files that have been read to count their sentences and are waiting


@dataclass
class FileJob:
    """Files translated block by block."""

    translator: Translator
    options: Options
    model_key: str = ""
    tick: Tick = lambda count: None
    previous: Sequence[str] = ()  # sentences before each file
    encoding: str = ""  # of text files, if it is known
    kept: list[Path] = field(default_factory=list)  # the blocks of files that are done

    def open(self, path: str, format: str = "") -> Work:
        return open_work(path, format, self.translator, self.options, self.previous, self.encoding)

    def translate(self, path: str, work: Work, out: Path) -> None:
        kind = f"{work.kind} in {work.encoding.name}" if self.encoding and work.encoding else work.kind
        key = _key(path, kind, self.options, self.model_key, self.previous)
        folder = out.with_name(out.name + ".parts") / key
        folder.mkdir(parents=True, exist_ok=True)
        finished = []
        for number, block in enumerate(work.blocks()):
            part = folder / f"{number:08d}"
            finished.append(part)
            if part.exists():
                self.tick(len(block))
                continue
            with write_atomically(part) as file:
                file.writelines(work.translate(block, self.tick))
                if self.options.glossary is not None:
                    write_json(part.with_suffix(TERMS), self.translator.terms.take())
        with write_atomically(out, binary=True) as output:
            work.join(map(_lines, finished), output)
        self.kept.append(folder)

    def finish(self) -> None:
        """Finished files keep their blocks until now: a run over many files that was stopped repeats none."""
        for folder in self.kept:
            for noted in sorted(folder.glob(f"*{TERMS}")):  # of earlier runs, too
                self.translator.terms.give(json.loads(noted.read_text(encoding="utf-8")))
            shutil.rmtree(folder.parent)
        self.kept = []


def _lines(part: Path) -> Iterator[str]:
    with open(part, encoding="utf-8", newline="") as lines:
        yield from lines


def _key(path: str, format: str, options: Options, model_key: str, previous: Sequence[str]) -> str:
    """Identifies the work, so that finished blocks of other work are never taken for its own."""
    try:
        content = file_hash(path)
    except OSError as error:
        raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  Check the path.") from None
    text = json.dumps([content, format, asdict(options), model_key, BLOCK, *previous], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- Many files in one run: a bad one does not stop the others, and is reported at the end ----


@dataclass
class Outcome:
    """What became of a file."""

    path: str
    kind: str
    sentences: int = 0
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Done:
    """A file that another process has translated, or could not; `parts` are its blocks."""

    path: str
    parts: Path = Path()
    seconds: float = 0.0
    error: DocnmtError | None = None


# Files and where their translations go -> each as it is done elsewhere.
ShareOut = Callable[[Mapping[str, Path]], Iterator[Done]]


def translate_files(
    job: FileJob,
    paths: Mapping[str, Path],
    format: str,
    progress: Progress,
    share_out: ShareOut | None = None,
) -> None:
    """Translates each file into the one it is mapped to, here or, with `share_out`, elsewhere. Of several files, those
    that fail are left out and reported in an error at the end."""
    alone = len(paths) == 1
    outcomes = [Outcome(path, kind_of(path)) for path in paths]
    opened: dict[str, Work] = {}  # so that files are parsed once, unless that takes too much memory
    room = KEEP
    for outcome in outcomes:  # all before the first is translated: broken files are found before hours of work
        with _noted(outcome, alone, progress):
            work = job.open(outcome.path, format)
            say_encoding(outcome.path, work, progress)
            outcome.kind = work.kind
            outcome.sentences = sum(map(len, work.blocks()))
            if work.memory <= room:
                room -= work.memory
                opened[outcome.path] = work
    good = {outcome.path: outcome for outcome in outcomes if not outcome.error}
    try:
        with progress.bar("translate", sum(o.sentences for o in good.values()), "sentences") as tick:
            if share_out is not None:
                for done in share_out({path: paths[path] for path in good}):
                    outcome = good[done.path]
                    outcome.seconds = done.seconds
                    with _noted(outcome, alone, progress):
                        if done.error is not None:
                            raise done.error
                        job.kept.append(done.parts)
                        tick(outcome.sentences)
            else:
                job.tick = tick
                for path, outcome in good.items():
                    started = time.monotonic()
                    with _noted(outcome, alone, progress):
                        work = opened.pop(path) if path in opened else job.open(path, format)
                        job.translate(path, work, paths[path])
                    outcome.seconds = time.monotonic() - started
            job.finish()
    except KeyboardInterrupt:
        progress.say("stopped; run the same command again to continue")
        raise
    if alone:
        return
    if not progress.quiet:
        summary(outcomes).print(progress.console)
    failed = sum(1 for outcome in outcomes if outcome.error)
    if failed:
        raise DocnmtError(
            f"{failed} of {len(outcomes)} files could not be translated\n"
            "  See the table for the reasons; fix these files, or leave them out."
        )


def say_encoding(path: str, work: Work, progress: Progress) -> None:
    """Reports the encoding of a file if it is not the usual one."""
    if work.encoding is not None and work.encoding.name != "UTF-8":
        otherwise = "; if letters are wrong, choose another with --encoding" if work.encoding.guessed else ""
        progress.say(f"{path}: read as {work.encoding}{otherwise}")


@contextmanager
def _noted(outcome: Outcome, strict: bool, progress: Progress) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if strict:
            raise
        known = isinstance(error, DocnmtError | OSError)
        outcome.error = str(error) if known else f"{type(error).__name__}: {error}"
        progress.say(f"docnmt: {outcome.error}")


def summary(outcomes: list[Outcome]) -> Table:
    table = Table("Files", (*columns("file", "kind", "sentences", "seconds", text=2), Column("error", text=True)))
    for outcome in outcomes:
        told = outcome.error.partition("\n")[0].removeprefix(f"{outcome.path}: ")
        figures = ("", "") if outcome.error else (f"{outcome.sentences:,}", f"{outcome.seconds:,.1f}")
        table.add(outcome.path, outcome.kind.replace("_", " "), *figures, told)
    return table


# ---- Files as Ray tasks, on whatever machines there are ----


@dataclass(frozen=True)
class Order:
    """What a task needs to know."""

    model: str
    model_key: str
    device: str
    options: Options
    format: str
    encoding: str = ""


def share_out_with_ray(
    order: Order, need: Need, files: Mapping[str, Path], say: Callable[[str], None]
) -> Iterator[Done]:
    """Each file as it is finished, on any machine. A file is a task, and its blocks are beside its translation while it
    is in progress: a task that Ray restarts continues with the missing blocks."""
    import ray
    from ray.exceptions import RayTaskError

    from docnmt.base.cluster import as_they_finish, cause

    largest_first = sorted(files, key=os.path.getsize, reverse=True)  # so that none is left over at the end
    told = ray.put(order)  # once, not with each of thousands of files
    task = ray.remote(max_retries=-1)(_translate_elsewhere).options(num_cpus=need.cpus, num_gpus=need.gpus)
    tasks = {task.remote(told, os.path.abspath(path), files[path].absolute()): path for path in largest_first}
    for path, reference in as_they_finish(tasks, need, say):
        try:
            parts, seconds = ray.get(reference)
            yield Done(path, parts, seconds)
        except RayTaskError as error:
            text = str(cause(error)).replace(os.path.abspath(path), path)
            yield Done(path, error=DocnmtError(text))


_TRANSLATORS: dict[str, Translator] = {}  # of this process: a model is loaded once


def _translate_elsewhere(order: Order, path: str, out: Path) -> tuple[Path, float]:
    started = time.monotonic()
    if order.model_key not in _TRANSLATORS:
        _TRANSLATORS.clear()
        _TRANSLATORS[order.model_key] = load(order.model, order.device)
    job = FileJob(_TRANSLATORS[order.model_key], order.options, order.model_key, encoding=order.encoding)
    try:
        job.translate(path, job.open(path, order.format), out)
    except DocnmtError as error:
        raise DocnmtError(str(error)) from None  # in a form that Ray can pass between processes
    return job.kept[0], time.monotonic() - started
