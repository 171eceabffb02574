"""Files that hold a text and its translation beside each other: a translation is added, the text itself stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from docnmt.base.errors import DocnmtError
from docnmt.files.passages import Atom, Passage, has_letters, trim, with_breaks
from docnmt.files.segments import Segment
from docnmt.files.xml_elements import Element, Text, XmlBytes
from docnmt.files.xml_text import Change, Inline, Place, atoms_of, escape, mixed

Parts = tuple[bytes | tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a translation goes: what it replaces, what is written before and after it, what else changes with it."""

    start: int
    end: int
    before: Parts
    after: Parts
    along: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A text that has its translation, or needs none. It is read for context."""

    start: int
    segment: Segment

    def changes(self, translation: Segment, xml: XmlBytes) -> Sequence[Change]:
        return ()


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """A text without its translation."""

    start: int
    passage: Passage
    edges: tuple[Sequence[Atom], Sequence[Atom]]  # what stands before and after the words
    slot: Slot

    @property
    def segment(self) -> Segment:
        return self.passage.segment

    def changes(self, translation: Segment, xml: XmlBytes) -> Sequence[Change]:
        """There always are some: a translation that equals the text is one, too."""
        before, after = ([_copied(atom, xml) for atom in edge] for edge in self.edges)
        content = (*before, *mixed(self.passage, translation, xml), *after)
        slot = self.slot
        return [Change(slot.start, slot.end, (*slot.before, *content, *slot.after)), *slot.along]


def _copied(atom: Atom, xml: XmlBytes) -> bytes | tuple[int, int]:
    return xml.encode(escape(atom.text)) if atom.text else (atom.start, atom.end)


class Units:
    """Gathers the places of a file, unit by unit."""

    def __init__(self, xml: XmlBytes, inline: Callable[[Element], Inline], link: Callable[[Element], str]):
        self.places: list[Place] = []
        self.edits: list[Change] = []
        self._xml, self._inline, self._link = xml, inline, link

    def add_known(self, source: Element) -> None:
        atoms = self._atoms(source)
        first, last = trim(atoms)
        passage = Passage(atoms[first:last], translate=False)
        if has_letters(passage.segment.text):
            self.places.append(KnownPlace(source.start, passage.segment))

    def add(self, source: Element, slot: Slot) -> None:
        atoms = self._atoms(source)
        if not atoms:
            return
        first, last = trim(atoms)
        place = TargetPlace(source.start, Passage(atoms[first:last]), (atoms[:first], atoms[last:]), slot)
        if has_letters(place.segment.text):
            self.places.append(place)
        else:  # numbers and marks are the same in all languages
            self.edits += place.changes(place.segment, self._xml)

    def _atoms(self, source: Element) -> list[Atom]:
        return list(with_breaks(atoms_of(source, self._inline, self._link)))


def space_before(element: Element) -> tuple[int, int]:
    """The line end and indentation that an element stands after."""
    start = element.start
    siblings = element.parent.children if element.parent else []
    for sibling in reversed(siblings[: siblings.index(element)]):
        if not isinstance(sibling, Text) or not sibling.text.isspace():
            break
        start = sibling.start
    return start, element.start


def with_attribute(xml: XmlBytes, element: Element, name: str, value: str) -> Change:
    """A start tag with an attribute set."""
    if found := xml.attribute(element, name):
        return Change(*found, (xml.encode(escape(value, in_quotes=True)),))
    end = xml.tag_end(element)
    return Change(end, end, (xml.encode(f' {name}="{escape(value, in_quotes=True)}"'),))


def refilled(xml: XmlBytes, element: Element, attributes: dict[str, str]) -> Slot:
    """A slot in place of an element's content, with attributes set in its tag."""
    changes = [with_attribute(xml, element, name, value) for name, value in attributes.items()]
    end_of_tag = xml.tag_end(element)
    before = tuple(_spliced(element.start, end_of_tag, sorted(changes, key=lambda change: change.start)))
    return Slot(element.start, element.end, (*before, xml.encode(">")), (xml.encode(f"</{xml.tag_name(element)}>"),))


def _spliced(start: int, end: int, changes: list[Change]) -> Iterator[bytes | tuple[int, int]]:
    for change in changes:
        yield start, change.start
        yield from change.parts
        start = change.end
    yield start, end


def check_language(name: str, told: str, wanted: str, which: str) -> None:
    """`told` by the file, `wanted` by the model. Only plain codes such as fr are compared: there are many others."""
    codes = [code.replace("_", "-").split("-")[0].lower() for code in (told, wanted)]
    if all(len(code) == 2 for code in codes) and codes[0] != codes[1]:
        problem = f"its {which} language is {told}, the translation's is {wanted}"
        raise DocnmtError(f"{name}: {problem}\n  Take a model for the file's languages, or correct them in the file.")
