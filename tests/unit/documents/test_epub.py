"""EPUB: the book in the order in which it is read; all that is not its text stays packed as it is."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.epub import read
from docnmt.documents.segment import Segment
from tests.office_files import moved, part_of, shouted, texts, zipped

CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title id="t">Two &amp; more</dc:title><dc:creator>Some Body</dc:creator><dc:language>en</dc:language></metadata>
<manifest><item id="two" href="text/b%20c.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="style" href="s.css" media-type="text/css"/></manifest>
<spine toc="ncx"><itemref idref="one"/><itemref idref="two"/></spine></package>"""
NCX = (
    '<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><docTitle><text>Two</text></docTitle>'
    "<navMap><navPoint><navLabel><text>Part one</text></navLabel><content src='text/a.xhtml'/></navPoint></navMap>"
    "</ncx>"
)


def page(body: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xml:lang="en" lang="en"><head><title/></head><body>{body}</body></html>'
    )


def book(**changed: str | bytes | None) -> bytes:
    """A book of two pages; `changed` are other contents of its files, None for a file that is missing."""
    files: dict[str, str | bytes | None] = {
        "mimetype": "application/epub+zip",
        "container": CONTAINER,
        "package": PACKAGE,
        "two": page("<p>The <i>second</i> page</p>"),
        "one": page('<h1>Part one</h1><p>Some<br/>words <a epub:type="noteref" href="#n">[1]</a>&#160;here</p>'),
        "nav": page('<nav epub:type="toc"><ol><li><a href="text/a.xhtml">Part one</a></li></ol></nav>'),
        "ncx": NCX,
        "style": "p { color: red }",
    }
    names = {
        "container": "META-INF/container.xml",
        "package": "OEBPS/book.opf",
        "two": "OEBPS/text/b c.xhtml",
        "one": "OEBPS/text/a.xhtml",
        "nav": "OEBPS/nav.xhtml",
        "ncx": "OEBPS/toc.ncx",
        "style": "OEBPS/s.css",
        "encryption": "META-INF/encryption.xml",
    }
    return zipped({names.get(k, k): content for k, content in (files | changed).items() if content is not None})


def test_the_book_is_read_in_the_order_of_its_spine() -> None:
    assert texts(read(book(), "a.epub", ("en", "fr"))) == [
        "Two & more",
        "Part one",
        "Some words \xa0here",
        "The second page",
        "Part one",
        "Two",
        "Part one",
    ]


def test_unchanged_segments_give_the_same_bytes() -> None:
    opened = read(book(), "a.epub", ("en", "fr"))
    assert opened.write(opened.segments) == book()


def test_the_translation_lands_where_the_text_was() -> None:
    new = shouted(read(book(), "a.epub", ("en", "fr")))
    package = part_of(new, "OEBPS/book.opf").decode()
    assert '<dc:title id="t">TWO &amp; MORE</dc:title><dc:creator>Some Body</dc:creator>' in package
    assert "<dc:language>fr</dc:language>" in package
    first = part_of(new, "OEBPS/text/a.xhtml").decode()
    assert 'xml:lang="fr" lang="fr"' in first
    assert '<p>SOME <br/>WORDS <a epub:type="noteref" href="#n">[1]</a>&#160;HERE</p>' in first
    assert "<p>THE <i>SECOND</i> PAGE</p>" in part_of(new, "OEBPS/text/b c.xhtml").decode()
    assert '<a href="text/a.xhtml">PART ONE</a>' in part_of(new, "OEBPS/nav.xhtml").decode()
    assert "<docTitle><text>TWO</text></docTitle>" in part_of(new, "OEBPS/toc.ncx").decode()
    assert part_of(new, "OEBPS/s.css") == b"p { color: red }"


def test_the_type_of_the_book_stays_first_and_unpacked() -> None:
    with zipfile.ZipFile(io.BytesIO(shouted(read(book(), "a.epub", ("en", "fr"))))) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.namelist() == zipfile.ZipFile(io.BytesIO(book())).namelist()


def test_the_language_of_the_book_changes_though_its_title_does_not() -> None:
    opened = read(book(), "a.epub", ("en", "fr"))
    segments = [opened.segments[0], *(Segment("Autre", s.marks) for s in opened.segments[1:])]
    assert "<dc:language>fr</dc:language>" in part_of(opened.write(segments), "OEBPS/book.opf").decode()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_pages_stay_well_formed(data: st.DataObject) -> None:
    body = "<p>one <b>two <i>three</i></b> <a href='x'>four</a> <a href='y'>five</a><br/>six <img alt='a b'/> end</p>"
    original = book(one=page(body))
    opened = read(original, "a.epub", ("en", "fr"))
    new = opened.write(data.draw(moved(opened.segments)))
    tree = ET.fromstring(part_of(new, "OEBPS/text/a.xhtml"))
    tags = [element.tag.rpartition("}")[2] for element in tree.iter()]
    assert sorted(tags) == ["a", "a", "b", "body", "br", "head", "html", "i", "img", "p", "title"]


def encrypted(algorithm: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>'
        f'<enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>'
    )


def test_hidden_fonts_are_no_protection() -> None:
    data = book(encryption=encrypted("http://www.idpf.org/2008/embedding"))
    assert len(read(data, "a.epub", ("", "")).segments) == 7


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (book(encryption=encrypted("http://www.w3.org/2001/04/xmlenc#aes128-cbc")), "copy-protected (DRM)"),
        (book(container=None), "not an EPUB book: META-INF/container.xml is missing"),
        (book(package=None), "the book's package file is missing: OEBPS/book.opf"),
        (book(one=None), "OEBPS/text/a.xhtml is listed in the book but is missing"),
        (
            book(one="<p>never <b class='x></p>"),
            "OEBPS/text/a.xhtml, line 1: this tag lacks its > or its closing quote",
        ),
        (
            book(package=PACKAGE.replace("<package", '<!DOCTYPE p [<!ENTITY a "b">]><package')),
            "the DOCTYPE declares entities",
        ),
        (b"%PDF-1.4", "is not a zip archive, although its name says so"),
    ],
)
def test_bad_books_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)) as caught:
        read(data, "bad.epub", ("", ""))
    assert str(caught.value).startswith("bad.epub") and "\n  " in str(caught.value)
