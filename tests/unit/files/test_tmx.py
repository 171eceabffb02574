"""Translation memories: units get a text in the target language if they have none; everything else stays."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.segment import FileText
from docnmt.documents.tmx import read
from tests.office_files import moved, shouted, texts


def memory(units: str, language: str = "fr-FR") -> str:
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
        f'<header creationtool="x" srclang="{language}" segtype="sentence"/><body>{units}</body></tmx>\n'
    )


def opened(text: str, languages: tuple[str, str] = ("fr", "en")) -> FileText:
    return read(text.encode(), "some.tmx", languages)


def loud(text: str, languages: tuple[str, str] = ("fr", "en")) -> str:
    return shouted(opened(text, languages)).decode()


def test_a_new_language_is_written_as_the_first_one() -> None:
    text = memory(
        '\n <tu>\n  <tuv xml:lang="fr-FR">\n   <prop type="a">x</prop>\n   <seg>Bonjour</seg>\n  </tuv>\n </tu>\n'
    )
    added = '\n  <tuv xml:lang="en">\n   <seg>BONJOUR</seg>\n  </tuv>'
    assert loud(text) == text.replace("</tuv>", f"</tuv>{added}")
    again = opened(loud(text))
    assert [(s.text, s.translate) for s in again.segments] == [("Bonjour", False)]
    assert again.write(again.segments).decode() == loud(text)


def test_the_new_one_comes_last_and_empty_ones_are_filled() -> None:
    text = memory(
        '<tu><tuv lang="fr"><seg>un</seg></tuv><tuv lang="de"><seg>eins</seg></tuv></tu>'
        '<tu><tuv xml:lang="en-GB"><seg/></tuv><tuv xml:lang="fr"><seg>deux</seg></tuv></tu>'
        '<tu><tuv xml:lang="fr"><seg>trois</seg></tuv><tuv xml:lang="EN"><seg>three</seg></tuv></tu>'
    )
    assert [(s.text, s.translate) for s in opened(text).segments] == [("un", True), ("deux", True), ("trois", False)]
    assert loud(text) == text.replace("eins</seg></tuv>", 'eins</seg></tuv><tuv lang="en"><seg>UN</seg></tuv>').replace(
        "<seg/>", "<seg>DEUX</seg>"
    )


def test_the_source_language() -> None:
    units = '<tu><tuv xml:lang="de"><seg>eins</seg></tuv><tuv xml:lang="fr"><seg>un</seg></tuv></tu>'
    assert texts(opened(memory(units), ("fr", "en"))) == ["un"]
    assert texts(opened(memory(units), ("", "en"))) == ["un"]
    assert texts(opened(memory(units, "*all*"), ("", "en"))) == ["eins"]
    assert texts(opened(memory(units.replace("<tu>", '<tu srclang="de">')), ("", "en"))) == ["eins"]
    with pytest.raises(DocnmtError, match=r"no text in es, .*its languages are de, fr\n  Take a model"):
        opened(memory(units), ("es", "en"))
    assert texts(opened(memory(""), ("es", "en"))) == []


def test_inline_elements() -> None:
    source = 'Un <bpt i="1">&lt;b></bpt>mot<ept i="1">&lt;/b></ept> <hi type="x">ici</hi><ph type="lb"/>et là'
    text = memory(f'<tu><tuv xml:lang="fr"><seg>{source}</seg></tuv></tu>')
    [segment] = opened(text).segments
    assert segment.text == "Un mot ici et là"
    assert [mark.at for mark in segment.marks] == [3, 6, 7, 10, 10]
    assert sorted(Counter(mark.pair for mark in segment.marks).values()) == [1, 2, 2]
    file = opened(text)
    assert file.write(file.segments).decode().count(source) == 2


INLINE = st.lists(
    st.one_of(
        st.text("abé \n", max_size=5),
        st.sampled_from(
            ["<bpt i='1'/>", "<ept i='1'/>", "<ph>x</ph>", "<hi>gras</hi>", "<it pos='begin'/>", "&amp;", "<!-- c -->"]
        ),
    ),
    max_size=6,
).map("".join)


@given(sources=st.lists(INLINE, max_size=3), data=st.data())
@settings(max_examples=100, deadline=None)
def test_sources_stay_and_no_mark_is_lost(sources: list[str], data: st.DataObject) -> None:
    text = memory("".join(f'<tu><tuv xml:lang="fr"><seg>{source}</seg></tuv></tu>' for source in sources))
    file = opened(text)
    if not file.segments:
        assert file.write([]).decode() == text
        return
    result = file.write(data.draw(moved(file.segments)))
    for unit in ET.fromstring(result).iter("tu"):
        first, *others = [variant.find("seg") for variant in unit.iter("tuv")]
        for other in others:
            assert first is not None and other is not None
            assert Counter(e.tag for e in first.iter()) == Counter(e.tag for e in other.iter())
    for unit in ET.fromstring(file.write(file.segments)).iter("tu"):
        # Either the text alone or the text and its copy.
        assert len({ET.tostring(segment) for segment in unit.iter("seg")}) == 1


@pytest.mark.parametrize(
    ("text", "languages", "problem"),
    [
        ("<html/>", ("fr", "en"), "no <tmx> is in it"),
        (memory(""), ("fr", ""), "the language to translate into is not known"),
        ("<tmx>", ("fr", "en"), "some.tmx, line 1: not well-formed XML"),
        ('<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>', ("fr", "en"), "declarations in the DOCTYPE"),
    ],
)
def test_errors_name_the_file_and_the_remedy(text: str, languages: tuple[str, str], problem: str) -> None:
    with pytest.raises(DocnmtError) as caught:
        opened(text, languages)
    assert str(caught.value).startswith("some.tmx") and problem in str(caught.value) and "\n  " in str(caught.value)
