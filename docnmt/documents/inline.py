"""The inline model of all kinds: a paragraph of text and markup as a segment, its translation as text and markup.

Each kind of file cuts its paragraphs into pieces: text as a reader sees it, and markup, each with the place where it
is.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Self

from docnmt.documents.segment import Mark, Parts, Place, Segment, Span
from docnmt.text.scripts import LETTER, in_spaced_word

# What templates and static sites put between words.
TEMPLATE = re.compile(r"\{\{[^{}]{0,300}\}\}|\{%[^%]{0,300}%\}|<%[^%]{0,300}%>")
# Text, but neither translated nor taken for markup.
ADDRESS = re.compile(
    r"(?:https?://|ftp://|www\.|mailto:)(?:[^\s<>\"'`\\|*\[\](){}]|\([^\s<>()]{0,200}\)){1,2000}(?<![.,:;!?_~])"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,20}")
_SPACES = re.compile(r"[ \t\n\r\f]+")
_LONGEST_FOLD = 2000  # characters


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def is_readable(text: str) -> bool:
    """Whether there is anything to translate besides addresses."""
    return bool(LETTER.search(_MAIL.sub("", ADDRESS.sub("", text))))


def collapsed(text: str) -> str:
    """With single spaces, as a reader sees them."""
    return _SPACES.sub(" ", text)


# ---- pieces ----

_SOFT_HYPHEN = "\xad"  # where a word may be hyphenated: not visible, and of no use in another language


@dataclass(slots=True, eq=False)
class Piece:
    """Text, or markup that becomes a mark."""

    start: int
    end: int
    text: str | None = None  # None: markup
    code: str = ""  # of markup: what to write, if not just what is there
    pair: int | str = 0  # shared by the two of a pair; a piece without its partner stands alone
    closing: bool = False
    loose: bool = False  # of a pair that may cross others: the ends of a bookmark
    wide: bool = False  # takes up space in the line like a word: a picture, code
    breaks: bool = False  # ends the line: the words on its two sides are separate
    gap: bool = False  # the same, and it is written in place of the space that it reads as: a tab

    def tied(self, link: str) -> Self:
        """As one of a loose pair; the link is the pair's name, with a slash before it for the second one, or empty."""
        if link:
            self.pair, self.closing, self.loose = link.removeprefix("/"), link.startswith("/"), True
        return self


def partners(marks: Sequence[Mark | Piece]) -> dict[int, int]:
    """For each mark that is one of a pair, the index of the other one."""
    found: dict[int, int] = {}
    opened: dict[int | str, int] = {}
    for number, mark in enumerate(marks):
        if mark.pair and not mark.closing:
            opened[mark.pair] = number
        elif mark.pair in opened:
            first = opened.pop(mark.pair)
            found[first], found[number] = number, first
    return found


def plain(text: str, start: int, end: int) -> Iterator[Piece]:
    """Text that needs no escaping. The spaces around it are pieces of their own, so that those at the ends of a
    paragraph are not touched."""
    content = text[start:end]
    first, last = end - len(content.lstrip()), start + len(content.rstrip())
    bounds = (start, first, last, end) if first < last else (start, end)
    for left, right in pairwise(bounds):
        if left < right:
            yield Piece(left, right, text[left:right].replace(_SOFT_HYPHEN, ""))


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
    """The smallest range with all the text and both halves of its pairs: marks outside belong to no word."""
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

    def __init__(self, pieces: Sequence[Piece], collapse: bool = False, translate: bool = True, role: str = ""):
        """`collapse` turns several spaces into one, even if bold begins or ends between them."""
        self.all = pieces
        self.lead = ""  # the space around the text
        self._stands_for_space: set[str] = set()  # the marks that read as a space in the text
        self._loose: set[int] = set()
        pairs = partners(pieces)
        marks, parts = list[Mark](), list[str]()
        length, last, gap, beside = 0, "", -1, False
        for number, piece in enumerate(pieces):
            if piece.text is None:
                pair = min(number, pairs[number]) + 1 if number in pairs else 0
                if pair and piece.loose:
                    self._loose.add(pair)
                if piece.breaks and length and not (beside and last == " "):
                    parts.append(" ")
                    length, last, beside = length + 1, " ", True
                # Interned: other paragraphs have the same codes.
                marks.append(Mark(length, sys.intern(str(number)), pair, bool(pair) and number + 1 != pair))
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
        held = tuple(mark if mark.at <= len(text) else replace(mark, at=len(text)) for mark in marks)
        self.segment = Segment(text, held, translate, role)
        # The marks that are visible like words but did not touch any, and where they were.
        seen = (m for m in held if not m.pair and self._piece(m).wide and not self._piece(m).gap)
        self._free = {mark.code: mark.at for mark in seen if not _touches(text, mark.at)}

    @property
    def start(self) -> int:
        return self.all[0].start

    def place(self, parts: Callable[[Segment], Parts]) -> Place:
        return Place.of(self.start, self.all[-1].end, self.segment, parts)

    def pieces(
        self, translation: Segment, is_link: Callable[[Piece], bool] = lambda piece: False
    ) -> Iterator[str | Piece]:
        """The text and marks of a translation in the order in which to write them, with no link inside another link."""
        marks = nested(translation.marks, self._loose, lambda mark: is_link(self._piece(mark)))
        return (part if isinstance(part, str) else self._piece(part) for part in self._spaced(translation, marks))

    def marked(self, translation: Segment, code: Callable[[Piece], str]) -> tuple[str, list[Mark]]:
        """The same as a text, and marks with the codes to write."""
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
        """Text and marks, with the spaces that have to be added and without those that a mark stands for."""
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
        """The space around the text goes inside the marks around it."""
        if at >= len(text):
            return len(self.lead) + len(text) + len(self._trail)
        return at + len(self.lead) if at > 0 else 0

    def _missing_spaces(self, text: str, marks: Sequence[Mark], places: Sequence[int]) -> tuple[set[int], set[int]]:
        """Before and after which marks a space is missing: a visible mark that touched no word around it must not
        touch others now, nor must two that were apart touch each other."""
        before: set[int] = set()
        after: set[int] = set()
        for at, group in groupby(range(len(marks)), key=lambda n: places[n]):
            numbers = list(group)
            # A break separates what is on its two sides anyway.
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


def passage_of(text: str, pieces: Sequence[Piece], role: str = "") -> Passage | None:
    """What a reader sees of these pieces of `text`, without the markup and space around it; None if that is nothing."""
    pieces = folded(text, pieces)
    first, last = trim(pieces)
    passage = Passage(pieces[first:last], collapse=True, role=role)
    passage.lead = passage.lead.lstrip(" ")  # it is not visible at the start of a line
    return passage if is_readable(passage.segment.text) else None


def written(pieces: Iterable[str | Piece], spelt: Callable[[str], str]) -> list[str | Span]:
    """What to write for the pieces of a translation: text as `spelt` writes it; markup without a code of its own is
    copied."""
    parts: list[str | Span] = []
    for piece in pieces:
        text = piece if isinstance(piece, str) else piece.text or piece.code
        parts.append(spelt(text) if text or isinstance(piece, str) else (piece.start, piece.end))
    return parts


# ---- the order of marks ----


def nested(
    marks: Iterable[Mark],
    loose: Iterable[int] = (),
    is_link: Callable[[Mark], bool] = lambda mark: False,
) -> list[Mark]:
    """The order in which to write marks: every pair opens before it closes and, but for the loose ones, none cross.

    Where two pairs cross, the inner one is closed early; a link that would be inside another one ends that one early.
    """
    ordered = _touching(_loosened(sorted(marks, key=lambda mark: mark.at), set(loose)))
    both: dict[int, list[Mark]] = {}
    for mark in ordered:
        both.setdefault(mark.pair, []).append(mark)
    result: list[Mark] = []
    opened: list[int] = []
    closed: set[int] = set()
    link = 0  # the open pair that is a link
    waiting: list[Mark] = []  # links that stand alone, to write after the open one

    def close(until: int, at: int) -> None:
        nonlocal link
        while until not in closed:
            number = opened.pop()
            closed.add(number)
            result.append(replace(next(mark for mark in both[number] if mark.closing), at=at))
            if number == link:
                result.extend(replace(mark, at=at) for mark in waiting)
                link = 0
                waiting.clear()

    for mark in ordered:
        alone = not mark.pair or len(both[mark.pair]) != 2
        if not alone and mark is both[mark.pair][1]:
            close(mark.pair, mark.at)
            continue
        if not alone and mark.closing:
            mark = replace(both[mark.pair][1], at=mark.at)
        if link and is_link(mark):
            if alone:
                waiting.append(mark)
                continue
            close(link, mark.at)
        if not alone:
            opened.append(mark.pair)
            link = mark.pair if is_link(mark) else link
        result.append(mark)
    return result


def _loosened(marks: Sequence[Mark], loose: set[int]) -> list[Mark]:
    """Loose pairs as single marks, the opening one first."""
    halves = {(mark.pair, mark.closing): mark for mark in marks}
    begun: set[int] = set()
    result: list[Mark] = []
    for mark in marks:
        if mark.pair in loose:
            half = halves[mark.pair, mark.pair in begun]
            begun.add(mark.pair)
            mark = replace(half, at=mark.at, pair=0)
        result.append(mark)
    return result


def _touching(marks: list[Mark]) -> list[Mark]:
    """A pair that ends where another one begins ends first: the two touch, they do not overlap."""
    places: dict[int, list[int]] = {}
    for mark in marks:
        places.setdefault(mark.pair, []).append(mark.at)
    arranged: list[Mark] = []
    for at, here in groupby(marks, key=lambda mark: mark.at):
        group = list(here)
        beginning = next((i for i, mark in enumerate(group) if mark.pair and places[mark.pair][-1] > at), len(group))
        arranged += group[:beginning]
        arranged += sorted(group[beginning:], key=lambda mark: not (mark.pair and places[mark.pair][0] < at))
    return arranged
