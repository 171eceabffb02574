"""Rows, which every reader yields: a sentence and its translations. From rows to documents, and to files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, NamedTuple, cast

from docnmt.base.errors import BadInput, DocnmtError, OnBad, SkipBad, raise_bad
from docnmt.base.files import write_atomically
from docnmt.base.lines import MAX_CHARACTERS, Flaw, Line, find_flaw
from docnmt.document import GAP, ParallelDocument

# Parallel text without any mark of documents is taken as one document up to this many sentences.
MAX_UNDIVIDED = 2_000
# No real document is longer; it bounds the memory a file without boundaries can take before it is refused.
MAX_SENTENCES = 100_000

BARS = "|||"  # between columns
SENTENCE_END = "</s>"  # inside a line that holds a whole document

_REMEDIES = {
    "unequal sides": "Give each source sentence exactly one target sentence, in the same order.",
    "empty side": "Fill in the empty side, or remove the pair (for a gap, leave both sides empty).",
    "unknown document": "Give every sentence a document id, the same on both sides.",
    "repeated document": "Sort the file so that a document's lines are together, or rename one of the two documents.",
    "bad columns": "Give every row the same columns, with one separator between them: document id, source, target.",
    "bad JSON": 'Write one object per line: {"id": "...", "source": ["..."], "target": ["..."]}.',
    "bad markup": "Correct the file at this place, or export it again.",
    "entity declaration": "Remove it: only built-in entities are allowed, since others could fill up the memory.",
    "no document boundaries": (
        "Put a blank line between documents, name document_ids or document_starts, or list the files under `sentences`."
    ),
}


class Row(NamedTuple):
    """A sentence of a file, where it is, and its translations."""

    document: str
    line: int | None
    source: str | None  # None if the file has only translations
    targets: tuple[str, ...]  # one; several references; none if only the source is read


class Want(Enum):
    """What a file is read for."""

    PAIRS = "pairs"  # a corpus: only a sentence with its translation is of use
    SOURCE = "source"
    REFERENCES = "references"  # all of them, and the source if the file has it
    TRANSLATIONS = "translations"  # the same; they may be empty, as a system may have no answer, and are scored


class LeaveGaps(SkipBad):
    """Like SkipBad, but a bad pair leaves a gap in its document, if that is known."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read; every reader gets one."""

    languages: tuple[str, str] = ("", "")
    on_bad: OnBad = raise_bad
    limit: int = MAX_CHARACTERS
    want: Want = Want.PAIRS
    sentence_level: bool = False  # without document boundaries, each pair is a document

    @property
    def leaves_gaps(self) -> bool:
        return isinstance(self.on_bad, LeaveGaps)

    @property
    def for_scoring(self) -> bool:
        return self.want in (Want.REFERENCES, Want.TRANSLATIONS)

    def bad(
        self, kind: str, problem: str, *, file: str, document: str = "", line: int | None = None, remedy: str = ""
    ) -> None:
        self.on_bad(BadInput(kind, problem, remedy or _REMEDIES[kind], file=file, document=document, line=line))

    def flaw(self, flaw: Flaw, *, file: str, document: str = "", line: int | None = None) -> None:
        self.bad(flaw.kind, flaw.problem, file=file, document=document, line=line, remedy=flaw.remedy)


def no_boundaries(file: str, sentences: int) -> BadInput:
    """Raised even when bad places are skipped, as nothing would be left."""
    kind = "no document boundaries"
    return BadInput(kind, f"no document boundaries in {sentences:,} sentences", _REMEDIES[kind], file=file)


# ---- From the sides of a document to rows ----


@dataclass(slots=True)
class Side:
    """One language of a document: its lines, good or bad, and where they are in their file."""

    file: str
    id: str
    line: int  # where it begins; 0 in files without lines
    lines: list[Line] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the lines; empty if all of them are on `line`

    def add(self, line: Line, number: int) -> None:
        self.lines.append(line)
        self.numbers.append(number)

    def place(self, position: int) -> int | None:
        return self.numbers[position] if self.numbers else self.line or None

    def bad(self, kind: str, problem: str, reading: Reading) -> None:
        """Reports what is wrong with the document as a whole."""
        reading.bad(kind, problem, file=self.file, document=self.id, line=self.line)


def rows_of(
    source: Side | None, targets: Sequence[Side], reading: Reading, gaps: Container[int] = frozenset()
) -> Iterator[Row]:
    """The rows of a document; what cannot be used is reported. `gaps` are positions known to hold no pair."""
    sides = [*([source] if source else ()), *targets]
    first = sides[0]
    for other in sides[1:]:
        if len(other.lines) != len(first.lines):
            ours, theirs = f"{len(first.lines):,}", f"{len(other.lines):,}"
            problem = f"{ours} sentences in one translation but {theirs} in another"
            if source:
                problem = f"{ours} source sentences but {theirs} target sentences"
            problem += f" (from line {other.line} of {other.file})"
            first.bad("unequal sides", problem, reading)
            return
    located = targets[0] if targets else first
    for position in range(len(first.lines)):
        texts = [side.lines[position] for side in sides]
        usable = [text.strip() and text for text in texts if isinstance(text, str)]
        bad = len(usable) < len(texts) or (reading.want is Want.PAIRS and not all(usable))
        if bad and position not in gaps:
            _report(sides, position, reading)
            if not reading.leaves_gaps:
                continue
        if bad:
            usable = [GAP] * len(sides)
        own = usable[1:] if source else usable
        yield Row(first.id, located.place(position), usable[0] if source else None, tuple(own))


def _report(sides: Sequence[Side], position: int, reading: Reading) -> None:
    """Reports what is wrong with a sentence or its translation: the first problem found, where it is."""
    document = sides[0].id
    texts = [side.lines[position] for side in sides]
    for side, text in zip(sides, texts, strict=True):
        if isinstance(text, Flaw):
            reading.flaw(text, file=side.file, document=document, line=side.place(position))
            return
    empty = [isinstance(text, str) and not text.strip() for text in texts]
    sentence = f"sentence {position + 1:,}" if len(sides[0].lines) > 1 else "the sentence"
    lacks = "is empty on both sides" if all(empty) else "has no source" if empty[0] else "has no translation"
    side = sides[empty.index(True)]
    reading.bad("empty side", f"{sentence} {lacks}", file=side.file, document=document, line=side.place(position))


def rows_at(line: int, document: str, pairs: Sequence[Sequence[Line]], file: str, reading: Reading) -> Iterator[Row]:
    """The rows of sentence pairs from one place in a file; a pair that is empty on both sides is a gap."""
    checked = ([find_flaw(t, reading.limit) or t if isinstance(t, str) else t for t in pair] for pair in pairs)
    source, target = (Side(file, document, line, list(side)) for side in zip(*checked, strict=True))
    return rows_of(source, [target], reading, {i for i, pair in enumerate(pairs) if not any(pair)})


# ---- From rows to documents ----


def unique_documents(rows: Iterable[Row], file: str, reading: Reading) -> Iterator[Row]:
    """The rows, except those of an id that returns after other documents, which is reported."""
    seen: dict[int, int | None] = {}  # the line of each id, by its hash, so that millions of them fit
    current: str | None = None
    fresh = True
    for row in rows:
        if row.document != current:
            current, key = row.document, hash(row.document)
            fresh = key not in seen
            if fresh:
                seen[key] = row.line
            else:
                problem = f"a document with this id was already read, from line {seen[key]}"
                reading.bad("repeated document", problem, file=file, document=current, line=row.line)
        if fresh:
            yield row


def translated_documents(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, except those of documents that consist of gaps."""
    for _, own in groupby(rows, key=itemgetter(0)):
        document = list(own)
        if any(row.source for row in document):
            yield from document


def documents_of(rows: Iterable[Row]) -> Iterator[ParallelDocument]:
    """Consecutive rows with the same id are a document. If only the source was read, the target side is empty."""
    for name, own in groupby(rows, key=itemgetter(0)):
        document = list(own)
        sources = tuple([row.source or GAP for row in document])
        yield ParallelDocument(name, sources, tuple([row.targets[0] if row.targets else GAP for row in document]))


# ---- Writing parallel documents: as a stream, and atomically, so that a file is either complete or absent ----


def write_tsv(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`doc_id <TAB> source <TAB> target`, one pair per line; a gap is empty on both sides."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=False)
            pairs = zip(document.source, document.target, strict=True)
            file.write("".join(f"{document.id}\t{source}\t{target}\n" for source, target in pairs).encode())


def write_jsonl(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`{"id": ..., "source": [...], "target": [...]}`, one document per line; a gap is null on both sides."""
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
                problem = "the document has a gap, which plain text cannot express: a blank line ends a document"
                raise BadInput("gap", problem, "Write TSV or JSON lines.", file=source_path, document=document.id)
            for file, sentences in ((source_file, document.source), (target_file, document.target)):
                file.write((gap + "".join(f"{sentence}\n" for sentence in sentences)).encode())
            gap = "\n"


def writer_for(path: str) -> Callable[[str, Iterable[ParallelDocument]], None]:
    """The writer for a file, by its name."""
    plain = path.removesuffix(".gz")
    for ending, write in ((".tsv", write_tsv), (".jsonl", write_jsonl)):
        if plain.endswith(ending):
            return write
    raise DocnmtError(f"{path}: must end in .tsv or .jsonl\n  Choose such a name (add .gz to compress it).")


def _check(document: ParallelDocument, path: str, *, allow_tab: bool) -> None:
    """Refuses what the readers would refuse or misread."""
    for text in (document.id, *document.source, *document.target):
        flaw = find_flaw(text, len(text))
        if flaw:
            raise BadInput(flaw.kind, f"{flaw.problem} of {text[:60]!r}", flaw.remedy, file=path, document=document.id)
        if "\t" in text and not allow_tab:
            problem, remedy = f"a tab inside {text[:60]!r}", "Replace it with a space, or write JSON lines."
            raise BadInput("control character", problem, remedy, file=path, document=document.id)
    pairs = zip(document.source, document.target, strict=True)
    if not document.id.strip() or any(any(pair) and not all(map(str.strip, pair)) for pair in pairs):
        problem = "an empty sentence or document id"
        remedy = "For a gap, leave both sides empty; otherwise remove the pair, or give the document an id."
        raise BadInput("empty side", problem, remedy, file=path, document=document.id)


@contextmanager
def _output(path: str) -> Iterator[IO[bytes]]:
    """A file to write to, compressed if its name ends in .gz."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise DocnmtError(f"{path}: the folder {folder} does not exist\n  Create it first.")
    with write_atomically(path, binary=True) as file:
        if not path.endswith(".gz"):
            yield file
            return
        # No name and no time inside, so that the same documents result in the same bytes.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
