"""Word documents (.docx): paragraphs, headings, cells, notes, text boxes, alternative texts, headers and footers."""

from __future__ import annotations

from collections.abc import Iterator

from docnmt.base.errors import DocnmtError
from docnmt.files.archive import read_zip
from docnmt.files.docx_runs import ParagraphReader, RunsPlace
from docnmt.files.packages import PackageText
from docnmt.files.segments import FileText, Segment
from docnmt.files.xml_elements import Element, XmlBytes
from docnmt.files.xml_text import AttributePlace, Inline, MixedPlace, Place, XmlText, atoms_of

_NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing": "wp",
    "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing": "wp",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.microsoft.com/office/word/2010/wordml": "w14",
    "http://schemas.openxmlformats.org/package/2006/content-types": "types",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_TYPES = "[Content_Types].xml"
_TITLE = "core-properties+xml"
_STYLES = "wordprocessingml.styles+xml"
_MAIN = (
    "wordprocessingml.document.main+xml",
    "wordprocessingml.template.main+xml",
    "ms-word.document.macroEnabled.main+xml",
    "ms-word.template.macroEnabledTemplate.main+xml",
)
# In the order in which they are read: the title first, headers and footers last.
_WITH_TEXT = (
    _TITLE,
    *_MAIN,
    *(f"wordprocessingml.{part}+xml" for part in ("footnotes", "endnotes", "header", "footer")),
)
# Styles have names in the user's language in a program, but these ones in the file.
_CODE = frozenset(
    ("html preformatted", "html code", "preformatted text", "source text", "source code", "verbatim char")
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    if data.startswith(_OLE):
        problem = "an old Word document (.doc) or one with a password"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .docx without a password, then translate it.")
    files = read_zip(data, name)
    types = _types(files, name)
    if not any(kind.endswith(_MAIN) for kind in types.values()):
        problem = "not what its name says: no Word document is in the archive"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .docx in the program that made it.")
    code = frozenset(
        style for part, kind in types.items() if kind.endswith(_STYLES) for style in _code_styles(files[part], name)
    )
    parts = {}
    for wanted in _WITH_TEXT:
        for part in sorted(part for part, kind in types.items() if kind.endswith(wanted)):
            xml = XmlBytes(files[part], f"{name} ({part})")
            parts[part] = XmlText(xml, _title(xml) if wanted == _TITLE else _places(xml, code))
    return PackageText(data, parts)


def _types(files: dict[str, bytes], name: str) -> dict[str, str]:
    """What each file in the archive is."""
    xml = XmlBytes(files.get(_TYPES, b"<none/>"), f"{name} ({_TYPES})")
    overrides = [element.attributes for element in xml.elements(frozenset(("types:Override",)), _NAMESPACES)]
    types = {found.get("PartName", "").removeprefix("/"): found.get("ContentType", "") for found in overrides}
    return {part: kind for part, kind in types.items() if part in files}


def _code_styles(data: bytes, name: str) -> Iterator[str]:
    for style in XmlBytes(data, f"{name} (styles)").elements(frozenset(("w:style",)), _NAMESPACES):
        named = style.find("w:name")
        if named and named.attributes.get("w:val", "").lower() in _CODE:
            yield style.attributes.get("w:styleId", "")


def _title(xml: XmlBytes) -> Iterator[MixedPlace]:
    for title in xml.elements(frozenset(("dc:title",)), _NAMESPACES):
        if place := MixedPlace.of(list(atoms_of(title, lambda _: Inline.ALONE)), collapse=True):
            yield place


def _places(xml: XmlBytes, code: frozenset[str]) -> Iterator[Place]:
    reader = ParagraphReader(xml, code)
    for outermost in xml.elements(frozenset(("w:p", "wp:docPr")), _NAMESPACES):
        known: dict[Segment, RunsPlace] = {}
        for element in outermost.walk():
            if element.name == "wp:docPr":
                for attribute in ("title", "descr"):
                    if alternative := AttributePlace.of(element, attribute, xml):
                        yield alternative
            elif element.name == "w:p" and (place := reader.place(element)):
                if _is_fallback(element) and place.segment in known:
                    known[place.segment].twins.append(place)
                else:
                    known[place.segment] = place
                    yield place


def _is_fallback(element: Element) -> bool:
    return any(around.name == "mc:Fallback" for around in element.ancestors)
