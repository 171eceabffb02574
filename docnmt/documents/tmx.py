"""TMX translation memories: units without a text in the target language get one; the others are read for context."""

from __future__ import annotations

from docnmt.base.errors import DocnmtError
from docnmt.corpus.sgml import same_language
from docnmt.documents.segment import FileText
from docnmt.documents.xliff import Slot, Units, refilled, space_before
from docnmt.documents.xml import Element, XmlBytes
from docnmt.documents.xml_text import Inline, XmlText, escape

_NAMESPACES = {"http://www.lisa.org/tmx14": "", "http://www.lisa.org/tmx": ""}
_ANY = "*all*"


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    if not languages[1]:
        problem = "the language to translate into is not known"
        raise DocnmtError(f"{name}: {problem}\n  Name the languages of source and target.")
    xml = XmlBytes(data, name)
    units = Units(xml, _inline, _link)
    file_language = ""
    met: set[str] = set()
    for element in xml.elements(frozenset(("header", "tu")), _NAMESPACES):
        told = element.attributes.get("srclang", "")
        told = "" if told == _ANY else told
        if element.name == "header":
            file_language = told
        else:
            _add_unit(units, xml, element, languages[0] or told or file_language, languages[1])
            met |= {_language(child) for child in element.elements if child.name == "tuv"}
    if xml.root is None or xml.root.name != "tmx":
        problem = "not what its name says: no <tmx> is in it"
        raise DocnmtError(f"{name}: {problem}\n  Export the translation memory as TMX once more.")
    if languages[0] and met and not any(same_language(language, languages[0]) for language in met):
        problem = f"no text in {languages[0]}, which the model reads; its languages are {', '.join(sorted(met))}"
        raise DocnmtError(f"{name}: {problem}\n  Take a model for one of them.")
    return XmlText(xml, units.places, units.edits)


def _language(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang", "")


def _add_unit(units: Units, xml: XmlBytes, unit: Element, source_language: str, target_language: str) -> None:
    variants = [child for child in unit.elements if child.name == "tuv"]
    source = next((variant for variant in variants if same_language(_language(variant), source_language)), None)
    text = source.find("seg") if source else None
    if source is None or text is None:
        return
    others = [variant for variant in variants if variant is not source]
    target = next((variant for variant in others if same_language(_language(variant), target_language)), None)
    translation = target.find("seg") if target else None
    if target is None:
        units.add(text, _new_variant(xml, source, text, variants[-1].end, target_language))
    elif translation is not None and not translation.text().strip() and not next(translation.elements, None):
        units.add(text, refilled(xml, translation, {}))
    else:
        units.add_known(text)


def _new_variant(xml: XmlBytes, source: Element, text: Element, at: int, language: str) -> Slot:
    """Written as the source's is: with its prefix, its name for the language and its line ends."""
    variant, segment = xml.tag_name(source), xml.tag_name(text)
    attribute = "xml:lang" if "xml:lang" in source.attributes else "lang"
    start = f'<{variant} {attribute}="{escape(language, in_quotes=True)}">'
    before = space_before(source), xml.encode(start), space_before(text), xml.encode(f"<{segment}>")
    ends_line = xml.data[text.end : source.outer].strip(b" \t\r\n\0") == b""
    after = (text.end, source.outer) if ends_line else b""
    return Slot(at, at, before, (xml.encode(f"</{segment}>"), after, xml.encode(f"</{variant}>")))


def _inline(element: Element) -> Inline:
    if element.name == "hi":
        return Inline.AROUND
    return Inline.GAP if element.attributes.get("type") == "lb" else Inline.ALONE


def _link(element: Element) -> str:
    key = element.attributes.get("i")
    slash = {"bpt": "", "ept": "/"}.get(element.name)
    return "" if slash is None or key is None else f"{slash}pair {key}"
