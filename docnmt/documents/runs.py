"""Text with marks inside text with markup, as HTML and Markdown have it: found as runs, and replaced where they stand.

A run is a stretch of the file that is a segment. What a run is made of, and how its text is spelt, is the matter of
the kind; here pieces become segments, and new segments go back into the text with all around them untouched.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from docnmt.documents.inline import nested
from docnmt.documents.segment import Mark, Segment
from docnmt.text.scripts import unspaced

# What templates and static sites put between words: marks.
TEMPLATE = re.compile(r"\{\{[^{}]{0,300}\}\}|\{%[^%]{0,300}%\}|<%[^%]{0,300}%>")
# Text, but not to be translated, nor to be taken for markup.
ADDRESS = re.compile(
    r"(?:https?://|ftp://|www\.|mailto:)(?:[^\s<>\"'`\\|*\[\](){}]|\([^\s<>()]{0,200}\))+(?<![.,:;!?_~])"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_SPACES = re.compile(r"[ \t\n\r\f]+")
_LONGEST_FOLD = 2000  # characters
_LETTER = re.compile(r"[^\W\d_]")


class Piece(NamedTuple):
    """Text of the file that is read as text, or markup inside a run."""

    start: int
    end: int
    text: str | None = None  # None: a mark
    code: str = ""  # the mark's, if not simply what stands there
    pair: int = 0
    closing: bool = False
    wide: bool = False  # a mark that is seen in the line like a word: a picture, code
    breaks: bool = False  # a mark that ends the line


_NONE: frozenset[int] = frozenset()  # one for all: each takes 200 bytes
# Writes a text with marks, well nested and in order, as the file spells it.
Spelling = Callable[[str, Sequence[Mark]], str]


@dataclass(frozen=True, slots=True)
class Run:
    """A segment and where it stands."""

    start: int
    end: int
    segment: Segment
    spans: tuple[tuple[int, int], ...]  # where its marks stand
    spell: Spelling
    wide: frozenset[int] = frozenset()  # which of its marks are
    inner: bool = False  # stands inside a mark or a tag: an alternative text, a title


def make_run(text: str, pieces: Sequence[Piece], spell: Spelling, inner: bool = False) -> Run | None:
    """The run of these pieces of `text`, without the markup and space around it; None if there is nothing to read."""
    pieces = _trimmed(text, _folded(text, _lone(pieces)))
    if not pieces:
        return None
    segment = _segment(text, pieces)
    if not is_readable(segment.text):
        return None
    marks = [piece for piece in pieces if piece.text is None]
    spans = tuple((piece.start, piece.end) for piece in marks)
    wide = frozenset(number for number, piece in enumerate(marks) if piece.wide) or _NONE
    return Run(pieces[0].start, pieces[-1].end, segment, spans, spell, wide, inner)


def is_readable(text: str) -> bool:
    """Whether there is something to translate."""
    return bool(_LETTER.search(_MAIL.sub("", ADDRESS.sub("", text))))


def collapsed(text: str) -> str:
    """With one space where a reader sees one."""
    return _SPACES.sub(" ", text)


def _lone(pieces: Sequence[Piece]) -> list[Piece]:
    """Marks whose partner is not here stand alone."""
    both: dict[int, int] = defaultdict(int)
    for piece in pieces:
        if piece.pair:
            both[piece.pair] += 1
    return [
        piece._replace(pair=0, closing=False) if piece.pair and both[piece.pair] != 2 else piece for piece in pieces
    ]


def _folded(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """A pair with no text in it becomes one mark: an anchor, a link around a picture."""
    result: list[Piece] = []
    opened: dict[int, tuple[int, int]] = {}
    texts = 0
    for piece in pieces:
        texts += piece.text is not None
        if piece.pair and not piece.closing:
            opened[piece.pair] = len(result), texts
        elif piece.pair and opened[piece.pair][1] == texts:
            first = opened[piece.pair][0]
            if piece.end - result[first].start < _LONGEST_FOLD:
                inside = [*result[first:], piece]
                if all(part.pair in (0, piece.pair) for part in inside):
                    del result[first:]
                    piece = _one(text, inside)
        result.append(piece)
    return result


def _one(text: str, marks: Sequence[Piece]) -> Piece:
    own_spelling = any(mark.code for mark in marks)
    code = "".join(mark.code or text[mark.start : mark.end] for mark in marks) if own_spelling else ""
    return Piece(marks[0].start, marks[-1].end, code=code, wide=any(mark.wide for mark in marks))


def _trimmed(text: str, pieces: list[Piece]) -> list[Piece]:
    """From the first word to the last, and further only where the partner of a mark inside stands."""
    read = [i for i, piece in enumerate(pieces) if piece.text is not None and not _is_space(piece.text)]
    if not read:
        return []
    first, last = read[0], read[-1]
    opened: dict[int, int] = {}
    for i, piece in enumerate(pieces):
        if piece.pair and not piece.closing:
            opened[piece.pair] = i
        elif piece.pair:
            start = opened[piece.pair]
            if start < read[0] < i < read[-1]:
                first = min(first, start)
            if read[0] < start < read[-1] < i:
                last = max(last, i)
    kept = pieces[first : last + 1]
    for at, strip in ((0, str.lstrip), (-1, str.rstrip)):
        piece = kept[at]
        if piece.text is not None and piece.text == text[piece.start : piece.end]:
            left = strip(piece.text)
            start = piece.start + (len(piece.text) - len(left) if at == 0 else 0)
            kept[at] = piece._replace(start=start, end=start + len(left), text=left)
    return kept


def _is_space(text: str) -> bool:
    return not text.replace("\xad", "").strip()


def _segment(text: str, pieces: Sequence[Piece]) -> Segment:
    words: list[str] = []
    marks: list[Mark] = []
    numbers: dict[int, int] = {}
    length = 0
    after_space = True  # where a reader sees no further space
    for piece in pieces:
        if piece.text is None:
            if piece.breaks and not after_space:
                words.append(" ")  # words in two lines are two words
                length += 1
            after_space = piece.breaks or (after_space and not piece.wide)
            number = numbers.setdefault(piece.pair, len(numbers) + 1) if piece.pair else 0
            marks.append(Mark(length, piece.code or text[piece.start : piece.end], number, piece.closing))
        else:
            # A soft hyphen shows where a word of this language may be parted: no reader sees it.
            word = collapsed(piece.text).replace("\xad", "")
            word = word.lstrip(" ") if after_space else word
            words.append(word)
            length += len(word)
            after_space = word.endswith(" ") if word else after_space
    read = "".join(words)
    return Segment(read.rstrip() if pieces[-1].text is not None else read, tuple(marks))


def unlinked(marks: Sequence[Mark], is_link: Callable[[Mark], bool]) -> list[Mark]:
    """The marks in an order to write them in: well nested, and with no link inside a link.

    A link that would stand inside another one ends that one early.
    """
    result: list[Mark] = []
    ordered = nested(marks)
    closings = {mark.pair: mark for mark in ordered if mark.closing}
    opened: list[int] = []
    links: list[int] = []  # of the open pairs, those that are links: never more than one
    waiting: list[Mark] = []  # links that stand alone, for after the open one
    closed: set[int] = set()

    def close(until: int, at: int) -> None:
        while True:
            number = opened.pop()
            closed.add(number)
            result.append(replace(closings[number], at=at))
            if number in links:
                links.remove(number)
                result.extend(replace(mark, at=at) for mark in waiting)
                waiting.clear()
            if number == until:
                return

    for mark in ordered:
        if mark.pair and mark.closing:
            if mark.pair not in closed:
                close(mark.pair, mark.at)
            continue
        if links and is_link(mark):
            if not mark.pair:
                waiting.append(mark)
                continue
            close(links[-1], mark.at)
        if mark.pair:
            opened.append(mark.pair)
            links += [mark.pair] if is_link(mark) else []
        result.append(mark)
    return result


# Text from one place to another, and what to write instead.
Edit = tuple[int, int, str]


class _Edits:
    def __init__(self, text: str, edits: Iterable[Edit]):
        self._text = text
        self._edits = sorted(edits)
        self._starts = [start for start, _, _ in self._edits]

    def between(self, start: int, end: int) -> list[Edit]:
        return self._edits[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def applied(self, start: int, end: int) -> str:
        parts: list[str] = []
        for first, last, new in self.between(start, end):
            parts += self._text[start:first], new
            start = last
        return "".join([*parts, self._text[start:end]])


def rewritten(text: str, runs: Sequence[Run], translations: Sequence[Segment], edits: Iterable[Edit] = ()) -> str:
    """The text with these segments in place of its runs; `edits` are made if any run changes."""
    changed = [
        (run, new)
        for run, new in zip(runs, translations, strict=True)
        if (new.text, new.marks) != (run.segment.text, run.segment.marks)
    ]
    if not changed:
        return text
    inner = [(run.start, run.end, run.spell(new.text, new.marks)) for run, new in changed if run.inner]
    small = _Edits(text, [*edits, *inner])
    large = sorted(_edit(run, new, small) for run, new in changed if not run.inner)
    ends = [0, *(end for _, end, _ in large)]
    starts = [*(start for start, _, _ in large), len(text) + 1]
    outside = [edit for end, start in zip(ends, starts, strict=True) for edit in small.between(end, start)]
    return edited(text, [*large, *outside])


def edited(text: str, edits: Iterable[Edit]) -> str:
    return _Edits(text, edits).applied(0, len(text) + 1)


def _edit(run: Run, new: Segment, inside: _Edits) -> Edit:
    """A run that changes, with what changes inside its marks."""
    old = run.segment
    numbers: dict[tuple[str, int, bool], deque[int]] = defaultdict(deque)
    for number, mark in enumerate(old.marks):
        numbers[mark.code, mark.pair, mark.closing].append(number)
    length = len(new.text)
    placed = sorted((replace(mark, at=min(max(mark.at, 0), length)) for mark in new.marks), key=lambda mark: mark.at)
    marks: list[Mark] = []
    gaps: set[tuple[int, int]] = set()
    for position, mark in enumerate(placed):
        same = numbers[mark.code, mark.pair, mark.closing]
        if not same:
            raise ValueError(f"a mark that the segment does not have: {mark}")
        number = same.popleft()
        span = run.spans[number]
        marks.append(replace(mark, code=inside.applied(*span)) if inside.between(*span) else mark)
        if number in run.wide:
            gaps.update(_gaps_around(old.text, old.marks[number].at, new.text, placed, position))
    if any(numbers.values()):
        raise ValueError(f"marks were lost: {old.marks} became {new.marks}")
    return run.start, run.end, run.spell(*_with_gaps(new.text, marks, sorted(gaps)))


def _gaps_around(old: str, was: int, new: str, marks: Sequence[Mark], position: int) -> Iterator[tuple[int, int]]:
    """Before which mark, and where in the text, a space is missing.

    What is seen in the line like a word and did not touch the words around it does not touch others now.
    """
    at = marks[position].at
    if is_word(new[at - 1 : at]) and not is_word(old[was - 1 : was]):
        first = position
        while first and marks[first - 1].at == at and marks[first - 1].pair and not marks[first - 1].closing:
            first -= 1
        yield first, at
    if is_word(new[at : at + 1]) and not is_word(old[was : was + 1]):
        following = position + 1
        while following < len(marks) and marks[following].at == at and marks[following].closing:
            following += 1
        yield following, at


def is_word(character: str) -> bool:
    return character.isalnum() and not unspaced(character)


def _with_gaps(text: str, marks: Sequence[Mark], gaps: Sequence[tuple[int, int]]) -> tuple[str, list[Mark]]:
    words: list[str] = []
    moved: list[Mark] = []
    start = 0
    for number, (position, at) in enumerate(gaps):
        moved += (replace(mark, at=mark.at + number) for mark in marks[len(moved) : position])
        words += text[start:at], " "
        start = at
    moved += (replace(mark, at=mark.at + len(gaps)) for mark in marks[len(moved) :])
    return "".join([*words, text[start:]]), moved
