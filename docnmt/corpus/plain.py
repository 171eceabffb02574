"""Plain text: two parallel files, documents told by blank lines, an id file or start indices; and `</s>` lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import (
    MAX_SENTENCES,
    MAX_UNDIVIDED,
    Reading,
    Row,
    Side,
    documents_from_rows,
    good_sentences,
    no_boundaries,
    pair_up,
    report_pair,
)
from docnmt.document import Document, ParallelDocument

SENTENCE_END = "</s>"


def _blank(line: Line) -> bool:
    return isinstance(line, str) and not line.strip()


class _Cursor:
    """Reads a file of blank-line separated documents one document at a time, and can take lines back."""

    def __init__(self, file: InputFile, reading: Reading):
        self.name, self.stem = file.name, file.stem
        self.number = 0  # of the line read last
        self.documents = 0
        self._lines = file.lines(reading.limit)
        self._returned: deque[Line] = deque()
        self._ended_blank = False  # the document read last ended at a blank line, not with the file

    def next_line(self) -> Line | None:
        line = self._returned.popleft() if self._returned else next(self._lines, None)
        self.number += line is not None
        return line

    def give_back(self, lines: list[Line]) -> None:
        self._returned.extendleft(reversed(lines))
        self.number -= len(lines)

    def at_end(self) -> bool:
        """Whether only blank lines are left."""
        while (line := self.next_line()) is not None:
            if not _blank(line):
                self.give_back([line])
                return False
        return True

    def next_document(self) -> Side | None:
        """The lines up to the next blank line, which is read too."""
        if self.at_end():
            return None
        self.documents += 1
        start = self.number + 1
        lines: list[Line] = []
        while (line := self.next_line()) is not None and not _blank(line):
            lines.append(line)
            if len(lines) > MAX_SENTENCES:
                raise no_boundaries(self.name, len(lines))
        self._ended_blank = line is not None
        return Side(self.name, f"{self.stem}:{self.documents}", start, lines, range(start, start + len(lines)))

    def continue_through_blanks(self, side: Side, length: int, only_blanks: bool) -> bool:
        """Takes the blank line that ended `side` for an empty sentence, if the document then ends after `length`.

        With `only_blanks`, nothing but blank lines may be taken so.
        """
        if not self._ended_blank:
            return False
        more: list[Line] = [""]
        while len(side.lines) + len(more) < length and (line := self.next_line()) is not None:
            more.append(line)
        end = self.next_line()
        fits = len(side.lines) + len(more) == length and (end is None or _blank(end))
        if fits and not (only_blanks and any(not _blank(line) for line in more)):
            side.lines.extend(more)
            side.numbers = range(side.line, side.line + length)
            return True
        self.give_back(more[1:] if end is None else [*more[1:], end])
        return False

    def total(self) -> int:
        """How many lines the file has; reads it to its end."""
        while self.next_line() is not None:
            pass
        return self.number


def read_text(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """Two files with blank lines between documents, in the same places on both sides."""
    left, right = _Cursor(source, reading), _Cursor(target, reading)
    alike: bool | None = None  # not known until it matters
    while True:
        sides = left.next_document(), right.next_document()
        if sides[0] is None or sides[1] is None:
            if sides[0] is not sides[1]:
                _unequal_files(left, right, f"{left.stem}:{left.documents}", reading)
            return
        if len(sides[0].lines) != len(sides[1].lines):
            alike = _count_documents(source.name) == _count_documents(target.name) if alike is None else alike
        # Where both files have as many documents, lines of the next one are never taken for this one's.
        if len(sides[0].lines) != len(sides[1].lines) and not _mend(left, right, sides[0], sides[1], bool(alike)):
            at_end = left.at_end(), right.at_end()
            if any(at_end):
                _unequal_files(left, right, sides[0].id, reading)
                return
        if left.documents == 1 and len(sides[0].lines) > MAX_UNDIVIDED and left.at_end():
            raise no_boundaries(left.name, len(sides[0].lines))
        if document := pair_up(sides[0], sides[1], reading):
            yield document


def _count_documents(path: str) -> int:
    documents, between = 0, True
    with InputFile(path) as file:
        for line in file.lines(MAX_CHARACTERS):
            documents += between and not _blank(line)
            between = _blank(line)
    return documents


def _mend(left: _Cursor, right: _Cursor, source: Side, target: Side, only_blanks: bool) -> bool:
    """Tells a blank line that is an untranslated sentence from one that ends a document too early."""
    if len(source.lines) < len(target.lines):
        return left.continue_through_blanks(source, len(target.lines), only_blanks)
    return right.continue_through_blanks(target, len(source.lines), only_blanks)


def _unequal_files(left: _Cursor, right: _Cursor, document: str, reading: Reading) -> None:
    counts = left.total(), right.total()
    problem = f"{counts[0]:,} lines, but {counts[1]:,} in {right.name}"
    reading.bad("unequal sides", problem, file=left.name, document=document, line=min(counts) + 1)


def read_text_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    cursor = _Cursor(file, reading)
    while side := cursor.next_document():
        if sentences := good_sentences(side, reading):
            yield Document(side.id, sentences)


def read_sentences(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """Two parallel files, each pair a document of its own named FILE:LINE; lines blank on both sides are left out."""
    name = Path(source.name).name
    for number, (left, right) in _parallel_lines(source, target, reading):
        if isinstance(left, str) and isinstance(right, str) and left.strip() and right.strip():
            yield ParallelDocument(f"{name}:{number}", (left,), (right,))
        elif not (_blank(left) and _blank(right)):
            _report_lines(source, target, left, right, f"{name}:{number}", number, reading)


def read_sentences_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    name = Path(file.name).name
    for number, line in enumerate(file.lines(reading.limit), 1):
        if isinstance(line, Flaw):
            reading.flaw(line, file=file.name, line=number)
        elif line.strip():
            yield Document(f"{name}:{number}", (line,))


def _parallel_lines(
    source: InputFile, target: InputFile, reading: Reading, limit: int = 0
) -> Iterator[tuple[int, tuple[Line, Line]]]:
    """Lines side by side; where one file ends before the other, both lengths are reported and reading ends."""
    limit = limit or reading.limit
    lefts, rights = file_lines = source.lines(limit), target.lines(limit)
    for number, (left, right) in enumerate(zip_longest(lefts, rights), 1):
        if left is not None and right is not None:
            yield number, (left, right)
            continue
        longer = number + sum(1 for lines in file_lines for _ in lines)
        counts = (number - 1, longer) if left is None else (longer, number - 1)
        problem = f"{counts[0]:,} lines, but {counts[1]:,} in {target.name}"
        reading.bad("unequal sides", problem, file=source.name, line=number)
        return


def _report_lines(
    source: InputFile, target: InputFile, left: Line, right: Line, document: str, number: int, reading: Reading
) -> None:
    sides = [Side(file.name, document, number, [], (number,)) for file in (source, target)]
    report_pair(left, right, sides[0], sides[1], 0, reading)


class _IdLines:
    """The document id of each line, from a file that has one a line."""

    def __init__(self, file: InputFile, reading: Reading):
        self._lines = file.lines(reading.limit)

    def next_id(self) -> Line | None:
        return next(self._lines, None)

    def left_over(self) -> bool:
        return any(not _blank(line) for line in self._lines)


class _IdsFromStarts:
    """The document id of each line, made from the indices at which documents start."""

    def __init__(self, file: InputFile, stem: str, reading: Reading):
        self._file, self._stem = file, stem
        self._starts = self._integers(reading)
        self._next = next(self._starts, None)
        self._index = self._documents = 0
        if self._next != 0:
            raise self._error(f"the first document starts at {self._next}, not at 0")

    def next_id(self) -> Line | None:
        if self._index == self._next:
            self._documents += 1
            self._next = next(self._starts, None)
            if self._next is not None and self._next <= self._index:
                raise self._error(f"start {self._next} after start {self._index}")
        self._index += 1
        return f"{self._stem}:{self._documents}"

    def left_over(self) -> bool:
        return self._next is not None

    def _integers(self, reading: Reading) -> Iterator[int]:
        for line in self._file.lines(reading.limit * SENTENCES_PER_LINE):
            for word in (line.text if isinstance(line, Flaw) else line).split():
                if not (word.isascii() and word.isdecimal() and len(word) < 19):
                    raise self._error(f"{word[:40]!r} is not a line index")
                yield int(word)

    def _error(self, problem: str) -> DocnmtError:
        return DocnmtError(
            f"{self._file.name}: {problem}\n"
            "  Write the 0-based index of the line each document starts on: 0 first, then ever larger."
        )


def read_with_ids(source: InputFile, target: InputFile, ids: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """Two parallel files and a third with the document id of each line."""
    rows = _rows_with_ids(source, target, ids, _IdLines(ids, reading), reading)
    return documents_from_rows(rows, source.name, reading)


def read_with_starts(
    source: InputFile, target: InputFile, starts: InputFile, reading: Reading
) -> Iterator[ParallelDocument]:
    """Two parallel files and a third with the index of the line each document starts on."""
    rows = _rows_with_ids(source, target, starts, _IdsFromStarts(starts, source.stem, reading), reading)
    return documents_from_rows(rows, source.name, reading)


def _rows_with_ids(
    source: InputFile, target: InputFile, id_file: InputFile, ids: _IdLines | _IdsFromStarts, reading: Reading
) -> Iterator[Row]:
    number = 0
    for number, (left, right) in _parallel_lines(source, target, reading):
        name = ids.next_id()
        if name is None:
            problem = f"{number - 1:,} lines, but there are more in {source.name}"
            reading.bad("unequal sides", problem, file=id_file.name, line=number)
            return
        if isinstance(name, Flaw):
            reading.flaw(name, file=id_file.name, line=number)
        elif not name.strip():
            # Blank in all three files: a blank line between documents, which the ids make needless.
            if not (_blank(left) and _blank(right)):
                reading.bad("unknown document", "no document id", file=id_file.name, line=number)
        elif isinstance(left, str) and isinstance(right, str) and left.strip() and right.strip():
            yield number, name.strip(), left, right
        else:
            _report_lines(source, target, left, right, name.strip(), number, reading)
    if ids.left_over():
        problem = f"names documents after the {number:,} lines of {source.name}"
        reading.bad("unequal sides", problem, file=id_file.name, line=number + 1)


def read_document_lines(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """A document a line, `</s>` between its sentences, on both sides."""
    for number, (left, right) in _parallel_lines(source, target, reading, reading.limit * SENTENCES_PER_LINE):
        if _blank(left) and _blank(right):
            continue
        if isinstance(left, Flaw) or isinstance(right, Flaw):
            _report_lines(source, target, left, right, f"{source.stem}:{number}", number, reading)
            continue
        source_side = _side_of_line(source, source.stem, left, number, reading)
        target_side = _side_of_line(target, source.stem, right, number, reading)
        if document := pair_up(source_side, target_side, reading):
            yield document


def read_document_lines_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    for number, line in enumerate(file.lines(reading.limit * SENTENCES_PER_LINE), 1):
        if _blank(line):
            continue
        side = _side_of_line(file, file.stem, line, number, reading)
        if sentences := good_sentences(side, reading):
            yield Document(side.id, sentences)


def _side_of_line(file: InputFile, stem: str, line: Line, number: int, reading: Reading) -> Side:
    if isinstance(line, Flaw):
        sentences: list[Line] = [line]
    else:
        pieces = [piece.strip() for piece in line.rstrip().removesuffix(SENTENCE_END).split(SENTENCE_END)]
        sentences = [find_flaw(piece, reading.limit) or piece for piece in pieces]
    return Side(file.name, f"{stem}:{number}", number, sentences, [number] * len(sentences))
