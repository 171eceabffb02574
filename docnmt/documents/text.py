"""Plain text: a segment is a line, or a wrapped paragraph, which is wrapped again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Place, Segment, SplicedFile
from docnmt.text.scripts import LETTER, columns, unspaced

_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_PREFIX = re.compile(r"[\s>]*(?:[-*+•–—·#]+\s+)?")  # indentation, quote marks of mail, the bullet of an item
_ITEM = re.compile(r"[\s>]*(?:[-*+•–—·#]+|\(?\w{1,3}[.)])\s")
_ENDS = re.compile(r"""[.!?:;…。！？][\s"'”’»)\]」』]*$""")  # with the space before » in French
_NARROWEST, _WIDEST = 40, 120  # columns of wrapped text; beyond that lines just happen to be long
_PIECE = re.compile(r"\S+|\s+")


class _Line(NamedTuple):
    start: int
    end: int  # without what ends the line
    prefix: str
    text: str
    ending: str


def read(data: bytes, name: str, languages: tuple[str, str]) -> SplicedFile:
    text, encoding = decoded(data, name)
    if "\0" in text:
        raise DocnmtError(
            f"{name}: not plain text: it contains NUL bytes\n"
            "  Give it the right extension; if it is UTF-16, save it with a byte order mark or as UTF-8."
        )
    return SplicedFile(data, text, name, partial(_places, text), encoding.encoded)


def _places(text: str) -> Iterator[Place]:
    """Lines up to an empty one or a list item may be one paragraph; more lines than any paragraph has are not kept."""
    run: list[_Line] = []
    for found in _LINE.finditer(text):
        line = found[1]
        prefix = _PREFIX.match(line)
        assert prefix
        content = line[prefix.end() :].rstrip()
        if not content or len(run) == MAX_IN_PARAGRAPH or _ITEM.match(prefix[0] + content):
            yield from _in_run(run)
            run = []
        if content:
            start = found.start() + prefix.end()
            run.append(_Line(start, start + len(content), prefix[0], content, found[2]))
    yield from _in_run(run)


def _in_run(lines: list[_Line]) -> Iterator[Place]:
    longest = max((len(line.prefix) + len(line.text) for line in lines), default=0)
    width = max(map(_columns, lines)) if 0 < longest <= _WIDEST else 0
    if _is_wrapped(lines, width):
        text = lines[0].text
        for line in lines[1:]:
            joins = text[-1] in "-—" or (unspaced(text[-1]) and unspaced(line.text[0]))
            text += line.text if joins else f" {line.text}"
        yield from _place(lines, text, width)
    else:
        for line in lines:
            yield from _place([line], line.text, 0)


def _place(lines: Sequence[_Line], text: str, width: int) -> Iterator[Place]:
    """The paragraph of these lines, which is wrapped if it has a width; none if it has no words."""

    def wrapped(new: Segment) -> list[str]:
        if not width:
            return [new.text]
        first, prefix = columns(lines[0].prefix), lines[1].prefix
        return [f"{lines[0].ending}{prefix}".join(wrap(new.text, width - first, width - columns(prefix)))]

    if LETTER.search(text):
        yield Place.of(lines[0].start, lines[-1].end, Segment(text), wrapped)


def _is_wrapped(lines: list[_Line], width: int) -> bool:
    """Whether each line is full: the first word of the next would not fit. As a few lines may be full by chance,
    most must not end like sentences."""
    inner = lines[:-1]
    if not inner or not _NARROWEST <= width <= _WIDEST:
        return False
    if any(line.prefix != lines[1].prefix for line in lines[2:]):
        return False
    short = sum(_has_room(line, following, width) for line, following in zip(inner, lines[1:], strict=True))
    ended = sum(_ENDS.search(line.text) is not None for line in inner)
    return 10 * short <= len(inner) and 2 * ended < len(inner)


def _columns(line: _Line) -> int:
    text = line.prefix + line.text
    return len(text) if text.isascii() else columns(text)


def _has_room(line: _Line, following: _Line, width: int) -> bool:
    word = following.text.split(maxsplit=1)[0]
    used, first = _columns(line), following.text[0]
    return used + 2 <= width if unspaced(first) else used + 1 + columns(word) <= width


def wrap(text: str, first: int, width: int) -> list[str]:
    """Lines of at most this width; the first has a width of its own."""
    return [line.rstrip() for line in filled(_pieces(text), max(1, first), max(1, width))]


def filled(pieces: Iterable[str], first: int, width: int) -> list[str]:
    """Lines made of pieces: a line may end before any piece but a space; a piece that is too long gets its own line."""
    lines: list[str] = []
    line, used, limit = "", 0, first
    for piece in pieces:
        if piece.isspace():
            line, used = line + piece, used + len(piece)
            continue
        needed = columns(piece)
        if used + needed > limit and line.strip():
            lines.append(line)
            line, used, limit = "", 0, width
        line, used = line + piece, used + needed
    return [*lines, line]


def _pieces(text: str) -> Iterator[str]:
    """Words and spaces; a script without spaces may be broken before any character but a mark."""
    for found in _PIECE.finditer(text):
        if found[0].isascii():
            yield found[0]
            continue
        piece = ""
        for character in found[0]:
            if unspaced(character) and piece:
                yield piece
                piece = ""
            piece += character
        yield piece
