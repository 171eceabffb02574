"""Rows of a corpus: from checked lines to documents, which every reader shares, and back to files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from docnmt.base.errors import BadInput, DocnmtError, OnBad, SkipBad, raise_bad
from docnmt.base.files import write_atomically
from docnmt.base.lines import MAX_CHARACTERS, Flaw, Line, find_flaw
from docnmt.document import GAP, ParallelDocument

# ---- From checked lines to documents: what every reader shares ----

# Parallel text without any mark of documents is taken as one document up to this many sentences.
MAX_UNDIVIDED = 2_000
# No real document is longer; it bounds the memory a file without boundaries can take before it is refused.
MAX_SENTENCES = 100_000

_REMEDIES = {
    "unequal sides": "Give each source sentence exactly one target sentence, in the same order.",
    "empty side": "Give the sentence its translation, or remove the pair (empty both sides for a gap).",
    "unknown document": "Give every sentence a document id, the same on both sides.",
    "repeated document": "Sort the file so that a document's lines are together, or rename one of the two.",
    "bad columns": "Write document id, source and target, in this order, with one separator between them.",
    "bad JSON": 'Write one object a line: {"id": "...", "source": ["..."], "target": ["..."]}.',
    "bad markup": "Mend the file at this place, or export it again.",
    "entity declaration": "Remove it: entities other than the built-in ones are refused, as they can fill the memory.",
    "no document boundaries": (
        "Put a blank line between documents, name document_ids or document_starts, or list the files under `sentences`."
    ),
}


class LeaveGaps(SkipBad):
    """As SkipBad, but a bad pair whose document is known leaves a gap in it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a corpus is read, handed to every reader."""

    languages: tuple[str, str] = ("", "")
    on_bad: OnBad = raise_bad
    limit: int = MAX_CHARACTERS
    source_only: bool = False  # targets are not asked for and come out as empty strings
    pairs: bool = False  # sentence-level: what has no document marks is one document a pair

    @property
    def leaves_gaps(self) -> bool:
        return isinstance(self.on_bad, LeaveGaps)

    def bad(self, kind: str, problem: str, *, file: str, document: str = "", line: int | None = None) -> None:
        self.on_bad(BadInput(kind, problem, _REMEDIES[kind], file=file, document=document, line=line))

    def flaw(self, flaw: Flaw, *, file: str, document: str = "", line: int | None = None) -> None:
        self.on_bad(BadInput(flaw.kind, flaw.problem, flaw.remedy, file=file, document=document, line=line))


def no_boundaries(file: str, sentences: int) -> BadInput:
    """Never skipped: there is nothing to go on with."""
    kind = "no document boundaries"
    return BadInput(kind, f"no document boundaries in {sentences:,} sentences", _REMEDIES[kind], file=file)


class SeenIds:
    """The document ids met so far, kept as hashes so that millions of them fit."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, name: str) -> bool:
        """Whether `name` is new."""
        known = len(self._hashes)
        self._hashes.add(hash(name))
        return len(self._hashes) > known


# Line, document id, source, target: a good pair on its way into a document.
Row = tuple[int, str, str, str]


def documents_from_rows(rows: Iterator[Row], file: str, reading: Reading) -> Iterator[ParallelDocument]:
    """Consecutive rows of one id are a document; an id that comes again later is refused."""
    seen = SeenIds()
    current: str | None = None
    fresh = True
    sources: list[str] = []
    targets: list[str] = []
    for line, document, source, target in rows:
        if document != current:
            if sources and current is not None:
                yield ParallelDocument(current, tuple(sources), tuple(targets))
                sources, targets = [], []
            current, fresh = document, seen.add(document)
            if not fresh:
                problem = "this document was already read, with others in between"
                reading.bad("repeated document", problem, file=file, document=document, line=line)
        if fresh:
            sources.append(source)
            targets.append(target)
    if sources and current is not None:
        yield ParallelDocument(current, tuple(sources), tuple(targets))


@dataclass(slots=True)
class Side:
    """One side of one document: its lines, good or bad, and where each stands in its file."""

    file: str
    id: str
    line: int
    lines: list[Line]
    numbers: Sequence[int]


def pair_up(
    source: Side, target: Side, reading: Reading, gaps: Container[int] = frozenset()
) -> ParallelDocument | None:
    """The document of two sides; None where nothing good is left of it. `gaps` are places known to have no pair."""
    if len(source.lines) != len(target.lines):
        reading.bad(
            "unequal sides",
            f"{len(source.lines):,} source sentences but {len(target.lines):,} target sentences "
            f"(from line {target.line} of {target.file})",
            file=source.file,
            document=source.id,
            line=source.line,
        )
        return None
    sources: list[str] = []
    targets: list[str] = []
    for position, (left, right) in enumerate(zip(source.lines, target.lines, strict=True)):
        if position in gaps:
            sources.append(GAP)
            targets.append(GAP)
        elif isinstance(left, str) and isinstance(right, str) and left.strip() and right.strip():
            sources.append(left)
            targets.append(right)
        else:
            report_pair(left, right, source, target, position, reading)
            if reading.leaves_gaps:
                sources.append(GAP)
                targets.append(GAP)
    return ParallelDocument(source.id, tuple(sources), tuple(targets)) if sources else None


def report_pair(left: Line, right: Line, source: Side, target: Side, position: int, reading: Reading) -> None:
    """Says what is wrong with a pair that cannot be used, once, at the first side where it shows."""
    for text, side in ((left, source), (right, target)):
        if isinstance(text, Flaw):
            reading.flaw(text, file=side.file, document=source.id, line=side.numbers[position])
            return
    side = target if isinstance(left, str) and left.strip() else source
    both = " on both sides" if side is source and isinstance(right, str) and not right.strip() else ""
    problem = f"an empty sentence{both}"
    reading.bad("empty side", problem, file=side.file, document=source.id, line=side.numbers[position])


def good_sentences(side: Side, reading: Reading) -> tuple[str, ...]:
    """The sentences of a side read for itself, empty ones too: they have empty translations. Bad ones are reported."""
    good: list[str] = []
    for text, line in zip(side.lines, side.numbers, strict=True):
        if isinstance(text, Flaw):
            reading.flaw(text, file=side.file, document=side.id, line=line)
        else:
            good.append(text.strip() and text)
    return tuple(good)


# ---- Writing parallel documents ----

# Writing parallel documents: as a stream, and atomically, so that a file is there whole or not at all.


def write_tsv(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`doc_id <TAB> source <TAB> target`, one pair a line; a gap has nothing on both sides."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=False)
            pairs = zip(document.source, document.target, strict=True)
            file.write("".join(f"{document.id}\t{source}\t{target}\n" for source, target in pairs).encode())


def write_jsonl(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`{"id": ..., "source": [...], "target": [...]}`, one document a line; a gap is null on both sides."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=True)
            sides = {"source": document.source, "target": document.target}
            record = {"id": document.id} | {name: [text or None for text in side] for name, side in sides.items()}
            file.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())


def write_text(source_path: str, target_path: str, documents: Iterable[ParallelDocument]) -> None:
    """Two parallel files with a blank line between documents. Document ids are not kept."""
    # Both files are put in place only after both are written.
    with _output(source_path) as source_file, _output(target_path) as target_file:
        gap = ""
        for document in documents:
            _check(document, source_path, allow_tab=True)
            if not document.source:
                continue
            if len(document.filled) < len(document):
                problem = "a gap, which plain text cannot have: a blank line ends a document"
                raise BadInput("gap", problem, "Write TSV or JSON lines.", file=source_path, document=document.id)
            for file, sentences in ((source_file, document.source), (target_file, document.target)):
                file.write((gap + "".join(f"{sentence}\n" for sentence in sentences)).encode())
            gap = "\n"


def writer_for(path: str) -> Callable[[str, Iterable[ParallelDocument]], None]:
    """The one that a file's name asks for."""
    plain = path.removesuffix(".gz")
    for ending, write in ((".tsv", write_tsv), (".jsonl", write_jsonl)):
        if plain.endswith(ending):
            return write
    raise DocnmtError(f"{path}: neither .tsv nor .jsonl\n  Name a file that ends in one of them (and .gz to pack it).")


def _check(document: ParallelDocument, path: str, *, allow_tab: bool) -> None:
    """Refuses what the readers would refuse, or take for something else."""
    for text in (document.id, *document.source, *document.target):
        flaw = find_flaw(text, len(text))
        if flaw:
            raise BadInput(flaw.kind, f"{flaw.problem} of {text[:60]!r}", flaw.remedy, file=path, document=document.id)
        if "\t" in text and not allow_tab:
            problem, remedy = f"a tab inside {text[:60]!r}", "Put a space in its place, or write JSON lines."
            raise BadInput("control character", problem, remedy, file=path, document=document.id)
    pairs = zip(document.source, document.target, strict=True)
    if not document.id.strip() or any(any(pair) and not all(map(str.strip, pair)) for pair in pairs):
        problem = "an empty sentence or document id"
        remedy = "Empty both sides for a gap, leave the pair out, or give the document an id."
        raise BadInput("empty side", problem, remedy, file=path, document=document.id)


@contextmanager
def _output(path: str) -> Iterator[IO[bytes]]:
    """A file to write to; packed where its name ends in .gz."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise DocnmtError(f"{path}: there is no folder {folder}\n  Make the folder first.")
    with write_atomically(path, binary=True) as file:
        if not path.endswith(".gz"):
            yield file
            return
        # No name and no time inside, so that the same documents give the same bytes.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
