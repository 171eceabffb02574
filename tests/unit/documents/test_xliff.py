"""XLIFF: targets are added where there are none; everything else stays, byte for byte."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.segment import FileText, Segment
from docnmt.documents.xliff import read
from tests.office_files import moved, shouted, texts

ONE, TWO = "urn:oasis:names:tc:xliff:document:1.2", "urn:oasis:names:tc:xliff:document:2.0"
NEW = '<target state="needs-review-translation">'


def first_version(units: str, target: str = ' target-language="en"') -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\r\n<xliff version="1.2" xmlns="{ONE}">\r\n'
        f'<file original="a" source-language="fr" datatype="plaintext"{target}><body>{units}</body></file></xliff>\r\n'
    )


def second_version(segments: str, unit: str = "", target: str = ' trgLang="en"') -> str:
    return (
        f'<xliff version="2.0" srcLang="fr"{target} xmlns="{TWO}"><file id="f"><unit id="u"{unit}>{segments}</unit>'
        "</file></xliff>"
    )


def opened(text: str, languages: tuple[str, str] = ("fr", "en")) -> FileText:
    return read(text.encode(), "some.xlf", languages)


def loud(text: str) -> str:
    return shouted(opened(text)).decode()


def test_a_target_follows_its_source_on_a_line_of_its_own() -> None:
    text = first_version('\r\n  <trans-unit id="1">\r\n    <source>Bonjour</source>\r\n    <note>x</note></trans-unit>')
    assert loud(text) == text.replace("</source>", f"</source>\r\n    {NEW}BONJOUR</target>")
    again = opened(loud(text))
    assert [(segment.text, segment.translate) for segment in again.segments] == [("Bonjour", False)]
    assert again.write(again.segments).decode() == loud(text)


def test_a_translation_like_its_source_is_one() -> None:
    file = opened(first_version('<trans-unit id="1"><source>Menu &amp; co</source></trans-unit>'))
    assert f"{NEW}Menu &amp; co</target>" in file.write(file.segments).decode()


def test_what_is_translated_stays_and_is_context() -> None:
    units = (
        '<trans-unit id="1"><source>un</source><target state="final">one</target></trans-unit>'
        '<trans-unit id="2" approved="yes"><source>deux</source></trans-unit>'
        '<trans-unit id="3" translate="no"><source>trois</source></trans-unit>'
        '<group translate="no"><trans-unit id="4"><source>quatre</source></trans-unit>'
        '<trans-unit id="5" translate="yes"><source>cinq</source></trans-unit></group>'
        '<trans-unit id="6"><source>six</source><alt-trans><source>s</source><target>t</target></alt-trans>'
        "</trans-unit>"
    )
    text = first_version(units)
    file = opened(text)
    assert [(s.text, s.translate) for s in file.segments] == [
        ("un", False), ("deux", False), ("cinq", True), ("six", True)
    ]  # fmt: skip
    assert loud(text) == text.replace("cinq</source>", f"cinq</source>{NEW}CINQ</target>").replace(
        "six</source>", f"six</source>{NEW}SIX</target>"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<target/>", NEW),
        ("<target></target>", NEW),
        ('<target xml:lang="en" state="new">un</target>', '<target xml:lang="en" state="needs-review-translation">'),
        ("<target state = 'needs-translation' />", "<target state = 'needs-review-translation' >"),
    ],
)
def test_empty_targets_are_filled(old: str, new: str) -> None:
    text = first_version(f'<trans-unit id="1"><source>un</source>{old}<note/></trans-unit>')
    assert loud(text) == text.replace(old, f"{new}UN</target>")


def test_numbers_and_marks_alone_are_copied_with_the_rest() -> None:
    units = '<trans-unit id="1"><source>12 <x id="1"/></source></trans-unit><trans-unit id="2"><source/></trans-unit>'
    text = first_version(units + '<trans-unit id="3"><source>a</source></trans-unit>')
    assert texts(opened(text)) == ["a"]
    assert f'{NEW}12 <x id="1"/></target>' in loud(text) and loud(text).count("<target") == 2
    assert loud(first_version(units)) == first_version(units)


def test_the_target_language_is_told_where_it_was_not() -> None:
    unit = '<trans-unit id="1"><source>un</source></trans-unit>'
    assert ' datatype="plaintext" target-language="en">' in loud(first_version(unit, target=""))
    segment = "<segment><source>un</source></segment>"
    assert f'xmlns="{TWO}" trgLang="en">' in loud(second_version(segment, target=""))
    file = opened(first_version(unit, target=""), ("", ""))
    assert b"target-language" not in file.write(file.segments)


def test_segmented_sources_are_taken_with_their_segments() -> None:
    unit = (
        '<trans-unit id="1"><source>Un. Deux.</source><seg-source><mrk mtype="seg" mid="1">Un.</mrk> '
        '<mrk mtype="seg" mid="2">Deux.</mrk></seg-source></trans-unit>'
    )
    assert loud(first_version(unit)) == first_version(unit).replace(
        "</seg-source>",
        f'</seg-source>{NEW}<mrk mtype="seg" mid="1">UN.</mrk> <mrk mtype="seg" mid="2">DEUX.</mrk></target>',
    )


def test_version_two_sets_the_state_of_the_segment() -> None:
    text = second_version(
        '<segment id="1"><source>un</source></segment><ignorable><source> </source></ignorable>'
        '<segment state="initial"><source>deux</source><target></target></segment>'
        '<segment state="reviewed"><source>trois</source><target>three</target></segment>'
        '<segment state="final"><source>quatre</source></segment>'
    )
    assert [(s.text, s.translate) for s in opened(text).segments] == [
        ("un", True), ("deux", True), ("trois", False), ("quatre", False)
    ]  # fmt: skip
    assert loud(text) == text.replace(
        '<segment id="1"><source>un</source>',
        '<segment id="1" state="translated"><source>un</source><target>UN</target>',
    ).replace(
        '<segment state="initial"><source>deux</source><target>',
        '<segment state="translated"><source>deux</source><target>DEUX',
    )
    assert not opened(second_version("<segment><source>un</source></segment>", ' translate="no"')).segments


def test_the_prefix_in_use() -> None:
    text = (
        f'<x:xliff version="1.2" xmlns:x="{ONE}"><x:trans-unit id="1"><x:source>un</x:source></x:trans-unit></x:xliff>'
    )
    assert '</x:source><x:target state="needs-review-translation">UN</x:target>' in loud(text)
    bare = '<xliff version="1.0"><file><body><trans-unit id="1"><source>un</source></trans-unit></body></file></xliff>'
    assert "UN</target>" in loud(bare)


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig", "iso-8859-1"])
def test_other_encodings(codec: str) -> None:
    declared = {"utf-8-sig": "utf-8"}.get(codec, codec)
    text = first_version('<trans-unit id="1"><source>été</source></trans-unit>').replace("UTF-8", declared)
    file = read(text.encode(codec), "some.xlf", ("", ""))
    result = file.write([Segment("Ω été")])
    written = "&#937; été" if codec == "iso-8859-1" else "Ω été"
    assert result.decode(codec) == text.replace("</source>", f"</source>{NEW}{written}</target>")


def test_inline_elements() -> None:
    bold = '<bpt id="3">&lt;b></bpt>gras<ept id="3">&lt;/b></ept>'
    source = f'Un <g id="1">mot<x id="2"/></g> {bold} <mrk mtype="protected">%s</mrk><x id="4" ctype="lb"/>ici\n  et là'
    text = first_version(f'<trans-unit id="1"><source>{source}</source></trans-unit>')
    [segment] = opened(text).segments
    assert segment.text == "Un mot gras ici et là"
    assert [mark.at for mark in segment.marks] == [3, 6, 6, 7, 11, 12, 12, 15]
    assert sorted(Counter(mark.pair for mark in segment.marks).values()) == [2, 2, 4]
    file = opened(text)
    assert f"{NEW}{source}</target>" in file.write(file.segments).decode()


def test_pairs_of_version_two_that_cross_stay_as_they_are() -> None:
    crossing = 'a <sc id="1"/>b <pc id="2">c<ec startRef="1"/> d</pc>'
    source = f'{crossing} <sm id="3"/>e<em startRef="3"/> <mrk id="4" translate="no">f</mrk>g'
    file = opened(second_version(f"<segment><source>{source}</source></segment>"))
    assert texts(file) == ["a b c d e g"]
    assert f"<target>{source}</target>" in file.write(file.segments).decode()
    [segment] = file.segments
    backwards = tuple(replace(mark, at=11 - mark.at) for mark in reversed(segment.marks))
    result = file.write([Segment(segment.text, backwards)]).decode().split("<target>")[1]
    assert result.index("<sc ") < result.index("<ec ") and result.index("<sm ") < result.index("<em ")


# --- any unit --------------------------------------------------------------------------------------------------------

WORDS = st.text("abé&<\n ", max_size=6).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))
SINGLE = st.sampled_from(
    [
        '<x id="1"/>',
        "<ph id='2'>&lt;i></ph>",
        "<bx rid='3'/>",
        "<ex rid='3'/>",
        "<!-- c -->",
        "<![CDATA[<cd>]]>",
        "<g id='4'/>",
    ]
)
INLINE = st.recursive(
    st.one_of(WORDS, WORDS, SINGLE),
    lambda inner: st.lists(inner, max_size=4).map(lambda parts: f"<g id='5'>{''.join(parts)}</g>"),
    max_leaves=6,
)
TARGETS = st.sampled_from(["", "", "\n  <target/>", "<target>déjà</target>"])
UNITS = st.lists(st.tuples(st.lists(INLINE, max_size=5).map("".join), TARGETS), max_size=3).map(
    lambda units: "\n".join(f'<trans-unit id="1"><source>{s}</source>{t}</trans-unit>' for s, t in units)
)


CODE = f"{{{ONE}}}ph"


def spoken(element: ET.Element) -> Iterator[str]:
    """All text but code."""
    if element.tag != CODE:
        yield element.text or ""
        for child in element:
            yield from spoken(child)
            yield child.tail or ""


@given(units=UNITS)
@example(units='<trans-unit id="1"><source><g id="5">&lt;\n<ph id="2">&lt;i></ph></g>a</source></trans-unit>')
@settings(max_examples=100, deadline=None)
def test_a_target_equals_its_source_and_nothing_else_changes(units: str) -> None:
    text = first_version(units)
    file = opened(text)
    result = file.write(file.segments).decode()
    without = re.sub(f"(?s){NEW}.*?</target>", "", result.replace(f"\n  {NEW}", NEW))
    assert without.replace("\n  <target/>", "") == text.replace("\n  <target/>", "")
    if not file.segments or not any(segment.translate for segment in file.segments):
        assert result == text
        return
    for unit in ET.fromstring(result).iter(f"{{{ONE}}}trans-unit"):
        source, target = unit.find(f"{{{ONE}}}source"), unit.find(f"{{{ONE}}}target")
        assert source is not None
        if target is not None and target.text != "déjà":
            # A space may go from one side of a mark to the other, and so past the code that some marks hold.
            assert "".join(spoken(target)).split() == "".join(spoken(source)).split()
            assert [e.text for e in target.iter(CODE)] == [e.text for e in source.iter(CODE)]
            assert [e.attrib for e in target.iter()][1:] == [e.attrib for e in source.iter()][1:]


@given(units=UNITS, data=st.data())
@settings(max_examples=100, deadline=None)
def test_nothing_is_lost_wherever_the_marks_go(units: str, data: st.DataObject) -> None:
    file = opened(first_version(units))
    translations = data.draw(moved(file.segments))
    root = ET.fromstring(file.write(translations))
    new = iter([t for t in translations if t.translate])
    for unit in root.iter(f"{{{ONE}}}trans-unit"):
        source, target = unit.find(f"{{{ONE}}}source"), unit.find(f"{{{ONE}}}target")
        assert source is not None
        if target is None or target.text == "déjà" or not target.get("state"):
            continue
        assert Counter(e.tag for e in target.iter() if e is not target) == Counter(
            e.tag for e in source.iter() if e is not source
        )
        if any(c.isalpha() for c in "".join(source.itertext()).replace("<i>", "").replace("<cd>", "cd")):
            expected = next(new).text
            got = "".join("".join(target.itertext()).replace("<i>", "").split())
            assert got == "".join(expected.split())


# --- errors ----------------------------------------------------------------------------------------------------------

UNIT = '<trans-unit id="1"><source>un</source></trans-unit>'


@pytest.mark.parametrize(
    ("text", "languages", "problem"),
    [
        ("<html/>", ("", ""), "it has no <xliff> element"),
        ("%PDF", ("", ""), "some.xlf, line 1: not well-formed XML"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff/>', ("", ""), "the DOCTYPE has declarations"),
        (first_version(UNIT), ("fr", "de"), "its target language is en, but the model's is de"),
        (first_version(UNIT), ("es_ES", "en"), "its source language is fr, but the model's is es_ES"),
    ],
)
def test_errors_name_the_file_and_the_remedy(text: str, languages: tuple[str, str], problem: str) -> None:
    with pytest.raises(DocnmtError) as caught:
        opened(text, languages)
    assert str(caught.value).startswith("some.xlf") and problem in str(caught.value) and "\n  " in str(caught.value)


def test_large_files_in_good_time() -> None:
    text = first_version('<trans-unit id="1">\n<source>Un <g id="1">mot</g> ici.</source>\n</trans-unit>\n' * 5_000)
    start = time.process_time()
    assert loud(text).count("</target>") == 5_000
    assert time.process_time() - start < 20
