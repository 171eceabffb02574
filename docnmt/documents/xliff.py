"""XLIFF 1.x and 2.x: units without a translation get a target; those that have one are read for context."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from docnmt.base.errors import DocnmtError
from docnmt.documents.inline import Change, Passage, Piece, Place, has_letters, trim
from docnmt.documents.outline import Outline
from docnmt.documents.segment import FileText, Segment
from docnmt.documents.xml import Element, Inline, Part, Text, XmlBytes, XmlText, escape, pieces_of, written
from docnmt.text.languages import primary

# ---- Files that hold a text and its translation beside each other ----

# Files that hold a text and its translation beside each other: a translation is added, the text itself stays.

_LINE_END = re.compile(r"((?<![^\S\n])[^\S\n]*+\n\s*)")  # never begun amid spaces: long runs of them cost time


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a translation goes: what it replaces, what is written before and after it, what else changes with it."""

    start: int
    end: int
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    along: tuple[Change[bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A text that has its translation, or needs none. It is read for context."""

    start: int
    segment: Segment

    def changes(self, translation: Segment) -> Sequence[Change[bytes]]:
        return ()


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """A text without its translation."""

    start: int
    passage: Passage
    edges: tuple[Sequence[Piece], Sequence[Piece]]  # what stands before and after the words
    slot: Slot
    xml: XmlBytes

    @property
    def segment(self) -> Segment:
        return self.passage.segment

    def changes(self, translation: Segment) -> Sequence[Change[bytes]]:
        """There always are some: a translation that equals the text is one, too."""
        pieces = (*self.edges[0], *self.passage.pieces(translation), *self.edges[1])
        slot = self.slot
        return [Change(slot.start, slot.end, (*slot.before, *written(pieces, self.xml), *slot.after)), *slot.along]


def with_breaks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with line ends in text, and the spaces around them, as marks."""
    for is_text, group in groupby(pieces, key=lambda piece: piece.text is not None):
        if not is_text:
            yield from group
            continue
        texts = list(group)
        start, end = texts[0].start, texts[-1].end
        for number, text in enumerate(_LINE_END.split("".join(piece.text or "" for piece in texts))):
            if number % 2:
                yield Piece(start, end, code=text, gap=True)
            elif text:
                yield Piece(start, end, text)


class Units:
    """Gathers the places of a file, unit by unit."""

    def __init__(self, xml: XmlBytes, inline: Callable[[Element], Inline], link: Callable[[Element], str]):
        self.places: list[Place[bytes]] = []
        self.edits: list[Change[bytes]] = []
        self._xml, self._inline, self._link = xml, inline, link

    def add_known(self, source: Element) -> None:
        pieces = self._pieces(source)
        first, last = trim(pieces)
        passage = Passage(pieces[first:last], translate=False)
        if has_letters(passage.segment.text):
            self.places.append(KnownPlace(source.start, passage.segment))

    def add(self, source: Element, slot: Slot) -> None:
        pieces = self._pieces(source)
        if not pieces:
            return
        first, last = trim(pieces)
        edges = pieces[:first], pieces[last:]
        place = TargetPlace(source.start, Passage(pieces[first:last]), edges, slot, self._xml)
        if has_letters(place.segment.text):
            self.places.append(place)
        else:  # numbers and marks are the same in all languages
            self.edits += place.changes(place.segment)

    def _pieces(self, source: Element) -> list[Piece]:
        return list(with_breaks(pieces_of(source, self._inline, self._link)))


def space_before(element: Element) -> tuple[int, int]:
    """The line end and indentation that an element stands after."""
    start = element.start
    siblings = element.parent.children if element.parent else []
    for sibling in reversed(siblings[: siblings.index(element)]):
        if not isinstance(sibling, Text) or not sibling.text.isspace():
            break
        start = sibling.start
    return start, element.start


def with_attribute(xml: XmlBytes, element: Element, name: str, value: str) -> Change[bytes]:
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


def _spliced(start: int, end: int, changes: list[Change[bytes]]) -> Iterator[Part]:
    for change in changes:
        yield start, change.start
        yield from change.parts
        start = change.end
    yield start, end


def check_language(name: str, told: str, wanted: str, which: str) -> None:
    """`told` by the file, `wanted` by the model. Only plain codes such as fr are compared: there are many others."""
    codes = [primary(code) for code in (told, wanted)]
    if all(len(code) == 2 for code in codes) and codes[0] != codes[1]:
        problem = f"its {which} language is {told}, the translation's is {wanted}"
        raise DocnmtError(f"{name}: {problem}\n  Take a model for the file's languages, or correct them in the file.")


# All versions under one prefix: their elements have different names where they differ. Old files have no namespace.
_NAMESPACES = {f"urn:oasis:names:tc:xliff:document:{version}": "" for version in ("1.1", "1.2", "2.0", "2.1", "2.2")}
_UNITS = frozenset(("trans-unit", "unit"))
_AROUND = frozenset(("g", "mrk", "pc"))
_LINE_BREAKS = frozenset(("lb", "x-html-br", "xlf:lb"))
_ENDINGS = {"ex": "bx", "ept": "bpt", "ec": "sc", "em": "sm"}
_BEGINNINGS = frozenset(_ENDINGS.values())
# A target in these states is the source once more, put there by the program that wrote the file.
_UNTRANSLATED = frozenset(("new", "needs-translation"))


class _Units:
    """The units of a file, gone through as often as needed."""

    def __init__(self, xml: XmlBytes, languages: tuple[str, str]):
        self._xml, self._languages = xml, languages
        self._edits: list[Change[bytes]] = []
        self._told: dict[Element, str] = {}  # the elements that tell the target language, and how they spell that

    def places(self) -> Iterator[Place[bytes]]:
        units = Units(self._xml, _inline, _link)
        self._told = {}
        for unit in self._xml.elements(_UNITS, _NAMESPACES):
            holder, spelled = _language_holder(unit)
            if holder not in self._told:
                _check_languages(self._xml.name, holder, self._languages)
            self._told[holder] = spelled
            if unit.name == "unit":
                for segment in unit.elements:
                    if segment.name == "segment" and _is_translatable(unit):
                        _add_segment(units, self._xml, segment)
            elif _is_translatable(unit):
                _add_unit(units, self._xml, unit)
            yield from units.places
            units.places.clear()
        self._edits = units.edits

    def edits(self) -> list[Change[bytes]]:
        missing = (item for item in self._told.items() if self._languages[1] and not item[0].attributes.get(item[1]))
        told = [with_attribute(self._xml, holder, spelled, self._languages[1]) for holder, spelled in missing]
        return [*self._edits, *told]


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    xml = XmlBytes(data, name)
    units = _Units(xml, languages)
    text = XmlText(xml, units.places, Outline(_NAMESPACES, added=frozenset(("target",))), units.edits)
    if xml.root is None or xml.root.name != "xliff":
        problem = "not what its name says: no <xliff> is in it"
        raise DocnmtError(f"{name}: {problem}\n  Export the texts as XLIFF once more.")
    return text


def _language_holder(unit: Element) -> tuple[Element, str]:
    """<file target-language> in version 1, <xliff trgLang> in version 2."""
    name, attribute = ("xliff", "trgLang") if unit.name == "unit" else ("file", "target-language")
    *_, root = unit.ancestors
    return next((around for around in unit.ancestors if around.name == name), root), attribute


def _check_languages(name: str, holder: Element, languages: tuple[str, str]) -> None:
    told = holder.attributes
    check_language(name, told.get("source-language") or told.get("srcLang", ""), languages[0], "source")
    check_language(name, told.get("target-language") or told.get("trgLang", ""), languages[1], "target")


def _is_translatable(unit: Element) -> bool:
    said = (around.attributes["translate"] for around in unit.ancestors if "translate" in around.attributes)
    return next(said, "yes") != "no"


def _is_filled(target: Element | None) -> bool:
    return target is not None and bool(target.text().strip() or next(target.elements, None))


def _add_unit(units: Units, xml: XmlBytes, unit: Element) -> None:
    source, target = unit.find("seg-source") or unit.find("source"), unit.find("target")
    if source is None:
        return
    untranslated = target is not None and target.attributes.get("state") in _UNTRANSLATED
    if unit.attributes.get("approved") == "yes" or (_is_filled(target) and not untranslated):
        units.add_known(source)
    else:
        units.add(source, _slot(xml, source, target, {"state": "needs-review-translation"}))


def _add_segment(units: Units, xml: XmlBytes, segment: Element) -> None:
    source, target = segment.find("source"), segment.find("target")
    if source is None:
        return
    if _is_filled(target) or segment.attributes.get("state") == "final":
        units.add_known(source)
    else:
        slot = _slot(xml, source, target, {})
        state = with_attribute(xml, segment, "state", "translated")
        units.add(source, Slot(slot.start, slot.end, slot.before, slot.after, (state,)))


def _slot(xml: XmlBytes, source: Element, target: Element | None, attributes: dict[str, str]) -> Slot:
    if target is not None:
        return refilled(xml, target, attributes)
    # With the prefix that the file uses, and on a line of its own if the source is.
    name = xml.tag_name(source).removesuffix("seg-source").removesuffix("source") + "target"
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    before = space_before(source), xml.encode(f"<{name}{written}>")
    return Slot(source.end, source.end, before, (xml.encode(f"</{name}>"),))


def _inline(element: Element) -> Inline:
    attributes = element.attributes
    protected = attributes.get("mtype") == "protected" or attributes.get("translate") == "no"
    if element.name in _AROUND and not protected:
        return Inline.AROUND
    kinds = (attributes.get("ctype"), attributes.get("subType"))
    return Inline.GAP if _LINE_BREAKS.intersection(kinds) else Inline.ALONE


def _link(element: Element) -> str:
    """<bx/> and <ex/>, <bpt> and <ept>, <sc/> and <ec/>, <sm/> and <em/>: pairs that may cross others."""
    name, attributes = element.name, element.attributes
    if name not in _BEGINNINGS and name not in _ENDINGS:
        return ""
    key = attributes.get("startRef" if name in ("ec", "em") else "rid") or attributes.get("id")
    return f"/{_ENDINGS[name]} {key}" if name in _ENDINGS else f"{name} {key}"
