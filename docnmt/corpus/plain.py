"""Plain text in two parallel files. Documents: between blank lines, by ids or start indices, or one per line."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count, groupby, pairwise, zip_longest
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import MAX_SENTENCES, MAX_UNDIVIDED, SENTENCE_END, Reading, Row, Side, no_boundaries, rows_of


def _blank(line: Line) -> bool:
    return isinstance(line, str) and not line.strip()


# ---- Documents with blank lines between them ----


class _Cursor:
    """Reads documents separated by blank lines, one at a time; lines can be given back."""

    def __init__(self, file: InputFile, reading: Reading):
        self.name, self.stem = file.name, file.stem
        self.number = 0  # of the line read last
        self.documents = 0
        self._lines = file.lines(reading.limit)
        self._longest = float("inf") if reading.for_scoring else MAX_SENTENCES
        self._returned: deque[Line] = deque()
        self._ended_blank = False  # whether a blank line ended the last document, not the end of the file

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
            if len(lines) > self._longest:
                raise no_boundaries(self.name, len(lines))
        self._ended_blank = line is not None
        name = f"{self.stem}:{self.documents}"
        return Side(self.name, name, start, lines, [*range(start, start + len(lines))])

    def continue_through_blanks(self, side: Side, length: int, only_blanks: bool) -> bool:
        """Reads the blank line that ended `side` as an empty sentence, if the document then ends after `length`.

        With `only_blanks`, the lines added must all be blank.
        """
        if not self._ended_blank:
            return False
        more: list[Line] = [""]
        while len(side.lines) + len(more) < length and (line := self.next_line()) is not None:
            more.append(line)
        end = self.next_line()
        fits = len(side.lines) + len(more) == length and (end is None or _blank(end))
        if fits and not (only_blanks and any(not _blank(line) for line in more)):
            side.lines += more
            side.numbers = [*range(side.line, side.line + length)]
            return True
        self.give_back(more[1:] if end is None else [*more[1:], end])
        return False

    def total(self) -> int:
        """How many lines the file has; reads it to its end."""
        while self.next_line() is not None:
            pass
        return self.number


def text_sides(file: InputFile, reading: Reading) -> Iterator[Side]:
    return iter(_Cursor(file, reading).next_document, None)


def read_text(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    """Two files with blank lines between documents, in the same places on both sides."""
    left, right = _Cursor(source, reading), _Cursor(target, reading)
    alike: bool | None = None  # not known until it matters
    while True:
        ours, theirs = left.next_document(), right.next_document()
        if ours is None or theirs is None:
            if ours is not theirs:
                _unequal_files(left, right, f"{left.stem}:{left.documents}", reading)
            return
        if len(ours.lines) != len(theirs.lines):
            if alike is None:
                alike = _count_documents(source.name) == _count_documents(target.name)
            # A blank line may be an untranslated sentence rather than the end of a document. If both files have the
            # same number of documents, lines of the next document are never added to this one.
            if len(ours.lines) < len(theirs.lines):
                mended = left.continue_through_blanks(ours, len(theirs.lines), alike)
            else:
                mended = right.continue_through_blanks(theirs, len(ours.lines), alike)
            if not mended and (left.at_end() or right.at_end()):
                _unequal_files(left, right, ours.id, reading)
                return
        if left.documents == 1 and len(ours.lines) > MAX_UNDIVIDED and left.at_end():
            raise no_boundaries(left.name, len(ours.lines))
        yield from rows_of(ours, [theirs], reading)


def _count_documents(path: str) -> int:
    with InputFile(path) as file:
        return sum(not blank for blank, _ in groupby(file.lines(MAX_CHARACTERS), key=_blank))


def _unequal_files(left: _Cursor, right: _Cursor, document: str, reading: Reading) -> None:
    counts = left.total(), right.total()
    problem = f"{counts[0]:,} lines, but {counts[1]:,} in {right.name}"
    reading.bad("unequal sides", problem, file=left.name, document=document, line=min(counts) + 1)


# ---- Line by line, with document boundaries in another file or none ----


def _parallel_lines(
    source: InputFile, target: InputFile, limit: int, reading: Reading
) -> Iterator[tuple[int, Line, Line]]:
    """Lines side by side; if one file ends before the other, both lengths are reported and reading ends."""
    both = source.lines(limit), target.lines(limit)
    for number, (left, right) in enumerate(zip_longest(*both), 1):
        if left is not None and right is not None:
            yield number, left, right
            continue
        longer = number + sum(1 for lines in both for _ in lines)
        counts = (number - 1, longer) if left is None else (longer, number - 1)
        problem = f"{counts[0]:,} lines, but {counts[1]:,} in {target.name}"
        reading.bad("unequal sides", problem, file=source.name, line=number)
        return


def _rows_of_lines(
    lines: Iterable[tuple[int, str, Line, Line]], source: InputFile, target: InputFile, reading: Reading
) -> Iterator[Row]:
    """Rows of parallel lines, given with their line numbers and documents."""
    for number, document, left, right in lines:
        if isinstance(left, str) and isinstance(right, str) and left.strip() and right.strip():
            yield Row(document, number, left, (right,))
        else:
            ours, theirs = Side(source.name, document, number, [left]), Side(target.name, document, number, [right])
            yield from rows_of(ours, [theirs], reading)


def sentence_sides(file: InputFile, reading: Reading) -> Iterator[Side]:
    name = Path(file.name).name
    for number, line in enumerate(file.lines(reading.limit), 1):
        if not _blank(line):
            yield Side(file.name, f"{name}:{number}", number, [line])


def read_sentences(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    """Two parallel files, each pair a document of its own named FILE:LINE; lines blank on both sides are left out."""
    name = Path(source.name).name
    lines = (
        (number, f"{name}:{number}", left, right)
        for number, left, right in _parallel_lines(source, target, reading.limit, reading)
        if not (_blank(left) and _blank(right))
    )
    return _rows_of_lines(lines, source, target, reading)


def read_with_ids(source: InputFile, target: InputFile, file: InputFile, reading: Reading) -> Iterator[Row]:
    """Two parallel files and a third with the document id of each line."""
    ids = file.lines(reading.limit)
    lines = _named_lines(source, target, file, ids, lambda _: any(not _blank(line) for line in ids), reading)
    return _rows_of_lines(lines, source, target, reading)


def read_with_starts(source: InputFile, target: InputFile, file: InputFile, reading: Reading) -> Iterator[Row]:
    """Two parallel files and a third with the index of the line each document starts on."""
    starts = list(_line_indices(file, reading))
    if starts[:1] != [0]:
        raise _bad_starts(
            file, "the file is empty" if not starts else f"the first document must start at line 0, not at {starts[0]}"
        )
    for before, start in pairwise(starts):
        if start <= before:
            raise _bad_starts(file, f"start {start} comes after start {before}")
    ids = (f"{source.stem}:{bisect_right(starts, index)}" for index in count())
    lines = _named_lines(source, target, file, ids, lambda count: starts[-1] >= count, reading)
    return _rows_of_lines(lines, source, target, reading)


def _line_indices(file: InputFile, reading: Reading) -> Iterator[int]:
    for line in file.lines(reading.limit * SENTENCES_PER_LINE):
        for word in (line.text if isinstance(line, Flaw) else line).split():
            if not (word.isascii() and word.isdecimal() and len(word) < 19):
                raise _bad_starts(file, f"{word[:40]!r} is not a line index")
            yield int(word)


def _bad_starts(file: InputFile, problem: str) -> DocnmtError:
    return DocnmtError(
        f"{file.name}: {problem}\n"
        "  Write the 0-based index of the first line of each document: 0 first, then in increasing order."
    )


def _named_lines(
    source: InputFile,
    target: InputFile,
    id_file: InputFile,
    ids: Iterator[Line],
    has_more: Callable[[int], bool],
    reading: Reading,
) -> Iterator[tuple[int, str, Line, Line]]:
    """The parallel lines with their documents. `has_more(n)`: whether documents are named beyond the n lines read."""
    number = 0
    for number, left, right in _parallel_lines(source, target, reading.limit, reading):
        name = next(ids, None)
        if name is None:
            problem = f"{number - 1:,} lines, but {source.name} has more"
            reading.bad("unequal sides", problem, file=id_file.name, line=number)
            return
        if isinstance(name, Flaw):
            reading.flaw(name, file=id_file.name, line=number)
        elif name.strip():
            yield number, name.strip(), left, right
        # A line that is blank in all three files separates documents, which ids do already.
        elif not (_blank(left) and _blank(right)):
            reading.bad("unknown document", "this line has no document id", file=id_file.name, line=number)
    if has_more(number):
        problem = f"it names documents beyond the {number:,} lines of {source.name}"
        reading.bad("unequal sides", problem, file=id_file.name, line=number + 1)


# ---- A document per line, `</s>` between its sentences ----


def document_line_sides(file: InputFile, reading: Reading) -> Iterator[Side]:
    for number, line in enumerate(file.lines(reading.limit * SENTENCES_PER_LINE), 1):
        if not _blank(line):
            yield _side_of_line(file, file.stem, line, number, reading)


def read_document_lines(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    for number, left, right in _parallel_lines(source, target, reading.limit * SENTENCES_PER_LINE, reading):
        if _blank(left) and _blank(right):
            continue
        sides = [
            _side_of_line(file, source.stem, line, number, reading) for file, line in ((source, left), (target, right))
        ]
        if isinstance(left, Flaw) or isinstance(right, Flaw):  # it is unknown how many sentences a bad line has
            for side in sides:
                side.lines = side.lines[:1]
        yield from rows_of(sides[0], sides[1:], reading)


def _side_of_line(file: InputFile, stem: str, line: Line, number: int, reading: Reading) -> Side:
    if isinstance(line, Flaw):
        sentences: list[Line] = [line]
    else:
        pieces = [piece.strip() for piece in line.rstrip().removesuffix(SENTENCE_END).split(SENTENCE_END)]
        sentences = [find_flaw(piece, reading.limit) or piece for piece in pieces]
    return Side(file.name, f"{stem}:{number}", number, sentences)
