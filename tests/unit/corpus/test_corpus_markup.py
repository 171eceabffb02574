"""Tagged corpora as they are met in the wild: not well-formed, in any case, cut anywhere, sometimes hostile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base import lines as corpus_files
from docnmt.base.errors import BadInput, DocnmtError, SkipBad
from docnmt.base.lines import CorpusFiles, InputFile
from docnmt.corpus.read import read_corpus, read_source
from docnmt.corpus.sgml import Tag, decode_references, tokens


def source_of(folder: Path, text: str | bytes) -> list[tuple[str, tuple[str, ...]]]:
    path = folder / "set.sgm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(document.id, document.sentences) for document in read_source(str(path))]


def test_sgml_in_any_case_and_over_lines(tmp_path: Path) -> None:
    text = (
        '<SRCSET SetID="x">\n<Doc DocID=abc Genre=\'news\'>\n<HL>\n<SEG ID="1"> A &amp; B &lt;b&gt; &#233;&#xE9; '
        "R&D &unknown; 2 < 3\n  goes\ton </Seg>\n</HL><P><seg id=2>“Two”\u00a0!</seg></P></Doc></SRCSET>"
    )
    expected = ("A & B <b> éé R&D &unknown; 2 < 3 goes on", "“Two”\u00a0!")
    assert source_of(tmp_path, text) == [("abc", expected)]


def test_tags_inside_a_segment_leave_its_text(tmp_path: Path) -> None:
    text = (
        '<srcset><doc docid="a"><seg id="1">one <i>two</i> <![CDATA[<3 &amp; 4>]]><!-- no --> end</seg></doc></srcset>'
    )
    assert source_of(tmp_path, text) == [("a", ("one two <3 &amp; 4> end",))]


def test_stray_quotes_in_tags_do_not_swallow_text(tmp_path: Path) -> None:
    first = "<doc docid=\"a\" title='l'été'><seg id=1\">one</seg></doc>"
    text = f"<srcset>{first}<doc docid='b'><seg>it's <//! <! ></seg></doc></srcset>"
    assert source_of(tmp_path, text) == [("a", ("one",)), ("b", ("it's <//! <! >",))]


def test_metadata_of_talks_is_no_sentence(tmp_path: Path) -> None:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mteval><srcset setid="tst" srclang="fr">'
        '<doc docid="535" genre="lectures">'
        '<url>http://x</url><title>Titre</title><description>Texte.</description><seg id="1"> Un. </seg>\n</doc>'
        "</srcset></mteval>"
    )
    assert source_of(tmp_path, text) == [("535", ("Un.",))]


def test_first_reference_set_is_taken(tmp_path: Path) -> None:
    def refset(name: str) -> str:
        return f'<refset refid="{name}"><doc docid="a" sysid="{name}"><seg id=1>{name}</seg></doc></refset>\n'

    (tmp_path / "s").write_text('<srcset><doc docid="a"><seg id=1>un</seg></doc></srcset>')
    (tmp_path / "several").write_text(refset("one") + refset("two"))
    joined = refset("one").replace("</refset>\n", "") + refset("two").split(">", 1)[1]
    assert joined.count("<doc") == 2 and joined.count("<refset") == 1
    (tmp_path / "joined").write_text(joined)
    (tmp_path / "nameless").write_text((refset("one") + refset("two")).replace(" sysid", " x"))
    for target in ("several", "joined", "nameless"):
        documents = read_corpus(CorpusFiles(source=str(tmp_path / "s"), target=str(tmp_path / target)))
        assert [document.target for document in documents] == [("one",)]


def test_documents_in_another_order_find_each_other(tmp_path: Path) -> None:
    def documents(names: str) -> str:
        return "<srcset>" + "".join(f'<doc docid="{n}"><seg>{n}.</seg></doc>' for n in names) + "</srcset>"

    (tmp_path / "s").write_text(documents("abcd"))
    (tmp_path / "t").write_text(documents("xbdac"))
    skipped = SkipBad()
    files = CorpusFiles(source=str(tmp_path / "s"), target=str(tmp_path / "t"))
    pairs = list(read_corpus(files, on_bad=skipped))
    assert sorted(document.id for document in pairs) == list("abcd")
    assert all(document.source == document.target for document in pairs)
    assert skipped.counts == {"unknown document": 1}
    assert skipped.examples["unknown document"].document == "x"


def test_talk_boundaries_of_train_tags(tmp_path: Path) -> None:
    path = tmp_path / "train.tags.fr-en.fr"
    path.write_text(
        '<doc docid="1" genre="lectures">\n<url>u1</url>\n<talkid>1</talkid>\n<title>T</title>\nUn.\nDeux <i>ici</i>.\n'
        "<reviewer></reviewer>\n<translator>X</translator>\n</doc>\n"
        "<url>u2</url>\n<keywords>k</keywords>\nTrois.\n<talkid>3</talkid>\nQuatre.\n"
    )
    documents = [(document.id, document.sentences) for document in read_source(str(path))]
    assert documents == [("1", ("Un.", "Deux <i>ici</i>.")), ("train.tags.fr-en:2", ("Trois.",)), ("3", ("Quatre.",))]


def test_reference_in_the_wanted_language(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(
        '<dataset><doc id="a"><src lang="en"><seg>one</seg></src><ref lang="de"><seg>eins</seg></ref>'
        '<ref lang="fr-FR"><seg>un</seg></ref></doc></dataset>'
    )
    files = CorpusFiles(path=str(tmp_path / "x"))
    assert [document.target for document in read_corpus(files, languages=("en", "fr"))] == [("un",)]
    assert [document.target for document in read_corpus(files)] == [("eins",)]
    with pytest.raises(BadInput, match="no <ref> in zh"):
        list(read_corpus(files, languages=("en", "zh")))


def tmx(units: str) -> str:
    return f'<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'


def unit(source: str, target: str, extra: str = "") -> str:
    return (
        f'<tu>{extra}<tuv xml:lang="EN-us"><seg>{source}</seg></tuv><tuv xml:lang="fr"><seg>{target}</seg></tuv></tu>\n'
    )


def test_inline_codes_of_tmx_are_dropped(tmp_path: Path) -> None:
    inline = (
        'Click <bpt i="1">&lt;b></bpt><hi type="x">here</hi><ept i="1">&lt;/b></ept><ph x="1"/>, '
        "<ph>{0}</ph>now<it>\\</it>."
    )
    (tmp_path / "m").write_text(tmx(unit(inline, "Cliquez <ut>x</ut>ici.")))
    (document,) = read_corpus(CorpusFiles(path=str(tmp_path / "m")), languages=("en", "fr"))
    assert (document.id, document.source, document.target) == ("m", ("Click here, now.",), ("Cliquez ici.",))


def test_tmx_in_utf_16(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(tmx(unit("one", "été") * 3).encode("utf-16"))
    (document,) = read_corpus(CorpusFiles(path=str(tmp_path / "m")), languages=("fr", "en"))
    assert document.source == ("été",) * 3


def test_broken_utf_16_is_found(tmp_path: Path) -> None:
    whole = tmx(unit("one", "été") + unit("two", "deux?") + unit("three", "trois")).encode("utf-16-le")
    half = whole.replace("?".encode("utf-16-le"), b"\x00\xd8")
    (tmp_path / "m").write_bytes(b"\xff\xfe" + half)
    skipped = SkipBad()
    (document,) = read_corpus(CorpusFiles(path=str(tmp_path / "m")), languages=("en", "fr"), on_bad=skipped)
    assert document.source == ("one", "three")
    assert skipped.counts == {"bad UTF-8": 1}
    assert skipped.examples["bad UTF-8"].line == 2


def test_tmx_without_documents(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(tmx("".join(unit(f"one {n}", f"un {n}") for n in range(2_001))))
    files = CorpusFiles(path=str(tmp_path / "m"))
    with pytest.raises(DocnmtError, match="no document boundaries"):
        list(read_corpus(files))
    documents = list(read_corpus(files, sentence_level=True))
    assert len(documents) == 2_001
    assert len({document.id for document in documents}) == 2_001


def test_tmx_documents_by_property(tmp_path: Path) -> None:
    units = "".join(unit(f"one {n}", f"un {n}", f'<prop type="document">d{n // 2} &amp;</prop>') for n in range(4))
    (tmp_path / "m").write_text(tmx(units))
    documents = read_corpus(CorpusFiles(path=str(tmp_path / "m")))
    assert [(document.id, len(document)) for document in documents] == [("d0 &", 2), ("d1 &", 2)]


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE {root} [\n<!ENTITY a "aaaaaaaaaa">\n<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">\n]>\n'
    '<{root}><tu><tuv><seg>&b;</seg></tuv></tu><doc docid="a"><seg>&b;</seg></doc></{root}>'
)


@pytest.mark.parametrize("root", ["tmx", "dataset", "srcset", "mteval"])
def test_entity_declarations_are_refused(root: str, tmp_path: Path) -> None:
    (tmp_path / "bomb").write_text(BOMB.replace("{root}", root))
    path = str(tmp_path / "bomb")
    one_file = root in ("tmx", "dataset")
    files = CorpusFiles(path=path) if one_file else CorpusFiles(source=path, target=path)
    with pytest.raises(BadInput, match="bomb, line 3: the file declares an entity") as caught:
        list(read_corpus(files))
    assert caught.value.kind == "entity declaration"
    # Skipping goes on with nothing of the file.
    with pytest.raises(DocnmtError, match="no documents"):
        list(read_corpus(files, on_bad=SkipBad()))


def test_lines_are_counted_through_tags_and_comments(tmp_path: Path) -> None:
    text = '<srcset\n a="b">\n<!-- one\n\ntwo -->\n<doc\ndocid="a"><seg>Un.</seg><seg\nid=2>\x01</seg></doc></srcset>'
    (tmp_path / "x").write_text(text)
    with pytest.raises(BadInput, match="control character") as caught:
        list(read_source(str(tmp_path / "x")))
    assert caught.value.line == text[: text.index("<seg\n")].count("\n") + 1 == 7


def test_endless_tag_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('<srcset><doc docid="' + "a" * 3_000_000)
    with pytest.raises(BadInput, match="line 1: a tag is longer than 1,048,576 characters"):
        list(read_source(str(tmp_path / "x")))


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("&lt;&gt;&amp;&quot;&apos;&nbsp;", "<>&\"'\u00a0"),
        ("&amp;lt;", "&lt;"),  # once, not twice
        ("&#1;&#x85;", "\x01\x85"),  # kept, to be found as control characters
        ("&#9999999;", "\ufffd"),
        ("&copy 2 &; &#; AT&T", "&copy 2 &; &#; AT&T"),
    ],
)
def test_references(text: str, decoded: str) -> None:
    assert decode_references(text) == decoded


PIECES = st.lists(
    st.sampled_from(
        ["<seg>", "</seg>", "<a b='>' c=\"d>\">", "<!-- <x> -->", "text\n", "é", "2 < 3", "<![CDATA[<]]>", "<ph/>"]
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(pieces=PIECES, size=st.integers(1, 9))
def test_tokens_do_not_depend_on_where_the_text_is_cut(
    pieces: list[str], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x"
    path.write_text("".join(pieces) + "<end>")

    def joined() -> list[Tag | str]:
        result: list[Tag | str] = []
        with InputFile(str(path)) as file:
            for token in tokens(file):
                if isinstance(token, str) and result and isinstance(result[-1], str):
                    result[-1] += token
                else:
                    result.append(token)
        return result

    whole = joined()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_files, "BLOCK", size)
        assert joined() == whole
    assert sum(isinstance(token, Tag) for token in whole) == 1 + sum(
        piece in ("<seg>", "</seg>", "<a b='>' c=\"d>\">", "<ph/>") for piece in pieces
    )


# ---- several sets in a file ----


def blocks(kind: str, *documents: tuple[str, str, str]) -> str:
    """A set for each document: its id, translator and sentence."""
    made = (f'<doc docid="{name}" sysid="{who}"><seg id=1>{text}</seg></doc>' for name, who, text in documents)
    return "".join(f'<{kind} setid="{number}">{text}</{kind}>' for number, text in enumerate(made))


@pytest.mark.parametrize("around", ["{}", "<mteval>{}</mteval>"])
def test_every_set_of_a_file_is_read(tmp_path, around):
    source, target = tmp_path / "src", tmp_path / "ref"
    source.write_text(around.format(blocks("srcset", ("a", "", "un"), ("b", "", "deux"))))
    target.write_text(around.format(blocks("refset", ("a", "r", "one"), ("b", "r", "two"))))
    assert [(d.id, d.sentences) for d in read_source(str(source))] == [("a", ("un",)), ("b", ("deux",))]
    pairs = list(read_corpus(CorpusFiles(source=str(source), target=str(target))))
    assert [(d.id, d.source, d.target) for d in pairs] == [("a", ("un",), ("one",)), ("b", ("deux",), ("two",))]


def test_of_several_sets_of_translations_each_document_has_its_first(tmp_path):
    source, target = tmp_path / "src", tmp_path / "ref"
    source.write_text(blocks("srcset", ("a", "", "un"), ("b", "", "deux")))
    target.write_text(blocks("refset", ("a", "r1", "one"), ("a", "r2", "1"), ("b", "r2", "two"), ("b", "r3", "2")))
    pairs = list(read_corpus(CorpusFiles(source=str(source), target=str(target))))
    assert [d.target for d in pairs] == [("one",), ("two",)]


def test_the_same_source_in_two_sets_is_one_too_many(tmp_path):
    (tmp_path / "src").write_text(blocks("srcset", ("a", "", "un"), ("a", "", "deux")))
    with pytest.raises(BadInput, match="document a: an earlier document has the same id"):
        list(read_source(str(tmp_path / "src")))
