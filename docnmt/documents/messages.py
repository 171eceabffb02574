"""A message of a program, as in catalogues: its lines and columns, tags and entities.

Hard line breaks and tabs split a message into segments; a line that merely continues in the next one is joined with it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from docnmt.documents.inline import nested
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Mark, Place, Segment, Span, Splice, TooManyMarks
from docnmt.text.scripts import LETTER

# Matched only from the first of several spaces: otherwise a long run of them would take quadratic time.
_BREAK = re.compile(r"(?<![ \xa0])[ \xa0]*+[\n\t\r\v\f\a\b][\s\a\b]*")
_INSIDE = re.compile(
    r"(?P<wrap>\n)"
    r"|(?P<tag></?[A-Za-z0-9][\w:.-]*(?:\s[^<>]*)?/?>)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)"
)
_INSIDE_LABEL = re.compile(_INSIDE.pattern + r"|(?P<key>(?<!\w)[_&](?=[^\W\d_])|(?<=[^\W\d_])&(?=[a-zß-ÿ]))")
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


class Message(NamedTuple):
    """A string and the segments in it."""

    text: str
    places: Sequence[Place]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(segment for place in self.places for segment in place.segments)

    def written(self, translations: Sequence[Segment]) -> str:
        """The string with these in place of its segments."""
        pairs = zip(self.places, translations, strict=True)
        return Splice(self.text, (change for place, new in pairs for change in place.changes(new))).whole()


def message(text: str, *, translate: bool = True) -> Message:
    lines: list[Place] = []
    start = 0
    for found in _BREAK.finditer(text):
        if not _goes_on(text, start, found):
            _add_line(lines, text, start, found.start(), translate)
            start = found.end()
    _add_line(lines, text, start, len(text), translate)
    return Message(text, lines)


def _goes_on(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether a line was broken because it was full, in the middle of a sentence."""
    at = found.start()
    long = at - max(start, text.rfind("\n", start, at) + 1) >= _FULL_LINE
    following = text[found.end() : found.end() + 1]
    return long and found[0].lstrip(" ") == "\n" and text[at - 1] not in ".!?:;" and following.islower()


def _add_line(lines: list[Place], text: str, start: int, end: int, translate: bool) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    raw = text[start:end]
    is_label = len(raw) <= _LABEL and raw.count("_") + raw.count("&") == 1
    words, marks, entities = plain(raw, _INSIDE_LABEL if is_label else _INSIDE)
    if LETTER.search(_NO_TEXT.sub("", words)) and not _ADDRESS.fullmatch(words):
        lines.append(Place.of(start, end, Segment(words, marks, translate), lambda new: [_written(new, entities)]))
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


# ---- tags as marks ----

_TAG_NAME = re.compile(r"</?([A-Za-z0-9][\w:-]*)")
_FURTHEST = 100  # how many tags to look back for a partner: a text of nothing but opening tags would take long


def tag_pairs(codes: Iterable[str]) -> Iterator[Span]:
    """The numbers of `<b>` and of the `</b>` that closes it, for each two codes that are such tags."""
    waiting: list[tuple[str, int]] = []  # name and number of the tags that are open
    for number, code in enumerate(codes):
        name = _TAG_NAME.match(code)
        if name is None or code.endswith("/>"):
            continue
        if not code.startswith("</"):
            waiting.append((name[1], number))
            continue
        nearest = range(len(waiting) - 1, max(-1, len(waiting) - _FURTHEST), -1)
        at = next((at for at in nearest if waiting[at][0] == name[1]), None)
        if at is not None:
            yield waiting[at][1], number
            del waiting[at:]  # tags opened inside and never closed stand alone


def paired(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks with those whose codes are tags that belong together made pairs; the others stand alone."""
    found = list(marks)
    for pair, (opening, closing) in enumerate(tag_pairs(mark.code for mark in found), 1):
        found[opening] = replace(found[opening], pair=pair)
        found[closing] = replace(found[closing], pair=pair, closing=True)
    return tuple(found)


def with_marks(text: str, marks: Iterable[Mark], spelt: Callable[[str], str]) -> str:
    """The text as `spelt` writes it, with the code of every mark in its place."""
    parts: list[str] = []
    start = 0
    for mark in nested(marks):
        at = min(max(mark.at, start), len(text))
        parts += spelt(text[start:at]), mark.code
        start = at
    return "".join([*parts, spelt(text[start:])])
