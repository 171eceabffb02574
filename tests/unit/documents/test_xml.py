"""XML with the places of its elements: in any encoding, well-formed or not, hostile or not."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents import xml as xml_elements
from docnmt.documents.xml import MAX_DEPTH, Element, Text, XmlText

SAMPLE = (
    '<?xml version="1.0" encoding="ENCODING"?>\r\n<!-- remark --><r xmlns="urn:a" xmlns:q="urn:b" q:x="1">\r\n'
    '<p one="1 > 2" q:two=\'"&lt;é\'>Hé &amp; <b/>a<![CDATA[<y>&]]>z<!-- no --><?do it?>&#233;\r\nend</p >'
    "<other><q:p><p>in</p></q:p></other><p/></r>\n<!-- end -->"
)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "windows-1252"])
def test_places_in_any_encoding(codec: str) -> None:
    declared = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16"}.get(codec, codec)
    data = SAMPLE.replace("ENCODING", declared).encode(codec)
    xml = XmlText(data, "x")
    first, second, third = xml.elements(frozenset(("a:p", "b:p")), {"urn:a": "a", "urn:b": "b"})
    assert xml.text[first.start : first.inner] == '<p one="1 > 2" q:two=\'"&lt;é\'>'
    assert xml.text[first.outer : first.end] == "</p >"
    spelled = [xml.text[child.start : child.end] for child in first.children]
    assert "".join(spelled) == "Hé &amp; <b/>a<![CDATA[<y>&]]>z<!-- no --><?do it?>&#233;\r\nend"
    assert first.text() == "Hé & a<y>&zé\nend"
    assert first.attributes == {"one": "1 > 2", "b:two": '"<é'}
    assert [xml.text[slice(*xml.attribute(first, name) or (0, 0))] for name in ("one", "q:two")] == ["1 > 2", '"&lt;é']
    assert xml.attribute(first, "two") is None
    assert (second.name, xml.tag_name(second)) == ("b:p", "q:p")
    assert [around.name for around in second.ancestors] == ["b:p", "a:other", "a:r"]
    assert xml.text[third.start : xml.tag_end(third)] == "<p" and third.inner == third.outer == third.end
    assert xml.root is not None and xml.root.name == "a:r" and xml.root.attributes == {"b:x": "1"}


@given(st.recursive(st.text("ab<&>é𝄞\n", max_size=4), lambda inner: st.lists(inner, max_size=4), max_leaves=12))
@settings(max_examples=100, deadline=None)
def test_the_same_tree_as_another_parser(tree: object) -> None:
    def written(node: object) -> str:
        if isinstance(node, str):
            return node.replace("&", "&amp;").replace("<", "&lt;")
        return f"<e>{''.join(map(written, node))}</e>" if isinstance(node, list) and node else "<e/>"

    text = f"<r>{written(tree)}</r>"
    [root] = XmlText(text.encode(), "x").elements(frozenset("r"), {})

    def same(mine: Element, theirs: ET.Element) -> None:
        assert mine.text() == "".join(theirs.itertext())
        children = list(mine.elements)
        assert len(children) == len(theirs)
        for one, other in zip(children, theirs, strict=True):
            # What is at the place of an element is an element, the same one.
            again = ET.fromstring(text[one.start : one.end])
            other.tail = None
            assert ET.tostring(again) == ET.tostring(other)
            same(one, other)

    same(root, ET.fromstring(text))


def test_a_section_is_one_text() -> None:
    data = b"<r>a<![CDATA[ \n<b>\n]]><![CDATA[]]>c</r>"
    [root] = XmlText(data, "x").elements(frozenset("r"), {})
    assert [data[child.start : child.end] for child in root.children] == [
        b"a",
        b"<![CDATA[ \n<b>\n]]>",
        b"<![CDATA[]]>",
        b"c",
    ]
    assert root.text() == "a \n<b>\nc"


def test_elements_come_as_the_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_elements, "_CHUNK", 7)
    data = ("<r>" + "".join(f"<p>tex&amp;t {i}</p>" for i in range(50)) + "</r>").encode()
    found = list(XmlText(data, "x").elements(frozenset("p"), {}))
    assert [data[element.start : element.end].decode() for element in found] == [
        f"<p>tex&amp;t {i}</p>" for i in range(50)
    ]
    assert all(isinstance(child, Text) for element in found for child in element.children)


def test_a_dtd_that_is_only_named_is_not_fetched() -> None:
    data = b'<!DOCTYPE r SYSTEM "http://localhost:9/x.dtd"><r>a&nbsp;b</r>'
    [root] = XmlText(data, "x").elements(frozenset("r"), {})
    assert [data[child.start : child.end] for child in root.children] == [b"a", b"&nbsp;", b"b"]


def error_of(data: bytes) -> str:
    with pytest.raises(DocnmtError) as caught:
        list(XmlText(data, "some.xml").elements(frozenset("r"), {}))
    assert str(caught.value).startswith("some.xml") and "\n  " in str(caught.value)
    return str(caught.value)


LAUGHS = b'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>\n<r>&b;</r>'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (LAUGHS, "some.xml, line 1: the DOCTYPE has declarations"),
        (b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>', "the DOCTYPE has declarations"),
        (b"<r>\n<p></r>", "some.xml, line 2: not well-formed XML (mismatched tag)"),
        (b"<r>&nbsp;</r>", "undefined entity"),
        (b"", "no element found"),
        (b"%PDF-1.4", "not well-formed"),
        (b"<q:r/>", "unbound prefix"),
        (b'<?xml version="1.0" encoding="shift_jis"?><r/>', "encoding shift_jis is not supported"),
        (b'<?xml version="1.0" encoding="x-nonsense"?><r/>', "encoding x-nonsense is not supported"),
        (
            b'<?xml version="1.0" encoding="punycode"?><r>' + b"a" * 1_000_000,
            "encoding punycode is not supported",
        ),  # takes long
        (b'<?xml version="1.0" encoding="mac_arabic"?><r/>', "encoding mac_arabic is not supported"),  # not reversible
        ("<r>\ud800b</r>".encode("utf-16", "surrogatepass"), "encoding utf-16-le is not supported"),  # half a character
        (b"<r>" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} deep"),
    ],
)
def test_broken_and_hostile(data: bytes, problem: str) -> None:
    assert problem in error_of(data)


def test_large_files_in_good_time() -> None:
    data = b"<r>" + b"<p a='1'>some &lt;text&gt; here</p>\n" * 50_000 + b"</r>"
    start = time.process_time()
    assert sum(1 for _ in XmlText(data, "x").elements(frozenset("p"), {})) == 50_000
    assert time.process_time() - start < 10
