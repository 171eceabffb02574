"""XML files: elements with their places in the text, and translations written into these places only."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from io import StringIO
from xml.parsers import expat

from docnmt.base.errors import DocnmtError
from docnmt.documents.inline import Passage, Piece, has_letters, trim, written
from docnmt.documents.outline import Inline, Names, Outline, all_alone
from docnmt.documents.segment import MAX_IN_PARAGRAPH, MAX_NAMES, Change, Place, Room, Segment, Span, SplicedFile

MAX_DEPTH = 250  # of nested elements; the deepest tables in real documents have a few dozen levels
_MAX_TAG = 1 << 20  # bytes; expat reads it whole, with all its attributes
_CHUNK = 1 << 16  # all elements that end in it are in memory at once
_DECLARED = re.compile(rb"""^<\?xml(?=\s)[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
_BYTE_ORDER = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_ATTRIBUTE = re.compile(r"""\s([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(slots=True, eq=False)
class Text:
    """Characters as a reader sees them; one passage of text may come in several of these."""

    start: int
    text: str | None  # None: a comment, a processing instruction, or an entity that is declared nowhere
    end: int = -1


@dataclass(slots=True, eq=False)
class Element:
    """An element: `start` to `inner` is its start tag, `inner` to `outer` its content, `outer` to `end` its end tag."""

    name: str  # with the prefix that the reader gave to the namespace, whatever the file's own is
    attributes: dict[str, str]
    parent: Element | None
    start: int
    inner: int = -1
    outer: int = -1
    end: int = -1
    children: list[Element | Text] = field(default_factory=list)

    @property
    def elements(self) -> Iterator[Element]:
        return (child for child in self.children if isinstance(child, Element))

    @property
    def ancestors(self) -> Iterator[Element]:
        """This element and those around it."""
        element: Element | None = self
        while element:
            yield element
            element = element.parent

    def find(self, name: str) -> Element | None:
        return next((child for child in self.elements if child.name == name), None)

    def walk(self) -> Iterator[Element]:
        """This element and those inside it, in the order of the file."""
        yield self
        for child in self.elements:
            yield from child.walk()

    def text(self) -> str:
        """All text in it, at any depth."""
        return "".join(child.text() if isinstance(child, Element) else child.text or "" for child in self.children)


class XmlText:
    """The text of an XML file. `name` is the file's, for errors."""

    def __init__(self, data: bytes, name: str):
        self.data, self.name = data, name
        marked = next((codec for order, codec in _BYTE_ORDER.items() if data.startswith(order)), "")
        declared = _DECLARED.match(data.removeprefix(codecs.BOM_UTF8))
        self.codec = marked or (declared[1].decode() if declared else "utf-8")
        self.text = self._decoded(wide=bool(marked))
        self.root: Element | None = None  # without its content; known once elements were read

    def _decoded(self, wide: bool) -> str:
        """The text, which has to become the same bytes again; empty where the parser says what is wrong.

        The parser reads UTF-8, UTF-16 (`wide`) and what has one byte a character. Python knows other encodings, some of
        which take quadratic time."""
        try:
            is_read = wide or len(bytes(range(256)).decode(self.codec, "replace")) == 256
            text = self.data.decode(self.codec, "surrogateescape") if is_read else ""
        except (ValueError, LookupError):
            return ""
        if text and text.encode(self.codec, "surrogateescape") != self.data:
            raise self._unsupported()
        return text

    def _unsupported(self) -> DocnmtError:
        return DocnmtError(f"{self.name}: encoding {self.codec} is not supported\n  Save it as UTF-8.")

    def elements(self, wanted: Set[str], namespaces: Mapping[str, str]) -> Iterator[Element]:
        """The outermost elements with a wanted name, each with all that is in it, in the order of the file.

        `namespaces` gives the prefixes for names. The elements around a wanted one are known as its ancestors, without
        their contents.
        """
        builder = _Builder(self, wanted, namespaces)
        try:
            for start in range(0, max(len(self.data), 1), _CHUNK):
                last = start + _CHUNK >= len(self.data)
                builder.parser.Parse(self.data[start : start + _CHUNK], last)
                builder.check_tag(min(start + _CHUNK, len(self.data)))
                self.root = builder.root
                yield from builder.ready
                builder.ready.clear()
            builder.end(len(self.data))
        except expat.ExpatError as error:
            raise DocnmtError(
                f"{self.name}, line {error.lineno}: not well-formed XML ({expat.errors.messages[error.code]})\n"
                "  Open it in the program that made it and save it again."
            ) from error
        except (ValueError, LookupError) as error:
            raise self._unsupported() from error
        yield from builder.ready

    def tag_name(self, element: Element) -> str:
        """The name as it is in the file, with the file's own prefix."""
        return re.split(r"[\s/>]", self.text[element.start + 1 : element.inner], maxsplit=1)[0]

    def attribute(self, element: Element, name: str) -> Span | None:
        """Where the value of an attribute is, without its quotes. The name is as in the file."""
        for found in _ATTRIBUTE.finditer(self.text, element.start, element.inner):
            if found[1] == name:
                return found.span(2 if found[2] is not None else 3)
        return None

    def tag_end(self, element: Element) -> int:
        """Where a further attribute can be written into the start tag."""
        tag = self.text[element.start : element.inner]
        return element.start + len(tag.removesuffix(">").removesuffix("/"))


class _Builder:
    """Builds elements from what expat finds. Expat only says where something begins: there the previous thing ends."""

    def __init__(self, xml: XmlText, wanted: Set[str], namespaces: Mapping[str, str]):
        self.ready: list[Element] = []
        self.root: Element | None = None
        self._xml, self._wanted, self._names = xml, wanted, Names(namespaces)
        self._bytes = self._characters = 0  # how far the parser is
        self._around: list[Element] = []
        self._inside = 0  # how many of those are wanted, or inside a wanted one
        self._section: StringIO | None = None  # the text of an open CDATA section
        self._section_start = 0
        self._nodes = 0  # in the current wanted element
        self._unended: tuple[Element | Text, str] | None = None
        self.parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start_tag
        parser.EndElementHandler = self._end_tag
        parser.CharacterDataHandler = self._text
        for handler in ("CommentHandler", "ProcessingInstructionHandler", "SkippedEntityHandler"):
            setattr(parser, handler, lambda *_: self._text(None))
        parser.StartCdataSectionHandler = self._start_section
        parser.EndCdataSectionHandler = self._end_section
        parser.StartDoctypeDeclHandler = self._doctype

    def end(self, byte: int) -> int:
        """What came last ends at this byte; which character of the text that is."""
        passed = self._xml.data[self._bytes : byte].decode(self._xml.codec, "surrogateescape")
        self._bytes, self._characters = byte, self._characters + len(passed)
        if self._unended:
            last, place = self._unended
            setattr(last, place, self._characters)
            if place == "end" and isinstance(last, Element) and last.name in self._wanted and not self._inside:
                self.ready.append(last)
            self._unended = None
        return self._characters

    def check_tag(self, read: int) -> None:
        """Called when so many bytes were read: what began before and has not ended is a tag or a comment."""
        if read - self.parser.CurrentByteIndex > _MAX_TAG:
            problem = f"a tag or comment of more than {_MAX_TAG >> 20} MB"
            raise self._refused(problem, "No document needs one that long, so it is not read.")

    def _start_tag(self, name: str, attributes: dict[str, str]) -> None:
        here = self.end(self.parser.CurrentByteIndex)
        if len(self._around) >= MAX_DEPTH:
            problem = f"elements are nested more than {MAX_DEPTH} deep"
            raise self._refused(problem, "No document needs that many levels, so it is not read.")
        parent = self._around[-1] if self._around else None
        named = {self._names[key]: value for key, value in attributes.items()}
        element = Element(self._names[name], named, parent, here)
        if len(self._names) > MAX_NAMES:
            problem = f"elements and attributes have more than {MAX_NAMES:,} names"
            raise self._refused(problem, "No document needs that many, so it is not read.")
        self.root = self.root or element
        if self._inside:
            self._add(element)
        self._inside += bool(self._inside) or element.name in self._wanted
        self._around.append(element)
        self._unended = element, "inner"

    def _end_tag(self, name: str) -> None:
        here = self.end(self.parser.CurrentByteIndex)
        element = self._around.pop()
        element.outer = here
        self._inside -= bool(self._inside)
        self._nodes = self._nodes if self._inside else 0
        self._unended = element, "end"

    def _text(self, text: str | None) -> None:
        if self._section is not None:
            self._section.write(text or "")
            return
        here = self.end(self.parser.CurrentByteIndex)
        if self._inside:
            self._add(Text(here, text))

    def _start_section(self) -> None:
        """<![CDATA[ ... ]]> is one text: it is replaced with its delimiters."""
        self._section, self._section_start = StringIO(), self.end(self.parser.CurrentByteIndex)

    def _end_section(self) -> None:
        if self._section is not None and self._inside:
            self._add(Text(self._section_start, self._section.getvalue()))
        self._section = None

    def _add(self, child: Element | Text) -> None:
        self._nodes += 1
        if self._nodes > MAX_IN_PARAGRAPH:
            problem = f"more than {MAX_IN_PARAGRAPH:,} elements in one paragraph"
            raise self._refused(problem, "Split it into paragraphs.")
        self._around[-1].children.append(child)
        self._unended = child, "end"

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        # Entities that grow can only be declared there; a DTD that is only named is never fetched.
        if internal:
            problem = "the DOCTYPE has declarations, which can be used to fill up memory"
            raise self._refused(problem, "Remove what is between [ and ] in the DOCTYPE.")

    def _refused(self, problem: str, remedy: str) -> DocnmtError:
        return DocnmtError(f"{self._xml.name}, line {self.parser.CurrentLineNumber}: {problem}\n  {remedy}")


# ---- text inside elements ----

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPELLED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_SPELLED_IN_QUOTES = _SPELLED | str.maketrans({'"': "&quot;", "'": "&apos;", "\n": "&#10;", "\t": "&#9;"})


def escape(text: str, in_quotes: bool = False) -> str:
    # What XML cannot express becomes the replacement character.
    return _FORBIDDEN.sub("\ufffd", text).translate(_SPELLED_IN_QUOTES if in_quotes else _SPELLED)


def pieces_of(
    element: Element,
    inline: Callable[[str, Mapping[str, str]], Inline] = all_alone,
    link: Callable[[Element], str] = lambda _: "",
) -> Iterator[Piece]:
    """The content of an element; `inline` as for its Outline. `link` names those that are the two ends of a loose
    pair, as for Piece.tied."""
    for child in element.children:
        if isinstance(child, Text):
            yield Piece(child.start, child.end, child.text, wide=True)
        elif (kind := inline(child.name, child.attributes)) is Inline.UNSEEN:
            # A pair of empty texts: what contains one of them contains both.
            yield Piece(child.start, child.inner, "").tied(f"unseen {child.start}")
            yield from pieces_of(child, inline, link)
            yield Piece(child.outer, child.end, "").tied(f"/unseen {child.start}")
        elif kind is Inline.AROUND and child.children:
            yield Piece(child.start, child.inner, pair=child.start)
            yield from pieces_of(child, inline, link)
            yield Piece(child.outer, child.end, pair=child.start, closing=True)
        else:
            yield Piece(child.start, child.end, wide=True, gap=kind is Inline.GAP).tied(link(child))


def text_places(pieces: Iterable[Piece], role: str = "") -> Iterator[Place]:
    """The content of an element, or a part of it, as one place; none if it has no words."""
    pieces = list(pieces)
    first, last = trim(pieces)
    passage = Passage(pieces[first:last], collapse=True, role=role)
    if has_letters(passage.segment.text):
        yield passage.place(lambda new: written(passage.pieces(new), escape))


def attribute_places(xml: XmlText, element: Element, *names: str, role: str = "") -> Iterator[Place]:
    """The values of those attributes that an element has and that have words."""
    for name in names:
        found = xml.attribute(element, name)
        text = " ".join(element.attributes.get(name, "").split())
        if found and has_letters(text):
            segment = Segment(text, role=role)
            yield Place.of(*found, segment, lambda new: [escape(new.text, in_quotes=True)])


def xml_file(
    xml: XmlText,
    wanted: Set[str],
    places_in: Callable[[Element], Iterable[Place | Change]],
    outline: Outline,
    room: Room | None = None,
) -> SplicedFile:
    """The file, whose places are those in the outermost `wanted` elements, which are never in memory all at once."""

    def places() -> Iterator[Place | Change]:
        for element in xml.elements(wanted, outline.namespaces):
            yield from sorted(places_in(element), key=lambda place: place.start)  # a note may come before its text

    def finish(text: str) -> bytes:
        return outline.checked(xml.data, text.encode(xml.codec, "xmlcharrefreplace"), xml.name)

    return SplicedFile(xml.data, xml.text, xml.name, places, finish, room)
