"""Text inside the elements of an XML file, and translations written into the bytes it was read from."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from docnmt.documents.outline import Outline
from docnmt.documents.passages import Atom, Passage, Role, has_letters, trim
from docnmt.documents.segment import Room, Segment
from docnmt.documents.xml import Aside, Element, Text, XmlBytes

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPELLED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_SPELLED_IN_QUOTES = _SPELLED | str.maketrans({'"': "&quot;", "'": "&apos;", "\n": "&#10;", "\t": "&#9;"})


def escape(text: str, in_quotes: bool = False) -> str:
    # What XML has no way to say gets the sign for an unknown character.
    return _FORBIDDEN.sub("\ufffd", text).translate(_SPELLED_IN_QUOTES if in_quotes else _SPELLED)


class Inline(Enum):
    """What an element inside a paragraph is to its text."""

    AROUND = "around"  # it holds text: bold, a link
    UNSEEN = "unseen"  # it holds text and does nothing to it that a reader sees
    ALONE = "alone"  # it and all in it stay as they are
    GAP = "gap"  # the same, and it parts words as a space does


def atoms_of(
    element: Element, inline: Callable[[Element], Inline], link: Callable[[Element], str] = lambda _: ""
) -> Iterator[Atom]:
    """The content of an element, piece by piece. `link` tells the name of the atom's link."""
    for child in element.children:
        if isinstance(child, Text):
            yield Atom(Role.TEXT, child.start, child.end, child.text)
        elif isinstance(child, Aside):
            yield Atom(Role.ALONE, child.start, child.end)
        elif (kind := inline(child)) is Inline.UNSEEN:
            # Its tags are a pair without words: a part of the content that has one of them has both.
            yield Atom(Role.TEXT, child.start, child.inner, link=f"unseen {child.start}")
            yield from atoms_of(child, inline, link)
            yield Atom(Role.TEXT, child.outer, child.end, link=f"/unseen {child.start}")
        elif kind is Inline.AROUND and child.children:
            yield Atom(Role.OPEN, child.start, child.inner)
            yield from atoms_of(child, inline, link)
            yield Atom(Role.CLOSE, child.outer, child.end)
        else:
            yield Atom(Role.ALONE, child.start, child.end, gap=kind is Inline.GAP, link=link(child))


@dataclass(frozen=True, slots=True)
class Change:
    """New bytes for those from `start` to `end`: some given, some copied from where they stand in the old file."""

    start: int
    end: int
    parts: tuple[bytes | tuple[int, int], ...]


class Place(Protocol):
    """Where a segment stands in the file."""

    @property
    def start(self) -> int: ...

    @property
    def segment(self) -> Segment: ...

    def changes(self, translation: Segment, xml: XmlBytes) -> Sequence[Change]: ...


@dataclass(frozen=True, slots=True)
class MixedPlace:
    """The content of an element, or a part of it."""

    start: int
    end: int
    passage: Passage

    @classmethod
    def of(cls, atoms: Sequence[Atom], collapse: bool) -> MixedPlace | None:
        """None where there are no words."""
        first, last = trim(atoms)
        passage = Passage(atoms[first:last], collapse)
        return cls(atoms[first].start, atoms[last - 1].end, passage) if has_letters(passage.segment.text) else None

    @property
    def segment(self) -> Segment:
        return self.passage.segment

    def changes(self, translation: Segment, xml: XmlBytes) -> Sequence[Change]:
        if (translation.text, translation.marks) == (self.segment.text, self.segment.marks):
            return ()
        return (Change(self.start, self.end, tuple(mixed(self.passage, translation, xml))),)


def mixed(passage: Passage, translation: Segment, xml: XmlBytes) -> Iterator[bytes | tuple[int, int]]:
    for piece in passage.atoms(translation):
        if isinstance(piece, str):
            yield xml.encode(escape(piece))
        else:
            yield xml.encode(escape(piece.text)) if piece.text else (piece.start, piece.end)


@dataclass(frozen=True, slots=True)
class AttributePlace:
    """The value of an attribute that is read as text."""

    start: int
    end: int
    segment: Segment

    @classmethod
    def of(cls, element: Element, name: str, xml: XmlBytes) -> AttributePlace | None:
        """None where there is no such attribute or it has no words."""
        found = xml.attribute(element, name)
        text = " ".join(element.attributes.get(name, "").split())
        return cls(*found, Segment(text)) if found and has_letters(text) else None

    def changes(self, translation: Segment, xml: XmlBytes) -> Sequence[Change]:
        if translation.text == self.segment.text:
            return ()
        return (Change(self.start, self.end, (xml.encode(escape(translation.text, in_quotes=True)),)),)


class XmlText:
    """An XML file that was read. Its places are found once more when it is written: until then, and for a file of any
    size, the segments alone are kept."""

    def __init__(
        self,
        xml: XmlBytes,
        places: Callable[[], Iterator[Place]],
        outline: Outline,
        edits: Callable[[], Sequence[Change]] = lambda: (),
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
        changes = [
            change for number, place in enumerate(self._places()) for change in place.changes(new[number], self._xml)
        ]
        if not changes:
            return self._xml.data
        written = _changed(self._xml.data, [*changes, *self._edits()])
        return self._outline.checked(self._xml.data, written, self._xml.name)


def _changed(data: bytes, changes: list[Change]) -> bytes:
    changes.sort(key=lambda change: (change.start, change.end))
    starts = [change.start for change in changes]

    def copy(start: int, end: int, first: int) -> Iterator[bytes]:
        # What is copied may have changes inside: the text of a footnote that stands in a paragraph.
        for change in changes[first : bisect_left(starts, end)]:
            if change.start < start:
                continue  # inside the one before, made there
            yield data[start : change.start]
            for part in change.parts:
                if isinstance(part, bytes):
                    yield part
                else:
                    yield from copy(*part, bisect_right(starts, part[0]))
            start = change.end
        yield data[start:end]

    return b"".join(copy(0, len(data), 0))
