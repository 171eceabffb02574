"""OpenDocument texts: their text out, a translation in, all else as it was."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.odt import read
from docnmt.documents.segment import FileText, Segment
from tests.office_files import docx, moved, odt, part_of, shouted, texts, zipped

SESSION = '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="0a1"/></style:style>'


def opened(body: str, styles: str = "") -> FileText:
    return read(odt(body, styles), "some.odt", ("", ""))


def body_of(data: bytes) -> str:
    content = part_of(data, "content.xml").decode()
    return content[content.index("<office:text>") + 13 : content.index("</office:text>")]


def test_spans_and_links_are_pairs() -> None:
    bold, link = '<text:span text:style-name="B">', '<text:a xlink:href="x?a=1&amp;b">'
    body = f"<text:p>Un {bold}mot</text:span> et {link}un lien</text:a>.</text:p>"
    [segment] = opened(body).segments
    assert segment.text == "Un mot et un lien."
    assert [(mark.at, mark.closing) for mark in segment.marks] == [(3, False), (6, True), (10, False), (17, True)]
    shouting = f"<text:p>UN {bold}MOT</text:span> ET {link}UN LIEN</text:a>.</text:p>"
    assert body_of(shouted(opened(body))) == shouting
    first, first_end, second, second_end = segment.marks
    marks = (replace(second, at=0), replace(second_end, at=4), replace(first, at=9), replace(first_end, at=15))
    turned = opened(body).write([Segment("Link and <bold>", marks)])
    assert body_of(turned) == f"<text:p>{link}Link</text:a> and {bold}&lt;bold&gt;</text:span></text:p>"


def test_words_cut_by_the_history_of_typing_are_whole_again() -> None:
    body = '<text:p>Bon<text:span text:style-name="T1">jo</text:span>ur</text:p>'
    assert opened(body, SESSION).segments == [Segment("Bonjour")]
    assert body_of(read(odt(body, SESSION), "x", ("", "")).write([Segment("Hello")])) == "<text:p>Hello</text:p>"
    assert len(opened(body, SESSION.replace("officeooo:rsid", "style:text-position")).segments[0].marks) == 2
    assert len(opened(body).segments[0].marks) == 2


@pytest.mark.parametrize(
    "body",
    [
        "Je pense {à la lettre.}",
        "{Je pense }à la lettre.",
        "{Je pense à la lettre.}",
        "{Je} pense {à la} lettre{.}",
        "{Je <text:span text:style-name='B'>pense</text:span>} à la lettre.",
        "<text:span text:style-name='B'>Je {pense}</text:span> à la {lettre.}",
        "<text:bookmark text:name='b'/>{Je pense<text:line-break/>}{à la lettre.}",
        "{<text:bookmark text:name='b'/>}Je pense {{à la }lettre.}",
        "Je pense {à la <text:note><text:note-body><text:p>La {note.}</text:p></text:note-body></text:note>lettre.}",
    ],
)
def test_the_history_of_typing_at_the_ends_of_a_paragraph(body: str) -> None:
    span = '<text:span text:style-name="T1">'
    written = f"<text:p>{body.replace('{', span).replace('}', '</text:span>')}</text:p>"
    before = opened(written, SESSION)
    after = read(shouted(before), "x.odt", ("", ""))  # which reads it only if it is well-formed
    assert texts(after) == [text.upper() for text in texts(before)]
    for element in ("text:bookmark", "text:note-body", "text:p", "text:line-break"):
        assert body_of(shouted(before)).count(f"<{element}") == written.count(f"<{element}")


def test_a_translation_that_would_damage_the_file_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    file = opened('<text:p>Un <text:span text:style-name="B">mot</text:span>.</text:p>')
    for parts, told in (
        (("A word</text:span>.",), "mismatched tag"),
        (("A word.",), "text:p/text:span would be lost"),
        (("A <text:span>word</text:span><text:span/>.",), "text:p/text:span would be put into"),
    ):
        monkeypatch.setattr("docnmt.documents.xml.written", lambda *_, parts=parts: parts)
        with pytest.raises(DocnmtError, match=f"content.xml.*{told}"):
            shouted(file)


CODE = '<style:style style:name="Q" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>'


@pytest.mark.parametrize("style", [CODE, SESSION])
def test_a_style_after_its_text_moves_no_translation(style: str) -> None:
    body = (
        '<text:p text:style-name="Q">Un <text:span text:style-name="T1">mot</text:span></text:p><text:p>Deux</text:p>'
    )
    file = opened(body + style + "<text:p>Trois</text:p>")
    assert texts(file) == ["Un mot", "Deux", "Trois"]
    shouting = body.replace("Un", "UN").replace("mot", "MOT").replace("Deux", "DEUX")
    assert body_of(shouted(file)) == f"{shouting}{style}<text:p>TROIS</text:p>"


def test_spaces_tabs_and_line_breaks() -> None:
    body = "<text:p>\n  Un  <text:s text:c='2'/>deux<text:tab/>trois<text:line-break/>\n quatre\n </text:p>"
    assert texts(opened(body)) == ["Un deux trois quatre"]
    assert "".join(ET.fromstring(_wrapped(body_of(shouted(opened(body))))).itertext()).split() == [
        "UN",
        "DEUXTROIS",
        "QUATRE",
    ]
    again = opened(body_of(shouted(opened(body))))
    assert texts(again) == ["UN DEUX TROIS QUATRE"]


def test_notes_and_frames_stand_in_their_paragraph() -> None:
    note = "<text:note><text:note-body><text:p>La note</text:p></text:note-body></text:note>"
    box = "<draw:text-box><text:p>La boîte</text:p></draw:text-box>"
    frame = f"<draw:frame>{box}<svg:title>Titre</svg:title><svg:desc>Image</svg:desc></draw:frame>"
    body = f"<text:p>Le texte{note} avec {frame}cadre</text:p><text:h>Fin</text:h>"
    file = opened(body)
    assert texts(file) == ["Le texte avec cadre", "La note", "La boîte", "Titre", "Image", "Fin"]
    first, *others = file.segments
    assert body_of(file.write([first, replace(others[0], text="THE NOTE"), *others[1:]])) == body.replace(
        "La note", "THE NOTE"
    )
    expected = body
    for words in ("Le texte", " avec ", "cadre", "Fin", "La note", "La boîte", "Titre", "Image"):
        expected = expected.replace(words, words.upper())
    assert body_of(shouted(file)) == expected


def test_what_is_not_read_stays() -> None:
    remark = "<office:annotation><dc:creator>A</dc:creator><text:p>Remarque</text:p></office:annotation>"
    changes = "<text:tracked-changes><text:deletion><text:p>Supprimé</text:p></text:deletion></text:tracked-changes>"
    body = (
        f"{changes}<text:p>Texte{remark} visible <text:page-number>12</text:page-number></text:p>"
        '<text:p text:style-name="P1">code()</text:p><text:p text:style-name="Preformatted_20_Text">code()</text:p>'
        '<text:p>Avec <text:span text:style-name="Source_20_Text">print</text:span> aussi</text:p><text:p>12</text:p>'
    )
    code = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>'
    file = opened(body, code)
    assert texts(file) == ["Texte visible", "Avec  aussi"]
    result = body_of(shouted(file))
    assert remark in result and changes in result and result.count("code()") == 2 and ">print<" in result


@pytest.mark.parametrize("style", ["Source_Text", "Source_20_Text", "Teletype", "User_20_Entry", "Mine", "T7"])
def test_code_in_the_line_is_left_alone(style: str) -> None:
    """By LibreOffice's names and pandoc's, and by those of styles made from them."""
    body = f'<text:p>Avec <text:span text:style-name="{style}">print</text:span> aussi</text:p>'
    automatic = '<style:style style:name="T7" style:family="text" style:parent-style-name="Mine"/>'
    own = '<style:style style:name="Mine" style:family="text" style:parent-style-name="Teletype"/>'
    data = odt(body, automatic, named=own)
    result = body_of(shouted(read(data, "x.odt", ("", ""))))
    assert ">print<" in result and "AVEC" in result


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('<text:bookmark-start text:name="b"/>', '<text:bookmark-end text:name="b"/>'),
        ('<text:change-start text:change-id="b"/>', '<text:change-end text:change-id="b"/>'),
        ('<office:annotation office:name="b"/>', '<office:annotation-end office:name="b"/>'),
    ],
)
def test_what_has_a_beginning_and_an_end_keeps_their_order(start: str, end: str) -> None:
    file = opened(f"<text:p>un {start}deux{end} trois</text:p>")
    [segment] = file.segments
    first, second = segment.marks
    assert first.pair == second.pair != 0
    result = file.write([Segment("one two", (replace(second, at=1), replace(first, at=5)))])
    assert body_of(result) == f"<text:p>o{start}ne t{end}wo</text:p>"


def test_cells_lists_headers_and_the_title() -> None:
    body = (
        "<table:table><table:table-row><table:table-cell><text:p>Cellule</text:p></table:table-cell></table:table-row>"
        "</table:table><text:list><text:list-item><text:p>Point</text:p></text:list-item></text:list>"
    )
    data = odt(body, title="Mon titre", page="<text:p>En-tête</text:p>")
    file = read(data, "some.odt", ("", ""))
    assert texts(file) == ["Mon titre", "Cellule", "Point", "En-tête"]
    assert file.write(file.segments) == data
    result = shouted(file)
    assert b"MON TITRE" in part_of(result, "meta.xml") and "EN-TÊTE".encode() in part_of(result, "styles.xml")
    assert result[30:38] == b"mimetype"


# --- any paragraph ---------------------------------------------------------------------------------------------------

WORDS = st.text("abcé&<> \n", max_size=6).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))
SINGLE = st.sampled_from(
    [
        "<text:s/>",
        "<text:tab/>",
        "<text:line-break/>",
        "<!-- remark -->",
        "<?do it?>",
        "<![CDATA[<cd>]]>",
        '<text:bookmark-start text:name="b"/>',
        '<text:bookmark-end text:name="b"/>',
        "<text:span/>",
        "<text:note><text:note-body><text:p>note</text:p></text:note-body></text:note>",
        "<draw:frame><svg:desc>image</svg:desc></draw:frame>",
    ]
)
INLINE = st.recursive(
    st.one_of(WORDS, WORDS, SINGLE),
    lambda inner: st.lists(inner, max_size=4).map(
        lambda parts: f'<text:span text:style-name="T1">{"".join(parts)}</text:span>'
    ),
    max_leaves=6,
)
BODIES = st.lists(st.lists(INLINE, max_size=5).map(lambda parts: f"<text:p>{''.join(parts)}</text:p>"), max_size=3)


def _wrapped(body: str) -> str:
    content = part_of(odt("\0"), "content.xml").decode()
    return content.split("?>", 1)[1].replace("\0", body)


def shape(body: str) -> Counter[str]:
    return Counter(element.tag for element in ET.fromstring(_wrapped(body)).iter())


def joined(text: str) -> str:
    return "".join(text.split())


@given(body=BODIES.map("".join))
@settings(max_examples=60, deadline=None)
def test_unchanged_is_unchanged_and_capitals_land_where_the_words_were(body: str) -> None:
    data = odt(body)
    file = read(data, "some.odt", ("", ""))
    assert file.write(file.segments) == data
    result = body_of(shouted(file))
    assert shape(result) == shape(body)
    original, new = ("".join(ET.fromstring(_wrapped(text)).itertext()) for text in (body, result))
    assert joined(new).casefold() == joined(original).casefold()
    assert [joined(text) for text in texts(opened(result))] == [joined(text.upper()) for text in texts(file)]


@given(body=BODIES.map("".join), data=st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_wherever_the_marks_go(body: str, data: st.DataObject) -> None:
    file = opened(body)
    translations = data.draw(moved(file.segments))
    result = body_of(file.write(translations))
    assert shape(result) == shape(body)
    old, new = (Counter("".join(joined(s.text) for s in side)) for side in (file.segments, translations))
    before, after = (Counter(joined("".join(ET.fromstring(_wrapped(text)).itertext()))) for text in (body, result))
    assert after == before - old + new


# --- errors ----------------------------------------------------------------------------------------------------------

ENCRYPTED = '<manifest:file-entry manifest:full-path="x"><manifest:encryption-data/></manifest:file-entry>'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (odt("", manifest=ENCRYPTED), "some.odt: the document is encrypted"),
        (b"%PDF-1.7", "is not a zip archive, although its name says so"),
        (docx(""), "not an OpenDocument text, although its name ends in .odt: it has no content.xml"),
        (
            zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>"}),
            "it is application/vnd.oasis.opendocument.spreadsheet",
        ),
        (odt("<text:p>"), "some.odt (content.xml), line 2: not well-formed XML"),
        (zipped({"content.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x/>'}), "the DOCTYPE has declarations"),
    ],
)
def test_errors_name_the_file_and_the_remedy(data: bytes, problem: str) -> None:
    with pytest.raises(DocnmtError) as caught:
        read(data, "some.odt", ("", ""))
    message = str(caught.value)
    assert message.startswith("some.odt") and problem in message and "\n  " in message
