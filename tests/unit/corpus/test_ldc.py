"""Releases of the Linguistic Data Consortium, as made-up files in each of their layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.base.lines import CorpusFiles
from docnmt.config import DataConfig, Recipe
from docnmt.corpus.ldc import detect_encoding
from docnmt.corpus.read import detect_format, read_corpus
from docnmt.data.prepare import _content_hash
from docnmt.experiments.job import data_table

CHINESE = ["中国的经济在这一年有了很大的发展。", "他说，这是一个好的开始。", "会议在北京举行。"]
TRADITIONAL = ["中國的經濟在這一年有了很大的發展。", "他說，這是一個好的開始。", "會議在台北舉行。"]
ENGLISH = ["China's economy grew this year.", "He said this was a good start.", "The meeting was held in Beijing."]


def sgml(name: str, sentences: list[str], attributes: str = "", docid_tag: bool = False) -> str:
    segments = "\n".join(f'<seg id="{n}"> {text} </seg>' for n, text in enumerate(sentences, 1))
    if docid_tag:
        return f"<DOC>\n<DOCID> {name} </DOCID>\n<BODY>\n<HEADLINE>\n{segments}\n</HEADLINE>\n</BODY>\n</DOC>\n"
    return f'<DOC docid="{name}"{attributes}>\n<p>\n{segments}\n</p>\n</DOC>\n'


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))


def news(folder: Path, encoding: str = "gb2312", docid_tag: bool = False) -> CorpusFiles:
    """Multiple translations: a folder a translator."""
    for n in (1, 2):
        name = f"XIN2002{n}"
        write(folder / "source" / f"{name}.sgm", sgml(name, CHINESE[: n + 1], docid_tag=docid_tag), encoding)
        for translator in ("E01", "E02"):
            text = sgml(name, [f"{translator}: {s}" for s in ENGLISH[: n + 1]], f' sysid="{translator}"', docid_tag)
            write(folder / "translation" / translator / f"{name}.sgm", text, "ascii")
    return CorpusFiles(source=str(folder / "source"), target=str(folder / "translation" / "E02"))


def read(files: CorpusFiles, **options):
    return list(read_corpus(files, languages=("zh", "en"), **options))


@pytest.mark.parametrize("docid_tag", [False, True])
@pytest.mark.parametrize("encoding", ["gb2312", "gb18030", "utf-8"])
def test_sgml_by_document_in_gb_or_utf_8(tmp_path, encoding, docid_tag):
    files = news(tmp_path, encoding, docid_tag)
    assert detect_format(files) == "ldc"
    documents = read(files)
    assert [document.id for document in documents] == ["XIN20021", "XIN20022"]
    assert documents[1].source == tuple(CHINESE)
    assert documents[1].target == tuple(f"E02: {text}" for text in ENGLISH)


def test_several_documents_in_a_file_and_segments_that_an_alignment_joins(tmp_path):
    """As the news magazine has them: Big5, and a folder that says which segments belong together."""
    one, two = sgml("d1", TRADITIONAL), sgml("d2", TRADITIONAL[:2])
    write(tmp_path / "Chinese" / "1976.chi", one + two, "big5")
    write(tmp_path / "English" / "1976.eng", sgml("d1", ENGLISH[:2]) + sgml("d2", ["Left out.", *ENGLISH[:2]]))
    links = [("1", "1"), ("2", "2 3")], [("1", ""), ("2", "1"), ("3", "2")]
    text = ""
    for name, pairs in zip(("d1", "d2"), links, strict=True):
        lines = "\n".join(f'<ALIGNMENT EnglishSegId="{e}" ChineseSegId="{c}">' for e, c in pairs)
        text += f'<DOC docid="{name}">\n{lines}\n</DOC>\n'
    write(tmp_path / "alignment" / "1976.align.txt", text)
    (tmp_path / "alignment" / "1976.align.txt").rename(tmp_path / "alignment" / "1976")
    first, second = read(CorpusFiles(source=str(tmp_path / "Chinese"), target=str(tmp_path / "English")))
    assert first.source == (TRADITIONAL[0], f"{TRADITIONAL[1]} {TRADITIONAL[2]}") and first.target == tuple(ENGLISH[:2])
    # What has no counterpart leaves a gap: contexts know that something was there.
    assert second.source == ("", *TRADITIONAL[:2]) and second.target == ("", *ENGLISH[:2])


def tdf(sentences: list[str]) -> str:
    fields = (
        "file channel start end speaker speakerType speakerDialect transcript section turn segment sectionType suType"
    )
    head = "\t".join(f"{name};unicode" for name in fields.split()) + "\n;;MM sectionTypes\t[u'report', None]\n"
    row = "CCTV\t0\t{n}.0\t{n}.9\tspeaker\tfemale\tnative\t{text}\t0\t0\t{n}\treport\tstatement\n"
    return head + "".join(row.format(n=n, text=text) for n, text in enumerate(sentences))


def test_tab_delimited_files_of_gale(tmp_path):
    write(tmp_path / "source" / "CCTV_NEWS_CMN_20051101.tdf", tdf(CHINESE))
    write(tmp_path / "translation" / "CCTV_NEWS_CMN_20051101.eng.tdf", tdf(ENGLISH))
    (document,) = read(CorpusFiles(source=str(tmp_path / "source"), target=str(tmp_path / "translation")))
    assert (document.source, document.target) == (tuple(CHINESE), tuple(ENGLISH))


# ---- encodings ----


@pytest.mark.parametrize(
    ("encoding", "sentences", "found"),
    [
        ("utf-8", CHINESE, ""),
        ("utf-8-sig", CHINESE, ""),
        ("ascii", ENGLISH, ""),
        ("gb2312", CHINESE, "gb18030"),
        ("gb18030", CHINESE, "gb18030"),
        ("big5", TRADITIONAL, "big5"),
    ],
)
def test_encodings_are_told_apart_by_how_they_read(tmp_path, encoding, sentences, found):
    write(tmp_path / "a.sgm", sgml("a", sentences), encoding)
    assert detect_encoding(tmp_path / "a.sgm") == found


def test_a_named_encoding_holds_for_any_format(tmp_path):
    """The NIST sets of the time are in GB, too."""
    files = CorpusFiles(
        source=str(tmp_path / "src.sgm"), target=str(tmp_path / "ref.sgm"), encoding="gb18030", name="MT02"
    )
    write(tmp_path / "src.sgm", f'<srcset setid="mt02">\n{sgml("d", CHINESE)}</srcset>\n', "gb18030")
    write(tmp_path / "ref.sgm", f'<refset setid="mt02">\n{sgml("d", ENGLISH)}</refset>\n')
    (document,) = read(files)
    assert document.source == tuple(CHINESE)
    write(tmp_path / "text.zh", "\n".join(CHINESE) + "\n", "gb18030")
    write(tmp_path / "text.en", "\n".join(ENGLISH) + "\n")
    lines = CorpusFiles(source=str(tmp_path / "text.zh"), target=str(tmp_path / "text.en"), encoding="gb18030")
    assert read(lines)[0].source == tuple(CHINESE)


def test_what_is_no_text_in_the_named_encoding_is_found(tmp_path):
    files = news(tmp_path)
    path = tmp_path / "source" / "XIN20021.sgm"
    path.write_bytes(path.read_bytes().replace("会议".encode("gb2312"), b"\xff\xff"))
    broken = path.read_bytes().replace("他说".encode("gb2312"), b"\xff")
    path.write_bytes(broken)
    with pytest.raises(DocnmtError, match=r"XIN20021\.sgm, line 4, document XIN20021: byte 0xFF"):
        read(files)
    with pytest.raises(DocnmtError, match="unknown encoding 'gb-nonsense'"):
        read(CorpusFiles(source=files.source, target=files.target, encoding="gb-nonsense"))


def test_the_encoding_is_part_of_what_was_read(tmp_path):
    files = news(tmp_path)

    def content(encoding: str) -> str:
        named = CorpusFiles(source=files.source, target=files.target, encoding=encoding)
        return _content_hash(Recipe(data=DataConfig(documents=(named,))), "documents")

    assert content("") != content("gb18030")
    before = content("")
    write(tmp_path / "source" / "XIN20021.sgm", sgml("XIN20021", CHINESE[1:]), "gb2312")
    assert content("") != before


# ---- what is wrong with a release ----


def test_a_file_without_its_translation_is_an_error_or_counted(tmp_path):
    files = news(tmp_path)
    (tmp_path / "translation" / "E02" / "XIN20021.sgm").unlink()
    with pytest.raises(DocnmtError, match=r"XIN20021\.sgm: there is no file .* in .*E02\n  Add the missing file"):
        read(files)
    bad = SkipBad()
    assert [document.id for document in read(files, on_bad=bad)] == ["XIN20022"]
    assert bad.counts == {"unknown document": 1}


def test_sides_of_unequal_length_are_an_error(tmp_path):
    files = news(tmp_path)
    write(tmp_path / "source" / "XIN20022.sgm", sgml("XIN20022", CHINESE[:2]), "gb2312")
    with pytest.raises(DocnmtError, match="document XIN20022"):
        read(files)


def test_the_folder_above_several_translators_is_refused(tmp_path):
    files = news(tmp_path)
    with pytest.raises(DocnmtError, match=r"no file name occurs in both folders\n.*XIN20021\.sgm"):
        read(CorpusFiles(source=files.source, target=str(tmp_path / "translation")))
    with pytest.raises(DocnmtError, match=r"both are named .*\n.*several translators"):
        (tmp_path / "source" / "XIN20021.txt").write_text("")
        read(files)


def test_a_document_that_comes_twice_and_one_without_an_end(tmp_path):
    files = news(tmp_path)
    for side, sentences in (("source", CHINESE), ("translation/E02", ENGLISH)):
        write(tmp_path / side / "z.sgm", sgml("XIN20021", sentences))
    with pytest.raises(DocnmtError, match=r"z\.sgm, line 1, document XIN20021: an earlier document"):
        read(files)
    write(tmp_path / "source" / "z.sgm", "<DOC docid='z'>\n<seg id=1> a </seg>\n")
    with pytest.raises(DocnmtError, match=r"z\.sgm, line 1, document z: the document has no end"):
        read(files)


# ---- a dry run on all of them ----


def talks(folder: Path) -> CorpusFiles:
    """As IWSLT hands them out: headings mark the talks, and one side has other headings than the other."""
    for side, sentences in (("fr", ["Bonjour.", "Merci."]), ("en", ["Hello.", "Thank you."])):
        talk = "<url>http://x/{n}</url>\n<keywords>talks</keywords>\n<talkid>{n}</talkid>\n<title>T</title>\n{text}\n"
        text = "".join(talk.format(n=n, text="\n".join(sentences)) for n in (1, 2))
        write(folder / f"train.tags.fr-en.{side}", text)
    return CorpusFiles(source=str(folder / "train.tags.fr-en.fr"), target=str(folder / "train.tags.fr-en.en"))


def mteval(folder: Path) -> CorpusFiles:
    for side, kind, sentences in (("fr", "srcset", ["Bonjour.", "Merci."]), ("en", "refset", ["Hello.", "Thank you."])):
        documents = "".join(sgml(f"{n}", sentences) for n in (1, 2))
        text = f'<mteval>\n<{kind} setid="tst2010">{documents}</{kind}>\n</mteval>\n'
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
        write(folder / f"IWSLT.TED.tst2010.fr-en.{side}.xml", text)
    paths = [str(folder / f"IWSLT.TED.tst2010.fr-en.{side}.xml") for side in ("fr", "en")]
    return CorpusFiles(source=paths[0], target=paths[1])


def gale(folder: Path) -> CorpusFiles:
    write(folder / "source" / "CCTV.tdf", tdf(CHINESE))
    write(folder / "translation" / "CCTV.eng.tdf", tdf(ENGLISH))
    return CorpusFiles(source=str(folder / "source"), target=str(folder / "translation"))


@pytest.mark.parametrize(
    ("make", "format", "sample"),
    [
        (news, "ldc", "2 read (2, 3 sentences); XIN20021: 中国的经济"),
        (gale, "ldc", "1 read (3 sentences); CCTV: 中国的经济"),
        (talks, "iwslt-tags", "2 read (2, 2 sentences); 1: Bonjour."),
        (mteval, "iwslt-xml", "2 read (2, 2 sentences); 1: Bonjour."),
    ],
)
def test_a_dry_run_reads_every_layout_as_it_is_downloaded(tmp_path, make, format, sample):
    recipe = Recipe(data=DataConfig(documents=(make(tmp_path),)))
    row = data_table(recipe).rows[0]
    assert row[0] == "documents" and row[2] == format and row[3].startswith(sample)


def test_two_files_are_no_release(tmp_path):
    write(tmp_path / "a.sgm", sgml("a", CHINESE))
    write(tmp_path / "b.sgm", sgml("a", ENGLISH))
    files = CorpusFiles(source=str(tmp_path / "a.sgm"), target=str(tmp_path / "b.sgm"), format="ldc")
    with pytest.raises(DocnmtError, match="ldc needs two folders"):
        list(read_corpus(files))
