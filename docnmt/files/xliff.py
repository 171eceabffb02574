"""XLIFF 1.x and 2.x: units without a translation get a target; those that have one are read for context."""

from __future__ import annotations

from docnmt.base.errors import DocnmtError
from docnmt.files.bilingual import Slot, Units, check_language, refilled, space_before, with_attribute
from docnmt.files.segments import FileText
from docnmt.files.xml_elements import Element, XmlBytes
from docnmt.files.xml_text import Change, Inline, XmlText

# All versions under one prefix: their elements have different names where they differ. Old files have no namespace.
_NAMESPACES = {f"urn:oasis:names:tc:xliff:document:{version}": "" for version in ("1.1", "1.2", "2.0", "2.1", "2.2")}
_UNITS = frozenset(("trans-unit", "unit"))
_AROUND = frozenset(("g", "mrk", "pc"))
_LINE_BREAKS = frozenset(("lb", "x-html-br", "xlf:lb"))
_ENDINGS = {"ex": "bx", "ept": "bpt", "ec": "sc", "em": "sm"}
_BEGINNINGS = frozenset(_ENDINGS.values())
# A target in these states is the source once more, put there by the program that wrote the file.
_UNTRANSLATED = frozenset(("new", "needs-translation"))


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    xml = XmlBytes(data, name)
    units = Units(xml, _inline, _link)
    told: dict[Element, str] = {}  # the elements that tell the target language, and how they spell that
    for unit in xml.elements(_UNITS, _NAMESPACES):
        holder, spelled = _language_holder(unit)
        if holder not in told:
            _check_languages(name, holder, languages)
        told[holder] = spelled
        if unit.name == "unit":
            for segment in unit.elements:
                if segment.name == "segment" and _is_translatable(unit):
                    _add_segment(units, xml, segment)
        elif _is_translatable(unit):
            _add_unit(units, xml, unit)
    if xml.root is None or xml.root.name != "xliff":
        problem = "not what its name says: no <xliff> is in it"
        raise DocnmtError(f"{name}: {problem}\n  Export the texts as XLIFF once more.")
    edits: list[Change] = []
    if languages[1]:
        missing = (item for item in told.items() if not item[0].attributes.get(item[1]))
        edits = [with_attribute(xml, holder, spelled, languages[1]) for holder, spelled in missing]
    return XmlText(xml, units.places, [*units.edits, *edits])


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
