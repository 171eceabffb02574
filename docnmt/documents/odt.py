"""OpenDocument texts (.odt): paragraphs, headings, cells, notes, text boxes, alternative texts, headers and footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from docnmt.base.errors import DocnmtError
from docnmt.documents.archive import Archive, PackageText
from docnmt.documents.outline import Outline
from docnmt.documents.segment import FileText
from docnmt.documents.xml import Element, Inline, MixedPlace, XmlBytes, XmlText, pieces_of

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMESPACES = {
    f"{_OASIS}text:1.0": "text",
    f"{_OASIS}style:1.0": "style",
    f"{_OASIS}office:1.0": "office",
    f"{_OASIS}svg-compatible:1.0": "svg",
    f"{_OASIS}manifest:1.0": "manifest",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://openoffice.org/2009/office": "officeooo",
}
# In the order in which they are read: the title first, headers and footers last.
_PARTS = ("meta.xml", "content.xml", "styles.xml")
_WITH_TEXT = frozenset(("text:p", "text:h", "svg:title", "svg:desc", "dc:title"))
_STYLE = frozenset(("style:style",))
_AROUND = frozenset(("text:span", "text:a", "text:meta"))
_GAPS = frozenset(("text:s", "text:tab", "text:line-break"))
# LibreOffice's and pandoc's names, whichever way they spell the space in them.
_CODE = frozenset(("preformattedtext", "sourcetext", "sourcecode", "teletype", "userentry", "verbatimchar"))
_BOUNDS = {"start": "", "end": "/"}
# Comments are for the authors, and what was deleted is no longer read.
_NOT_READ = frozenset(("office:annotation", "text:tracked-changes"))


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    files = Archive(data, name)
    _check(files, name)
    parts = {}
    common = _Styles()
    for style in XmlBytes(files.get("styles.xml", b"<none/>"), f"{name} (styles.xml)").elements(_STYLE, _NAMESPACES):
        if style.parent and style.parent.name == "office:styles":
            common.add(style)
    for part in _PARTS:
        if part in files:
            xml = XmlBytes(files[part], f"{name} ({part})")
            styles = _Styles(common)
            parts[part] = XmlText(xml, partial(_places, xml, styles), Outline(_NAMESPACES, _AROUND, styles.is_unseen))
    return PackageText(data, parts)


class _Styles:
    """What a reader does not see of styles: those of code, and those that only say in which session a text was typed.
    LibreOffice cuts words apart with these. Styles of the whole document are known in each of its parts."""

    def __init__(self, common: _Styles | None = None):
        self._code: set[str] = set(common._code) if common else set()
        self._unseen: set[str] = set()

    def add(self, style: Element) -> None:
        name, parent = (style.attributes.get(key, "") for key in ("style:name", "style:parent-style-name"))
        attributes = [key for child in style.elements for key in child.attributes]
        if self._names_code(parent):
            self._code.add(name)
        elif style.attributes.get("style:family") == "text" and not parent and all(map(_is_session, attributes)):
            self._unseen.add(name)

    def is_code(self, element: Element) -> bool:
        return self._names_code(element.attributes.get("text:style-name", ""))

    def _names_code(self, style: str) -> bool:
        return style in self._code or style.replace("_20_", "").replace("_", "").lower() in _CODE

    def is_unseen(self, name: str, attributes: Mapping[str, str]) -> bool:
        return name == "text:span" and attributes.get("text:style-name", "") in self._unseen


def _check(files: Mapping[str, bytes], name: str) -> None:
    manifest = files.get("META-INF/manifest.xml")
    if manifest is not None:
        encryption = frozenset(("manifest:encryption-data",))
        xml = XmlBytes(manifest, f"{name} (META-INF/manifest.xml)")
        if any(xml.elements(encryption, _NAMESPACES)):
            raise DocnmtError(f"{name}: encrypted\n  Save the document without a password, then translate it.")
    kind = files.get("mimetype", b"").decode("ascii", "replace").strip()
    if "content.xml" not in files or (kind and not kind.startswith("application/vnd.oasis.opendocument.text")):
        is_of = f"it is of the kind {kind}" if kind else "there is no content.xml in it"
        problem = f"not what its name says: no OpenDocument text, {is_of}"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .odt in the program that made it.")


def _places(xml: XmlBytes, styles: _Styles) -> Iterator[MixedPlace]:
    def inline(element: Element) -> Inline:
        if element.name in _AROUND and not styles.is_code(element):
            return Inline.UNSEEN if styles.is_unseen(element.name, element.attributes) else Inline.AROUND
        return Inline.GAP if element.name in _GAPS else Inline.ALONE

    for outermost in xml.elements(_WITH_TEXT | _STYLE, _NAMESPACES):
        if outermost.name == "style:style":  # these stand before the text that uses them
            styles.add(outermost)
            continue
        for element in _with_text(outermost):
            if styles.is_code(element):
                continue
            if place := MixedPlace.of(list(pieces_of(element, inline, _link)), xml, collapse=True):
                yield place


def _with_text(element: Element) -> Iterator[Element]:
    """The paragraphs in an element, itself and those in its notes and frames."""
    if any(around.name in _NOT_READ for around in element.ancestors):
        return
    if element.name in _WITH_TEXT:
        yield element
    for child in element.elements:
        yield from _with_text(child)


def _is_session(attribute: str) -> bool:
    return attribute in ("officeooo:rsid", "officeooo:paragraph-rsid")


def _link(element: Element) -> str:
    """Bookmarks, comments and the like have a beginning and an end in the text."""
    kind, _, bound = element.name.rpartition("-")
    if element.name == "office:annotation":
        kind, bound = element.name, "start"
    keys = (element.attributes.get(key) for key in ("text:name", "office:name", "text:id", "text:change-id"))
    key = next(filter(None, keys), "")
    return f"{_BOUNDS[bound]}{kind} {key}" if bound in _BOUNDS and key else ""
