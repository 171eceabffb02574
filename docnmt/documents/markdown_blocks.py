"""The blocks of a Markdown text (CommonMark, with tables and footnotes), each with the places of its lines.

Only blocks with text are yielded: paragraphs, headings, cells and HTML. Code, rules, definitions and front matter are
skipped. Containers and leaves are found as in the CommonMark specification, appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from docnmt.documents.segment import MAX_IN_PARAGRAPH, Span, TooManyMarks

MAX_DEPTH = 100  # of nested quotes and lists, as in markdown-it; deeper ones are text
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n|\Z)")
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(.*?)(?:\r\n?|\n)(?:\1|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL)
_KEY = re.compile(r"^[\w\"'][^\r\n:=]*[:=]", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}+|(?:-[ \t]*){3,}+|(?:_[ \t]*){3,}+)$")
_SPACES_OR_TAB = re.compile(r" +|\t")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")
_ITEM = re.compile(r"([-+*]|(\d{1,9})[.)])(?=[ \t]|$)")
_NOTE = re.compile(r"\[\^[^\]\s]{1,999}\]:[ \t]*")
# What tools add to Markdown.
_DIRECTIVE = re.compile(r":::|\$\$[^$]*(?:\$\$[ \t]*)?$")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+[A-Za-z][\w -]*(?:\"[^\"]*\")?[ \t]*$")
_DELIMITERS = re.compile(r"[|:\- \t]+$")
_DELIMITER = re.compile(r"[ \t]*:?-+:?[ \t]*$")
_PIPE = re.compile(r"(?<!\\)\|")
_DEFINITION = re.compile(
    r"\[((?:[^\[\]\\]|\\.){1,999})\]:[ \t]*\n?[ \t]*(?:<(?:[^<>\n\\]|\\.)*+>|[^\s<]\S*+)"
    r"(?:(?:[ \t]+\n?|\n)[ \t]*(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?[ \t]*(?:\n|\Z)",
    re.DOTALL,
)

_HTML_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
_TAG = (
    r"(?:<[A-Za-z][A-Za-z0-9-]*+(?:\s++[A-Za-z_:][\w.:-]*+(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?+)*+\s*+/?>"
    r"|</[A-Za-z][A-Za-z0-9-]*+\s*+>)"
)
INLINE_TAG = re.compile(_TAG)
# How a block of HTML begins, and what ends it; empty: an empty line.
_HTML = [
    (re.compile(start), re.compile(end) if end else None)
    for start, end in (
        (r"(?i:<(?:script|pre|style|textarea)(?:\s|>|$))", "(?i:</(?:script|pre|style|textarea)>)"),
        ("<!--", "-->"),
        (r"<\?", r"\?>"),
        ("<![A-Za-z]", ">"),
        (r"<!\[CDATA\[", r"\]\]>"),
        (rf"(?i:</?(?:{_HTML_NAMES})(?:\s|/?>|$))", ""),
    )
]
_LONE_TAG = re.compile(rf"{_TAG}[ \t]*$")


def starts_html(line: str) -> bool:
    """Whether a line that begins like this would begin a block of HTML."""
    return any(start.match(line) for start, _ in _HTML)


def label(text: str) -> str:
    """A link's label, normalised for comparison."""
    return " ".join(text.split()).casefold()


class Block(NamedTuple):
    kind: str  # paragraph (also a heading with a line under it), heading, cell, html
    lines: tuple[Span, ...]  # without the markers of the containers; html: one span with all lines
    role: str = ""  # as a segment has it


@dataclass(slots=True)
class _Container:
    quote: bool
    note: bool = False
    indent: int = 0  # of the content of an item
    fresh: bool = False  # an item that begins with an empty line and has nothing in it yet


class _Line:
    """A line, read from left to right in columns; a tab goes to the next multiple of four."""

    def __init__(self, text: str, start: int, end: int):
        self.text, self.at, self.end = text, start, end
        self._column = 0
        self._tab_left = 0  # columns left of a tab that was only read in part
        self.look()

    def look(self) -> None:
        """Finds the next character that is not a space."""
        at, column = self.at, self._column + self._tab_left
        if self._tab_left:
            at += 1
        # Each container of a line looks again, so spaces are not walked through one by one.
        while blank := _SPACES_OR_TAB.match(self.text, at, self.end):
            column += 4 - column % 4 if blank[0] == "\t" else len(blank[0])
            at = blank.end()
        self.next, self.indent, self.blank = at, column - self._column, at >= self.end

    def skip_columns(self, count: int) -> None:
        while count > 0 and self.at < self.end and self.text[self.at] in " \t":
            width = self._tab_left or (4 - self._column % 4 if self.text[self.at] == "\t" else 1)
            step = min(width, count)
            self._column += step
            count -= step
            self._tab_left = width - step
            if not self._tab_left:
                self.at += 1
        self.look()

    def skip_to(self, at: int) -> None:
        self._column += self.indent + (at - self.next)
        self.at, self._tab_left = at, 0
        self.look()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.next, self.end)


class Blocks:
    """Reads a text block by block; afterwards `labels` are those of its link definitions."""

    def __init__(self, text: str):
        self._text = text
        self.labels: set[str] = set()
        self._found: list[Block] = []
        self._containers: list[_Container] = []
        self._leaf = ""  # paragraph, table, code, fence, html, formula
        self._lines: list[Span] = []  # of an open paragraph; of a block of HTML the first and the last
        self._fence = ""
        self._end: re.Pattern[str] | None = None  # of HTML
        self._columns = 0  # of a table

    def read(self) -> Iterator[Block]:
        """Block by block: all of them at once would take many times the size of the text."""
        front = _FRONT.match(self._text)
        position = front.end() if front and _KEY.search(front[2]) else 0
        while position < len(self._text):
            found = _LINE.match(self._text, position)
            assert found is not None
            end = position + len(found[0].rstrip("\r\n"))
            self._read_line(_Line(self._text, position, end))
            position = found.end()
            yield from self._found
            self._found.clear()
        self._close_leaf()
        yield from self._found

    def _read_line(self, line: _Line) -> None:
        matched = self._match_containers(line)
        here = matched == len(self._containers)
        if here and self._goes_on(line):
            return
        if not line.blank:
            for container in self._containers:
                container.fresh = False
        while not line.blank:
            here = matched == len(self._containers)
            if line.indent >= 4:
                if self._leaf != "paragraph":
                    self._close(matched)
                    self._leaf = "code"
                    return
                break
            in_paragraph = here and self._leaf == "paragraph"
            if in_paragraph and self._start_table(line):
                return
            new = self._container_at(line, in_paragraph) if matched < MAX_DEPTH else None
            if new is not None:
                self._close(matched)
                self._containers.append(new)
                matched += 1
            elif self._leaf_at(line, matched, in_paragraph):
                return
            else:
                break
        if line.blank:
            self._close(matched)
        elif self._leaf == "paragraph":  # which continues even without the markers of its containers
            self._lines.append((line.next, line.end))
            if len(self._lines) > MAX_IN_PARAGRAPH:
                start = self._lines[0][0]
                raise TooManyMarks(self._text[start : start + 40])
        elif self._leaf == "table" and here:
            self._add_row(line.next, line.end)
        else:
            self._close(matched)
            self._leaf, self._lines = "paragraph", [(line.next, line.end)]

    def _match_containers(self, line: _Line) -> int:
        for number, container in enumerate(self._containers):
            if container.quote:
                if line.indent > 3 or line.blank or self._text[line.next] != ">":
                    return number
                line.skip_to(line.next + 1)
                line.skip_columns(1)
            elif line.blank:
                if container.fresh:
                    return number
            elif line.indent >= container.indent:
                line.skip_columns(container.indent)
            else:
                return number
        return len(self._containers)

    def _goes_on(self, line: _Line) -> bool:
        """Whether the line belongs to the open leaf without being text."""
        if self._leaf == "fence":
            rest = self._text[line.next : line.end].rstrip(" \t")
            if line.indent <= 3 and rest.startswith(self._fence) and not rest.strip(self._fence[0]):
                self._leaf = ""
            return True
        if self._leaf == "html":
            if self._end is None and line.blank:
                self._close_leaf()
                return True
            self._lines[1:] = [(line.at, line.end)]
            if self._end is not None and self._end.search(self._text, line.at, line.end):
                self._close_leaf()
            return True
        if self._leaf == "formula":
            if line.blank or "$$" in self._text[line.at : line.end]:
                self._leaf = ""
            return True
        if self._leaf == "code" and line.indent < 4 and not line.blank:
            self._leaf = ""
        return self._leaf == "code"

    def _close(self, matched: int) -> None:
        """Ends the open leaf and the containers that the line does not belong to."""
        self._close_leaf()
        del self._containers[matched:]

    def _close_leaf(self) -> None:
        if self._leaf == "paragraph":
            self._add("paragraph", self._without_definitions())
        elif self._leaf == "html" and not any(container.quote for container in self._containers):
            self._add("html", [(self._lines[0][0], self._lines[-1][1])])
        self._leaf, self._lines = "", []

    def _add(self, kind: str, lines: list[Span], role: str = "") -> None:
        if lines:
            start, end = lines[-1]
            last = (start, start + len(self._text[start:end].rstrip(" \t")))
            note = "note" if any(container.note for container in self._containers) else ""
            self._found.append(Block(kind, (*lines[:-1], last), role or note))

    def _without_definitions(self) -> list[Span]:
        lines = self._lines
        if not self._text.startswith("[", lines[0][0]):
            return lines
        content = "\n".join(self._text[start:end] for start, end in lines)
        position = 0
        while (found := _DEFINITION.match(content, position)) and found[1].strip() and not found[1].startswith("^"):
            self.labels.add(label(found[1]))
            position = found.end()
        return lines[content.count("\n", 0, position) :] if position < len(content) else []

    def _container_at(self, line: _Line, in_paragraph: bool) -> _Container | None:
        if self._text[line.next] == ">":
            line.skip_to(line.next + 1)
            line.skip_columns(1)
            return _Container(quote=True)
        if found := line.match(_NOTE):
            line.skip_to(found.end())
            return _Container(quote=False, note=True, indent=4)
        if line.match(_ADMONITION):
            line.skip_to(line.end)
            return _Container(quote=False, indent=4)
        found = line.match(_ITEM)
        if found is None or line.match(_RULE):
            return None
        rest = self._text[found.end() : line.end].strip(" \t")
        if in_paragraph and (not rest or (found[2] and int(found[2]) != 1)):
            return None  # such a number at the beginning of a line is not a list
        before, width = line.indent, len(found[0])
        line.skip_to(found.end())
        space = 1 if not rest or line.indent > 4 else line.indent
        line.skip_columns(space)
        return _Container(quote=False, indent=before + width + space, fresh=not rest)

    def _leaf_at(self, line: _Line, matched: int, in_paragraph: bool) -> bool:
        """Whether the line is, or begins, something other than a paragraph."""
        if found := line.match(_HEADING):
            self._close(matched)
            end = line.end
            if hashes := _CLOSING_HASHES.search(self._text[found.end() : end]):
                end = found.end() + hashes.start()
            self._add("heading", [(found.end(), end)] if end > found.end() else [], "heading")
        elif found := line.match(_FENCE):
            self._close(matched)
            self._leaf, self._fence = "fence", found[0]
        elif self._text[line.next] == "<" and self._html_at(line, matched, in_paragraph):
            pass
        elif in_paragraph and line.match(_UNDERLINE) and (lines := self._without_definitions()):
            self._add("paragraph", lines, "heading")
            self._leaf, self._lines = "", []
        elif line.match(_RULE):
            self._close(matched)
        elif found := line.match(_DIRECTIVE):
            self._close(matched)
            self._leaf = "formula" if found[0].count("$$") == 1 else ""
        else:
            return False
        return True

    def _html_at(self, line: _Line, matched: int, in_paragraph: bool) -> bool:
        ends = [end for start, end in _HTML if line.match(start)]
        if not ends and (in_paragraph or not line.match(_LONE_TAG)):
            return False
        end = ends[0] if ends else None
        self._close(matched)
        self._leaf, self._lines, self._end = "html", [(line.next, line.end)], end
        if end is not None and end.search(self._text, line.next, line.end):
            self._close_leaf()
        return True

    def _start_table(self, line: _Line) -> bool:
        """Whether this is the line under the head of a table; the head is the last line of the paragraph."""
        if not line.match(_DELIMITERS):
            return False
        head, under = self._lines[-1], (line.next, line.end)
        if self._text.count("|", head[0], line.end) > 2 * MAX_IN_PARAGRAPH:  # before they are cells
            raise TooManyMarks(self._text[head[0] : head[0] + 40])
        cells = _cells(self._text, *under)
        if not all(_DELIMITER.match(self._text, *cell) for cell in cells):
            return False
        if "|" not in self._text[head[0] : line.end] or len(_cells(self._text, *head)) != len(cells):
            return False
        self._lines.pop()
        if self._lines:
            self._close_leaf()
        self._leaf, self._columns = "table", len(cells)
        self._add_row(*head)
        return True

    def _add_row(self, start: int, end: int) -> None:
        for cell in _cells(self._text, start, end, self._columns)[: self._columns]:
            first = cell[0] + len(self._text[cell[0] : cell[1]]) - len(self._text[cell[0] : cell[1]].lstrip(" \t"))
            if first < cell[1]:
                self._add("cell", [(first, cell[1])], "cell")


def _cells(text: str, start: int, end: int, most: int | None = None) -> list[Span]:
    """The cells of a row, the first `most` of them at least."""
    end = start + len(text[start:end].rstrip(" \t"))
    found = _PIPE.finditer(text, start, end)
    pipes = [pipe.start() for pipe in islice(found, None if most is None else most + 2)]
    starts = [start, *(pipe + 1 for pipe in pipes)]
    ends = [*pipes, end]
    cells = list(zip(starts, ends, strict=True))
    if pipes and pipes[0] == start:
        cells = cells[1:]
    if len(cells) > 1 and pipes[-1] == end - 1:
        cells = cells[:-1]
    return cells
