"""Markdown: CommonMark with the tables, task lists, strike-through and footnotes of GitHub.

Paragraphs, headings, cells, alternative texts and titles are segments. A paragraph that was wrapped is wrapped again,
at the width it had; one that stood in one line stays in one line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import Encoding, decoded
from docnmt.files.html import runs_in
from docnmt.files.markdown_blocks import Block, Blocks
from docnmt.files.markdown_inline import Inside, Line
from docnmt.files.markdown_spelling import Layout, spell, spell_title, unescaped
from docnmt.files.runs import Run, Spelling, is_readable, make_run, rewritten
from docnmt.files.segments import Mark, Segment

# At the beginning of a paragraph: the box of a task, the kind of an alert.
_BOX = re.compile(r"\[[ xX]\](?=[ \t])|\[![A-Za-z]+\][ \t]*(?=\n|$)")
_TAG_WITH_ATTRIBUTES = re.compile(r"<[A-Za-z][^\s>]*\s[^>]*=")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """A Markdown file that was read."""

    text: str
    encoding: Encoding
    runs: tuple[Run, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(run.segment for run in self.runs)

    def write(self, translations: Sequence[Segment]) -> bytes:
        return self.encoding.encoded(rewritten(self.text, self.runs, translations))


def read(data: bytes, name: str, languages: tuple[str, str]) -> MarkdownText:
    text, encoding = decoded(data, name)
    if "\0" in text:
        raise DocnmtError(f"{name}: not a Markdown text: it has zero bytes in it\n  Give the file its right name.")
    blocks = Blocks(text)
    found = blocks.read()
    reader = _Reader(text, name, frozenset(blocks.labels))
    return MarkdownText(text, encoding, tuple(run for block in found for run in reader.runs(block)))


class _Reader:
    def __init__(self, text: str, name: str, labels: frozenset[str]):
        self.text, self.labels, self._name = text, labels, name
        self._line_starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def column(self, place: int) -> int:
        return place - self._line_starts[bisect_right(self._line_starts, place) - 1]

    def runs(self, block: Block) -> Iterator[Run]:
        if block.kind == "html":
            try:
                yield from runs_in(self.text, self._name, *block.lines[0])
            except DocnmtError:
                return  # half a tag, as an empty line ends the block: such HTML is left alone
            return
        content = _Content(self, block)
        box = _BOX.match(content.text) if block.kind == "paragraph" else None
        line = Line(content.text, self.labels, start=box.end() if box else 0)
        if run := make_run(content.text, line.pieces, partial(spell, Layout("inside"), self.labels)):
            yield content.placed(run, partial(content.spell, run.start))
        for inside in line.inside:
            if run := self._run_inside(content.text, inside, block.kind == "cell"):
                yield content.placed(run, run.spell)
        for piece in line.pieces:
            if piece.text is None and _TAG_WITH_ATTRIBUTES.match(content.text, piece.start, piece.end):
                tag = runs_in(self.text, self._name, content.place(piece.start), content.place(piece.end - 1) + 1)
                yield from (run for run in tag if run.inner)

    def _run_inside(self, content: str, inside: Inside, cell: bool) -> Run | None:
        if inside.title is None:
            layout = Layout("inside a cell" if cell else "inside")
            return make_run(content, inside.pieces, partial(spell, layout, self.labels), inner=True)
        start, end = inside.title
        title = " ".join(unescaped(content[start + 1 : end - 1]).split())
        if not is_readable(title):
            return None
        special = content[start] + content[end - 1] + ("|" if cell else "")
        return Run(start, end, Segment(title), (), partial(spell_title, special), inner=True)


class _Content:
    """The text of a block without the line marks of its containers, and the way back to the places in the file."""

    def __init__(self, reader: _Reader, block: Block):
        self._reader, self._block = reader, block
        self.text = "\n".join(reader.text[start:end] for start, end in block.lines)
        self._starts = [0]
        for start, end in block.lines[:-1]:
            self._starts.append(self._starts[-1] + end - start + 1)

    def place(self, at: int) -> int:
        line = bisect_right(self._starts, at) - 1
        return self._block.lines[line][0] + at - self._starts[line]

    def placed(self, run: Run, spelling: Spelling) -> Run:
        spans = tuple((self.place(start), self.place(end - 1) + 1) for start, end in run.spans)
        start, end = self.place(run.start), self.place(run.end - 1) + 1
        return Run(start, end, run.segment, spans, spelling, run.wide, run.inner)

    def spell(self, start: int, text: str, marks: Sequence[Mark]) -> str:
        """As `start`, a place in this content, is laid out."""
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
