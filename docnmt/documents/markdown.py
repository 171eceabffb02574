"""Markdown: CommonMark with the tables, task lists, strike-through and footnotes of GitHub."""

from __future__ import annotations

import html
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.html import places_in
from docnmt.documents.inline import ADDRESS, Passage, Piece, is_readable, nested, passage_of
from docnmt.documents.markdown_blocks import Block, Blocks, starts_html
from docnmt.documents.markdown_inline import PUNCTUATION, Inside, Line
from docnmt.documents.segment import Mark, Place, Segment, Splice, SplicedFile

# ---- writing: text and marks as Markdown that reads as exactly this text and these marks ----

_ESCAPED = re.compile(rf"\\([{re.escape(PUNCTUATION)}])")
# Characters that are likely to be markup where they are, and those that could be markup anywhere.
_MARKUP = (
    rf"\\(?=[{re.escape(PUNCTUATION)}]|$)|`|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~"
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
)
# For each kind of place the characters that would end it.
_ENDS = {"paragraph": "", "heading": "", "cell": r"|\|", "inside": r"|[\[\]]", "inside a cell": r"|[\[\]|]"}
_LIKELY = {kind: re.compile(_MARKUP + ends) for kind, ends in _ENDS.items()}
_POSSIBLE = re.compile(r"[\\`*_\[\]<>&~$|{}!:]")
_BLOCK_START = re.compile(
    r"#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[.)](?<=\d.)(?:\s|$)|[=_-][=_ -]*$|~~~|:::|\$\$|!!!|\?\?\?|\[[ xX]\]\s|:(?<=\]:)"
)
# A backslash has to follow these: before them it has no effect.
_BEFORE = re.compile(r"\d{1,9}(?=[.)](?:\s|\0|$))|\[(?:[^\[\]\\]|\\.)++\](?=:)")
_NO_LINE_START = re.compile(r"[#>+*=~|:<_0-9!?$-]|\[\^|\\[-+#>=]")
_CLOSING_HASHES = re.compile(r"(?:^|(?<=\s))(#+)\s*$")
_LINE_MARKS = re.compile(r"(?<![ \t])[ \t]*+(?:\r\n?|\n)[ \t>]*")
_TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~": "del", "~~": "del"}
_EMPHASIZED = re.compile(r"(\*\*?|__?|~~?)(.+)\1", re.DOTALL)
_LONE_LINK = re.compile(r"\[(?!\^)|<[^\s>]+[:@][^\s>]*>|.*<a\s", re.IGNORECASE)
_TAG = re.compile("<[^<>]*>")
_WORD = re.compile(r"\w")
_ADDRESSES = re.compile(f"({ADDRESS.pattern})")
_BREAK = re.compile(r"(?:\\| {2,})\n")
_GAP = "\0"  # a space at which a line may be broken


class Layout(NamedTuple):
    """Where a text is, and how its lines are broken."""

    kind: str  # paragraph, heading, cell, inside (of a mark), inside a cell
    at_start: bool = False  # of a line
    newline: str = ""  # none: all in one line
    indent: str = ""  # of the lines after the first, with the markers of the containers
    width: int = 0
    first: int = 0  # the column where it begins


def unescaped(text: str) -> str:
    return html.unescape(_ESCAPED.sub(lambda found: f"&#{ord(found[1])};", text))


def spell_title(special: str, text: str) -> str:
    """`special`: the quotes on both sides, and what else has to be escaped."""
    markup = rf"\\(?=[{re.escape(PUNCTUATION)}]|$)|&(?=#?\w+;)|[{re.escape(special)}]"
    escaped = re.sub(markup, lambda found: "\\" + found[0], text)
    return special[0] + " ".join(escaped.split()) + special[1]


def spell(layout: Layout, labels: frozenset[str], text: str, marks: Sequence[Mark]) -> str:
    text = re.sub("[\r\n\t\0]", " ", text)
    marks = [m if m.code.endswith("\n") else replace(m, code=_LINE_MARKS.sub(" ", m.code)) for m in marks]
    placed = _placed(layout, text, marks)
    words = _words(text)
    for codes, escape in product((placed, _as_tags(placed)), (_LIKELY[layout.kind], _POSSIBLE)):
        written = _broken(_written(text, codes, escape))
        if _read_back(written.replace(_GAP, " "), labels) == (words, _comparable("".join(mark.code for mark in codes))):
            break
    return _laid_out(layout, written)


def _placed(layout: Layout, text: str, marks: Sequence[Mark]) -> list[Mark]:
    """The marks where they are allowed: emphasis not next to a space, comments not where they would begin a block."""
    opened = {mark.pair: mark.at for mark in marks if mark.pair and not mark.closing}
    alone = {mark.at for mark in marks if not mark.pair}
    moved = []
    for mark in marks:
        at = mark.at
        if mark.pair and mark.code in _TAGS:
            step, until = (-1, opened[mark.pair]) if mark.closing else (1, len(text))
            while step * (until - at) > 0 and at not in alone and text[at - mark.closing].isspace():
                at += step
        elif layout.at_start and not text[:at].strip() and starts_html(mark.code):
            word = re.compile(r"\s|$").search(text, at)
            at = word.start() if word else at
        moved.append(replace(mark, at=at))
    return nested(moved, is_link=_is_link)


def _is_link(mark: Mark) -> bool:
    if mark.pair:
        return mark.code == "[" or bool(re.match(r"<a\s", mark.code, re.IGNORECASE))
    return bool(_LONE_LINK.match(mark.code))


def _as_tags(marks: Sequence[Mark]) -> list[Mark]:
    """Emphasis as HTML tags, which are allowed anywhere."""
    result = []
    for mark in marks:
        code = mark.code
        if mark.pair and code in _TAGS:
            code = f"</{_TAGS[code]}>" if mark.closing else f"<{_TAGS[code]}>"
        elif around := _EMPHASIZED.fullmatch(code):
            code = f"<{_TAGS[around[1]]}>{around[2]}</{_TAGS[around[1]]}>"
        result.append(replace(mark, code=code))
    return result


def _written(text: str, marks: Sequence[Mark], escape: re.Pattern[str]) -> str:
    parts: list[str] = []
    start = 0
    for mark in marks:
        words = _escaped(text[start : mark.at], escape)
        # No space before a hard line break.
        parts += (words.rstrip(_GAP) if mark.code.endswith("\n") else words), mark.code
        start = mark.at
    return "".join([*parts, _escaped(text[start:], escape)])


def _escaped(text: str, escape: re.Pattern[str]) -> str:
    parts = _ADDRESSES.split(text)
    parts[::2] = [_backslashed(between, escape) for between in parts[::2]]
    return "".join(parts).replace(" ", _GAP)


def _backslashed(text: str, escape: re.Pattern[str]) -> str:
    return escape.sub(lambda found: "\\" + found[0], text)


def _read_back(written: str, labels: frozenset[str]) -> tuple[str, str]:
    pieces = Line(written, labels).pieces
    text = "".join(" " if piece.breaks else piece.text or "" for piece in pieces)
    codes = (piece.code or written[piece.start : piece.end] for piece in pieces if piece.text is None)
    return _words(text), _comparable("".join(codes))


def _words(text: str) -> str:
    return " ".join(text.replace("\xad", "").split())


def _comparable(codes: str) -> str:
    return _BREAK.sub("<br>", codes)


def _broken(written: str) -> str:
    """With <br> for every break that is not between words: Markdown has none there."""
    lines = written.split("\n")
    result = [lines[0]]
    for line in lines[1:]:
        before = result[-1].removesuffix("\\").rstrip(" ")
        if _WORD.search(_TAG.sub("", before)) and line.strip(_GAP + " \\") and not starts_html(line.lstrip(_GAP)):
            result.append(line)
        else:
            result[-1] = f"{before}<br>{line}"
    return "\n".join(result)


def _laid_out(layout: Layout, written: str) -> str:
    lines = written.split("\n")
    if layout.kind == "heading" and not layout.newline:
        return _CLOSING_HASHES.sub(r"\\\1", written.replace(_GAP, " "))
    if _ENDS[layout.kind]:
        return written.replace(_GAP, " ")
    wrapped: list[str] = []
    for number, line in enumerate(lines):
        if number or layout.at_start:
            line = _not_a_block(line.lstrip(_GAP))
        wrapped += _wrapped(layout, line, layout.first if not number else len(layout.indent))
    return (layout.newline + layout.indent).join(wrapped)


def _not_a_block(line: str) -> str:
    before = _BEFORE.match(line)
    at = before.end() if before else 0
    plain = line.replace(_GAP, " ")
    return line[:at] + "\\" + line[at:] if _BLOCK_START.match(plain, at) else line


def _wrapped(layout: Layout, line: str, column: int) -> list[str]:
    if not layout.newline:
        return [line.replace(_GAP, " ")]
    lines: list[list[str]] = [[]]
    for word in re.split(f"{_GAP}+", line):
        full = column + 1 + len(word.rstrip()) > layout.width
        # A tag alone on its line would start a block.
        if full and lines[-1] and not _TAG.fullmatch(lines[-1][0]) and not _NO_LINE_START.match(word):
            lines.append([])
            column = len(layout.indent)
        column += len(word) + (1 if lines[-1] else 0)
        lines[-1].append(word)
    return [" ".join(words) for words in lines]


# ---- reading: paragraphs, headings, cells, alternative texts and titles are segments ----

# A paragraph that was wrapped is wrapped again at its width; one on a single line stays on a single line.

# At the beginning of a paragraph: the box of a task, the type of an alert.
_BOX = re.compile(r"\[[ xX]\](?=[ \t])|\[![A-Za-z]+\][ \t]*(?=\n|$)")
_TAG_WITH_ATTRIBUTES = re.compile(r"<[A-Za-z][^\s>]*\s[^>]*=")
_LINE_END = re.compile(r"\r\n?|\n")


def read(data: bytes, name: str, languages: tuple[str, str]) -> SplicedFile:
    text, encoding = decoded(data, name)
    if "\0" in text:
        raise DocnmtError(f"{name}: not Markdown: it contains NUL bytes\n  Give the file the right extension.")
    return SplicedFile(data, text, name, partial(_places, text, name), encoding.encoded)


def _places(text: str, name: str) -> Iterator[Place]:
    blocks = Blocks(text)
    for _ in blocks.read():
        pass  # links may be defined after they are used: all labels are known only at the end
    reader = _Reader(text, name, frozenset(blocks.labels))
    for block in Blocks(text).read():
        yield from reader.places(block)


class _Reader:
    def __init__(self, text: str, name: str, labels: frozenset[str]):
        self.text, self.labels, self._name = text, labels, name
        self._line_starts = array("q", chain((0,), (end.end() for end in _LINE_END.finditer(text))))

    def column(self, place: int) -> int:
        return place - self._line_starts[bisect_right(self._line_starts, place) - 1]

    def places(self, block: Block) -> Iterator[Place]:
        if block.kind == "html":
            try:
                yield from places_in(self.text, self._name, *block.lines[0])
            except DocnmtError:
                return  # half a tag, if an empty line ends the block: such HTML is left alone
            return
        content = _Content(self, block)
        box = _BOX.match(content.text) if block.kind == "paragraph" else None
        line = Line(content.text, self.labels, start=box.end() if box else 0)
        tags = [p for p in line.pieces if p.text is None and _TAG_WITH_ATTRIBUTES.match(content.text, p.start, p.end)]
        tag_spans = [content.span(tag.start, tag.end) for tag in tags]
        if passage := passage_of(content.text, line.pieces, block.role):
            spell_here = partial(content.spell, passage.start)
            yield self._place(content.placed(passage), spell_here)
        for inside in line.inside:
            yield from self._places_inside(content, inside, block.kind == "cell")
        for span in tag_spans:
            yield from places_in(self.text, self._name, *span)

    def _place(self, passage: Passage, spell: Callable[[str, Sequence[Mark]], str]) -> Place:
        """A line of text with its marks, or a text inside one of these: an alternative text."""

        def parts(new: Segment) -> Callable[[Splice], str]:
            def spelt(splice: Splice) -> str:
                def code(piece: Piece) -> str:
                    old, new = self.text[piece.start : piece.end], splice.part(piece.start, piece.end)
                    return new if new != old else piece.code or old

                # How a line has to be written depends on everything in it, changes inside its marks included.
                return spell(*passage.marked(new, code))

            return spelt

        return passage.place(parts)

    def _places_inside(self, content: _Content, inside: Inside, cell: bool) -> Iterator[Place]:
        if inside.title is None:
            layout = Layout("inside a cell" if cell else "inside")
            if passage := passage_of(content.text, inside.pieces, "picture"):
                yield self._place(content.placed(passage), partial(spell, layout, self.labels))
            return
        start, end = inside.title
        title = " ".join(unescaped(content.text[start + 1 : end - 1]).split())
        if is_readable(title):
            special = content.text[start] + content.text[end - 1] + ("|" if cell else "")
            yield Place.of(*content.span(start, end), Segment(title), lambda new: [spell_title(special, new.text)])


class _Content:
    """The text of a block without the markers of its containers, and the way back to places in the file."""

    def __init__(self, reader: _Reader, block: Block):
        self._reader, self._block = reader, block
        self.text = "\n".join(reader.text[start:end] for start, end in block.lines)
        self._starts = [0]
        for start, end in block.lines[:-1]:
            self._starts.append(self._starts[-1] + end - start + 1)

    def place(self, at: int) -> int:
        line = bisect_right(self._starts, at) - 1
        return self._block.lines[line][0] + at - self._starts[line]

    def span(self, start: int, end: int) -> tuple[int, int]:
        return self.place(start), self.place(end - 1) + 1

    def placed(self, passage: Passage) -> Passage:
        """With the places of its pieces in the file."""
        for piece in passage.all:
            piece.start, piece.end = self.span(piece.start, piece.end)
        return passage

    def spell(self, start: int, text: str, marks: Sequence[Mark]) -> str:
        """In the layout of `start`, a place in this content."""
        lines, reader = self._block.lines, self._reader
        number = bisect_right(self._starts, start) - 1
        at_start = start == self._starts[number]
        layout = Layout(self._block.kind, at_start)
        if number + 1 < len(lines):
            gap = reader.text[lines[number][1] : lines[number + 1][0]]
            newline = _LINE_END.search(gap)
            assert newline is not None
            width = max(reader.column(end) for _, end in lines[number:])
            column = reader.column(self.place(start))
            layout = Layout(self._block.kind, at_start, newline[0], gap[newline.end() :], width, column)
        return spell(layout, reader.labels, text, marks)
