"""Bad places in a corpus: each is refused with its exact place, or skipped and counted while its neighbours stay."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from docnmt.base.errors import BadInput, DocnmtError, SkipBad
from docnmt.base.lines import BLOCK, CorpusFiles
from docnmt.corpus.read import read_corpus, read_source


@dataclass
class Case:
    """What stands in the files, which place is named, and what is left when it is skipped."""

    kind: str
    contents: dict[str, bytes | str]
    file: str
    line: int
    document: str
    left: list[tuple[str, ...]]  # the source sentences of the documents that are left
    message: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    count: int = 1

    def files(self, folder: Path) -> CorpusFiles:
        for name, content in self.contents.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        fields = self.fields or ({"path": "t"} if "t" in self.contents else {"source": "s.x", "target": "t.x"})
        paths = {key: value if key == "format" else str(folder / value) for key, value in fields.items()}
        return CorpusFiles(**paths)  # type: ignore[arg-type]


def tsv(kind: str, bad_line: bytes | str, document: str, message: str = "") -> Case:
    """A bad line 3 between good neighbours of one document."""
    bad = bad_line if isinstance(bad_line, bytes) else bad_line.encode()
    content = b"a\tun\tone\na\tdeux\ttwo\n" + bad + b"\na\ttrois\tthree\nb\tquatre\tfour\n"
    return Case(kind, {"t": content}, "t", 3, document, [("un", "deux", "trois"), ("quatre",)], message)


IDS_FIELDS = {"source": "s.x", "target": "t.x", "document_ids": "ids"}
SGM = (
    '<srcset><doc docid="d1"><seg id=1>un</seg>\n<seg id=2>{}</seg></doc>\n'
    '<doc docid="{}"><seg id=1>deux</seg></doc></srcset>'
)
UNIT = "<tmx><tu><tuv lang='fr'><seg>un</seg></tuv><tuv lang='en'><seg>one</seg></tuv></tu>\n"
WMT = '<dataset><doc id="a"><src><seg>un</seg></src><ref><seg>one</seg></ref></doc>\n'
LONG = "x" * 20_001
BLANKS = "un\ndeux\n\ntrois\n"

CASES = {
    "tsv empty source": tsv("empty side", "a\t\ttwo", "a", "the sentence has no source"),
    "tsv empty target": tsv("empty side", "a\tdeux\t ", "a", "the sentence has no translation"),
    "tsv bad UTF-8": tsv("bad UTF-8", b"a\tcaf\xe9\tcoffee", "a", "byte 0xE9 at character 6"),
    "tsv NUL": tsv("control character", "a\tx\0y\tz", "a", "U+0000 at character 4"),
    "tsv carriage return": tsv("control character", "a\tx\ry\tz", "a", "U+000D"),
    "tsv C1": tsv("control character", "a\tx\x8by\tz", "a", "U+008B"),
    "tsv non-character": tsv("control character", "a\tx\ufffey\tz", "a", "U+FFFE"),
    "tsv no id": tsv("unknown document", " \tdeux\ttwo", ""),
    "tsv long": tsv("long line", f"a\t{LONG}\ttwo", "a", "more than 20,000 characters"),
    "tsv very long": tsv("long line", "a\t" + "é" * BLOCK + "\ttwo", "a"),
    "tsv two columns": tsv("bad columns", "a\tdeux", "a", "2 columns, but there should be 3"),
    "tsv four columns": tsv("bad columns", "a\tdeux\ttwo\tzwei", "a", "4 columns"),
    "tsv repeated": Case(
        "repeated document",
        {"t": "a\tun\tone\nb\tdeux\ttwo\na\ttrois\tthree\na\tquatre\tfour\nc\tcinq\tfive\n"},
        "t",
        3,
        "a",
        [("un",), ("deux",), ("cinq",)],
    ),
    "bars columns": Case("bad columns", {"t": "a ||| un ||| one\na ||| deux\n"}, "t", 2, "a", [("un",)]),
    "bars empty": Case("empty side", {"t": "a ||| un ||| one\na ||| deux ||| \n"}, "t", 2, "a", [("un",)]),
    "document left empty": Case(
        "empty side", {"t": "a\tun\tone\nb\tdeux\t\nc\ttrois\tthree\n"}, "t", 2, "b", [("un",), ("trois",)]
    ),
    "json broken": Case(
        "bad JSON", {"t": '{"id":"a","source":["un"],"target":["one"]}\n{"id":\n'}, "t", 2, "", [("un",)]
    ),
    "json nested": Case(
        "bad JSON", {"t": '{"id":"a","source":["un"],"target":["one"]}\n' + "[" * 10**6 + "\n"}, "t", 2, "", [("un",)]
    ),
    "json no target": Case(
        "bad JSON",
        {"t": '{"id":"a","source":["un"],"target":["one"]}\n{"id":"b","source":["x"]}\n'},
        "t",
        2,
        "b",
        [("un",)],
    ),
    "json unequal": Case(
        "unequal sides",
        {"t": '{"id":"a","source":["un"],"target":["one"]}\n{"id":"b","source":["x","y"],"target":["x"]}\n'},
        "t",
        2,
        "b",
        [("un",)],
        "2 source sentences but 1 target sentences",
    ),
    "json empty": Case(
        "empty side", {"t": '{"id":"a","source":["un",""],"target":["one","x"]}\n'}, "t", 1, "a", [("un",)]
    ),
    "json newline": Case(
        "control character", {"t": '{"id":"a","source":["un","x\\ny"],"target":["one","x"]}\n'}, "t", 1, "a", [("un",)]
    ),
    "json surrogate": Case(
        "bad UTF-8", {"t": '{"id":"a","source":["un","\\ud800"],"target":["one","x"]}\n'}, "t", 1, "a", [("un",)]
    ),
    "json no id": Case(
        "unknown document",
        {"t": '{"id":"a","source":["un"],"target":["one"]}\n{"source":["x"],"target":["y"]}\n'},
        "t",
        2,
        "",
        [("un",)],
    ),
    "json twice": Case(
        "repeated document", {"t": '{"id":"a","source":["un"],"target":["one"]}\n' * 2}, "t", 2, "a", [("un",)]
    ),
    "json long sentence": Case(
        "long line", {"t": f'{{"id":"a","source":["un","{LONG}"],"target":["one","x"]}}\n'}, "t", 1, "a", [("un",)]
    ),
    "text shorter file": Case(
        "unequal sides",
        {"s.x": BLANKS + "quatre\n", "t.x": "one\ntwo\n\nthree\n"},
        "s.x",
        5,
        "s:2",
        [("un", "deux")],
        "5 lines, but 4 in",
    ),
    "text missing document": Case(
        "unequal sides", {"s.x": BLANKS, "t.x": "one\ntwo\n"}, "s.x", 3, "s:2", [("un", "deux")], "4 lines, but 2 in"
    ),
    "text document of other length": Case(
        "unequal sides",
        {"s.x": BLANKS + "\nquatre\n", "t.x": "one\ntwo\ntwo and a half\n\nthree\n\nfour\n"},
        "s.x",
        1,
        "s:1",
        [("trois",), ("quatre",)],
        "2 source sentences but 3 target sentences",
    ),
    "text untranslated sentence": Case(
        "empty side",
        {"s.x": "un\ndeux\ntrois\n\nquatre\n", "t.x": "one\n\nthree\n\nfour\n"},
        "t.x",
        2,
        "s:1",
        [("un", "trois"), ("quatre",)],
    ),
    "text untranslated last sentence": Case(
        "empty side", {"s.x": "un\n\n\nquatre\n", "t.x": "one\ntwo\n\nfour\n"}, "s.x", 2, "s:1", [("un",), ("quatre",)]
    ),
    "text bad UTF-8": Case(
        "bad UTF-8",
        {"s.x": BLANKS, "t.x": b"one\n\xff\n\nthree\n"},
        "t.x",
        2,
        "s:1",
        [("un",), ("trois",)],
        "byte 0xFF",
    ),
    "text long": Case(
        "long line", {"s.x": f"un\n{LONG}\n\ntrois\n", "t.x": BLANKS}, "s.x", 2, "s:1", [("un",), ("trois",)]
    ),
    "ids missing": Case(
        "unknown document",
        {"s.x": "un\ndeux\n", "t.x": "one\ntwo\n", "ids": "a\n\n"},
        "ids",
        2,
        "",
        [("un",)],
        "",
        IDS_FIELDS,
    ),
    "ids too few": Case(
        "unequal sides",
        {"s.x": "un\ndeux\n", "t.x": "one\ntwo\n", "ids": "a\n"},
        "ids",
        2,
        "",
        [("un",)],
        "1 lines",
        IDS_FIELDS,
    ),
    "ids too many": Case(
        "unequal sides",
        {"s.x": "un\n", "t.x": "one\n", "ids": "a\nb\n"},
        "ids",
        2,
        "",
        [("un",)],
        "1 lines",
        IDS_FIELDS,
    ),
    "ids empty target": Case(
        "empty side", {"s.x": "un\ndeux\n", "t.x": "one\n\n", "ids": "a\na\n"}, "t.x", 2, "a", [("un",)], "", IDS_FIELDS
    ),
    "starts too far": Case(
        "unequal sides",
        {"s.x": "un\n", "t.x": "one\n", "st": "0 5"},
        "st",
        2,
        "",
        [("un",)],
        "",
        {"source": "s.x", "target": "t.x", "document_starts": "st"},
    ),
    "sentences unequal": Case(
        "unequal sides",
        {"s.x": "un\n", "t.x": "one\ntwo\nthree\n"},
        "s.x",
        2,
        "",
        [("un",)],
        "1 lines, but 3 in",
        {"source": "s.x", "target": "t.x", "format": "sentences"},
    ),
    "sentences empty": Case(
        "empty side",
        {"s.x": "un\ndeux\n", "t.x": "one\n \n"},
        "t.x",
        2,
        "s.x:2",
        [("un",)],
        "",
        {"source": "s.x", "target": "t.x", "format": "sentences"},
    ),
    "lines unequal": Case(
        "unequal sides",
        {"s.x": "a </s> b\nun\n", "t.x": "a\none </s>\n"},
        "s.x",
        1,
        "s:1",
        [("un",)],
        "2 source",
        {"source": "s.x", "target": "t.x", "format": "lines"},
    ),
    "lines bad UTF-8": Case(
        "bad UTF-8",
        {"s.x": b"a\xff </s> b\nun </s> deux\n", "t.x": "a </s> b\none </s> two\n"},
        "s.x",
        1,
        "s:1",
        [("un", "deux")],
    ),
    "nist unequal": Case(
        "unequal sides",
        {"s.x": SGM.format("x", "d2"), "t.x": SGM.format("x</seg><seg>y", "d2")},
        "s.x",
        1,
        "d1",
        [("deux",)],
    ),
    "nist empty": Case(
        "empty side", {"s.x": SGM.format("x", "d2"), "t.x": SGM.format(" ", "d2")}, "t.x", 2, "d1", [("un",), ("deux",)]
    ),
    "nist control": Case(
        "control character",
        {"s.x": SGM.format("&#1;", "d2"), "t.x": SGM.format("x", "d2")},
        "s.x",
        2,
        "d1",
        [("un",), ("deux",)],
    ),
    "nist bad UTF-8": Case(
        "bad UTF-8",
        {"s.x": SGM.format("é", "d2").encode("latin-1"), "t.x": SGM.format("x", "d2")},
        "s.x",
        2,
        "d1",
        [("un",), ("deux",)],
    ),
    "nist long": Case(
        "long line", {"s.x": SGM.format(LONG, "d2"), "t.x": SGM.format("x", "d2")}, "s.x", 2, "d1", [("un",), ("deux",)]
    ),
    "nist no id": Case(
        "unknown document",
        {
            "s.x": SGM.format("x", ""),
            "t.x": SGM.format("x", "").replace('<doc docid=""><seg id=1>deux</seg></doc>', ""),
        },
        "s.x",
        3,
        "",
        [("un", "x")],
    ),
    "nist no partner": Case(
        "unknown document",
        {"s.x": SGM.format("x", "d2"), "t.x": SGM.format("x", "d2").split("\n<doc")[0]},
        "s.x",
        3,
        "d2",
        [("un", "x")],
    ),
    "nist repeated": Case(
        "repeated document",
        {"s.x": SGM.format("x", "d1"), "t.x": SGM.format("x", "d2").split("\n<doc")[0]},
        "s.x",
        3,
        "d1",
        [("un", "x")],
    ),
    "tags unequal": Case(
        "unequal sides",
        {
            "s.x": "<talkid>7</talkid>\nun\ndeux\n<talkid>8</talkid>\ntrois\n",
            "t.x": "<talkid>7</talkid>\none\n<talkid>8</talkid>\nthree\n",
        },
        "s.x",
        1,
        "7",
        [("trois",)],
    ),
    "wmt no ref": Case(
        "unequal sides",
        {"t": WMT + '<doc id="b"><src><seg>x</seg></src></doc></dataset>'},
        "t",
        2,
        "b",
        [("un",)],
        "no <ref>",
    ),
    "tmx one language": Case(
        "empty side",
        {"t": UNIT + "<tu><tuv lang='fr'><seg>x</seg></tuv></tu></tmx>"},
        "t",
        2,
        "t",
        [("un",)],
        "no text in language 2",
    ),
    "entity": Case(
        "entity declaration",
        {"t": UNIT + '<!ENTITY a "b"></tmx>'},
        "t",
        2,
        "",
        [("un",)],
    ),
    "cut off": Case(
        "bad markup",
        {"t": UNIT + "<tu><tuv la"},
        "t",
        2,
        "",
        [("un",)],
        count=2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_place_is_named(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    files = case.files(tmp_path)
    with pytest.raises(BadInput) as caught:
        list(read_corpus(files))
    error = caught.value
    assert (error.kind, error.file, error.line, error.document) == (
        case.kind,
        str(tmp_path / case.file),
        case.line,
        case.document,
    )
    assert str(error).startswith(f"{tmp_path / case.file}, line {case.line}")
    assert case.message in str(error)
    assert str(error).split("\n")[1].strip()
    str(error).encode()  # printable: no half characters in the message


@pytest.mark.parametrize("name", CASES)
def test_bad_place_is_skipped_and_counted(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    skipped = SkipBad()
    documents = list(read_corpus(case.files(tmp_path), on_bad=skipped))
    assert [document.source for document in documents] == case.left
    assert skipped.counts[case.kind] >= 1
    assert skipped.counts.total() == case.count


def test_every_kind_is_tested() -> None:
    from docnmt.corpus.rows import _REMEDIES

    beside = {"no document boundaries"}  # never skipped; tested below
    assert set(_REMEDIES) - beside <= {case.kind for case in CASES.values()}


def test_a_table_without_documents_is_told_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("un\tone\ndeux\ttwo\n", encoding="utf-8")
    with pytest.raises(DocnmtError, match=r"pairs.tsv: there are two columns, but TSV has three.*\n  Add the document"):
        list(read_corpus(CorpusFiles(str(path))))


def test_everything_skipped_is_an_empty_corpus(tmp_path: Path) -> None:
    files = Case("", {"t": "a\tx\t\n"}, "", 0, "", []).files(tmp_path)
    with pytest.raises(DocnmtError, match="no documents"):
        list(read_corpus(files, on_bad=SkipBad()))


def test_a_skipped_document_does_not_shift_those_after_it(tmp_path: Path) -> None:
    """Both sides have four documents: the first pair is unequal, the others belong together."""
    (tmp_path / "x.fr").write_text("A1\nA2\nA3\n\nB1\n\nC1\n\nD1\n", encoding="utf-8")
    (tmp_path / "x.en").write_text("a1\n\nb1\n\nc1\n\nd1\n", encoding="utf-8")
    bad = SkipBad()
    files = CorpusFiles(source=str(tmp_path / "x.fr"), target=str(tmp_path / "x.en"))
    documents = list(read_corpus(files, on_bad=bad))
    assert [(d.source, d.target) for d in documents] == [(("B1",), ("b1",)), (("C1",), ("c1",)), (("D1",), ("d1",))]
    assert dict(bad.counts) == {"unequal sides": 1}


@pytest.mark.parametrize("character", ["\u200b", "\u00ad", "\ufeff", "\u00a0", "\u2028", "\U0001f600", "\t"])
def test_unusual_characters_that_are_fine(character: str, tmp_path: Path) -> None:
    sentence = f"a{character}b"
    files = Case("", {"s.x": f"un\n{sentence}\n", "t.x": "one\ntwo\n"}, "", 0, "", []).files(tmp_path)
    assert [document.source for document in read_corpus(files)] == [("un", sentence)]


def numbered(folder: Path, count: int, every: int = 0) -> CorpusFiles:
    """Parallel files of `count` sentences, with a blank line after `every` of them."""
    for name in ("s.x", "t.x"):
        with open(folder / name, "w") as file:
            for number in range(count):
                file.write(f"{name} sentence number {number}\n")
                if every and number % every == every - 1:
                    file.write("\n")
    return CorpusFiles(source=str(folder / "s.x"), target=str(folder / "t.x"))


def test_undivided_text_is_a_document_up_to_a_limit(tmp_path: Path) -> None:
    assert [len(document) for document in read_corpus(numbered(tmp_path, 2_000))] == [2_000]
    files = numbered(tmp_path, 2_001)
    with pytest.raises(DocnmtError, match="no document boundaries") as caught:
        list(read_corpus(files, on_bad=SkipBad()))
    for option in ("blank line", "document_ids", "document_starts", "`sentences`"):
        assert option in str(caught.value)
    assert sum(1 for _ in read_corpus(files, sentence_level=True)) == 2_001


def test_a_long_document_with_a_boundary_is_fine(tmp_path: Path) -> None:
    assert [len(document) for document in read_corpus(numbered(tmp_path, 4_000, every=2_500))] == [2_500, 1_500]


def peak_of(documents: Iterator[object]) -> tuple[int, int]:
    """How many documents there are and the most memory taken while they were read."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in documents)
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["documents", "pairs"])
def test_memory_stays_flat(reader: str, tmp_path: Path) -> None:
    files = numbered(tmp_path, 200_000, every=20)
    size = Path(files.source).stat().st_size
    documents = read_corpus(files, sentence_level=reader != "documents")
    count, peak = peak_of(documents)
    assert count == (10_000 if reader == "documents" else 200_000)
    assert peak < 4_000_000 < size


def test_undivided_file_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    files = numbered(tmp_path, 200_000)
    with pytest.raises(DocnmtError, match="no document boundaries in 100,001 sentences"):
        list(read_corpus(files))


@pytest.mark.parametrize("end", [b"", b"\nb\tdeux\ttwo\n"])
def test_huge_line_is_skipped_without_holding_it(end: bytes, tmp_path: Path) -> None:
    with open(tmp_path / "t", "wb") as file:
        file.write(b"a\tun\tone\nb\t")
        for _ in range(50):
            file.write(b"y" * 1_000_000)
        file.write(end)
    skipped = SkipBad()
    count, peak = peak_of(read_corpus(CorpusFiles(path=str(tmp_path / "t")), on_bad=skipped))
    assert count == (2 if end else 1)
    assert skipped.counts == {"long line": 1}
    assert skipped.examples["long line"].line == 2
    assert peak < 5_000_000


def test_huge_segment_is_skipped_without_holding_it(tmp_path: Path) -> None:
    with open(tmp_path / "s.sgm", "wb") as file:
        file.write(b'<srcset><doc docid="a"><seg id=1>un</seg><seg id=2>')
        for _ in range(50):
            file.write(b"y" * 1_000_000)
        file.write(b"</seg></doc></srcset>")
    skipped = SkipBad()
    count, peak = peak_of(read_source(str(tmp_path / "s.sgm"), on_bad=skipped))
    assert count == 1
    assert skipped.counts == {"long line": 1}
    assert peak < 20_000_000


def test_bad_source_sentences_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"un\nx\0y\ndeux\n\n\xff\n\ntrois\n")
    skipped = SkipBad()
    documents = list(read_source(str(tmp_path / "a"), on_bad=skipped))
    assert [(document.id, document.sentences) for document in documents] == [
        ("a:1", ("un", "deux")),
        ("a:3", ("trois",)),
    ]
    assert skipped.counts == {"control character": 1, "bad UTF-8": 1}
    with pytest.raises(BadInput, match="line 2, document a:1: control character"):
        list(read_source(str(tmp_path / "a")))


@pytest.mark.parametrize(
    "text",
    [
        "a\tun\na\t \na\tdeux\n",
        "a ||| un\na |||  \na ||| deux\n",
        '{"id": "a", "source": ["un", "", "deux"]}\n',
        "un </s>  </s> deux\n",
    ],
)
def test_an_empty_source_sentence_keeps_its_place_when_only_the_source_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    (document,) = read_source(str(tmp_path / "x"))
    assert document.sentences == ("un", "", "deux")


@pytest.mark.parametrize(
    ("format", "line"), [("tsv", "d1\tUn mot.\tA word.\n"), ("bars", "d1 ||| Un mot. ||| A word.\n")]
)
def test_two_files_with_both_sides_each_are_no_sides(tmp_path: Path, format: str, line: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(line * 3)
    files = CorpusFiles(source=str(tmp_path / "a"), target=str(tmp_path / "b"))
    with pytest.raises(DocnmtError, match=rf"a: this is {format}, which has both sides"):
        list(read_corpus(files))
    as_text = CorpusFiles(source=files.source, target=files.target, format="text")
    assert len(next(read_corpus(as_text))) == 3


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("d1\tUn mot.\tA word.\n", "A word.\n", "a: this is tsv, which has both sides"),
        ("Un mot.\n", "d1\tUn mot.\tA word.\n", "b: this is tsv, which has both sides"),
        (
            "Un mot.\n",
            '<refset setid="x"><doc docid="d"><seg id="1">A word.</seg></doc></refset>\n',
            "only .*b is nist",
        ),
        ('<srcset setid="x"><doc docid="d"><seg id="1">Un.</seg></doc></srcset>\n', "A word.\n", "only .*a is nist"),
    ],
)
def test_two_files_of_which_one_is_no_side(tmp_path: Path, source: str, target: str, said: str) -> None:
    (tmp_path / "a").write_text(source)
    (tmp_path / "b").write_text(target)
    with pytest.raises(DocnmtError, match=said):
        list(read_corpus(CorpusFiles(source=str(tmp_path / "a"), target=str(tmp_path / "b"))))


def test_xml_of_an_unknown_kind_is_not_read_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "strings.xml"
    path.write_text('<?xml version="1.0"?>\n<resources>\n<string name="a">Bonjour</string>\n</resources>\n')
    with pytest.raises(DocnmtError, match=r"strings\.xml: XML of an unknown kind"):
        list(read_source(str(path)))
    assert len(next(read_source(str(path), format="text"))) == 4


def test_a_memory_is_not_translated(tmp_path: Path) -> None:
    path = tmp_path / "m.tmx"
    path.write_text('<?xml version="1.0"?><tmx version="1.4"><header srclang="fr"/><body/></tmx>')
    for format in ("", "tmx"):
        with pytest.raises(
            DocnmtError, match=r"m\.tmx: the format tmx already has both sides, so it is not translated"
        ):
            list(read_source(str(path), format=format))
