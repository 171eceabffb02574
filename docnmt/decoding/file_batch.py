"""Many files in one run: what is wrong with one does not keep the others, and is told at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.decoding.files import FileWork
from docnmt.decoding.jobs import FileJob, Work, open_work
from docnmt.decoding.results import Options
from docnmt.decoding.translator import Translator
from docnmt.documents.segment import kind_of


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
    parts: Path | None = None
    seconds: float = 0.0
    error: DocnmtError | None = None


# Files and where their translations go -> each as it is done elsewhere.
ShareOut = Callable[[Mapping[str, Path]], Iterator[Done]]


def translate_files(
    translator: Translator,
    options: Options,
    paths: Mapping[str, Path],
    format: str,
    model_key: str,
    progress: Progress,
    previous: Sequence[str] = (),
    share_out: ShareOut | None = None,
) -> None:
    """Translates each file into the one it is mapped to, here or, with `share_out`, elsewhere. Of several files those
    that fail are left out, and told in an error at the end."""
    alone = len(paths) == 1
    outcomes = []
    opened = _Opened()
    for path in paths:  # all before the first is translated: what is broken shows before hours of work
        outcomes.append(Outcome(path, kind_of(path)))
        with _noted(outcomes[-1], alone, progress):
            work = open_work(path, format, translator, options.nbest, previous)
            outcomes[-1].kind = work.kind
            outcomes[-1].sentences = sum(block.sentences for block in work.blocks())
            opened.keep(path, work)
    total = sum(outcome.sentences for outcome in outcomes if not outcome.error)
    try:
        with progress.bar("translate", total, "sentences") as tick:
            job = FileJob(translator, options, model_key, tick, previous)
            good = {outcome.path: outcome for outcome in outcomes if not outcome.error}
            if share_out is not None:
                for done in share_out({path: paths[path] for path in good}):
                    with _noted(good[done.path], alone, progress):
                        _take_over(done, job)
                        tick(good[done.path].sentences)
                    good[done.path].seconds = done.seconds
            else:
                for path, outcome in good.items():
                    started = time.monotonic()
                    with _noted(outcome, alone, progress):
                        job.translate(path, paths[path], format, opened.pop(path))
                    outcome.seconds = time.monotonic() - started
            job.finish()
    except KeyboardInterrupt:
        progress.say("stopped; the same command goes on from there")
        raise
    if alone:
        return
    if not progress.quiet:
        summary(outcomes).print(progress.console)
    failed = sum(1 for outcome in outcomes if outcome.error)
    if failed:
        raise DocnmtError(
            f"{failed} of {len(outcomes)} files could not be translated\n"
            "  The table says why: mend them, or leave them out."
        )


def _take_over(done: Done, job: FileJob) -> None:
    if done.error is not None:
        raise done.error
    assert done.parts is not None
    job.kept.append(done.parts)


class _Opened:
    """Files that were read to count their sentences, kept so that they are not read twice: as many as take little."""

    def __init__(self) -> None:
        self._left = 8 << 20  # bytes of files; what is read of them takes up to twelve times as much
        self._files: dict[str, FileWork] = {}

    def keep(self, path: str, work: Work) -> None:
        if isinstance(work, FileWork) and work.size <= self._left:
            self._left -= work.size
            self._files[path] = work

    def pop(self, path: str) -> FileWork | None:
        return self._files.pop(path, None)


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
    columns = (Column("file", text=True), Column("kind", text=True), Column("sentences"), Column("seconds"))
    table = Table("Files", (*columns, Column("error", text=True)))
    for outcome in outcomes:
        told = outcome.error.partition("\n")[0].removeprefix(f"{outcome.path}: ")
        figures = ("", "") if outcome.error else (f"{outcome.sentences:,}", f"{outcome.seconds:,.1f}")
        table.add(outcome.path, outcome.kind.replace("_", " "), *figures, told)
    return table
