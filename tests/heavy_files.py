"""Files of every kind and any size: such as people write, and such as are made to take time and memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.office_files import docx, odt, zipped

Make = Callable[[int], bytes]  # of about so many bytes

_SENTENCE = "La lettre que le juge avait envoyée est restée sur la table pendant douze jours."
_CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
_OPF = (
    '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">x</dc:identifier></metadata><manifest><item '
    'id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
)
_XLIFF = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file original="x" datatype="plaintext" '
    'source-language="fr" target-language="en"><body>{}</body></file></xliff>'
)
_PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def _page(body: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body>{body}</body></html>'


def epub(body: str) -> bytes:
    names = {"mimetype": "application/epub+zip", "META-INF/container.xml": _CONTAINER, "c.opf": _OPF}
    return zipped({**names, "a.xhtml": _page(body)})


def _book(body: str) -> Make:
    """Of many pages, each with this body."""

    def make(size: int) -> bytes:
        numbers = range(max(1, size // len(body)))
        items = "".join(f'<item id="a{n}" href="a{n}.xhtml" media-type="application/xhtml+xml"/>' for n in numbers)
        spine = "".join(f'<itemref idref="a{n}"/>' for n in numbers)
        opf = _OPF[: _OPF.index("<manifest>")] + f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
        names = {"mimetype": "application/epub+zip", "META-INF/container.xml": _CONTAINER, "c.opf": opf}
        cover = random.Random(1).randbytes(size // 100)  # a picture, so that it shrinks no more than books do
        return zipped({**names, "cover.jpg": cover, **{f"a{n}.xhtml": _page(body) for n in numbers}})

    return make


def _wrapped(kind: str, body: str) -> bytes:
    """A file of a kind around what its body is made of."""
    if kind in ("docx", "odt", "epub"):
        packed: dict[str, Callable[[str], bytes]] = {"docx": docx, "odt": odt, "epub": epub}
        return packed[kind](body)
    around = {"xliff": _XLIFF, "html": _page("{}"), "po": _PO + "{}", "json": "[{}0]", "vtt": "WEBVTT\n\n{}"}
    return around.get(kind, "{}").replace("{}", body, 1).encode()


def _of(kind: str, unit: str, before: str = "", after: str = "") -> Make:
    """`unit` as often as there is room; § in it is a number that is another one each time."""

    def make(size: int) -> bytes:
        count = max(1, size // len(unit.encode()))
        units = (unit.replace("§", str(n)) for n in range(count)) if "§" in unit else (unit for _ in range(count))
        return _wrapped(kind, before + "".join(units) + after)

    return make


def _nested(kind: str, opening: str, closing: str, inside: str = "mot", deepest: int = 1 << 30) -> Make:
    def make(size: int) -> bytes:
        depth = min(deepest, max(1, size // len(opening + closing)))
        return _wrapped(kind, opening * depth + inside + closing * depth)

    return make


_RUN = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>'
_TIMES = "00:00:01,000 --> 00:00:02,000"
_DENSE = "Le juge dort sur un banc de bois vert devant la porte."  # about as short as many sentences may be
_WIDE = "Le juge dort sur un banc de bois 😀 devant la porte."  # each character takes four bytes of memory

# By suffix: about four sentences a paragraph, one of them set off where a kind can do that.
ORDINARY: dict[str, Make] = {
    "txt": _of("txt", f"{' '.join([_SENTENCE] * 4)}\n\n"),
    "md": _of("md", f"{_SENTENCE} {_SENTENCE} **{_SENTENCE}** {_SENTENCE}\n\n"),
    "html": _of("html", f"<p>{_SENTENCE} {_SENTENCE} <b>{_SENTENCE}</b> {_SENTENCE}</p>\n"),
    "epub": _of("epub", f"<p>{_SENTENCE} {_SENTENCE} <b>{_SENTENCE}</b> {_SENTENCE}</p>\n"),
    "docx": _of(
        "docx",
        f'<w:p w:rsidR="00A11B2C"><w:pPr><w:pStyle w:val="Normal"/></w:pPr>{_RUN.format(f"{_SENTENCE} {_SENTENCE} ")}'
        f"<w:r><w:rPr><w:b/></w:rPr><w:t>{_SENTENCE}</w:t></w:r>{_RUN.format(' ' + _SENTENCE)}</w:p>",
    ),
    "odt": _of(
        "odt",
        f'<text:p text:style-name="P1">{_SENTENCE} {_SENTENCE} <text:span text:style-name="T1">{_SENTENCE}</text:span>'
        f" {_SENTENCE}</text:p>",
    ),
    "xliff": _of("xliff", f'<trans-unit id="§"><source>{_SENTENCE} <g id="1">{_SENTENCE}</g></source></trans-unit>\n'),
    "po": _of("po", f'#: shop.c:§\nmsgid "{_SENTENCE} {_SENTENCE} §"\nmsgstr ""\n\n'),
    "json": _of("json", f"{json.dumps(f'{_SENTENCE} {_SENTENCE}', ensure_ascii=False)},\n"),
    "srt": _of("srt", f"§\n{_TIMES}\n{_SENTENCE[:37]}\n{_SENTENCE[38:]}\n\n"),
    "vtt": _of("vtt", f"00:01.000 --> 00:02.000\n<i>{_SENTENCE[:37]}</i>\n{_SENTENCE[38:]}\n\n"),
}

# By suffix: many small pieces, deep nesting, what opens and never closes, what looks like a beginning again and again.
HOSTILE: dict[str, dict[str, Make]] = {
    "txt": {
        "letters": _of("txt", "a\n"),
        "one line": _of("txt", "a"),
        "spaces": _of("txt", " ", "a", "b"),
        "ends": _of("txt", "A. "),
        "marks": _of("txt", "."),
        "items": _of("txt", "- a\n"),
        "wrapped": _of("txt", "lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum\n"),
        "quotes": _of("txt", "“A. "),
        "wide": _of("txt", "。「"),
        "placeholders": _of("txt", "{a}%s "),
        "braces": _of("txt", "{a,plural,"),
        "angles": _of("txt", "<a"),
        "addresses": _of("txt", "a.b@c."),
        "dense": _of("txt", f"{_DENSE}\n\n"),
        "emoji": _of("txt", f"{_WIDE} {_WIDE} {_WIDE} {_WIDE}\n\n"),
        "long words": _of("txt", "ab" * 300 + " "),
    },
    "md": {
        "dense": _of("md", f"- {_DENSE}\n"),
        "dense marks": _of("md", f"{f'**{_DENSE} {_DENSE}** ' * 50}\n\n"),
        "emoji": _of("md", f"- {_WIDE}\n"),
        "items": _nested("md", "- ", ""),
        "quotes": _nested("md", "> ", ""),
        "numbers": _nested("md", "1. ", ""),
        "mixed": _nested("md", "> - ", ""),
        "lines of items": lambda size: "".join(f"{'  ' * n}- a\n" for n in range(int(size**0.5))).encode(),
        "stars": _of("md", "*a "),
        "strong": _of("md", "**a"),
        "closing stars": _of("md", "a* "),
        "stars and lines": _of("md", "*_"),
        "brackets": _nested("md", "[", "]"),
        "open brackets": _of("md", "["),
        "links": _of("md", "[a](b) "),
        "pictures": _nested("md", "![", "](b)"),
        "destinations": _of("md", "[a]("),
        "parentheses": _of("md", "("),
        "definitions": _of("md", "[§]: b\n"),
        "references": _of("md", "[a][b] "),
        "ticks": lambda size: " ".join("`" * n for n in range(1, int((2 * size) ** 0.5))).encode(),
        "ticks again": _of("md", "`a``b"),
        "angles": _of("md", "<a "),
        "tags": _of("md", "<b>"),
        "closing tags": _of("md", "<b>a</i>"),
        "html": _of("md", "<div>\n\n"),
        "comments": _of("md", "<!--\n\n"),
        "instructions": _of("md", "<?a "),
        "cells": _of("md", "a|", "a|b\n-|-\n"),
        "columns": lambda size: (("a|" * (size // 6)) + "\n" + ("-|" * (size // 6)) + "\na\n").encode(),
        "rows": _of("md", "a|b\n", "a|b\n-|-\n"),
        "tables": _of("md", "a|b\n-|-\n"),
        "fences": _of("md", "```\n"),
        "headings": _of("md", "# a\n"),
        "underlines": _of("md", "a\n-\n"),
        "lazy lines": _of("md", "a\n", "> "),
        "empty lines": _of("md", "\n", "- a", "- b"),
        "empty items": _of("md", "-\n"),
        "entities": _of("md", "&amp;"),
        "backslashes": _of("md", "\\"),
        "notes": _of("md", "[^§]: a\n"),
        "tildes": _of("md", "~~a~~"),
        "addresses": _of("md", "http://a."),
        "templates": _of("md", "{{a"),
        "front matter": _of("md", "a: b\n", "---\n"),
    },
    "html": {
        "dense": _of("html", f"<p>{_DENSE}</p>\n"),
        "dense marks": _of("html", f"<p>{f'<b>{_DENSE} {_DENSE}</b> ' * 50}</p>"),
        "emoji": _of("html", f"<p>{_WIDE}</p>\n"),
        "empty": _of("html", "<i></i><p></p>"),
        "names": _of("html", "<x§>"),
        "closing names": _of("html", "</x§>"),
        "attribute names": _of("html", " a§=b", "<p", ">a</p>"),
        "tags": _of("html", "<b>"),
        "pairs": _of("html", "<b>a</b>"),
        "nested": _nested("html", "<b>", "</b>"),
        "closing": _of("html", "<b>a</i>"),
        "blocks": _nested("html", "<div>", "</div>"),
        "paragraphs": _of("html", "<p>a"),
        "lists": _nested("html", "<ul><li>a", ""),
        "cells": _nested("html", "<table><tr><td>a", ""),
        "attributes": _of("html", " a=b", "<p", ">a</p>"),
        "titles": _of("html", '<i title="a b">'),
        "comments": _of("html", "<!-- -->a"),
        "open comments": _of("html", "<!--"),
        "breaks": _of("html", "<br>"),
        "lines": _of("html", "a<br>"),
        "entities": _of("html", "&amp;"),
        "templates": _of("html", "{{a"),
        "scripts": _of("html", "<script>"),
        "sections": _of("html", "<![CDATA["),
        "links": _nested("html", "<a href=x>a", ""),
        "notes": _of("html", "<sup>1</sup>"),
        "less": _of("html", "< "),
    },
    "epub": {
        "pairs": _of("epub", "<b>a</b>"),
        "nested": _nested("epub", "<b>", "</b>"),
        "paragraphs": _of("epub", "<p>a</p>"),
        "links": _nested("epub", "<a>a", "</a>"),
        "pages": _book("<p>a</p>" * 4_000),
    },
    "docx": {
        "paragraphs": _of("docx", f"<w:p>{_RUN.format('a')}</w:p>"),
        "empty": _of("docx", "<w:p/>"),
        "runs": _of("docx", _RUN.format("a"), "<w:p>", "</w:p>"),
        "looks": _of("docx", f"<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r>{_RUN.format('b')}", "<w:p>", "</w:p>"),
        "tabs": _of("docx", "<w:tab/>", "<w:p><w:r><w:t>a</w:t>", "<w:t>b</w:t></w:r></w:p>"),
        "bookmarks": _of(
            "docx", '<w:bookmarkStart w:id="§"/>', f"<w:p>{_RUN.format('a')}", f"{_RUN.format('b')}</w:p>"
        ),
        "links": _of("docx", f"<w:hyperlink>{_RUN.format('a')}</w:hyperlink>", "<w:p>", "</w:p>"),
        "nested links": _nested("docx", "<w:p><w:ins>", "</w:ins></w:p>", _RUN.format("a"), 100),
        "fields": _of("docx", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', "<w:p>", f"{_RUN.format('a')}</w:p>"),
        "field ends": _of(
            "docx",
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>',
            "<w:p>",
            f"{_RUN.format('a')}</w:p>",
        ),
        "names": _of("docx", "<x§/>", "<w:p>", "</w:p>"),
        "attribute names": _of("docx", ' a§="b"', "<w:p", "/>"),
        "sections": _of("docx", "\n", "<w:p><w:r><w:t><![CDATA[a", "]]></w:t></w:r></w:p>"),
        "letters": _of("docx", "<w:t>a</w:t>", "<w:p><w:r>", "</w:r></w:p>"),
        "entities": _of("docx", "&amp;", "<w:p><w:r><w:t>", "</w:t></w:r></w:p>"),
        "boxes": _of(
            "docx", f"<w:r><w:txbxContent><w:p>{_RUN.format('a')}</w:p></w:txbxContent></w:r>", "<w:p>", "</w:p>"
        ),
    },
    "odt": {
        "paragraphs": _of("odt", "<text:p>a</text:p>"),
        "spans": _of("odt", '<text:span text:style-name="a">a</text:span>', "<text:p>", "</text:p>"),
        "nested": _nested("odt", "<text:span>", "</text:span>", "a", 200),
        "gaps": _of("odt", "<text:s/>", "<text:p>a", "b</text:p>"),
        "notes": _of("odt", "<text:note><text:p>a</text:p></text:note>", "<text:p>a", "</text:p>"),
        "bookmarks": _of("odt", '<text:bookmark-start text:name="§"/>', "<text:p>a", "b</text:p>"),
        "entities": _of("odt", "&amp;", "<text:p>", "</text:p>"),
    },
    "xliff": {
        "units": _of("xliff", '<trans-unit id="§"><source>a</source></trans-unit>'),
        "inline": _of("xliff", '<g id="§">a</g>', '<trans-unit id="1"><source>', "</source></trans-unit>"),
        "alone": _of("xliff", "<x/>", '<trans-unit id="1"><source>a', "b</source></trans-unit>"),
        "crossed": _of("xliff", '<bx id="§"/>a', '<trans-unit id="1"><source>', "</source></trans-unit>"),
        "line ends": _of("xliff", "\n", '<trans-unit id="1"><source>a', "b</source></trans-unit>"),
    },
    "po": {
        "emoji": _of("po", f'msgid "{_WIDE} §"\nmsgstr ""\n'),
        "messages": _of("po", 'msgid "a§"\nmsgstr ""\n'),
        "strings": _of("po", '"a"\n', 'msgid ""\n', 'msgstr ""\n'),
        "comments": _of("po", "#\n"),
        "flags": _of("po", "#, fuzzy\n", "", 'msgid "a"\nmsgstr ""\n'),
        "escapes": _of("po", "\\n", 'msgid "a', '"\nmsgstr ""\n'),
        "spaces": _of("po", " ", 'msgid "a', 'b"\nmsgstr ""\n'),
        "tags": _of("po", "<b>", 'msgid "a', '"\nmsgstr ""\n'),
        "forms": _of("po", 'msgstr[§] ""\n', 'msgid "a"\nmsgid_plural "b"\n'),
        "angles": _of("po", "<a ", 'msgid "', '"\nmsgstr ""\n'),
        "braces": _of("po", "{a,number", 'msgid "', '"\nmsgstr ""\n'),
        "wraps": _of("po", "lorem ipsum dolor sit amet lorem ipsum dolor\\n", 'msgid "', 'a"\nmsgstr ""\n'),
    },
    "json": {
        "dense": _of("json", f'"{_DENSE}",'),
        "emoji": _of("json", f'"{_WIDE}",'),
        "keys of numbers": _of("json", '"k§":1,', "{", '"z":0},'),
        "fractions": _of("json", "1.5,"),
        "strings": _of("json", '"a",'),
        "objects": _of("json", '{"a":"b"},'),
        "empty": _of("json", "[],"),
        "numbers": _of("json", "1,"),
        "keys": _of("json", '"k§":"a",', "{", '"z":0},'),
        "entries": _of("json", '"k§":{"message":"a"},', "{", '"z":{"message":"b"}},'),
        "nested": _nested("json", "[", "]", '"a"', 900),
        "deep": _nested("json", "[", "]", '"a"'),
        "escapes": _of("json", "\\n", '"a', 'b",'),
        "spaces": _of("json", " ", '"a', 'b",'),
        "choices": _of("json", "{a,plural,", '"', '",'),
        "tags": _of("json", "<b>", '"a', '",'),
    },
    "srt": {
        "emoji": _of("srt", f"1\n{_TIMES}\n{_WIDE}\n\n"),
        "cues": _of("srt", f"1\n{_TIMES}\na\n\n"),
        "empty": _of("srt", f"{_TIMES}\n\n"),
        "lines": _of("srt", "a\n", f"1\n{_TIMES}\n"),
        "dialogue": _of("srt", "- a\n", f"1\n{_TIMES}\n"),
        "tags": _of("srt", "<i>", f"1\n{_TIMES}\na"),
        "pairs": _of("srt", "<i>a</i>", f"1\n{_TIMES}\n"),
        "styles": _of("srt", "{\\an8}", f"1\n{_TIMES}\na"),
        "blank lines": _of("srt", "\n", f"1\n{_TIMES}\na"),
        "arrows": _of("srt", "-->\n"),
        "one sentence": _of("srt", f"1\n{_TIMES}\na,\n\n"),
    },
    "vtt": {
        "cues": _of("vtt", "00:01.000 --> 00:02.000\na\n\n"),
        "times": _of("vtt", "<00:01.000>a", "00:01.000 --> 00:02.000\n"),
        "classes": _of("vtt", "<c.a>b", "00:01.000 --> 00:02.000\n"),
        "notes": _of("vtt", "NOTE a\n\n"),
        "entities": _of("vtt", "&amp;", "00:01.000 --> 00:02.000\n"),
    },
}
