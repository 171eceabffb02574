"""OpenDocument texts (.odt): paragraphs, headings, cells, notes, text boxes, alternative texts, headers and footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docnmt.base.errors import DocnmtError
from docnmt.documents.archive import Archive, PackageText
from docnmt.documents.outline import Inline, Outline
from docnmt.documents.segment import FileText, Place
from docnmt.documents.xml import Element, XmlText, pieces_of, text_places, xml_file

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMESPACES = {
    f"{_OASIS}text:1.0": "text",
    f"{_OASIS}style:1.0": "style",
    f"{_OASIS}office:1.0": "office",
    f"{_OASIS}table:1.0": "table",
    f"{_OASIS}svg-compatible:1.0": "svg",
    f"{_OASIS}manifest:1.0": "manifest",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://openoffice.org/2009/office": "officeooo",
}
# In the order in which they are read: the title first, headers and footers last.
_PARTS = ("meta.xml", "content.xml", "styles.xml")
_WITH_TEXT = {"text:p", "text:h", "svg:title", "svg:desc", "dc:title"}
_STYLE = {"style:style"}
_AROUND = {"text:span", "text:a", "text:meta"}
_GAPS = {"text:s", "text:tab", "text:line-break"}
# LibreOffice's and pandoc's names, without the various ways of writing the space in them.
_CODE = {"preformattedtext", "sourcetext", "sourcecode", "teletype", "userentry", "verbatimchar"}
_SESSIONS = {"officeooo:rsid", "officeooo:paragraph-rsid"}
_BOUNDS = {"start": "", "end": "/"}
# Comments are for the authors, and deleted text is no longer there for readers.
_NOT_READ = {"office:annotation", "text:tracked-changes"}


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    files = Archive(data, name)
    _check(files, name)
    common: set[str] = set()  # styles of code that all parts share
    for style in XmlText(files.get("styles.xml", b"<none/>"), f"{name} (styles.xml)").elements(_STYLE, _NAMESPACES):
        if style.parent and style.parent.name == "office:styles" and _names_code(_parent_style(style), common):
            common.add(style.attributes.get("style:name", ""))
    parts = {}
    for part in _PARTS:
        if part in files:
            reader = _Part(XmlText(files[part], f"{name} ({part})"), common)
            outline = Outline(_NAMESPACES, reader.inline)
            parts[part] = xml_file(reader.xml, _WITH_TEXT | _STYLE, reader.places, outline, files.room)
    return PackageText(data, parts)


def _check(files: Mapping[str, bytes], name: str) -> None:
    manifest = XmlText(files.get("META-INF/manifest.xml", b"<none/>"), f"{name} (META-INF/manifest.xml)")
    if any(manifest.elements({"manifest:encryption-data"}, _NAMESPACES)):
        raise DocnmtError(
            f"{name}: the document is encrypted\n  Save the document without a password, then translate it."
        )
    kind = files.get("mimetype", b"").decode("ascii", "replace").strip()
    if "content.xml" not in files or (kind and not kind.startswith("application/vnd.oasis.opendocument.text")):
        is_of = f"it is {kind}" if kind else "it has no content.xml"
        problem = f"not an OpenDocument text, although its name ends in .odt: {is_of}"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .odt in the program that made it.")


def _parent_style(style: Element) -> str:
    return style.attributes.get("style:parent-style-name", "")


def _names_code(style: str, known: set[str]) -> bool:
    return style in known or style.replace("_20_", "").replace("_", "").lower() in _CODE


class _Part:
    """One of the XML files in the archive."""

    def __init__(self, xml: XmlText, code: set[str]):
        self.xml, self._code = xml, set(code)
        # Styles that only tell in which session a text was typed: LibreOffice cuts words into pieces with them.
        self._unseen: set[str] = set()
        self._in_text = False

    def places(self, outermost: Element) -> Iterator[Place]:
        if outermost.name in _STYLE:
            if not self._in_text:  # styles come before all text: one after it would be known only when this is written
                self._add_style(outermost)
            return
        self._in_text = True
        for element in _with_text(outermost):
            if not self._is_code(element.attributes):
                yield from text_places(pieces_of(element, self.inline, _link), _role(element))

    def _add_style(self, style: Element) -> None:
        name, parent = style.attributes.get("style:name", ""), _parent_style(style)
        attributes = (key for child in style.elements for key in child.attributes)
        if _names_code(parent, self._code):
            self._code.add(name)
        elif style.attributes.get("style:family") == "text" and not parent and _SESSIONS.issuperset(attributes):
            self._unseen.add(name)

    def _is_code(self, attributes: Mapping[str, str]) -> bool:
        return _names_code(attributes.get("text:style-name", ""), self._code)

    def inline(self, name: str, attributes: Mapping[str, str]) -> Inline:
        if name in _AROUND and not self._is_code(attributes):
            unseen = name == "text:span" and attributes.get("text:style-name", "") in self._unseen
            return Inline.UNSEEN if unseen else Inline.AROUND
        return Inline.GAP if name in _GAPS else Inline.ALONE


_ROLES = {"text:h": "heading", "svg:title": "picture", "svg:desc": "picture", "dc:title": "title"}
_ROLES_INSIDE = {"text:note": "note", "table:table-cell": "cell", "style:master-page": "header"}


def _role(element: Element) -> str:
    inside = (_ROLES_INSIDE[around.name] for around in element.ancestors if around.name in _ROLES_INSIDE)
    return _ROLES.get(element.name) or next(inside, "")


def _with_text(element: Element) -> Iterator[Element]:
    """The paragraphs in an element, itself and those in its notes and frames."""
    if any(around.name in _NOT_READ for around in element.ancestors):
        return
    if element.name in _WITH_TEXT:
        yield element
    for child in element.elements:
        yield from _with_text(child)


def _link(element: Element) -> str:
    """Bookmarks, comments and the like begin at one element and end at another."""
    kind, _, bound = element.name.rpartition("-")
    if element.name == "office:annotation":
        kind, bound = element.name, "start"
    keys = (element.attributes.get(key) for key in ("text:name", "office:name", "text:id", "text:change-id"))
    key = next(filter(None, keys), "")
    return f"{_BOUNDS[bound]}{kind} {key}" if bound in _BOUNDS and key else ""
