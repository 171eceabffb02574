"""A tokenizer for tagged corpora.

Such files are rarely well-formed (tags in any case, attributes without quotes, bare `&`, stray control characters),
so they are not given to an XML parser: a small tokenizer takes tags and text as they come. It expands no entities but
the built-in ones, so a file cannot blow up in memory.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from docnmt.base.lines import Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import Reading

# No honest tag, comment or declaration is longer.
MAX_TAG = 1 << 20

# A quote that is not closed before the next tag is a stray one and stands for itself.
_TAG = re.compile(r"""<(/?)([A-Za-z][^\s/<>"']*+)((?:"[^"<]*+"|'[^'<]*+'|[^<>"']|"(?=[^"<]*<)|'(?=[^'<]*<))*+)>""")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))")
_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_SPACES = re.compile(r"[ \t\r\n]+")


class Tag(NamedTuple):
    name: str  # lower case
    closing: bool
    empty: bool  # <x/>
    attributes: dict[str, str]
    line: int


class TokenError(Exception):
    """The markup cannot be followed any further."""

    def __init__(self, kind: str, problem: str, line: int):
        super().__init__(problem)
        self.kind, self.problem, self.line = kind, problem, line


def decode_references(text: str) -> str:
    """`&amp;` and the like as characters; what is no known reference stays as it is."""
    return _REFERENCE.sub(_decoded, text) if "&" in text else text


def _decoded(reference: re.Match[str]) -> str:
    name = reference[1]
    if not name.startswith("#"):
        return html.unescape(reference[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # A control character spelt out must be found as one later; html.unescape would drop it in silence.
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def tokens(file: InputFile) -> Iterator[Tag | str]:
    """Tags and the text between them, in pieces, with references still encoded."""
    buffer, line = "", 1
    for chunk in file.chunks():
        buffer += chunk
        position = 0
        while position < len(buffer):
            start = buffer.find("<", position)
            if start < 0:
                start = len(buffer)
            if start > position:
                yield buffer[position:start]
            line += buffer.count("\n", position, start)
            position = start
            if position == len(buffer):
                break
            end, token = _token_at(buffer, position, line)
            if end < 0:
                if len(buffer) - position > MAX_TAG:
                    raise TokenError("long line", f"a tag of more than {MAX_TAG:,} characters", line)
                break
            if token is not None:
                yield token
            line += buffer.count("\n", position, end)
            position = end
        buffer = buffer[position:]
    if buffer:
        raise TokenError("bad markup", "the file ends inside a tag", line)


def _token_at(buffer: str, start: int, line: int) -> tuple[int, Tag | str | None]:
    """The token at the `<` at `start` and where it ends; -1 where more text is needed to tell."""
    if buffer.startswith("<!", start):
        return _declaration_at(buffer, start, line)
    if buffer.startswith("<?", start):
        return _end_of(buffer, start, ">"), None  # SGML has no second question mark
    following = buffer[start + 1 : start + 3].removeprefix("/")[:1]
    if not following:
        return -1, None
    if not (following.isascii() and following.isalpha()):
        return start + 1, "&lt;"  # a bare less-than sign
    found = _TAG.match(buffer, start)
    if found is None:
        return (start + 1, "&lt;") if buffer.find("<", start + 1) >= 0 else (-1, None)
    attributes = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(found[3])}
    return found.end(), Tag(found[2].lower(), bool(found[1]), found[3].endswith("/"), attributes, line)


def _declaration_at(buffer: str, start: int, line: int) -> tuple[int, str | None]:
    opening = buffer[start : start + 9].upper()
    if opening.startswith("<!--"):
        return _end_of(buffer, start + 4, "-->"), None
    if opening == "<![CDATA[":
        end = _end_of(buffer, start, "]]>")
        return end, buffer[start + 9 : end - 3].replace("&", "&amp;") if end >= 0 else None
    if len(opening) < 9:
        return -1, None
    if not opening[2].isalpha():
        return start + 1, "&lt;"
    if opening.startswith("<!ENTITY"):
        raise TokenError("entity declaration", "an entity declaration", line)
    # Stops at the [ of an inner subset, so that the declarations in it are seen one by one.
    ends = [end for end in (_end_of(buffer, start, ">"), _end_of(buffer, start, "[")) if end >= 0]
    return min(ends, default=-1), None


def _end_of(buffer: str, start: int, closing: str) -> int:
    found = buffer.find(closing, start)
    return found + len(closing) if found >= 0 else -1


def sentence(pieces: list[str], limit: int) -> Line:
    """The text of a segment on one line, or what is wrong with it."""
    text = _SPACES.sub(" ", decode_references("".join(pieces))).strip(" ")
    return find_flaw(text, limit) or text


def followed(file: InputFile, reading: Reading) -> Iterator[Tag | str]:
    """The tokens of a file; where they cannot be followed any further that is reported and they end."""
    try:
        yield from tokens(file)
    except TokenError as error:
        if error.kind == "long line":
            flaw = Flaw(error.kind, error.problem, "Close the tag, or remove it.", "")
            reading.flaw(flaw, file=file.name, line=error.line)
        else:
            reading.bad(error.kind, error.problem, file=file.name, line=error.line)
