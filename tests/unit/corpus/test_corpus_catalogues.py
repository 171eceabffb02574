"""gettext catalogues and XLIFF as training data: order is kept, what is not translated leaves a gap."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import detect_format, read_corpus
from docnmt.document import GAP, ParallelDocument

PO = r"""
msgid ""
msgstr ""
"Language: fr\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

msgctxt "menu"
msgid "Open the door. Come in!\n"
msgstr "Ouvre la porte. Entre !\n"

#, fuzzy
msgid "Close"
msgstr "Ferme"

msgid "Not yet"
msgstr ""

msgid "%d cat"
msgid_plural "%d cats"
msgstr[0] "%d chat"
msgstr[1] "%d chats"

msgid "One. Two."
msgstr "Un, deux."

msgid "A <b>bold</b> &amp; red word\n  second line"
msgstr "Un mot <b>gras</b> &amp; rouge\n  deuxième ligne"

#~ msgid "Old"
#~ msgstr "Vieux"
"""
ENGLISH = (
    "Open the door.",
    "Come in!",
    GAP,
    GAP,
    "%d cat",
    "%d cats",
    "One. Two.",
    "A bold & red word",
    "second line",
)
FRENCH = (
    "Ouvre la porte.",
    "Entre !",
    GAP,
    GAP,
    "%d chat",
    "%d chats",
    "Un, deux.",
    "Un mot gras & rouge",
    "deuxième ligne",
)


def corpus(folder: Path, name: str, content: str | bytes, **fields: object) -> CorpusFiles:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return CorpusFiles(path=str(folder / name), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        PO.encode(),
        PO.replace("\n", "\r\n").encode(),
        gzip.compress(PO.encode()),
        b"\xef\xbb\xbf" + PO.lstrip().encode(),
    ],
    ids=["plain", "CRLF", "gzip", "BOM"],
)
def test_catalogue(content: bytes, tmp_path: Path) -> None:
    files = corpus(tmp_path, "shop.po", content)
    assert detect_format(files) == "po"
    assert list(read_corpus(files, languages=("en", "fr"))) == [ParallelDocument("shop", ENGLISH, FRENCH)]


def test_sides_of_a_catalogue_are_told_by_its_language(tmp_path: Path) -> None:
    (document,) = read_corpus(corpus(tmp_path, "shop.po", PO), languages=("fr", "en"))
    assert document == ParallelDocument("shop", FRENCH, ENGLISH)
    (document,) = read_corpus(corpus(tmp_path, "shop.po", PO, swap=True), languages=("fr", "en"))
    assert document == ParallelDocument("shop", FRENCH, ENGLISH)


def test_a_catalogue_in_another_language_is_refused(tmp_path: Path) -> None:
    files = corpus(tmp_path, "shop.po", PO)
    with pytest.raises(DocnmtError, match=r"shop.po: the translations are in fr, but en to de is wanted\n.*Language"):
        list(read_corpus(files, languages=("en", "de")))
    assert list(read_corpus(files, languages=("en", "")))  # nobody said which


def test_charset_of_a_catalogue(tmp_path: Path) -> None:
    files = corpus(tmp_path, "shop.po", PO.replace("UTF-8", "ISO-8859-1").encode("latin-1"))
    assert next(read_corpus(files)).target == FRENCH


def test_pairs_of_a_catalogue_stand_alone(tmp_path: Path) -> None:
    documents = list(read_corpus(corpus(tmp_path, "shop.po", PO), languages=("en", "fr"), sentence_level=True))
    assert [len(document) for document in documents] == [2, 2, 1, 2]
    assert len({document.id for document in documents}) == 4


def test_a_catalogue_without_translations_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DocnmtError, match="no documents"):
        list(read_corpus(corpus(tmp_path, "x.pot", 'msgid "a"\nmsgstr ""\n')))


def test_a_broken_catalogue_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(DocnmtError, match=r"x\.po, line 3: this is not a keyword"):
        list(read_corpus(corpus(tmp_path, "x.po", 'msgid "a"\nmsgstr "b"\n!\n', format="po")))


XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a.html" source-language="en-GB" target-language="fr-FR"><header><note>none</note></header><body>
<group><trans-unit id="1"><source>Open <g id="1">the</g> door.<x id="2"/> Come in!</source>
<seg-source><mrk mtype="seg" mid="0">no</mrk></seg-source>
<target>Ouvre <g id="1">la</g> porte. <ph id="2">code</ph>Entre&#160;!</target>
<alt-trans><source>no</source><target>non</target></alt-trans></trans-unit></group>
<trans-unit id="2"><source>Nothing</source></trans-unit>
<trans-unit id="3"><source>Not sure</source><target state="needs-review-translation">Pas sûr</target></trans-unit>
<trans-unit id="4" translate="no"><source>NAME</source><target>NAME</target></trans-unit>
<trans-unit id="5"><source>A &lt; B</source><target state="final">A &lt; B</target></trans-unit>
</body></file>
<file original="a.html" source-language="en" target-language="fr"><body>
<trans-unit id="1"><source>Bye</source><target>Adieu</target></trans-unit></body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="fr" xmlns="urn:oasis:names:tc:xliff:document:2.0">
<file id="f1"><unit id="1"><originalData><data id="d">code</data></originalData>
<mtc:matches><mtc:match><source>no</source><target>non</target></mtc:match></mtc:matches>
<segment state="translated"><source>Open <pc id="1">the</pc> door.</source>
<target>Ouvre <pc id="1">la</pc> porte.</target></segment>
<ignorable><source> </source></ignorable>
<segment state="initial"><source>Come in!</source><target>Come in!</target></segment></unit>
<unit id="2" translate="no"><segment><source>NAME</source><target>NAME</target></segment></unit>
<unit id="3"><segment><source>Bye<ph id="1"/></source><target>Adieu</target></segment></unit></file></xliff>
"""


def test_xliff_1(tmp_path: Path) -> None:
    files = corpus(tmp_path, "x.xlf", XLIFF_1)
    assert detect_format(files) == "xliff"
    assert list(read_corpus(files, languages=("en", "fr"))) == [
        ParallelDocument(
            "a.html",
            ("Open the door.", "Come in!", GAP, GAP, GAP, "A < B"),
            ("Ouvre la porte.", "Entre\xa0!", GAP, GAP, GAP, "A < B"),
        ),
        ParallelDocument("a.html#2", ("Bye",), ("Adieu",)),
    ]


def test_xliff_2_and_its_other_direction(tmp_path: Path) -> None:
    files = corpus(tmp_path, "x.xliff", XLIFF_2)
    sides = ("Open the door.", GAP, GAP, "Bye"), ("Ouvre la porte.", GAP, GAP, "Adieu")
    assert list(read_corpus(files, languages=("en", "fr"))) == [ParallelDocument("f1", *sides)]
    assert list(read_corpus(files, languages=("fr", "en"))) == [ParallelDocument("f1", sides[1], sides[0])]


def test_xliff_in_other_languages_is_refused(tmp_path: Path) -> None:
    files = corpus(tmp_path, "x.xliff", XLIFF_2)
    with pytest.raises(DocnmtError, match=r"line 2, document f1: the languages are en to fr, but de to en is wanted"):
        list(read_corpus(files, languages=("de", "en")))
    skipped = SkipBad()
    with pytest.raises(DocnmtError, match="no documents"):
        list(read_corpus(files, languages=("de", "en"), on_bad=skipped))
    assert skipped.counts == {"other languages": 1}


def test_broken_xliff_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(DocnmtError, match="line 11: the unit has no end"):
        list(read_corpus(corpus(tmp_path, "x.xlf", XLIFF_1[: XLIFF_1.index("<source>A &lt;")]), languages=("en", "fr")))
    with pytest.raises(DocnmtError, match="declares an entity"):
        list(read_corpus(corpus(tmp_path, "y.xlf", f"<!DOCTYPE x [<!ENTITY a 'b'>]>{XLIFF_2}"), languages=("en", "fr")))
