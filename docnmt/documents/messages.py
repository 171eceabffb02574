"""A message of a program, as in catalogues: its lines and columns, tags and entities.

Hard line breaks and tabs split a message into segments; a line that merely continues in the next one is joined with it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from docnmt.documents.inline import paired, with_marks
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Change, Mark, Segment, Splice, TooManyMarks

# Matched only from the first of several spaces: otherwise a long run of them would take quadratic time.
_BREAK = re.compile(r"(?<![ \xa0])[ \xa0]*+[\n\t\r\v\f\a\b][\s\a\b]*")
_INSIDE = re.compile(
    r"(?P<wrap>\n)"
    r"|(?P<tag></?[A-Za-z0-9][\w:.-]*(?:\s[^<>]*)?/?>)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)"
)
_INSIDE_LABEL = re.compile(_INSIDE.pattern + r"|(?P<key>(?<!\w)[_&](?=[^\W\d_])|(?<=[^\W\d_])&(?=[a-zß-ÿ]))")
_LETTER = re.compile(r"[^\W\d_]")
# Placeholders and command-line options: their letters are not text.
_NO_TEXT = re.compile(
    r"%(?:\(\w+\))?[-+ #0-9.*$']*(?:hh|h|ll|l|z|j|t|L)?[A-Za-z]|\{[^{}]*\}|\$\w+\$|(?<![\w-])--?[A-Za-z][\w-]*"
)
# A link or an address by itself is not text.
_ADDRESS = re.compile(r"(?:\w+://|www\.|mailto:)\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)++")
# Only a short label marks a key to press, as in "_Open" or "E&xit".
_LABEL = 60
# A shorter line was broken on purpose.
_FULL_LINE = 40


@dataclass(frozen=True, slots=True)
class _Line:
    """A part of the string that is a segment."""

    start: int
    end: int
    segment: Segment
    entities: dict[int, str]  # how the characters that were entities are written


@dataclass(frozen=True, slots=True)
class Message:
    """A string and the segments in it."""

    text: str
    lines: tuple[_Line, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(line.segment for line in self.lines)

    def written(self, translations: Sequence[Segment]) -> str:
        """The string with these in place of its segments."""
        changes = [
            Change(line.start, line.end, (_written(new, line.entities),))
            for line, new in zip(self.lines, translations, strict=True)
            if not new.reads_as(line.segment)
        ]
        return Splice(self.text, changes).whole() if changes else self.text


def message(text: str, *, translate: bool = True) -> Message:
    lines: list[_Line] = []
    start = 0
    for found in _BREAK.finditer(text):
        if not _goes_on(text, start, found):
            _add_line(lines, text, start, found.start(), translate)
            start = found.end()
    _add_line(lines, text, start, len(text), translate)
    return Message(text, tuple(lines))


def _goes_on(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether a line was broken because it was full, in the middle of a sentence."""
    at = found.start()
    long = at - max(start, text.rfind("\n", start, at) + 1) >= _FULL_LINE
    following = text[found.end() : found.end() + 1]
    return long and found[0].lstrip(" ") == "\n" and text[at - 1] not in ".!?:;" and following.islower()


def _add_line(lines: list[_Line], text: str, start: int, end: int, translate: bool) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    raw = text[start:end]
    is_label = len(raw) <= _LABEL and raw.count("_") + raw.count("&") == 1
    words, marks, entities = plain(raw, _INSIDE_LABEL if is_label else _INSIDE)
    if _LETTER.search(_NO_TEXT.sub("", words)) and not _ADDRESS.fullmatch(words):
        lines.append(_Line(start, end, Segment(words, marks, translate), entities))
    if len(lines) > MAX_IN_PARAGRAPH:
        raise TooManyMarks(text[:40])


def plain(raw: str, pattern: re.Pattern[str]) -> tuple[str, tuple[Mark, ...], dict[int, str]]:
    """A string as text, marks, and the spelling of the characters that were entities.

    `pattern` finds what is not plain: a `space` that reads as one, a `wrap` where a line merely continues in the next
    one, an `entity`; everything else becomes a mark.
    """
    text = ""
    marks: list[Mark] = []
    entities: dict[int, str] = {}
    end = 0
    for found in pattern.finditer(raw):
        text += raw[end : found.start()]
        end = found.end()
        match found.lastgroup:
            case "space":
                text += "" if text.endswith(" ") else " "
            case "entity":
                character = html.unescape(found[0])
                text += character
                if len(character) == 1:
                    entities[ord(character)] = found[0]
            case group:
                text = text.rstrip(" ") + " " if group == "wrap" else text
                marks.append(Mark(len(text), found[0]))
                if len(marks) > MAX_IN_PARAGRAPH:  # checked while reading: they take many times their size
                    raise TooManyMarks(raw[:40])
    return text + raw[end:], paired(marks), entities


def _written(segment: Segment, entities: dict[int, str]) -> str:
    written = with_marks(segment.text, segment.marks, lambda text: text.translate(entities))
    # A line break includes the space that it stands for.
    return re.sub("(?<! ) *+\n *", "\n", written) if any(mark.code == "\n" for mark in segment.marks) else written
