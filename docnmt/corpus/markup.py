"""Tagged files: their tags, and the text of the elements asked for.

Such files are rarely well-formed (tags in any case, attributes without quotes, bare `&`, stray control characters),
so they are not given to an XML parser: a small tokenizer takes tags and text as they come. It expands no entities but
the built-in ones, so a file cannot blow up in memory.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from docnmt.base.lines import InputFile, Line, find_flaw
from docnmt.corpus.rows import Reading

# No real tag, comment or declaration is longer.
MAX_TAG = 1 << 20

# The next token of a text; no match means that more of the text is needed to tell.
_TOKEN = re.compile(
    r"""
    (?P<text>[^<]+)
    | <!--.*?-->
    | <!\[CDATA\[(?P<cdata>.*?)\]\]>
    | (?P<entity><!ENTITY)
    | <![a-z][^>[]*[>[]  # a declaration, as far as the [ of an inner subset: those in it are seen one by one
    | <\?[^>]*>          # SGML has no second question mark
    | <(?P<closing>/?)(?P<name>[a-z][^\s/<>"']*+)
      # A quote that is not closed before the next tag is an ordinary character.
      (?P<rest>(?:"[^"<]*+"|'[^'<]*+'|[^<>"']|"(?=[^"<]*<)|'(?=[^'<]*<))*+)>
    | (?P<bare><)(?!/?\Z|!.{0,6}\Z|!--|!\[CDATA\[|![a-z]|\?|/?[a-z][^<]*\Z)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE | re.ASCII,
)
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
    """Decodes `&amp;` and the like; unknown references stay as they are."""
    return _REFERENCE.sub(_decoded, text) if "&" in text else text


def _decoded(reference: re.Match[str]) -> str:
    name = reference[1]
    if not name.startswith("#"):
        return html.unescape(reference[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # Control characters are kept, to be reported later; html.unescape would silently drop them.
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def tokens(file: InputFile) -> Iterator[Tag | str]:
    """Tags and the text between them, in pieces, with references still encoded."""
    buffer, line = "", 1
    for chunk in file.chunks():
        buffer += chunk
        position = 0
        while found := _TOKEN.match(buffer, position):
            position = found.end()
            if found["text"]:
                yield found["text"]
            elif found["bare"]:
                yield "&lt;"
            elif found["cdata"]:
                yield found["cdata"].replace("&", "&amp;")
            elif found["entity"]:
                raise TokenError("entity declaration", "an entity declaration", line)
            elif found["name"]:
                attributes = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(found["rest"])}
                yield Tag(found["name"].lower(), bool(found["closing"]), found["rest"].endswith("/"), attributes, line)
            line += found[0].count("\n")
        buffer = buffer[position:]
        if len(buffer) > MAX_TAG:
            raise TokenError("long line", f"a tag of more than {MAX_TAG:,} characters", line)
    if buffer:
        raise TokenError("bad markup", "the file ends inside a tag", line)


class Text(NamedTuple):
    """The text of an element, on one line, or what is wrong with it."""

    element: Tag
    content: Line


def elements(
    file: InputFile,
    reading: Reading,
    texts: Container[str],
    *,
    ends: Container[str] = (),
    codes: Container[str] = (),
    aside: Container[str] = (),
    sgml: bool = False,
) -> Iterator[Tag | Text]:
    """All tags of a file but those inside `texts`, which are elements that come whole, when they end.

    A tag of `ends` ends a text, too; if it had no end tag, then in SGML it is good all the same and elsewhere dropped.
    What is in `codes` is no part of a text, and what is in elements `aside` is passed over. Where the markup cannot be
    followed any further that is reported and reading ends.
    """
    text: Tag | None = None
    pieces: list[str] = []
    size = inside_codes = inside_aside = 0
    try:
        for token in tokens(file):
            if isinstance(token, str):
                # References make text at most ten times longer (&#x10FFFF;); past that it is too long whatever it says.
                if text and not inside_codes and not inside_aside and size <= 10 * reading.limit:
                    pieces.append(token)
                    size += len(token)
                continue
            step = 0 if token.empty else -1 if token.closing else 1
            if token.name in aside:
                inside_aside = max(0, inside_aside + step)
            elif token.name in ends:
                inside_aside = 0
            if inside_aside:
                continue
            if token.name in texts or token.name in ends:
                if text and (sgml or (token.closing and token.name == text.name)):
                    yield Text(text, _one_line(pieces, reading.limit))
                text, pieces, size, inside_codes = None, [], 0, 0
                if token.name in ends:
                    yield token
                elif token.empty:
                    yield Text(token, "")
                elif not token.closing:
                    text = token
            elif token.name in codes:
                inside_codes = max(0, inside_codes + step)
            elif not text:
                yield token
    except TokenError as error:
        remedy = "Close the tag, or remove it." if error.kind == "long line" else ""
        reading.bad(error.kind, error.problem, file=file.name, line=error.line, remedy=remedy)


def _one_line(pieces: list[str], limit: int) -> Line:
    text = _SPACES.sub(" ", decode_references("".join(pieces))).strip(" ")
    return find_flaw(text, limit) or text
