"""Small documents for tests, written by hand, and translations of their segments that are easy to check."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from docnmt.documents.segment import FileText, Segment

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = {"document": "document.main", "footnotes": "footnotes", "header1": "header", "styles": "styles"}
_ODT = "application/vnd.oasis.opendocument.text"
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
ODF = {"text": f"{_OASIS}:text:1.0", "office": f"{_OASIS}:office:1.0", "draw": f"{_OASIS}:drawing:1.0"}


def zipped(files: dict[str, bytes | str], stored: tuple[str, ...] = ("mimetype",)) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            packed = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2020, 2, 2, 2, 2, 2)), content, packed)
    return out.getvalue()


def part_of(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


def word_part(body: str, root: str = "document") -> str:
    namespaces = (
        f'xmlns:w="{W}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    inner = f"<w:body>{body}</w:body>" if root == "document" else body
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n<w:{root} {namespaces}>{inner}</w:{root}>'


def docx(body: str, title: str = "", **parts: str) -> bytes:
    """A Word document with this body, and other parts under word/."""
    parts = {"document": word_part(body), **parts}
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_WORD}.{_PARTS[name]}+xml"/>' for name in parts
    )
    core = "application/vnd.openxmlformats-package.core-properties+xml"
    files: dict[str, bytes | str] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/docProps/core.xml" ContentType="{core}"/>{overrides}</Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Target="word/document.xml" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/officeDocument"/></Relationships>',
        "docProps/core.xml": '<cp:coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:cp="http://schemas.'
        f'openxmlformats.org/package/2006/metadata/core-properties"><dc:title>{title}</dc:title></cp:coreProperties>',
        "word/media/image1.png": b"\x89PNG no picture",
    }
    return zipped(files | {f"word/{name}.xml": content for name, content in parts.items()})


def odt(body: str, styles: str = "", manifest: str = "", title: str = "", page: str = "", named: str = "") -> bytes:
    """An OpenDocument text with this body, automatic styles, entries of the manifest, a header on its pages and styles
    with names."""
    namespaces = " ".join(f'xmlns:{prefix}="{address}"' for prefix, address in ODF.items())
    namespaces += (
        f' xmlns:style="{_OASIS}:style:1.0" xmlns:svg="{_OASIS}:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/'
        '1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:officeooo="http://openoffice.org/2009/office"'
        f' xmlns:table="{_OASIS}:table:1.0" office:version="1.2"'
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return zipped(
        {
            "mimetype": _ODT,
            "content.xml": f"{head}<office:document-content {namespaces}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
            "</office:document-content>",
            "styles.xml": f"{head}<office:document-styles {namespaces}><office:styles>{named}"
            f"</office:styles><office:master-styles>"
            f'<style:master-page style:name="Standard"><style:header>{page}</style:header></style:master-page>'
            "</office:master-styles></office:document-styles>",
            "meta.xml": f"{head}<office:document-meta {namespaces}><office:meta><dc:title>{title}</dc:title>"
            "</office:meta></office:document-meta>",
            "META-INF/manifest.xml": f'{head}<manifest:manifest xmlns:manifest="{_OASIS}:manifest:1.0">'
            f"{_entry('/', _ODT)}{_entry('content.xml')}{_entry('styles.xml')}{_entry('meta.xml')}{manifest}"
            "</manifest:manifest>",
        }
    )


def _entry(path: str, kind: str = "text/xml") -> str:
    return f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{kind}"/>'


def texts(file: FileText) -> list[str]:
    return [segment.text for segment in file.segments]


def shouted(file: FileText) -> bytes:
    """The file with all that is to be translated in capitals of the same length, marks where they were."""
    return file.write([replace(s, text=_capitals(s.text)) if s.translate else s for s in file.segments])


def _capitals(text: str) -> str:
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


@st.composite
def moved(draw: st.DrawFn, segments: Sequence[Segment], words: str = "xyz <&> ") -> list[Segment]:
    """Translations of any text with the same marks at any places, also where pairs cross or are turned around."""
    result = []
    for segment in segments:
        text = "w" + draw(st.text(words, max_size=12)) + "w"
        places = draw(st.lists(st.integers(0, len(text)), min_size=len(segment.marks), max_size=len(segment.marks)))
        marks = [replace(mark, at=at) for mark, at in zip(segment.marks, places, strict=True)]
        marks = draw(st.permutations(marks)) if len(marks) < 8 else marks
        result.append(Segment(text, tuple(sorted(marks, key=lambda mark: mark.at)), segment.translate))
    return result
