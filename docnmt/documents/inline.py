"""A paragraph of text and markup as a segment, its translation as text and markup again, and that put into the file.

A kind of file cuts its paragraphs into pieces: text as a reader sees it, and markup, each with the place where it
stands. Places count characters of a file that is read as text, bytes of one that is read as XML: nothing here asks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import AnyStr, Generic, Protocol, Self

from docnmt.documents.nesting import nested
from docnmt.documents.segment import Mark, Segment
from docnmt.text.scripts import in_spaced_word

# What templates and static sites put between words: marks.
TEMPLATE = re.compile(r"\{\{[^{}]{0,300}\}\}|\{%[^%]{0,300}%\}|<%[^%]{0,300}%>")
# Text, but not to be translated, nor to be taken for markup.
ADDRESS = re.compile(
    r"(?:https?://|ftp://|www\.|mailto:)(?:[^\s<>\"'`\\|*\[\](){}]|\([^\s<>()]{0,200}\))+(?<![.,:;!?_~])"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_SPACES = re.compile(r"[ \t\n\r\f]+")
_LETTER = re.compile(r"[^\W\d_]")
_LONGEST_FOLD = 2000  # characters


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def is_readable(text: str) -> bool:
    """Whether there is something to translate beside addresses."""
    return bool(_LETTER.search(_MAIL.sub("", ADDRESS.sub("", text))))


def collapsed(text: str) -> str:
    """With one space where a reader sees one."""
    return _SPACES.sub(" ", text)


# ---- pieces ----

_SOFT_HYPHEN = "\xad"  # shows where a word of this language may be parted: no reader sees it


@dataclass(slots=True, eq=False)
class Piece:
    """Text that is read as such, or markup, which becomes a mark."""

    start: int
    end: int
    text: str | None = None  # None: markup
    code: str = ""  # of markup: what to write, if not simply what stands there
    pair: int | str = 0  # the two of a pair have the same name; without its partner a piece stands alone
    closing: bool = False
    loose: bool = False  # of a pair that may cross others: a bookmark's begin and end
    wide: bool = False  # seen in the line like a word: a picture, code
    breaks: bool = False  # ends the line: words on its two sides are two words
    gap: bool = False  # the same, and the space that it stands for is not written beside it: a tab

    def tied(self, link: str) -> Self:
        """Made one of a loose pair; the link is their name, with a slash before it for the second one, or empty."""
        if link:
            self.pair, self.closing, self.loose = link.removeprefix("/"), link.startswith("/"), True
        return self


def plain(text: str, start: int, end: int) -> Iterator[Piece]:
    """Text that is spelt as it is read. The spaces around it are pieces of their own: at the ends of a paragraph they
    stay as they are."""
    content = text[start:end]
    first, last = end - len(content.lstrip()), start + len(content.rstrip())
    bounds = (start, first, last, end) if first < last else (start, end)
    for left, right in pairwise(bounds):
        if left < right:
            yield Piece(left, right, text[left:right].replace(_SOFT_HYPHEN, ""))


def partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """For each piece that is one of a pair, by their numbers, the other one."""
    found: dict[int, int] = {}
    opened: dict[int | str, int] = {}
    for number, piece in enumerate(pieces):
        if piece.pair and not piece.closing:
            opened[piece.pair] = number
        elif piece.pair in opened:
            first = opened.pop(piece.pair)
            found[first], found[number] = number, first
    return found


def folded(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """A pair with no text in it becomes one mark: an anchor, a link around a picture."""
    result: list[Piece] = []
    paired = partners(pieces)
    opened: dict[int, tuple[int, int]] = {}  # by its number: where in the result, and after how many texts
    texts = 0
    for number, piece in enumerate(pieces):
        texts += piece.text is not None
        result.append(piece)
        other = paired.get(number, number)
        if other > number:
            opened[number] = len(result) - 1, texts
        elif other < number and opened[other][1] == texts:
            inside = result[opened[other][0] :]
            whole = inside[0].pair
            if piece.end - inside[0].start < _LONGEST_FOLD and all(part.pair in (0, whole) for part in inside):
                own_spelling = any(part.code for part in inside)
                code = "".join(part.code or text[part.start : part.end] for part in inside) if own_spelling else ""
                wide = any(part.wide for part in inside)
                result[opened[other][0] :] = [Piece(inside[0].start, piece.end, code=code, wide=wide)]
    return result


def trim(pieces: Sequence[Piece]) -> tuple[int, int]:
    """The smallest part with all text in it and both halves of its pairs: other marks have no word to stay with."""
    filled = [n for n, piece in enumerate(pieces) if piece.text and not piece.text.isspace()]
    if not filled:
        return 0, 0
    start, end = filled[0], filled[-1] + 1
    pairs = partners(pieces)
    waiting = list(range(start, end))
    while waiting:
        other = pairs.get(waiting.pop(), start)
        if other < start:
            waiting += range(other, start)
            start = other
        elif other >= end:
            waiting += range(end, other + 1)
            end = other + 1
    return start, end


# ---- a segment and back ----


class Passage:
    """Pieces as a segment, and its translation as pieces."""

    def __init__(self, pieces: Sequence[Piece], collapse: bool = False, translate: bool = True):
        """`collapse` makes one space of many, also where bold begins or ends between them."""
        self.all = pieces
        self.lead = ""  # the space around the text
        self._stands_for_space: set[str] = set()  # the marks for which the text has a space that was not there
        self._loose: set[int] = set()
        pairs = partners(pieces)
        marks: list[Mark] = []
        parts: list[str] = []
        length, last, gap, beside = 0, "", -1, False
        for number, piece in enumerate(pieces):
            if piece.text is None:
                other = pairs.get(number)
                pair = 0 if other is None else min(number, other) + 1
                if pair and piece.loose:
                    self._loose.add(pair)
                if piece.breaks and length and not (beside and last == " "):
                    parts.append(" ")
                    length, last, beside = length + 1, " ", True
                marks.append(Mark(length, str(number), pair, bool(pair) and number + 1 != pair))
                gap = number if piece.gap and gap < 0 else gap
                beside = beside and not (piece.wide or piece.gap)
                continue
            text = collapsed(piece.text) if collapse else piece.text
            if not length:
                self.lead += text[: len(text) - len(text.lstrip())]
                text = text.lstrip()
            elif collapse and beside and last == " ":
                text = text.lstrip(" ")
            if not text:
                continue
            if gap >= 0 and length and not last.isspace() and not text[0].isspace():
                self._stands_for_space.add(str(gap))
                text = " " + text
            parts.append(text)
            length, last, gap, beside = length + len(text), text[-1], -1, True
        whole = "".join(parts)
        text = whole.rstrip()
        self._trail = whole[len(text) :]
        held = tuple(replace(mark, at=min(mark.at, len(text))) for mark in marks)
        self.segment = Segment(text, held, translate)
        # The marks that are seen like words but touched none, and where they stood.
        seen = [m for m in held if not m.pair and self._piece(m).wide and not self._piece(m).gap]
        self._free = {mark.code: mark.at for mark in seen if not _touches(text, mark.at)}

    @property
    def start(self) -> int:
        return self.all[0].start

    @property
    def end(self) -> int:
        return self.all[-1].end

    def pieces(
        self, translation: Segment, is_link: Callable[[Piece], bool] = lambda piece: False
    ) -> Iterator[str | Piece]:
        """The translation's text and marks in the order in which to write them; no link stands in another link."""
        marks = nested(translation.marks, self._loose, lambda mark: is_link(self._piece(mark)))
        return (part if isinstance(part, str) else self._piece(part) for part in self._spaced(translation, marks))

    def marked(self, translation: Segment, code: Callable[[Piece], str]) -> tuple[str, list[Mark]]:
        """The same as a text and marks with codes to write."""
        text, marks = "", []
        for part in self._spaced(translation, nested(translation.marks, self._loose)):
            if isinstance(part, str):
                text += part
            else:
                marks.append(replace(part, at=len(text), code=code(self._piece(part))))
        return text, marks

    def _piece(self, mark: Mark) -> Piece:
        return self.all[int(mark.code)]

    def _spaced(self, translation: Segment, marks: Sequence[Mark]) -> Iterator[str | Mark]:
        """Text and marks, with the spaces that are written, and without those that a mark stands for."""
        self._check(translation.marks)
        text, here = self.lead + translation.text + self._trail, 0
        places = [self._place(mark.at, translation.text) for mark in marks]
        before, after = self._missing_spaces(text, marks, places)
        written = ""  # since the last mark
        for number, (mark, place) in enumerate(zip(marks, places, strict=True)):
            at = max(place, here)
            written, here = written + text[here:at], at
            if mark.code in self._stands_for_space:
                if text.startswith(" ", here):
                    here += 1
                elif written.endswith(" "):
                    written = written[:-1]
            if written or number in before:
                yield written + " " * (number in before)
            yield mark
            written = " " * (number in after)
        if rest := written + text[here:]:
            yield rest

    def _check(self, marks: Iterable[Mark]) -> None:
        left = Counter((mark.code, mark.pair, mark.closing) for mark in self.segment.marks)
        left.subtract((mark.code, mark.pair, mark.closing) for mark in marks)
        for mark, count in left.items():
            if count:
                problem = "marks were lost" if count > 0 else "a mark that the segment does not have"
                raise ValueError(f"{problem}: {mark} in the translation of {self.segment}")

    def _place(self, at: int, text: str) -> int:
        """The space around the text is inside of the marks around it."""
        if at >= len(text):
            return len(self.lead) + len(text) + len(self._trail)
        return at + len(self.lead) if at > 0 else 0

    def _missing_spaces(self, text: str, marks: Sequence[Mark], places: Sequence[int]) -> tuple[set[int], set[int]]:
        """Before and after which marks: what is seen like a word and did not touch the words around it does not touch
        others now, nor do two that were apart touch each other."""
        before: set[int] = set()
        after: set[int] = set()
        for at, group in groupby(range(len(marks)), key=lambda n: places[n]):
            numbers = list(group)
            # A break keeps apart what stands on its two sides.
            for breaks, lines in groupby(numbers, key=lambda n: self._piece(marks[n]).gap):
                line = list(lines)
                free = [n for n in line if marks[n].code in self._free]
                if breaks or not free:
                    continue
                first, last = free[0], free[-1]
                if line[0] == numbers[0] and in_spaced_word(text[at - 1 : at]):
                    while first > line[0] and marks[first - 1].pair and not marks[first - 1].closing:
                        first -= 1
                    before.add(first)
                if line[-1] == numbers[-1] and in_spaced_word(text[at : at + 1]):
                    while last < line[-1] and marks[last + 1].closing:
                        last += 1
                    after.add(last)
                after |= {a for a, b in pairwise(free) if self._free[marks[a].code] != self._free[marks[b].code]}
        return before, after


def _touches(text: str, at: int) -> bool:
    return in_spaced_word(text[at - 1 : at]) or in_spaced_word(text[at : at + 1])


def passage_of(text: str, pieces: Sequence[Piece]) -> Passage | None:
    """What is read of these pieces of `text`, without the markup and space around it; None if that is nothing."""
    pieces = folded(text, pieces)
    first, last = trim(pieces)
    passage = Passage(pieces[first:last], collapse=True)
    passage.lead = passage.lead.lstrip(" ")  # where a line begins nobody sees it
    return passage if is_readable(passage.segment.text) else None


# ---- into the file ----

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Change(Generic[AnyStr]):
    """What to write for all from `start` to `end`: some given, some copied from where it stands in the old file."""

    start: int
    end: int
    parts: Sequence[AnyStr | Span]


class Place(Protocol[AnyStr]):
    """Where a segment stands in the file."""

    @property
    def start(self) -> int: ...

    @property
    def segment(self) -> Segment: ...

    def changes(self, translation: Segment) -> Sequence[Change[AnyStr]]:
        """None if the segment is as it was, except where a file has an empty place for its translation."""
        ...


class Splice(Generic[AnyStr]):
    """A file with changes. One that lies inside another is made in what the other copies."""

    def __init__(self, data: AnyStr, changes: Iterable[Change[AnyStr]]):
        self._data: AnyStr = data
        self._changes: list[Change[AnyStr]] = sorted(changes, key=lambda change: (change.start, change.end))
        self._starts: list[int] = [change.start for change in self._changes]

    def whole(self) -> AnyStr:
        return self.part(0, len(self._data) + 1)

    def part(self, start: int, end: int) -> AnyStr:
        """All from `start` to `end`, both outside of any change that is not wholly between them."""
        return self._data[:0].join(self._copied(start, end, bisect_left(self._starts, start)))

    def _copied(self, start: int, end: int, first: int) -> Iterator[AnyStr]:
        for change in self._changes[first : bisect_left(self._starts, end)]:
            if change.start < start:
                continue  # inside the one before
            yield self._data[start : change.start]
            for part in change.parts:
                if isinstance(part, tuple):
                    yield from self._copied(part[0], part[1], bisect_right(self._starts, part[0]))
                else:
                    yield part
            start = change.end
        yield self._data[start:end]
