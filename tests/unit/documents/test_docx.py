"""Word documents: their text out, a translation in, all else as it was."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.docx import read
from docnmt.documents.segment import FileText, Segment
from tests.office_files import W, docx, moved, odt, part_of, shouted, texts, word_part, zipped

BOLD = "<w:b/>"


def run(text: str, look: str = "", attributes: str = "") -> str:
    properties = f"<w:rPr>{look}</w:rPr>" if look else ""
    return f'<w:r{attributes}>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*content: str) -> str:
    return f'<w:p><w:pPr><w:jc w:val="left"/></w:pPr>{"".join(content)}</w:p>'


def field(instruction: str, result: str) -> str:
    def sign(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    code = f'<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'
    return f"{sign('begin')}{code}{sign('separate')}{result}{sign('end')}"


def opened(body: str, **parts: str) -> FileText:
    return read(docx(body, **parts), "some.docx", ("fr", "en"))


def body_of(data: bytes) -> str:
    document = part_of(data, "word/document.xml").decode()
    return document[document.index("<w:body>") + 8 : document.index("</w:body>")]


def translated(body: str, *translations: Segment) -> str:
    return body_of(opened(body).write(translations))


def test_words_cut_into_runs_are_whole_again() -> None:
    body = paragraph(
        run("Bon", attributes=' w:rsidR="1"'),
        '<w:proofErr w:type="spellStart"/>',
        run("jo", '<w:lang w:val="fr-FR"/>'),
        run("ur", "<w:noProof/>", ' w:rsidR="2"'),
    )
    assert opened(body).segments == [Segment("Bonjour")]
    assert translated(body, Segment("Hello")) == paragraph(run("Hello", attributes=' w:rsidR="1"'))


def test_another_look_is_a_pair_of_marks_around_the_words() -> None:
    body = paragraph(run("Un mot "), run("gr", BOLD), run("as", BOLD), run(" ici."))
    [segment] = opened(body).segments
    assert segment.text == "Un mot gras ici."
    assert [(mark.at, mark.closing) for mark in segment.marks] == [(7, False), (11, True)]
    assert len({mark.pair for mark in segment.marks}) == 1
    opening, closing = segment.marks
    swapped = Segment("A bold word.", (replace(opening, at=2), replace(closing, at=6)))
    assert translated(body, swapped) == paragraph(run("A "), run("bold", BOLD), run(" word."))


def test_the_look_of_most_of_the_text_has_no_marks() -> None:
    assert opened(paragraph(run("a "), run("very bold text", BOLD))).segments[0].marks[0].at == 0
    assert opened(paragraph(run("very bold text", BOLD), run(" "))).segments == [Segment("very bold text")]


def test_links_are_pairs_and_keep_their_tags() -> None:
    link = '<w:hyperlink r:id="rId5" w:history="1">'
    body = paragraph(run("On peut voir "), link, run("le site", '<w:rStyle w:val="Lien"/>'), "</w:hyperlink>", run("."))
    [segment] = opened(body).segments
    assert segment.text == "On peut voir le site."
    assert [mark.at for mark in segment.marks] == [13, 13, 20, 20]
    shifted = Segment("The site.", tuple(replace(m, at=0 if not m.closing else 8) for m in segment.marks))
    assert translated(body, shifted) == paragraph(
        link, run("The site", '<w:rStyle w:val="Lien"/>'), "</w:hyperlink>", run(".")
    )


def test_a_paragraph_that_is_a_link_keeps_it_without_marks() -> None:
    body = paragraph('<w:hyperlink w:anchor="a">', run("Titre"), "</w:hyperlink>")
    assert opened(body).segments == [Segment("Titre")]


def test_tabs_and_breaks_part_words() -> None:
    body = paragraph("<w:r><w:t>Nom</w:t><w:tab/><w:t>Valeur</w:t><w:br/><w:t>Fin</w:t></w:r>")
    assert texts(opened(body)) == ["Nom Valeur Fin"]
    assert body_of(shouted(opened(body))) == paragraph(
        run("NOM"), "<w:r><w:tab/></w:r>", run("VALEUR"), "<w:r><w:br/></w:r>", run("FIN")
    )


def test_hyphens_are_read_as_such() -> None:
    body = paragraph("<w:r><w:t>porte</w:t><w:noBreakHyphen/><w:t>clé</w:t><w:softHyphen/><w:t>s</w:t></w:r>")
    assert texts(opened(body)) == ["porte\u2011clés"]
    assert "<w:noBreakHyphen/>" in body_of(shouted(opened(body)))


def test_white_space_of_the_file_is_not_text() -> None:
    body = "<w:p>\n <w:r>\n  <w:t>\n Un </w:t>\n  <w:t xml:space='preserve'> deux </w:t>\n </w:r>\n</w:p>"
    assert texts(opened(body)) == ["Un deux"]


def test_fields_stay_but_the_text_of_links_is_read() -> None:
    page = field("PAGE", run("12"))
    body = paragraph(
        run("Page "), page, run(" de "), field('HYPERLINK "http://x"', run("ce livre", BOLD)), run("!!!!!!")
    )
    [segment] = opened(body).segments
    assert segment.text == "Page  de ce livre!!!!!!"
    result = body_of(shouted(opened(body)))
    assert reader_text(result) == "PAGE12DECELIVRE!!!!!!"
    assert page in result and 'HYPERLINK "http://x"' in result
    assert result.count("fldChar ") == 6
    simple = paragraph(
        run("Il y a "), '<w:fldSimple w:instr=" NUMPAGES ">', run("douze"), "</w:fldSimple>", run(" pages")
    )
    assert texts(opened(simple)) == ["Il y a  pages"]


def test_a_table_of_contents_over_several_paragraphs() -> None:
    start, end = field('TOC \\o "1-3"', "\0").split("\0")
    entry = run("Premier chapitre") + "<w:r><w:tab/></w:r>" + field("PAGEREF _Toc1", run("3"))
    body = paragraph(start, entry) + paragraph(run("Deuxième")) + paragraph(end)
    assert texts(opened(body)) == ["Premier chapitre", "Deuxième"]
    assert body_of(shouted(opened(body))) == body.replace("Premier chapitre", "PREMIER CHAPITRE").replace(
        "Deuxième", "DEUXIÈME"
    )


def test_fields_nested_without_end_take_no_time() -> None:
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    body = paragraph(begin * 5_000, run("texte"), begin.replace("begin", "end") * 5_000)
    start = time.process_time()
    assert opened(body).write([Segment("text", s.marks) for s in opened(body).segments])
    assert time.process_time() - start < 20


def test_what_was_deleted_stays_and_what_was_inserted_is_read() -> None:
    deleted = '<w:del w:id="1"><w:r><w:delText>vieux</w:delText></w:r></w:del>'
    body = paragraph(run("Un "), deleted, '<w:ins w:id="2">', run("nouveau"), "</w:ins>", run(" mot"))
    assert texts(opened(body)) == ["Un nouveau mot"]
    result = body_of(shouted(opened(body)))
    assert deleted in result and f'<w:ins w:id="2">{run("NOUVEAU")}</w:ins>' in result


def test_controls_and_tags_around_text() -> None:
    plain = f"<w:sdt><w:sdtPr><w:id w:val='1'/></w:sdtPr><w:sdtContent>{run('client')}</w:sdtContent></w:sdt>"
    chosen = plain.replace("<w:id w:val='1'/>", "<w:dropDownList/>").replace("client", "choix")
    tag = f'<w:smartTag w:element="place"><w:smartTagPr><w:attr/></w:smartTagPr>{run("Paris")}</w:smartTag>'
    body = paragraph(run("Cher "), plain, run(" de "), tag, run(", "), chosen, run(" fin"))
    assert texts(opened(body)) == ["Cher client de Paris,  fin"]
    result = body_of(shouted(opened(body)))
    assert plain.replace("client", "CLIENT") in result and tag.replace("Paris", "PARIS") in result and chosen in result


def test_bookmarks_and_comments_open_before_they_close() -> None:
    start, end = '<w:bookmarkStart w:id="3" w:name="x"/>', '<w:bookmarkEnd w:id="3"/>'
    body = paragraph(run("un "), start, run("deux"), end, run(" trois"))
    [segment] = opened(body).segments
    first, second = segment.marks
    assert first.pair == second.pair != 0
    turned = Segment("one two", (replace(second, at=1), replace(first, at=5)))
    assert translated(body, turned) == paragraph(run("o"), start, run("ne t"), end, run("wo"))


def drawing(inside: str, description: str = "") -> str:
    return (
        f'<w:drawing><wp:inline><wp:docPr id="1" name="Image" descr="{description}"/>{inside}</wp:inline></w:drawing>'
    )


def test_text_boxes_stand_in_their_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph(run('Dans la boîte'))}</w:txbxContent>"
    old = f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
    twice = f"<mc:AlternateContent><mc:Choice>{drawing(box)}</mc:Choice>{old}</mc:AlternateContent>"
    body = paragraph(run("Autour "), f"<w:r>{twice}</w:r>", run("de la boîte"))
    file = opened(body)
    # The second copy, for old programs, is no second text but is translated with the first.
    assert texts(file) == ["Autour de la boîte", "Dans la boîte"]
    around, inside = file.segments
    result = body_of(file.write([replace(around, text="AROUND THE BOX"), Segment("INSIDE")]))
    assert result.count("INSIDE") == 2 and "boîte" not in result
    # Either can change without the other.
    assert body_of(file.write([around, Segment("INSIDE")])) == body.replace("Dans la boîte", "INSIDE")
    assert body_of(file.write([replace(around, text="AROUND THE BOX"), inside])).count("Dans la boîte") == 2


def test_alternative_texts() -> None:
    body = paragraph(run("Voici "), f"<w:r>{drawing('', 'Un &quot;chat&quot; &amp; co')}</w:r>", run("fin"))
    file = opened(body)
    assert texts(file) == ["Voici fin", 'Un "chat" & co']
    result = file.write([file.segments[0], Segment("A <cat> & 'co'")])
    assert body_of(result) == body.replace("Un &quot;chat&quot; &amp; co", "A &lt;cat&gt; &amp; &apos;co&apos;")


def test_code_stays() -> None:
    styles = word_part(
        '<w:style w:styleId="HTMLPrformat"><w:name w:val="HTML Preformatted"/></w:style>'
        '<w:style w:styleId="Code"><w:name w:val="HTML Code"/></w:style>',
        "styles",
    )
    block = f'<w:p><w:pPr><w:pStyle w:val="HTMLPrformat"/></w:pPr>{run("print(x)")}</w:p>'
    word = run("print", '<w:rStyle w:val="Code"/>')
    file = opened(block + paragraph(run("Avec "), word, run(" on voit")), styles=styles)
    assert texts(file) == ["Avec  on voit"]
    assert word in body_of(shouted(file)) and block in body_of(shouted(file))


def test_parts_in_reading_order() -> None:
    cell = f"<w:tc>{paragraph(run('Cellule'))}</w:tc><w:tc>{paragraph(run('12,5'))}</w:tc>"
    body = paragraph(run("Titre")) + f"<w:tbl><w:tr>{cell}</w:tr></w:tbl>" + paragraph(run("Fin"))
    notes = word_part(f'<w:footnote w:id="1">{paragraph(run("Note"))}</w:footnote>', "footnotes")
    header = word_part(paragraph(run("En-tête")), "hdr")
    data = docx(body, title="Le livre &amp; co", header1=header, footnotes=notes)
    file = read(data, "some.docx", ("", ""))
    assert texts(file) == ["Le livre & co", "Titre", "Cellule", "Fin", "Note", "En-tête"]
    assert file.write(file.segments) == data
    result = shouted(file)
    assert b"LE LIVRE &amp; CO" in part_of(result, "docProps/core.xml")
    assert b"NOTE" in part_of(result, "word/footnotes.xml") and "EN-TÊTE".encode() in part_of(
        result, "word/header1.xml"
    )


def test_any_prefix_and_the_strict_namespace() -> None:
    body = paragraph(run("Un "), run("mot", BOLD), run(" seul"))
    other = docx(
        body,
        document=word_part(body)
        .replace("w:", "x:")
        .replace("xmlns:w=", "xmlns:x=")
        .replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main"),
    )
    result = part_of(shouted(read(other, "x.docx", ("", ""))), "word/document.xml").decode()
    assert '<x:t xml:space="preserve">MOT</x:t>' in result
    ET.fromstring(result)


# --- any paragraph ---------------------------------------------------------------------------------------------------

WORDS = st.text("abc é&<\u2011 ", min_size=0, max_size=6).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)
BOX, ALTERNATIVE = f"<w:txbxContent>{paragraph(run('boîte'))}</w:txbxContent>", "image"
RUNS = st.builds(run, WORDS, st.sampled_from(["", BOLD, "<w:i/>", '<w:lang w:val="fr"/>']))
SINGLE = st.sampled_from(
    [
        "<w:r><w:tab/></w:r>",
        "<w:r><w:rPr><w:b/></w:rPr><w:t>q</w:t><w:br/><w:footnoteReference w:id='2'/></w:r>",
        '<w:proofErr w:type="gramStart"/>',
        '<w:bookmarkStart w:id="1" w:name="x"/>',
        '<w:bookmarkEnd w:id="1"/>',
        "<!-- remark -->",
        "<w:del w:id='3'><w:r><w:delText>zz</w:delText></w:r></w:del>",
        field("PAGE", "<w:r><w:sym w:char='F0'/></w:r>"),
        field("HYPERLINK y", run("lien")),
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
        '<w:r><w:fldChar w:fldCharType="separate"/><w:t>s</w:t></w:r>',
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        f"<w:r>{drawing(BOX, ALTERNATIVE)}</w:r>",
    ]
)
INLINE = st.recursive(
    st.one_of(RUNS, RUNS, SINGLE),
    lambda inner: st.lists(inner, max_size=4).map(
        lambda parts: f'<w:hyperlink r:id="r1">{"".join(parts)}</w:hyperlink>'
    ),
    max_leaves=6,
)
BODIES = st.lists(st.lists(INLINE, max_size=6).map(lambda parts: paragraph(*parts)), min_size=1, max_size=3).map(
    "".join
)
# Runs are put together anew, and these are dropped from text that changes.
_REMADE = {f"{{{W}}}{name}" for name in ("r", "t", "rPr", "b", "i", "lang", "proofErr", "noBreakHyphen")}


def shape(body: str) -> Counter[tuple[str, ...]]:
    """The elements that must not get lost, and their attributes but for texts."""
    kept = (e for e in ET.fromstring(word_part(body)).iter() if e.tag not in _REMADE)
    return Counter((e.tag, *(f"{key}={value}" for key, value in e.items() if key != "descr")) for e in kept)


def reader_text(body: str) -> str:
    root = ET.fromstring(word_part(body))
    hyphen = f"{{{W}}}noBreakHyphen"
    found = [e.text or "" if e.tag == f"{{{W}}}t" else "\u2011" for e in root.iter() if e.tag in (f"{{{W}}}t", hyphen)]
    return joined("".join(found))


def joined(text: str) -> str:
    return "".join(text.split())


@given(body=BODIES)
@settings(max_examples=60, deadline=None)
def test_unchanged_is_unchanged_and_capitals_land_where_the_words_were(body: str) -> None:
    data = docx(body)
    file = read(data, "some.docx", ("", ""))
    assert file.write(file.segments) == data
    result = body_of(shouted(file))
    assert reader_text(result).casefold() == reader_text(body).casefold()
    assert [joined(text) for text in texts(opened(result))] == [joined(text.upper()) for text in texts(file)]


@given(body=BODIES, data=st.data())
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_wherever_the_marks_go(body: str, data: st.DataObject) -> None:
    file = opened(body)
    translations = data.draw(moved(file.segments))
    result = body_of(file.write(translations))
    assert shape(result) == shape(body)
    alternatives = [segment.text == ALTERNATIVE for segment in file.segments]
    old, new = (
        Counter("".join(joined(s.text) for s, skip in zip(side, alternatives, strict=True) if not skip))
        for side in (file.segments, translations)
    )
    assert Counter(reader_text(result)) == Counter(reader_text(body)) - old + new


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Word document (.doc) or protected by a password"),
        (b"%PDF-1.7", "is not a zip archive, although its name says so"),
        (odt("<text:p>a</text:p>"), "not a Word document, although its name ends in .docx"),
        (zipped({"[Content_Types].xml": "<Types"}), "some.docx ([Content_Types].xml), line 1: not well-formed XML"),
        (docx("<w:p>"), "some.docx (word/document.xml), line 2: not well-formed XML"),
        (
            docx("", document='<!DOCTYPE r [<!ENTITY a "b">]>' + word_part("")[57:]),
            "the DOCTYPE has declarations",
        ),
        (docx("<w:tbl>" * 300 + "</w:tbl>" * 300), "deep"),
    ],
)
def test_errors_name_the_file_and_the_remedy(data: bytes, problem: str) -> None:
    with pytest.raises(DocnmtError) as caught:
        read(data, "some.docx", ("", ""))
    message = str(caught.value)
    assert message.startswith("some.docx") and problem in message and "\n  " in message


def test_large_documents_in_good_time() -> None:
    body = paragraph(run("Un texte "), run("avec du gras", BOLD), run(" et une fin.")) * 5_000
    assert len(body) > 1_000_000
    start = time.process_time()
    file = opened(body)
    assert len(shouted(file)) and len(file.segments) == 5_000
    assert time.process_time() - start < 20
