"""HTML: blocks are segments, all else comes back byte for byte, and marks are neither lost nor crossed."""

from __future__ import annotations

import re
import time
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.html import read
from docnmt.documents.html_tokens import VOID
from docnmt.documents.segment import FileText, Mark, Segment
from tests.office_files import moved, shouted, texts

PAGE = """<!DOCTYPE html>
<HTML lang=en><head><meta charset=utf-8><title>Cats &amp; dogs</title>
<meta name="description" content='About "cats"'>
<script>if (a<b) document.write("<p>no</p>")</script><style>p > b {}</style>
<!--[if lt IE 9]><p>old</p><![endif]--></head>
<BODY class=x><p>Hello <b>big <i>old</i></b> world<p title="a > b">Second&nbsp;one<br>goes on <!-- here --> and on
<ul><li>One<li><b>Two</b> <a href="x?a=1&b=2">three</a><ul><LI>Four</ul></ul>
<table><tr><td>cell<td>5<tr><th>head</table>
<pre>left <b>alone</b></pre><p>Call <code>f(x)</code> now<sup><a href="#n">1</a></sup>, <img src=c.png alt="a cat">.
<p translate=no>Keep this<p class="big notranslate">and this<p>but not that 5 < 6 & 7
<textarea placeholder='Say it'>as it is</textarea><svg><text>drawn</text></svg>
<input type=submit value=Send> <a name=top></a></BODY></HTML>"""


def opened(text: str, name: str = "a.html", languages: tuple[str, str] = ("en", "fr")) -> FileText:
    return read(text.encode(), name, languages)


def loud(text: str, name: str = "a.html") -> str:
    return shouted(opened(text, name)).decode()


def test_what_is_read_and_in_which_order() -> None:
    assert texts(opened(PAGE)) == [
        "Cats & dogs",
        'About "cats"',
        "Hello big old world",
        "a > b",
        "Second\xa0one goes on and on",
        "One",
        "Two three",
        "Four",
        "cell",
        "head",
        "Call  now, .",
        "a cat",
        "but not that 5 < 6 & 7",
        "Say it",
        "Send",
    ]


def test_unchanged_segments_give_the_same_bytes() -> None:
    for text in (PAGE, PAGE.replace("\n", "\r\n"), "\ufeff" + PAGE, PAGE.replace("\n", "\r")):
        page = opened(text)
        assert page.write(page.segments) == text.encode()


def test_the_translation_lands_where_the_text_was() -> None:
    new = loud(PAGE)
    for expected in (
        '<HTML lang="fr">',
        "<title>CATS &amp; DOGS</title>",
        """content='ABOUT "CATS"'>""",
        "<p>HELLO <b>BIG <i>OLD</i></b> WORLD<p",
        'title="A &gt; B">SECOND&nbsp;ONE <br>GOES ON <!-- here -->AND ON\n',
        '<li><b>TWO</b> <a href="x?a=1&b=2">THREE</a><ul><LI>FOUR</ul>',
        '<code>f(x)</code> NOW<sup><a href="#n">1</a></sup>, <img src=c.png alt="A CAT">.',
        "<p translate=no>Keep this<p",
        "<p>BUT NOT THAT 5 &lt; 6 &amp; 7\n<textarea placeholder='SAY IT'>as it is<",
        'value="SEND"',
        "<svg><text>drawn</text></svg>",
        "<pre>left <b>alone</b></pre>",
    ):
        assert expected in new
    for untouched in re.findall(r"<script.*?</style>|<!--.*?-->", PAGE, re.DOTALL):
        assert untouched in new


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>one<br><br>two", ["one", "two"]),
        ("<p>a <b> b</b>  c", ["a b c"]),
        ("<a href=x><h2>Title</h2><p>text</p></a>", ["Title", "text"]),
        ("<dl><dt translate=no>x<dd>word</dl>", ["word"]),
        ("<p>soft&shy;hy\xadphen", ["softhyphen"]),
        ("<p>12 — 13 %<p>...", []),
        ("<p><a href=x>https://example.org/a</a><p>me@example.org", []),
        ("<p>{% if a > 1 %}Hello {{ name }}{% endif %}", ["Hello"]),
        ("<select><option>red<option label='dark'>blue</select>", ["red", "dark", "blue"]),
        ("<p>a<![if !IE]>b<![endif]></p><?php echo '>'; ?>c", ["ab", "c"]),
        ("<iframe title=Map>no</iframe><noscript><p>no script</p></noscript>", ["Map", "no script"]),
        ("<button>Yes</button><button>No</button>", ["Yes", "No"]),
        ("<p>a</b></i><b>c", ["ac"]),
        ("<ruby>word<rt>reading</rt></ruby>", ["word"]),
        ("plain text", ["plain text"]),
        ("<script src=x/>gone</script>here", ["here"]),
        ("<title>a < b</title><p>c", ["a < b", "c"]),
        ("<!-- open <p>a", []),
        ("<!--><p>a", ["a"]),
    ],
)
def test_pages_as_browsers_read_them(text: str, expected: list[str]) -> None:
    page = opened(text)
    assert texts(page) == expected
    assert page.write(page.segments) == text.encode()


def test_xhtml_closes_empty_tags_and_has_cdata() -> None:
    text = "<html xmlns='h'><head><title/><script src='x'/></head><p>a<![CDATA[ < b ]]>c</p></html>"
    assert texts(opened(text, "a.xhtml")) == ["a < b c"]
    assert "<p>A &lt; B C</p>" in loud(text, "a.xhtml")
    assert texts(opened(f"<?xml version='1.0'?>{text}")) == ["a < b c"]


def test_a_mark_that_is_seen_does_not_stick_to_a_word() -> None:
    page = opened("<p>Run <code>make</code> to <b>build</b>.")
    (segment,) = page.segments
    new = Segment("Lancez pour construire.", tuple(Mark(m.at + 3 if m.pair else 7, *m_rest(m)) for m in segment.marks))
    assert page.write([new]).decode() == "<p>Lancez <code>make</code> pour<b> cons</b>truire."


def m_rest(mark: Mark) -> tuple[str, int, bool]:
    return mark.code, mark.pair, mark.closing


def test_the_language_is_set_only_with_a_translation() -> None:
    text = "<html><p>word <span lang='en-US' xml:lang=en>inner</span> <i lang=la>sic</i>"
    assert loud(text) == '<html lang="fr"><p>WORD <span lang="fr" xml:lang="fr">INNER</span> <i lang=la>SIC</i>'
    unknown = read(text.encode(), "a.html", ("", ""))
    assert shouted(unknown).decode() == text.replace("word", "WORD").replace("inner", "INNER").replace("sic", "SIC")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252", "shift_jis", "koi8-r"])
def test_encodings(encoding: str) -> None:
    label = "" if encoding.startswith("utf") else f"<meta charset={encoding}>"
    word = {"shift_jis": "日本", "koi8-r": "слово"}.get(encoding, "café")
    data = f"{label}<p>{word}".encode(encoding)
    page = read(data, "a.html", ("", ""))
    assert texts(page) == [word]
    assert page.write(page.segments) == data
    new = page.write([Segment("Привет “日本”")])
    assert texts(read(new, "a.html", ("", ""))) == ["Привет “日本”"]


def test_no_declared_encoding_is_guessed() -> None:
    assert texts(read("<p>é".encode(), "a.html", ("", ""))) == ["é"]
    assert texts(read("<p>“é”".encode("cp1252"), "a.html", ("", ""))) == ["“é”"]


def test_bad_bytes_stay_outside_the_text_and_are_named_inside() -> None:
    data = b"<meta charset=utf-8><!-- \xff --><p>good"
    page = read(data, "a.html", ("", ""))
    assert page.write(page.segments) == data
    assert shouted(page) == data.replace(b"good", b"GOOD")
    with pytest.raises(DocnmtError, match=r"a\.html, line 2: it has bytes that are not valid UTF-8\n  Save"):
        read(b"<meta charset=utf-8>\n<p>b\xffd", "a.html", ("", ""))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"%PDF-1.7", "not an HTML page but a PDF"),
        (b"PK\x03\x04", "not an HTML page but a zip archive"),
        (b"<p>a\0b", "NUL bytes"),
        (b"<meta charset=utf-7><p>+ADw-", "unknown encoding utf-7"),
        (b"<p>a\n<b class='x>text", "line 2: this tag lacks its > or its closing quote"),
        (b"\xff\xfe<\0p", "not valid UTF-16-LE"),
        (b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><p>&a;</p>', "line 1: the DOCTYPE declares entities"),
    ],
)
def test_bad_pages_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)) as caught:
        read(data, "bad.html", ("", ""))
    assert str(caught.value).startswith("bad.html") and "\n  " in str(caught.value)


def test_a_mark_too_few_or_too_many_is_an_error() -> None:
    page = opened("<p>a <b>c</b> d")
    (segment,) = page.segments
    with pytest.raises(ValueError, match="marks were lost"):
        page.write([Segment("x", segment.marks[:1])])
    with pytest.raises(ValueError, match="does not have"):
        page.write([Segment("x", (*segment.marks, Mark(0, "<u>")))])


class _Balance(HTMLParser):
    """Whether tags in the line nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            assert not (tag == "a" and "a" in self.open)
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_marks_at_any_place_are_written_once_and_well_nested(data: st.DataObject) -> None:
    text = (
        "<div>one <b>two <i>three</i></b> <a href=x title='some title'>four <u>five</u></a> <a>six</a><br/> "
        "<img alt='a b'> seven <!-- c -->eight <code>x &lt; y</code></div>"
    )
    page = opened(text, "a.xhtml", ("", ""))
    translations = data.draw(moved(page.segments))
    new = page.write(translations).decode()
    tags = re.compile(r"</?\w+|<!-- c -->|x &lt; y")
    assert Counter(tags.findall(new)) == Counter(tags.findall(text))
    _Balance().feed(new)
    written = ("".join(segment.text.split()) for segment in opened(new, "a.xhtml").segments)
    assert Counter(written) == Counter("".join(segment.text.split()) for segment in translations)


_TAGS = (
    "<p> </p> <b> </b> <div> </div> <li> <td> <tr> <table> </table> <br> <br/> <img\talt='x\ty'> <a\thref=x> </a> "
    "<code> </code> <pre> </pre> <script> </script> <style> </style> <title> </title> <!-- --> <![CDATA[ ]]> <?x > < & "
    "&amp; &nbsp; &lt &#65; <svg> </svg> <svg/> <p\ttranslate=no> word words 5 é {{ }} <% %> http://a.b/c"
)
_FRAGMENTS = st.sampled_from(_TAGS.split(" "))


@given(st.lists(st.one_of(_FRAGMENTS, st.text("ab<>&;\"'=/! \r\n\t-", max_size=6)), max_size=25), st.booleans())
@settings(max_examples=400, deadline=None)
def test_any_page_comes_back(fragments: list[str], xml: bool) -> None:
    text = "".join(fragments).replace("_", " ")
    name = "a.xhtml" if xml else "a.html"
    try:
        page = opened(text, name)
    except DocnmtError:
        return
    assert page.write(page.segments) == text.encode()
    new = shouted(page)
    again = opened(new.decode(), name)
    assert texts(again) == [segment.text.upper() for segment in page.segments]


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_come_back_or_are_refused(data: bytes) -> None:
    try:
        page = read(b"<p>a" + data, "a.html", ("", ""))
    except DocnmtError:
        return
    assert page.write(page.segments) == b"<p>a" + data


@pytest.mark.parametrize(
    "text",
    [
        "<b>" * 16_000 + "</i>" * 16_000,
        "<li><ul>" * 10_000,
        "<p>a<b>" * 10_000,
        "<code>" * 25_000,
        "<" * 200_000,
        "<!" * 50_000,
        "a<br>" * 16_000,
        "&" * 83_000,
        "<p " + "a=b " * 33_000 + ">x",
        "<a>" * 10_000 + "x" + "</a>" * 10_000,
        "{{" * 50_000,
        "http://" * 16_000,
        "x@" * 50_000,
    ],
)
def test_no_page_takes_long(text: str) -> None:
    start = time.process_time()
    page = opened(text)
    assert page.write(page.segments) == text.encode()
    shouted(page)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("name", ["a.html", "a.xhtml"])
@pytest.mark.parametrize("tag", ["math", "m:math", "svg:svg", "SVG"])
def test_formulas_and_pictures_are_left_alone_whatever_their_prefix(name, tag):
    drawn = f'<{tag} xmlns:m="x" title="a sum"><m:mtext>drawn</m:mtext><svg:rect/></{tag}>'
    page = f"<p>The sum {drawn} is this.</p>"
    assert texts(opened(page, name)) == ["The sum  is this.", "a sum"]
    assert loud(page, name) == page.replace("The sum", "THE SUM").replace("is this", "IS THIS").replace(
        "a sum", "A SUM"
    )


def test_what_comes_of_xhtml_is_xml_again():
    """What would not be is not written: here a mark whose partner is in another block comes to stand inside a pair."""
    body = "<div>One <i>two</i> <b>three<p>four</p>five</b></div>"
    page = opened(f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}&nbsp;</body></html>", "a.xhtml")
    first, *others = page.segments
    italic, italic_end, bold = first.marks
    moved = Segment("One two three", (italic, Mark(6, bold.code), Mark(7, italic_end.code, italic.pair, True)))
    with pytest.raises(DocnmtError, match=r"a\.xhtml: mismatched tag in line 1 of its translation"):
        page.write([moved, *others])
    assert page.write([Segment("Un deux trois", first.marks), *others])


@pytest.mark.parametrize(
    ("link", "alone"),
    [
        ('before.<a epub:type="noteref" href="#n1">1</a>', True),
        ('before. <a role="doc-noteref" href="n.html">12</a>', True),
        ('before. <a role="doc-backlink" href="#r1">\u21a9\ufe0e</a>', True),
        ('before. <a href="#r1">&#8617;</a>', True),
        ('before.<a href="notes.xhtml#n1">1</a>', True),
        ('page <a href="#p12">12</a>', False),
        ('in <a href="year.html">1857</a>', False),
        ('see<a href="other.html">2</a>', False),
    ],
)
def test_links_that_are_marks_of_notes_are_left_alone(link: str, alone: bool) -> None:
    """Else their number is a word of the sentence, and joins it to the next."""
    text = f'<html xmlns:epub="x"><body><p>It was {link} Then <b>he</b> left.</p></body></html>'
    (read_as,) = texts(opened(text))
    assert bool(re.search(r"[\d\u21a9]", read_as)) != alone
    new = loud(text)
    assert link[link.index("<a") :] in new
    assert "<b>HE</b> LEFT." in new
