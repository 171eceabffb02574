"""HTML and XHTML pages: blocks are segments, inline tags are marks; code, scripts and drawings are left alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePath

from docnmt.base.errors import DocnmtError
from docnmt.documents.html_tokens import (
    BLOCKS,
    Attribute,
    Token,
    Tokens,
    attributes,
    decode,
    line_of,
    match,
    names,
    tokens,
)
from docnmt.documents.inline import TEMPLATE, Passage, Piece, collapsed, is_readable, passage_of, plain, written
from docnmt.documents.outline import Inline, Outline
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Change, Place, Room, Segment, Span, SplicedFile
from docnmt.text.scripts import primary

LEFT_ALONE = names(
    "script style textarea pre code kbd samp var svg math rt rp xmp iframe noembed noframes object applet"
)
_WIDE = names("img input code kbd samp var svg math object video audio canvas meter progress embed")
_READ_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "aria-description")
_ATTRIBUTES = names("translate class lang xml:lang name property content label type value href role epub:type")
_ATTRIBUTES |= {*_READ_ATTRIBUTES}
_READ_METAS = names("description og:title og:description twitter:title twitter:description")
_NOT_PLAIN = re.compile(
    rf"{TEMPLATE.pattern}|(?P<reference>&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]{{1,31}};?))"
)
_HARD_SPACE = re.compile(r"&(?:nbsp|#160|#[xX][aA]0);")
_ROLES = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading") | {"td": "cell", "th": "cell", "title": "title"}
_NOTE = re.compile(r"\W*\d{0,4}\W*")
_NOTE_LINKS = names("noteref doc-noteref backlink doc-backlink")
_LINK = re.compile(r"<a[\s>]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Page:
    """A page as text, and the way back to its bytes. What is written for `xml` has to be well-formed."""

    def __init__(self, data: bytes, name: str, xml: bool):
        self._data, self.name = data, name
        self._byte_order_mark, self.text, self.encoding = decode(data, name)
        self.xml = xml or self.text.lstrip().startswith("<?xml")

    def file(self, places: Callable[[], Iterable[Place | Change]], room: Room | None = None) -> SplicedFile:
        return SplicedFile(self._data, self.text, self.name, places, self._encoded, room)

    def _encoded(self, text: str) -> bytes:
        new = self._byte_order_mark + text.encode(self.encoding, "surrogateescape")
        outline = Outline({"http://www.w3.org/1999/xhtml": ""}, _inline)
        return outline.checked(self._data, new, self.name) if self.xml else new


def read(data: bytes, name: str, languages: tuple[str, str]) -> SplicedFile:
    return read_page(data, name, languages, xml=PurePath(name).suffix.lower() == ".xhtml")


def read_page(data: bytes, name: str, languages: tuple[str, str], xml: bool, room: Room | None = None) -> SplicedFile:
    page = Page(data, name, xml)
    return page.file(lambda: Reader(page.text, name, page.xml, page.encoding, languages).read(0, len(page.text)), room)


def places_in(text: str, name: str, start: int, end: int) -> Iterator[Place]:
    """The places of a piece of HTML inside another text."""
    found = Reader(text, name, False, "utf-8", ("", "")).read(start, end)
    return (place for place in found if isinstance(place, Place))


class Reader:
    """Finds the text of a page, or of a part of it."""

    def __init__(
        self,
        text: str,
        name: str,
        xml: bool,
        encoding: str,
        languages: tuple[str, str],
    ):
        self._text, self._name, self._xml = text, name, xml
        self._encoding, self._languages = encoding, languages
        self._hard_space = "\xa0"  # or however the page spells it
        self._pieces: list[Piece] = []  # of the current line
        self._later: list[Place] = []  # the attributes in the line, which come after it
        self._role = ""  # of the line, by the block it is in

    def read(self, start: int, end: int) -> Iterator[Place | Change]:
        if hard_space := _HARD_SPACE.search(self._text, start, end):
            self._hard_space = hard_space[0]
        # Read twice, as what a tag means depends on where its element ends.
        ends, partners = match(tokens(self._text, self._name, self._xml, start, end), self._name, self._xml)
        found = Tokens(tokens(self._text, self._name, self._xml, start, end))
        number = 0
        for token in found:
            following = number + 1
            self._count()
            if token.kind in ("text", "cdata"):
                self._read_text(token)
            elif token.kind == "open":
                read = attributes(self._text, token, _ATTRIBUTES)
                alone = token.name in LEFT_ALONE or _says_no(read)
                if not alone and not self._is_note(token, read, found, partners[number] - number):
                    yield from self._read_tag(token, read, number + 1 if partners[number] else 0)
                else:
                    following = ends[number]
                    last = found.skip_to(token, following - number - 1)
                    if alone:
                        yield from self._leave_alone(token, last.end, read)
                    else:
                        self._pieces.append(Piece(token.start, last.end, wide=True))
            elif token.name in BLOCKS:
                yield from self._end_line()
                self._role = "" if token.name in _ROLES or token.name == "table" else self._role
            elif token.kind != "raw":
                pair = partners[number]
                self._pieces.append(Piece(token.start, token.end, pair=pair, closing=pair > 0))
            number = following
        yield from self._end_line()

    def _count(self) -> None:
        """Called while reading: the pieces of a line take many times its size."""
        if len(self._pieces) + len(self._later) > 2 * MAX_IN_PARAGRAPH:
            where = f"{self._name}, line {line_of(self._text, self._pieces[0].start)}"
            raise DocnmtError(f"{where}: more than {MAX_IN_PARAGRAPH:,} tags in one paragraph\n  Split the paragraph.")

    def _read_text(self, token: Token) -> None:
        if token.kind == "cdata":
            content = self._text[token.start + 9 : token.end].removesuffix("]]>")
            self._pieces.append(Piece(token.start, token.end, content))
            return
        end = token.start
        for found in _NOT_PLAIN.finditer(self._text, token.start, token.end):
            self._pieces += plain(self._text, end, found.start())
            if found["reference"]:
                character = html.unescape(found[0])
                self._pieces.append(Piece(*found.span(), "" if character == "\xad" else character))
            else:
                self._pieces.append(Piece(*found.span(), wide=True))
            end = found.end()
            self._count()
        self._pieces += plain(self._text, end, token.end)

    def _leave_alone(self, token: Token, end: int, read: dict[str, Attribute]) -> Iterator[Place]:
        """An element that is not translated, though attributes of its tag may be."""
        places = [] if _says_no(read) else self._attribute_places(token, read)
        if token.name in BLOCKS:
            yield from self._end_line(*places)
        else:
            self._later += places
            self._pieces.append(Piece(token.start, end, wide=token.name not in ("rt", "rp")))

    def _is_note(self, tag: Token, read: dict[str, Attribute], found: Tokens, count: int) -> bool:
        """Whether this is the number of a note, or a number in super- or subscript: no words. The element has so many
        tokens after its tag."""
        inside = found.next(count) if tag.name in ("sup", "sub", "a") and 1 < count < 12 else []
        if not inside or any(token.name in BLOCKS for token in inside):
            return False
        text = html.unescape("".join(self._text[t.start : t.end] for t in inside if t.kind == "text")).strip()
        if not _NOTE.fullmatch(text):
            return False
        if tag.name != "a" or (text.startswith("[") and text.endswith("]")):
            return True
        if not text or _says(read, "epub:type", "role") & _NOTE_LINKS:
            return bool(text)
        # Of links to a place, not to a page, an arrow is always one; a number only where it clings to the word before,
        # as "on page <a>12</a>" is a part of the sentence.
        clings = self._text[tag.start - 1 : tag.start].strip(" \t\r\n") not in ("", ">")
        return "href" in read and "#" in read["href"].value and (clings or not any(map(str.isdigit, text)))

    def _read_tag(self, token: Token, read: dict[str, Attribute], pair: int) -> Iterator[Place | Change]:
        places = self._attribute_places(token, read)
        yield from self._language_changes(token, read)
        if token.name in BLOCKS:
            yield from self._end_line(*places)
            self._role = _ROLES.get(token.name, self._role)
            return
        if token.name == "br" and self._follows_break():
            yield from self._end_line()  # an empty line separates paragraphs
        self._later += places
        wide, breaks = token.name in _WIDE, token.name == "br"
        self._pieces.append(Piece(token.start, token.end, pair=pair, wide=wide, breaks=breaks))

    def _follows_break(self) -> bool:
        for piece in reversed(self._pieces):
            if piece.text is None or piece.text.strip():
                return piece.breaks
        return False

    def _end_line(self, *places: Place) -> Iterator[Place]:
        """`places` come after it."""
        passage = passage_of(self._text, self._pieces, self._role)
        line = [passage.place(partial(self._written, passage))] if passage else []
        for place in (*line, *self._later, *places):
            if _SURROGATE.search(place.segments[0].text):
                where = f"{self._name}, line {line_of(self._text, place.start)}"
                problem = f"it has bytes that are not valid {self._encoding.upper()}"
                raise DocnmtError(f"{where}: {problem}\n  Save the page as UTF-8.")
            yield place
        self._pieces, self._later = [], []

    def _written(self, passage: Passage, new: Segment) -> list[str | Span]:
        return written(passage.pieces(new, self._is_link), self._escape)

    def _is_link(self, piece: Piece) -> bool:
        tags = self._text[piece.start : piece.end].lower()
        return bool(_LINK.match(tags)) or (not piece.pair and "<a " in tags)

    def _attribute_places(self, token: Token, read: dict[str, Attribute]) -> list[Place]:
        places: list[Place] = []
        role = "picture" if token.name in ("img", "area") else ""
        for attribute in _read_attributes(token.name, read):
            text = collapsed(html.unescape(attribute.value)).strip()
            if is_readable(text):
                quoted = partial(self._quoted, attribute.quote or '"')
                places.append(Place.of(attribute.start, attribute.end, Segment(text, role=role), quoted))
        return places

    def _quoted(self, quote: str, new: Segment) -> list[str]:
        escaped = self._escape(new.text).replace(quote, "&quot;" if quote == '"' else "&#39;")
        return [f"{quote}{escaped}{quote}"]

    def _escape(self, text: str) -> str:
        text = html.escape(text, quote=False).replace("\xa0", self._hard_space)
        return text.encode(self._encoding, "xmlcharrefreplace").decode(self._encoding)

    def _language_changes(self, token: Token, read: dict[str, Attribute]) -> Iterator[Change]:
        """Where the page, or a part of it, is declared to be in the source language, declares the target language."""
        source, target = (language.replace("_", "-") for language in self._languages)
        if not target:
            return
        whole = token.name == "html"
        for key in ("lang", "xml:lang"):
            if key in read:
                old = read[key].value
                same = primary(old) == primary(source)
                if read[key].start < read[key].end and (whole or (source and same)):
                    yield Change(read[key].start, read[key].end, (f'"{target}"',))
        if whole and "lang" not in read:
            after = token.start + 1 + len(token.name)
            yield Change(after, after, (f' lang="{target}"',))


def _inline(name: str, attributes: Mapping[str, str]) -> Inline:
    return Inline.ALONE if name in BLOCKS else Inline.AROUND


def _says_no(read: dict[str, Attribute]) -> bool:
    said = read["translate"].value.lower() if "translate" in read else ""
    return said == "no" or ("class" in read and "notranslate" in read["class"].value.split())


def _says(read: dict[str, Attribute], *keys: str) -> set[str]:
    return {word for key in keys if key in read for word in read[key].value.lower().split()}


def _read_attributes(name: str, read: dict[str, Attribute]) -> list[Attribute]:
    """The attributes of a tag that are shown to a reader."""
    names: tuple[str, ...] = _READ_ATTRIBUTES
    if name == "meta":
        about = next((read[key].value.lower() for key in ("name", "property") if key in read), "")
        names = ("content",) if about in _READ_METAS else ()
    elif name in ("link", "style", "script", "param"):
        names = ()  # their titles are names
    elif name in ("option", "optgroup", "track"):
        names = (*names, "label")
    elif name == "input" and "type" in read and read["type"].value.lower() in ("submit", "button", "reset"):
        names = (*names, "value")
    return sorted(read[key] for key in names if key in read)
