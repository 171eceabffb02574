"""Text comes out of files as packages have them: in order, with its translation where there is one."""

import gzip
import struct

import pytest

from docnmt.base.errors import DocnmtError
from tools.debian.pages import Block, align, align_by_name, parse_html, parse_libreoffice, parse_man, parse_xml, tidy
from tools.debian.sources import (
    SOURCES,
    Language,
    catalogues,
    chosen_sources,
    paragraphs,
    parse_pair,
    read_catalogue,
    text_of,
)

FRENCH, CHINESE = Language("fr"), Language("zh")


def catalogue(messages: dict[str, str], order: str = "<") -> bytes:
    """A .mo file."""
    entries = sorted(
        {"": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n>1;\n"} | messages
    )
    header = "Content-Type: text/plain; charset=UTF-8\n"
    sides = [[text.encode() for text in entries], [messages.get(text, header).encode() for text in entries]]
    start = 28 + 16 * len(entries)
    tables, texts = b"", b""
    for side in sides:
        for text in side:
            tables += struct.pack(f"{order}2I", len(text), start + len(texts))
            texts += text + b"\0"
    head = struct.pack(f"{order}7I", 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, start)
    return head + tables + texts


def source(name: str):
    (found,) = chosen_sources(name)
    return found


# ---- languages ----


def test_what_packages_call_a_language():
    assert (FRENCH.package, CHINESE.package, Language("pt_br").package) == ("fr", "zh-cn", "pt-br")
    for language, names in (
        (FRENCH, "fr fr_FR fr-FR fr.UTF-8"),
        (CHINESE, "zh_CN zh-cn zh"),
        (Language("en"), "C en-us"),
    ):
        assert all(map(language.is_called, names.split()))
    assert not any(map(FRENCH.is_called, ["fr_CA", "frp", "C", "man1"]))
    assert not CHINESE.is_called("zh_TW") and Language("zh_tw").is_called("zh-TW")


def test_pairs_of_languages():
    assert [language.code for language in parse_pair("pt_BR-en")] == ["pt_br", "en"]
    for text in ("fr", "fr-en-de", "french-english", "fr_en", "-en"):
        with pytest.raises(DocnmtError, match="not a pair of languages"):
            parse_pair(text)
    with pytest.raises(DocnmtError, match="the same language twice"):
        parse_pair("fr-fr")


def test_sources_are_chosen_by_the_beginning_of_their_names():
    assert [s.name for s in chosen_sources("wesnoth, libreoffice")] == ["libreoffice-help", "wesnoth"]
    assert chosen_sources("") == list(SOURCES)
    with pytest.raises(DocnmtError, match=r"--only nethack: there is no such source\n  There are: libreoffice-help"):
        chosen_sources("nethack")


# ---- alignment ----


def blocks(text: str) -> list[Block]:
    return [Block(*part.split(":")) for part in text.split()]


def test_pages_of_the_same_blocks_are_aligned_one_by_one():
    assert align(blocks("h:A p:B p:C"), blocks("h:a p:b p:c")) == [("A", "a"), ("B", "b"), ("C", "c")]


def test_where_blocks_differ_runs_are_aligned_and_the_rest_has_no_translation():
    english, foreign = blocks("h:A p:B li:C li:D td:E p:F"), blocks("h:a p:b li:c li:d p:f")
    assert align(english, foreign) == [("A", "a"), ("B", "b"), ("C", "c"), ("D", "d"), ("E", ""), ("F", "")]


def test_runs_of_other_lengths_are_not_taken_for_translations():
    foreign = [Block(block.kind, "mot " * 40) for block in blocks("h:a p:b li:c li:d")]
    assert all(text == "" for _, text in align(blocks("h:A p:B li:C li:D td:E"), foreign))


def test_blocks_with_names_are_aligned_by_them_and_taken_once():
    english, foreign = blocks("x:A y:B x:C z:D"), blocks("z:d x:a x:c")
    assert align_by_name(english, foreign) == [("A", "a"), ("B", ""), ("D", "d")]


def test_text_is_made_tidy():
    assert tidy(" e\u0301te\u0301\u00a0\n bleu\u00ad\u200b ") == "été bleu"


# ---- pages ----


def test_html_gives_running_text_only():
    page = """<html><head><title>no</title></head><body><div class="navheader"><p>no</p></div>
    <h1 class="title">One &amp; two</h1>
    <p>First <b>bold</b><br>line.</p><pre>no</pre><ul><li>Item<p>Inner</p>after</li></ul><script>no</script></body>"""
    assert parse_html(page) == [
        Block("h1.title", "One & two"),
        Block("p", "First bold line."),
        Block("li", "Item"),
        Block("p", "Inner"),
        Block("/p", "after"),
    ]
    assert parse_html("</p></div><p>unclosed " + "<div>" * 2000 + "deep") != []


def test_libreoffice_gives_paragraphs_by_their_ids():
    page = (
        '<p id="par_1" class="a">One <em>two</em></p><p>no</p><p id="par_2" class="code">x=1</p><h2 id="hd_3">Four</h2>'
    )
    assert parse_libreoffice(page) == [Block("par_1", "One two"), Block("hd_3", "Four")]
    keys = '<span class="MAC"><span class="keycode">Command</span></span><span id="default1"><span>Ctrl</span></span>'
    assert parse_libreoffice(f'<p id="par_1">Press {keys}+H.</p>') == [Block("par_1", "Press Ctrl+H.")]


def test_xml_help_gives_blocks_and_leaves_inner_ones_apart():
    page = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE x [<!ENTITY app "Writer"> <!ENTITY other 'O'>]>
    <section xmlns="http://x"><title>About &app;</title><!-- no --><para>Press
    <keycombo><keycap>Ctrl</keycap><keycap>A</keycap></keycombo> in
    <menuchoice><guimenu>File</guimenu><guimenuitem>Open</guimenuitem></menuchoice>.
    <note><para>Mind &unknown-thing;.</para></note></para><screen>no</screen></section>"""
    assert parse_xml(page) == [
        Block("section/title", "About Writer"),
        Block("section/para", "Press Ctrl+A in File → Open."),
        Block("note/para", "Mind unknown thing."),
    ]


@pytest.mark.parametrize(
    "page", ["<a><b></a>", "", "<p>" * 30_000 + "</p>" * 30_000, '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a>&#0;</a>']
)
def test_broken_xml_gives_nothing(page):
    assert parse_xml(page) == []


def test_entities_cannot_grow():
    bombs = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20}">' for n in range(1, 9))
    (block,) = parse_xml(f'<!DOCTYPE a [<!ENTITY e0 "ha">{bombs}]><p>x &e8; y</p>')
    assert len(block.text) < 300


def test_manual_pages_are_read_without_their_macros():
    page = r""".\" a comment, long enough to make this a page of its own and not a short note about another
.TH X 1
.SH NAME
x \- \fBdo\fR something\(emnow
.SH DESCRIPTION
First line of a
.B paragraph
and the rest.
.PP
See
.BR open (2)
too.
.TP
.B \-a
All of it.
.nf
no code
.fi
.IP \(bu 2
An item.
"""
    kinds = [(block.kind, block.text) for block in parse_man(page)]
    assert kinds == [
        ("SH", "NAME"),
        ("SH body", "x - do something—now"),
        ("SH", "DESCRIPTION"),
        ("SH body", "First line of a paragraph and the rest."),
        ("PP", "See open(2) too."),
        ("TP", "-a"),
        ("TP body", "All of it."),
        ("IP mark", "•"),
        ("IP", "An item."),
    ]
    assert parse_man(".so man3/printf.3\n") == []


def test_files_are_unpacked_and_decoded():
    assert text_of(gzip.compress("été".encode())) == "été"
    assert text_of("été".encode("latin-1")) == "été"
    assert text_of(b"\x1f\x8bbroken") == ""
    assert len(text_of(gzip.compress(b"a" * 50_000_000))) == 32_000_000  # and no further


# ---- catalogues ----


@pytest.mark.parametrize("order", "<>")
def test_catalogues(order):
    raw = catalogue({"Hello": "Bonjour", "one\0many": "un\0plusieurs"}, order)
    assert read_catalogue(raw) == {"Hello": "Bonjour", "one": "un"}


@pytest.mark.parametrize("raw", [b"", b"nonsense" * 9, catalogue({"a": "b"})[:60], b"\xde\x12\x04\x95" + b"\xff" * 40])
def test_damaged_catalogues_give_nothing(raw):
    assert read_catalogue(raw) == {}


def test_catalogues_of_a_language():
    raw = catalogue({"Hello": "Bonjour"})
    files = {f"usr/share/locale/{name}/LC_MESSAGES/game.mo": raw for name in ("de", "fr")}
    assert catalogues(files, FRENCH) == {"game": {"Hello": "Bonjour"}}
    assert catalogues({"usr/share/locale/fr/game.mo": raw}, FRENCH).keys() == {"game"}


# ---- games ----


def test_messages_of_several_paragraphs():
    assert paragraphs("a\n\nb", "x\n\ny") == [("a", "x"), ("b", "y")]
    assert paragraphs("a\n\nb", "x y") == [("a b", "x y")]
    assert paragraphs("a\n\nb", "") == [("a", ""), ("b", "")]


def test_wesnoth_tells_its_stories_in_order():
    scenario = b"""#textdomain wesnoth-tale
[story]
    story=_ "Long ago, a <i>king</i> lived."
    name=_ "Not running text"
[/story]
# a comment: message=_"no"
[message]
    message= _ "female^Who said ""no""?"
    message= _ "Long ago, a <i>king</i> lived."
[/message]
"""
    root = "usr/share/games/wesnoth/1.16/"
    files = {
        f"{root}data/campaigns/Tale/scenarios/01.cfg": scenario,
        f"{root}locale/fr/LC_MESSAGES/wesnoth-tale.mo": catalogue({'female^Who said "no"?': "Qui a dit non ?"}),
    }
    game = source("wesnoth")
    assert all(game.wants(path, FRENCH) for path in files)
    (found,) = game.documents(files, FRENCH)
    assert found == (
        "campaigns/Tale/scenarios/01",
        [("Long ago, a king lived.", ""), ('Who said "no"?', "Qui a dit non ?")],
    )


# ---- where pages lie ----

PLACES = {
    "libreoffice": ("usr/share/libreoffice/help/{}/text/scalc/01.html", "en-US", "zh-CN", "scalc/01"),
    "gnome": ("usr/share/help/{}/app/index.page", "C", "zh_CN", "app/index"),
    "kde": ("usr/share/doc/HTML/{}/app/index.docbook", "en", "zh_CN", "app/index"),
    "gimp": ("usr/share/gimp/2.0/help/{}/ch01.html", "en", "zh_CN", "ch01"),
    "apache": ("usr/share/doc/apache2-doc/manual/{}/howto/auth.html", "en", "zh-cn", "howto/auth"),
    "debian-docs": ("usr/share/debian-reference/ch01.{}.html", "en", "zh-cn", "reference/ch01"),
}


@pytest.mark.parametrize("name", PLACES)
def test_pages_are_found_in_both_languages(name):
    pattern, english, foreign, page = PLACES[name]
    files = {
        pattern.format(english): b'<p id="par_1">Some words here.</p>',
        pattern.format(foreign): '<p id="par_1">这里有几个字。</p>'.encode(),
        pattern.format("de"): b'<p id="par_1">Worte.</p>',
    }
    pages = source(name)
    assert [pages.wants(path, CHINESE) for path in files] == [True, True, False]
    assert list(pages.documents(files, CHINESE)) == [(page, [("Some words here.", "这里有几个字。")])]
    assert list(pages.documents(files, FRENCH)) == []


@pytest.mark.parametrize(
    ("english", "foreign", "page"),
    [
        (
            "usr/share/doc/debian-handbook/html/en-US/a.html",
            "usr/share/doc/debian-handbook/html/fr-FR/a.html",
            "handbook/a",
        ),
        ("usr/share/developers-reference/a.html", "usr/share/developers-reference/fr/a.html", "devref/a"),
        ("usr/share/doc/debian/FAQ/a.en.html", "usr/share/doc/debian/FAQ/fr/a.fr.html", "faq/a"),
        ("usr/share/doc/maint-guide/html/a.en.html", "usr/share/doc/maint-guide-fr/html/a.fr.html", "maint/a"),
    ],
)
def test_manuals_of_debian_lie_in_many_places(english, foreign, page):
    files = {english: b"<p>Some words.</p>", foreign: b"<p>Des mots.</p>"}
    assert list(source("debian-docs").documents(files, FRENCH)) == [(page, [("Some words.", "Des mots.")])]


def test_manual_pages_lie_beside_folders_of_languages():
    text = b".SH NAME\n" + b"some words " * 30
    files = {
        "usr/share/man/man1/ls.1.gz": gzip.compress(text),
        "usr/share/man/fr/man1/ls.1.gz": text.replace(b"words", b"mots"),
    }
    ((page, texts),) = source("manpages").documents(files, FRENCH)
    assert page == "man1/ls.1" and len(texts) == 2
