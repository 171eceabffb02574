"""Every kind of file through the whole way: unchanged by an identity translation, in place and whole by any other."""

from __future__ import annotations

import html
import json
import re
import time
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

import docnmt.decoding.excerpts
from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import translate_bytes
from docnmt.documents import KINDS, read_document
from docnmt.documents.placeholders import without
from docnmt.documents.segment import is_document
from tests.fake_translator import Fake, backwards
from tests.heavy_files import HOSTILE, ORDINARY
from tests.office_files import docx, odt, word_part, zipped

SENTENCES = (
    "Le chat de M. Roux dort.",
    "Où vas-tu ?",
    "Il reste %s pommes & {name}.",
    "C'est la fin…",
    "Voilà !",
    "Oui, « non ».",
)

_XHTML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head>'
)
_OPF = (
    '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x</dc:identifier></metadata><manifest><item '
    'id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
)
_CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def epub(body: str) -> bytes:
    names = {"mimetype": "application/epub+zip", "META-INF/container.xml": _CONTAINER, "c.opf": _OPF}
    return zipped({**names, "a.xhtml": f"{_XHTML}<body>{body}</body></html>"})


def sample(kind: str, one: str, two: str) -> bytes:
    """A file with two sentences in a paragraph, the second one set off where the kind can do that."""
    a, b = html.escape(one, quote=False), html.escape(two, quote=False)
    if kind == "epub":
        return epub(f"<p>{a} <b>{b}</b></p>")
    if kind == "docx":
        return docx(f"<w:p><w:r><w:t>{a} </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>{b}</w:t></w:r></w:p>")
    if kind == "odt":
        return odt(f'<text:p>{a} <text:span text:style-name="T1">{b}</text:span></text:p>')
    quoted = json.dumps(f"{one} {two}", ensure_ascii=False)
    return {
        "text": f"{one} {two}\r\n",
        "markdown": f"# Titre\n\n{one} **{two}**\n",
        "html": f'<p class="x">{a} <b>{b}</b></p>',
        "xliff": '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file original="x" datatype='
        '"plaintext" source-language="fr" target-language="en"><body><trans-unit id="1">'
        f"<source>{a} {b}</source></trans-unit></body></file></xliff>",
        "po": f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid {quoted}\nmsgstr ""\n',
        "json_strings": f'{{"a": {quoted}}}\n',
        "subtitles": f"1\n00:00:01,000 --> 00:00:02,000\n{one}\n{two}\n",
    }[kind].encode()


def words(data: bytes) -> str:
    """All that is in a file, unpacked."""
    if not data.startswith(b"PK"):
        return data.decode()
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return "".join(archive.read(name).decode(errors="replace") for name in archive.namelist())


def suffix_of(kind: str) -> str:
    return next(suffix for suffix, name in KINDS.items() if name == kind)


def test_every_kind_is_attacked():
    """What is not in these tables neither the fuzzer nor the tests of growth would try."""
    for table in (ORDINARY, HOSTILE):
        assert {KINDS[f".{suffix}"] for suffix in table} == set(KINDS.values())


@pytest.fixture(autouse=True, scope="module")
def no_links():
    patch = pytest.MonkeyPatch()
    patch.setattr(docnmt.decoding.excerpts, "align", lambda translator, pairs: [[] for _ in pairs])
    yield
    patch.undo()


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
@given(pair=st.tuples(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES)))
def test_an_identity_translation(kind, pair):
    """Files that have a place for a translation get it; all others stay as they are, to the byte."""
    data, name = sample(kind, *pair), f"a{suffix_of(kind)}"
    out = translate_bytes(Fake(lambda text: text), data, name)
    if kind == "xliff":
        given = [segment.text for segment in read_document(data, name, ("fr", "en")).segments]
        assert given == [f"{pair[0]} {pair[1]}"]
        assert words(out).count(pair[0].split()[0]) > words(data).count(pair[0].split()[0])
    else:
        assert out == data


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
@given(
    pair=st.tuples(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES)),
    say=st.sampled_from([str.swapcase, backwards, lambda text: without(text).upper(), lambda text: f"{text} {text}"]),
)
def test_any_other_translation_leaves_the_file_whole(kind, pair, say):
    data, name = sample(kind, *pair), f"a{suffix_of(kind)}"
    out = translate_bytes(Fake(say), data, name)
    assert out != data
    before, after = read_document(data, name, ("fr", "en")), read_document(out, name, ("fr", "en"))
    if kind not in ("po", "xliff"):
        assert len(before.segments) == len(after.segments)
        assert [len(segment.marks) for segment in before.segments] == [len(segment.marks) for segment in after.segments]
    text = html.unescape(words(out))
    for code in re.findall(r"%s|\{name\}", "".join(pair)):
        assert text.count(code) >= "".join(pair).count(code)


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
def test_a_long_run_of_spaces_takes_no_long_time(kind):
    data = sample(kind, "Le chat" + 60_000 * " " + "dort.", "Il rêve.")
    started = time.process_time()
    file = read_document(data, f"a{suffix_of(kind)}", ("fr", "en"))
    file.write(file.segments)
    assert time.process_time() - started < 4


@pytest.mark.parametrize("name", ["letter.doc", "book.PDF", "sheet.xlsx"])
def test_files_that_are_not_read_are_named_as_such(name: str) -> None:
    with pytest.raises(DocnmtError, match=rf"{name}: this kind of file is not supported\n  Save it as .docx"):
        is_document(name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("a.yaml", "po, .xliff"), ("a.CSV", ".txt, one per line"), ("x.properties", ".json"), ("f.ass", ".srt")]
    + [(f"a.{suffix}", ".po, .xliff") for suffix in ("plist", "svg", "tsx", "desktop", "conf")]
    + [("a.latex", ".docx"), ("a.asciidoc", ".html"), ("a.lrc", ".vtt")],
)
def test_files_with_keys_are_not_read_as_lines(name: str, remedy: str) -> None:
    with pytest.raises(DocnmtError, match=rf"{name}: this kind of file is not supported\n  .*{remedy}"):
        is_document(name)


# ---- what a part of a document is ----


def roles(data: bytes, name: str) -> list[str]:
    return [segment.role for segment in read_document(data, name, ("fr", "en")).segments]


def test_headings_cells_notes_and_pictures_are_told_apart():
    markdown = "# Un\n\nDeux.\n\nTrois\n---\n\n| a | b |\n|-|-|\n| c | d |\n\nQuatre[^1]\n\n[^1]: Cinq.\n\n![Six](a)\n"
    assert roles(markdown.encode(), "a.md") == ["heading", "", "heading", *["cell"] * 4, "", "note", "picture"]
    page = "<title>Un</title><h2>De<b>ux</b></h2><p>Trois</p><table><tr><td><p>Q</p><p>C</p><th>S</table>S<img alt=H>"
    assert roles(page.encode(), "a.html") == ["title", "heading", "", "cell", "cell", "cell", "", "picture"]
    paragraph = "<w:p>{}<w:r><w:t>Un</w:t></w:r></w:p>".format
    style = '<w:style w:styleId="T1"><w:name w:val="heading 1"/></w:style>'
    word = docx(
        paragraph('<w:pPr><w:pStyle w:val="T1"/></w:pPr>')
        + paragraph("")
        + f"<w:tbl><w:tr><w:tc>{paragraph('')}</w:tc></w:tr></w:tbl>"
        + '<w:p><w:r><w:drawing><wp:docPr descr="Un"/></w:drawing></w:r></w:p>',
        title="Un",
        styles=word_part(style, "styles"),
        footnotes=word_part(f'<w:footnote w:id="1">{paragraph("")}</w:footnote>', "footnotes"),
        header1=word_part(paragraph(""), "hdr"),
    )
    assert roles(word, "a.docx") == ["title", "heading", "", "cell", "picture", "note", "header"]
    text = odt(
        "<text:h>Un</text:h><text:p>Deux</text:p><table:table><table:table-row><table:table-cell><text:p>Trois</text:p>"
        "</table:table-cell></table:table-row></table:table><text:p>Q<text:note><text:note-body><text:p>Cinq</text:p>"
        "</text:note-body></text:note></text:p>",
        title="Un",
    )
    assert roles(text, "a.odt") == ["title", "heading", "", "cell", "", "note"]
