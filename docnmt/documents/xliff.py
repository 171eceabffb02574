"""XLIFF 1.x and 2.x: units without a translation get a target; those that have one are read for context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from docnmt.base.errors import DocnmtError
from docnmt.documents.inline import Passage, Piece, has_letters, trim, written
from docnmt.documents.outline import Inline, Outline
from docnmt.documents.segment import Change, FileText, Place, Segment, Span
from docnmt.documents.xml import Element, XmlText, escape, pieces_of, xml_file
from docnmt.text.scripts import primary

# All versions under one prefix: their elements have different names where they differ. Old files have no namespace.
_NAMESPACES = {f"urn:oasis:names:tc:xliff:document:{version}": "" for version in ("1.1", "1.2", "2.0", "2.1", "2.2")}
_UNITS = {"trans-unit", "unit"}
_AROUND = {"g", "mrk", "pc"}
_LINE_BREAKS = {"lb", "x-html-br", "xlf:lb"}
_ENDINGS = {"ex": "bx", "ept": "bpt", "ec": "sc", "em": "sm"}
_BEGINNINGS = set(_ENDINGS.values())
# A target in these states is just a copy of the source, made by the program that wrote the file.
_UNTRANSLATED = {"new", "needs-translation"}
_REVIEW = "needs-review-translation"
_LINE_END = re.compile(r"((?<![^\S\n])[^\S\n]*+\n\s*)")  # not from within spaces: long runs would take long


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    xml = XmlText(data, name)
    text = xml_file(xml, _UNITS, _Units(xml, languages).places, Outline(_NAMESPACES, added={"target"}))
    if xml.root is None or xml.root.name != "xliff":
        problem = "not an XLIFF file: it has no <xliff> element"
        raise DocnmtError(f"{name}: {problem}\n  Export the texts as XLIFF again.")
    return text


class _Units:
    """The units of a file, one after the other."""

    def __init__(self, xml: XmlText, languages: tuple[str, str]):
        self._xml, self._languages = xml, languages
        self._holders: set[Element] = set()  # the elements with languages that were found so far

    def places(self, unit: Element) -> Iterator[Place | Change]:
        yield from self._language(unit)
        said = (around.attributes["translate"] for around in unit.ancestors if "translate" in around.attributes)
        if next(said, "yes") == "no":
            return
        if unit.name == "trans-unit":
            target = unit.find("target")
            untranslated = target is not None and target.attributes.get("state") in _UNTRANSLATED
            known = unit.attributes.get("approved") == "yes" or (_is_filled(target) and not untranslated)
            yield from self._pair(unit.find("seg-source") or unit.find("source"), target, known)
            return
        for segment in unit.elements:
            if segment.name == "segment":
                target = segment.find("target")
                known = _is_filled(target) or segment.attributes.get("state") == "final"
                yield from self._pair(segment.find("source"), target, known, segment)

    def _language(self, unit: Element) -> Iterator[Change]:
        """Checks the languages of the file, and adds the target language if it is missing: as <file target-language> in
        version 1, <xliff trgLang> in version 2."""
        name, attribute = ("xliff", "trgLang") if unit.name == "unit" else ("file", "target-language")
        *_, root = unit.ancestors
        holder = next((around for around in unit.ancestors if around.name == name), root)
        if holder in self._holders:
            return
        self._holders.add(holder)
        told, (source, target) = holder.attributes, self._languages
        check_language(self._xml.name, told.get("source-language") or told.get("srcLang", ""), source, "source")
        check_language(self._xml.name, told.get("target-language") or told.get("trgLang", ""), target, "target")
        if target and not told.get(attribute):
            yield _with_attribute(self._xml, holder, attribute, target)

    def _pair(
        self, source: Element | None, target: Element | None, known: bool, segment: Element | None = None
    ) -> Iterator[Place | Change]:
        """A source and where its translation goes; `segment` is around them in version 2."""
        if source is None or not source.children:
            return
        pieces = list(with_breaks(pieces_of(source, _inline, _link)))
        first, last = trim(pieces)
        passage = Passage(pieces[first:last], translate=not known)

        def changes(new: Segment) -> Iterator[Change]:
            """Made even if the translation equals the source."""
            if not known:
                text = written((*pieces[:first], *passage.pieces(new), *pieces[last:]), escape)
                yield from self._filled(source, target, segment, text)

        if has_letters(passage.segment.text):
            yield Place(source.start, (passage.segment,), changes)
        else:  # numbers and signs are the same in all languages
            yield from changes(passage.segment)

    def _filled(
        self, source: Element, target: Element | None, segment: Element | None, text: Sequence[str | Span]
    ) -> Iterator[Change]:
        xml = self._xml
        if segment is not None:
            yield _with_attribute(xml, segment, "state", "translated")
        elif target is not None:
            yield _with_attribute(xml, target, "state", _REVIEW)
        if target is not None:
            tag_end, end_tag = xml.tag_end(target), f"</{xml.tag_name(target)}>"
            yield Change(tag_end, target.end, (">", *text, end_tag))
            return
        # With the prefix that the file uses, and on a line of its own if the source is.
        name = xml.tag_name(source).removesuffix("seg-source").removesuffix("source") + "target"
        tag = f"<{name}>" if segment is not None else f'<{name} state="{_REVIEW}">'
        parts = (_space_before(source), tag, *text, f"</{name}>")
        yield Change(source.end, source.end, parts)


def _is_filled(target: Element | None) -> bool:
    return target is not None and bool(target.text().strip() or next(target.elements, None))


def with_breaks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with line breaks in text, and the spaces around them, as marks."""
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


def _space_before(element: Element) -> Span:
    """The line break and indentation before an element."""
    start = element.start
    siblings = element.parent.children if element.parent else []
    for sibling in reversed(siblings[: siblings.index(element)]):
        if isinstance(sibling, Element) or sibling.text is None or not sibling.text.isspace():
            break
        start = sibling.start
    return start, element.start


def _with_attribute(xml: XmlText, element: Element, name: str, value: str) -> Change:
    """A start tag with an attribute set."""
    if found := xml.attribute(element, name):
        return Change(*found, (escape(value, in_quotes=True),))
    end = xml.tag_end(element)
    return Change(end, end, (f' {name}="{escape(value, in_quotes=True)}"',))


def check_language(name: str, told: str, wanted: str, which: str) -> None:
    """`told` is the file's language, `wanted` the model's. Only two-letter codes are compared: others vary."""
    codes = [primary(code) for code in (told, wanted)]
    if all(len(code) == 2 for code in codes) and codes[0] != codes[1]:
        problem = f"its {which} language is {told}, but the model's is {wanted}"
        raise DocnmtError(f"{name}: {problem}\n  Use a model for these languages, or correct them in the file.")


def _inline(name: str, attributes: Mapping[str, str]) -> Inline:
    protected = attributes.get("mtype") == "protected" or attributes.get("translate") == "no"
    if name in _AROUND and not protected:
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
