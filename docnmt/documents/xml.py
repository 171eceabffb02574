"""XML files: the elements and the bytes each one stands in, the text inside them, and translations written into these
bytes, so that all others stay as they are."""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from xml.parsers import expat

from docnmt.base.errors import DocnmtError
from docnmt.documents.inline import Change, Passage, Piece, Place, Span, Splice, has_letters, trim
from docnmt.documents.outline import Outline
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Room, Segment

MAX_DEPTH = 250  # of elements inside each other; the deepest tables of real documents come to a few dozen
_CHUNK = 1 << 16  # all elements that end in it are in memory at once
_XML = "http://www.w3.org/XML/1998/namespace"
_DECLARED = re.compile(rb"""^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
_BYTE_ORDER = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_ATTRIBUTE = re.compile(r"""\s([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(slots=True, eq=False)
class Text:
    """Characters as a reader sees them; one stretch of text may come in several of these."""

    start: int
    text: str
    end: int = -1


@dataclass(slots=True, eq=False)
class Aside:
    """A comment, a processing instruction or the name of an entity that nobody explains."""

    start: int
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
    children: list[Element | Text | Aside] = field(default_factory=list)

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
        parts = (c.text if isinstance(c, Text) else c.text() for c in self.children if not isinstance(c, Aside))
        return "".join(parts)


class XmlBytes:
    """The bytes of an XML file. `name` is the file's, for errors."""

    def __init__(self, data: bytes, name: str):
        self.data, self.name = data, name
        marked = next((codec for order, codec in _BYTE_ORDER.items() if data.startswith(order)), "")
        declared = _DECLARED.match(data.removeprefix(codecs.BOM_UTF8))
        self.codec = marked or (declared[1].decode() if declared else "utf-8")
        self.root: Element | None = None  # without its content; known once elements were read

    def elements(self, wanted: frozenset[str], namespaces: Mapping[str, str]) -> Iterator[Element]:
        """The outermost elements with a wanted name, each with all that is in it, in the order of the file.

        `namespaces` gives the prefixes for names; elements of other namespaces have their address in braces. The
        elements around a wanted one are known as its ancestors, without their contents.
        """
        builder = _Builder(self.name, wanted, namespaces)
        try:
            for start in range(0, max(len(self.data), 1), _CHUNK):
                last = start + _CHUNK >= len(self.data)
                builder.parser.Parse(self.data[start : start + _CHUNK], last)
                self.root = builder.root
                yield from builder.ready
                builder.ready.clear()
        except expat.ExpatError as error:
            problem = f"not well-formed XML ({expat.errors.messages[error.code]})"
            raise _bad(
                self.name, problem, "Open it in the program that made it and save it again.", error.lineno
            ) from error
        except (ValueError, LookupError) as error:
            raise _bad(self.name, f"text in {self.codec}, which is not read", "Save it in UTF-8.") from error
        builder.end(len(self.data))
        yield from builder.ready

    def encode(self, text: str) -> bytes:
        return text.encode(self.codec, "xmlcharrefreplace")

    def decode(self, start: int, end: int) -> str:
        return self.data[start:end].decode(self.codec)

    def tag_name(self, element: Element) -> str:
        """The name as it stands in the file, with the file's own prefix."""
        return re.split(r"[\s/>]", self.decode(element.start, element.inner)[1:], maxsplit=1)[0]

    def attribute(self, element: Element, name: str) -> tuple[int, int] | None:
        """Where the value of an attribute stands, between its quotes. The name is as the file spells it."""
        tag = self.decode(element.start, element.inner)
        for found in _ATTRIBUTE.finditer(tag):
            if found[1] == name:
                start, end = found.span(2 if found[2] is not None else 3)
                before = element.start + len(self.encode(tag[:start]))
                return before, before + len(self.encode(tag[start:end]))
        return None

    def tag_end(self, element: Element) -> int:
        """Where a further attribute can be written into the start tag."""
        tag = self.decode(element.start, element.inner)
        return element.start + len(self.encode(tag.removesuffix(">").removesuffix("/")))


def _bad(name: str, problem: str, remedy: str, line: int = 0) -> DocnmtError:
    return DocnmtError(f"{name}, line {line}: {problem}\n  {remedy}" if line else f"{name}: {problem}\n  {remedy}")


class _Builder:
    """Makes elements of what the parser finds: it tells where something begins, and so where the last one ended."""

    def __init__(self, name: str, wanted: frozenset[str], namespaces: Mapping[str, str]):
        self.ready: list[Element] = []
        self.root: Element | None = None
        self._name, self._wanted = name, wanted
        self._prefixes = {**namespaces, _XML: "xml"}
        self._names: dict[str, str] = {}
        self._around: list[Element] = []
        self._inside = 0  # how many of those around are wanted ones or in a wanted one
        self._section: list[str] | None = None
        self._section_start = 0
        self._nodes = 0  # in the wanted element at hand
        self._unended: tuple[Element | Text | Aside, str] | None = None
        self.parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start_tag
        parser.EndElementHandler = self._end_tag
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = self._aside
        parser.ProcessingInstructionHandler = self._aside
        parser.SkippedEntityHandler = self._aside
        parser.StartCdataSectionHandler = self._start_section
        parser.EndCdataSectionHandler = self._end_section
        parser.StartDoctypeDeclHandler = self._doctype

    def end(self, here: int) -> None:
        """What came last ends here."""
        if self._unended:
            last, place = self._unended
            setattr(last, place, here)
            if place == "end" and isinstance(last, Element) and last.name in self._wanted and not self._inside:
                self.ready.append(last)
            self._unended = None

    def _start_tag(self, name: str, attributes: dict[str, str]) -> None:
        here = self.parser.CurrentByteIndex
        self.end(here)
        if len(self._around) >= MAX_DEPTH:
            problem = f"elements inside each other, more than {MAX_DEPTH} deep"
            raise _bad(self._name, problem, "No document needs as many: it is not read.", self.parser.CurrentLineNumber)
        parent = self._around[-1] if self._around else None
        named = {self._short(key): value for key, value in attributes.items()}
        element = Element(self._short(name), named, parent, here)
        self.root = self.root or element
        if self._inside and parent:
            self._count()
            parent.children.append(element)
        self._inside += bool(self._inside) or element.name in self._wanted
        self._around.append(element)
        self._unended = element, "inner"

    def _end_tag(self, name: str) -> None:
        here = self.parser.CurrentByteIndex
        self.end(here)
        element = self._around.pop()
        element.outer = here
        self._inside -= bool(self._inside)
        self._nodes = self._nodes if self._inside else 0
        self._unended = element, "end"

    def _text(self, text: str) -> None:
        if self._section is not None:
            self._section.append(text)
            return
        here = self.parser.CurrentByteIndex
        self.end(here)
        if self._inside:
            self._add(Text(here, text))

    def _start_section(self) -> None:
        """<![CDATA[ ... ]]>: its text cannot be parted from the signs around it."""
        self._section, self._section_start = [], self.parser.CurrentByteIndex
        self.end(self._section_start)

    def _end_section(self) -> None:
        if self._section is not None and self._inside:
            self._add(Text(self._section_start, "".join(self._section)))
        self._section = None

    def _aside(self, *_: object) -> None:
        here = self.parser.CurrentByteIndex
        self.end(here)
        if self._inside:
            self._add(Aside(here))

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > MAX_IN_PARAGRAPH:
            problem = f"more than {MAX_IN_PARAGRAPH:,} elements in one paragraph"
            raise _bad(self._name, problem, "Part it into paragraphs.", self.parser.CurrentLineNumber)

    def _add(self, child: Text | Aside) -> None:
        self._count()
        self._around[-1].children.append(child)
        self._unended = child, "end"

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        # The only place for entities that grow; a DTD that is only named is never fetched.
        if internal:
            problem = "declarations in the DOCTYPE, which can be made to fill up memory"
            raise _bad(self._name, problem, "Remove what stands there between [ and ].", self.parser.CurrentLineNumber)

    def _short(self, name: str) -> str:
        if name not in self._names:
            address, _, local = name.rpartition(" ")
            prefix = self._prefixes.get(address)
            if prefix is None:
                local = f"{{{address}}}{local}" if address else local
            self._names[name] = f"{prefix}:{local}" if prefix else local
        return self._names[name]


# ---- text inside elements ----

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPELLED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_SPELLED_IN_QUOTES = _SPELLED | str.maketrans({'"': "&quot;", "'": "&apos;", "\n": "&#10;", "\t": "&#9;"})

Part = bytes | Span  # some bytes, or where they stand in the file


def escape(text: str, in_quotes: bool = False) -> str:
    # What XML has no way to say gets the sign for an unknown character.
    return _FORBIDDEN.sub("\ufffd", text).translate(_SPELLED_IN_QUOTES if in_quotes else _SPELLED)


class Inline(Enum):
    """What an element inside a paragraph is to its text."""

    AROUND = "around"  # it holds text: bold, a link
    UNSEEN = "unseen"  # it holds text and does nothing to it that a reader sees
    ALONE = "alone"  # it and all in it stay as they are
    GAP = "gap"  # the same, and it parts words as a space does


def pieces_of(
    element: Element,
    inline: Callable[[Element], Inline] = lambda _: Inline.ALONE,
    link: Callable[[Element], str] = lambda _: "",
) -> Iterator[Piece]:
    """The content of an element. `link` names those that are the two ends of a loose pair, as Piece.tied has it."""
    for child in element.children:
        if isinstance(child, Text):
            yield Piece(child.start, child.end, child.text)
        elif isinstance(child, Aside):
            yield Piece(child.start, child.end, wide=True)
        elif (kind := inline(child)) is Inline.UNSEEN:
            # Its tags are a pair without words: a part of the content that has one of them has both.
            yield Piece(child.start, child.inner, "").tied(f"unseen {child.start}")
            yield from pieces_of(child, inline, link)
            yield Piece(child.outer, child.end, "").tied(f"/unseen {child.start}")
        elif kind is Inline.AROUND and child.children:
            yield Piece(child.start, child.inner, pair=child.start)
            yield from pieces_of(child, inline, link)
            yield Piece(child.outer, child.end, pair=child.start, closing=True)
        else:
            yield Piece(child.start, child.end, wide=True, gap=kind is Inline.GAP).tied(link(child))


@dataclass(frozen=True, slots=True)
class MixedPlace:
    """The content of an element, or a part of it."""

    xml: XmlBytes
    passage: Passage

    @classmethod
    def of(cls, pieces: Sequence[Piece], xml: XmlBytes, collapse: bool) -> MixedPlace | None:
        """None where there are no words."""
        first, last = trim(pieces)
        passage = Passage(pieces[first:last], collapse)
        return cls(xml, passage) if has_letters(passage.segment.text) else None

    @property
    def start(self) -> int:
        return self.passage.start

    @property
    def segment(self) -> Segment:
        return self.passage.segment

    def changes(self, translation: Segment) -> Sequence[Change[bytes]]:
        if translation.reads_as(self.segment):
            return ()
        return (Change(self.start, self.passage.end, written(self.passage.pieces(translation), self.xml)),)


def written(pieces: Iterable[str | Piece], xml: XmlBytes) -> list[Part]:
    parts: list[Part] = []
    for piece in pieces:
        text = piece if isinstance(piece, str) else piece.text or piece.code
        parts.append(xml.encode(escape(text)) if text or isinstance(piece, str) else (piece.start, piece.end))
    return parts


@dataclass(frozen=True, slots=True)
class AttributePlace:
    """The value of an attribute that is read as text."""

    start: int
    end: int
    segment: Segment
    xml: XmlBytes

    @classmethod
    def of(cls, element: Element, name: str, xml: XmlBytes) -> AttributePlace | None:
        """None where there is no such attribute or it has no words."""
        found = xml.attribute(element, name)
        text = " ".join(element.attributes.get(name, "").split())
        return cls(*found, Segment(text), xml) if found and has_letters(text) else None

    def changes(self, translation: Segment) -> Sequence[Change[bytes]]:
        if translation.text == self.segment.text:
            return ()
        return (Change(self.start, self.end, (self.xml.encode(escape(translation.text, in_quotes=True)),)),)


class XmlText:
    """An XML file that was read. Its places are found once more when it is written: until then, and for a file of any
    size, the segments alone are kept."""

    def __init__(
        self,
        xml: XmlBytes,
        places: Callable[[], Iterator[Place[bytes]]],
        outline: Outline,
        edits: Callable[[], Sequence[Change[bytes]]] = lambda: (),
    ):
        """`edits` are made along with any change; they are asked for when the places were found."""
        self._xml, self._places, self._outline, self._edits = xml, places, outline, edits
        room = Room(len(xml.data), xml.name)
        starts, found = array("q"), []
        for place in places():
            starts.append(place.start)
            found.append(room.add(place.segment))
        self._order = array("q", sorted(range(len(found)), key=starts.__getitem__))  # a note may stand before its text
        self.segments: Sequence[Segment] = [found[number] for number in self._order]

    def write(self, translations: Sequence[Segment]) -> bytes:
        if len(translations) != len(self.segments):
            raise ValueError(f"{len(translations)} translations for {len(self.segments)} segments")
        new = dict(zip(self._order, translations, strict=True))
        changes = [change for number, place in enumerate(self._places()) for change in place.changes(new[number])]
        if not changes:
            return self._xml.data
        written = Splice(self._xml.data, [*changes, *self._edits()]).whole()
        return self._outline.checked(self._xml.data, written, self._xml.name)
