"""Every format gives the same documents, told by content alone."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import FORMATS, detect_format, read_corpus, read_source
from docnmt.document import Document, ParallelDocument

SOURCE = [["Bonjour à tous.", "Il « dort » < ici & là."], ["Ça va ?"]]
TARGET = [["Hello, everyone.", 'It "sleeps" < here & there.'], ["How are you?"]]
IDS = ["talk-1", "talk-2"]
FR, EN = "set.fr", "set.en"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def nist(kind: str, sides: list[list[str]]) -> str:
    documents = "".join(
        f'<DOC docid="{name}" sysid="{kind}">\n<p>\n'
        + "".join(f"<seg id={n}>{escape(s)}</seg>\n" for n, s in enumerate(sentences, 1))
        + "</p></DOC>\n"
        for name, sentences in zip(IDS, sides, strict=True)
    )
    return f'<{kind} setid="x" srclang="any">\n{documents}</{kind}>\n'


def iwslt(kind: str, sides: list[list[str]]) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n{nist(kind, sides).replace("DOC", "doc")}</mteval>\n'


def talks(sides: list[list[str]]) -> str:
    return "".join(
        f"<url>http://x.org/{name}</url>\n<keywords>a, b</keywords>\n<talkid>{name}</talkid>\n<title>A title</title>\n"
        + "".join(f" {sentence} \n" for sentence in sentences)
        for name, sentences in zip(IDS, sides, strict=True)
    )


def wmt() -> str:
    def segments(sentences: list[str]) -> str:
        return "<p>" + "".join(f'<seg id="{n}">{escape(s)}</seg>' for n, s in enumerate(sentences, 1)) + "</p>"

    return (
        '<?xml version="1.0"?>\n<dataset id="x"><!-- <doc id="no"> -->'
        + "".join(
            f'<doc id="{name}" origlang="fr"><src lang="fr">{segments(fr)}</src>\n'
            f'<hyp system="S" lang="en">{segments(["bad"] * len(en))}</hyp>'
            f'<ref lang="en" translator="A">{segments(en)}</ref>'
            f'<ref lang="en" translator="B">{segments(fr)}</ref></doc>\n'
            for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
        )
        + "</dataset>\n"
    )


def tmx() -> str:
    units = "".join(
        f'<tu tuid="{n}"><note>n</note><prop type="x-document">{name}</prop>'
        f'<tuv xml:lang="en-GB"><seg>{escape(e)}</seg></tuv><tuv xml:lang="fr-FR"><seg>{escape(f)}</seg></tuv></tu>\n'
        for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
        for n, (f, e) in enumerate(zip(fr, en, strict=True))
    )
    return f'<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><body>{units}</body></tmx>'


def xliff() -> str:
    files = "".join(
        f'<file original="{name}" source-language="fr-FR" target-language="en">\n<body>'
        + "".join(
            f'<trans-unit id="{n}"><source>{escape(f)}</source>\n<target>{escape(e)}</target></trans-unit>'
            for n, (f, e) in enumerate(zip(fr, en, strict=True))
        )
        + "</body></file>\n"
        for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
    )
    return f'<?xml version="1.0"?>\n<xliff version="1.2">{files}</xliff>'


def rows(separator: str) -> str:
    return "".join(
        f"{name}{separator}{f}{separator}{e}\n"
        for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
        for f, e in zip(fr, en, strict=True)
    )


def json_rows() -> str:
    return "".join(
        json.dumps({"doc_id": name, "id": 7, "source": f, "target": e}) + "\n"
        for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
        for f, e in zip(fr, en, strict=True)
    )


def json_documents() -> str:
    return "".join(
        json.dumps({"id": name, "source": fr, "target": en}, ensure_ascii=False) + "\n"
        for name, fr, en in zip(IDS, SOURCE, TARGET, strict=True)
    )


def blank_separated(sides: list[list[str]]) -> str:
    return "\n\n".join("\n".join(sentences) for sentences in sides) + "\n"


def document_lines(sides: list[list[str]]) -> str:
    return "".join(" </s> ".join(sentences) + "\n" for sentences in sides)


def lines(sides: list[list[str]]) -> str:
    return "".join(sentence + "\n" for sentences in sides for sentence in sentences)


# name: (format, files by name, fields of CorpusFiles, ids that are to come out)
NUMBERED = ["set:1", "set:2"]
PAIR = {"source": FR, "target": EN}
CASES = {
    "text": ("text", {FR: blank_separated(SOURCE), EN: blank_separated(TARGET)}, PAIR, NUMBERED),
    "ids": (
        "text",
        {FR: lines(SOURCE), EN: lines(TARGET), "ids": "talk-1\ntalk-1\ntalk-2\n"},
        PAIR | {"document_ids": "ids"},
        IDS,
    ),
    "starts": (
        "text",
        {FR: lines(SOURCE), EN: lines(TARGET), "st": "0 2\n"},
        PAIR | {"document_starts": "st"},
        NUMBERED,
    ),
    "lines": ("lines", {FR: document_lines(SOURCE), EN: document_lines(TARGET)}, PAIR, NUMBERED),
    "nist-sgml": ("nist-sgml", {FR: nist("srcset", SOURCE), EN: nist("refset", TARGET)}, PAIR, IDS),
    "iwslt-xml": ("iwslt-xml", {FR: iwslt("srcset", SOURCE), EN: iwslt("refset", TARGET)}, PAIR, IDS),
    "iwslt-tags": ("iwslt-tags", {FR: talks(SOURCE), EN: talks(TARGET)}, PAIR, IDS),
    "tsv": ("tsv", {"a.txt": rows("\t")}, {"path": "a.txt"}, IDS),
    "bars": ("bars", {"a.txt": rows(" ||| ")}, {"path": "a.txt"}, IDS),
    "jsonl documents": ("jsonl", {"a.txt": json_documents()}, {"path": "a.txt"}, IDS),
    "jsonl sentences": ("jsonl", {"a.txt": json_rows()}, {"path": "a.txt"}, IDS),
    "wmt-xml": ("wmt-xml", {"a.txt": wmt()}, {"path": "a.txt"}, IDS),
    "tmx": ("tmx", {"a.txt": tmx()}, {"path": "a.txt"}, IDS),
    "xliff": ("xliff", {"a.txt": xliff()}, {"path": "a.txt"}, IDS),
}
ENCODINGS = {
    "plain": lambda text: text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "gzip BOM CRLF": lambda text: gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
    "no last newline": lambda text: text.rstrip("\n").encode(),
}


def written(folder: Path, case: str, encoding: str = "plain") -> tuple[CorpusFiles, list[ParallelDocument]]:
    _, contents, fields, ids = CASES[case]
    for name, text in contents.items():
        (folder / name).write_bytes(ENCODINGS[encoding](text))
    files = CorpusFiles(**{key: str(folder / name) for key, name in fields.items()})
    return files, [
        ParallelDocument(name, tuple(fr), tuple(en)) for name, fr, en in zip(ids, SOURCE, TARGET, strict=True)
    ]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("case", CASES)
def test_format_is_told_and_read(case: str, encoding: str, tmp_path: Path) -> None:
    files, expected = written(tmp_path, case, encoding)
    assert detect_format(files) == CASES[case][0]
    assert list(read_corpus(files, languages=("fr", "en"))) == expected


@pytest.mark.parametrize("case", CASES)
def test_swap_exchanges_the_sides(case: str, tmp_path: Path) -> None:
    files, expected = written(tmp_path, case)
    swapped = CorpusFiles(**{**files.__dict__, "swap": True})
    # The recipe names the languages of the task; in TMX and XLIFF they are found by name, whatever the order.
    by_name = case in ("tmx", "xliff")
    languages = ("fr", "en") if by_name else ("en", "fr")
    wanted = expected if by_name else [ParallelDocument(d.id, d.target, d.source) for d in expected]
    assert list(read_corpus(swapped, languages=languages)) == wanted


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("tmx", "xliff", "ids", "starts")])
def test_source_alone(case: str, tmp_path: Path) -> None:
    files, expected = written(tmp_path, case)
    assert list(read_source(files.path or files.source)) == [Document(d.id, d.source) for d in expected]


def test_every_format_is_tested() -> None:
    elsewhere = {"sentences", "po", "files", "ldc"}  # one document a file, or none; ldc: folders (test_ldc.py)
    assert {case[0] for case in CASES.values()} | elsewhere == set(FORMATS)


def test_two_column_tsv_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("d1\tUn.\nd1\tDeux.\nd2\tTrois.\n")
    assert list(read_source(str(tmp_path / "a"))) == [Document("d1", ("Un.", "Deux.")), Document("d2", ("Trois.",))]


def test_plain_text_with_a_tab_is_still_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Un\tdeux.\nTrois.\n\nQuatre.\n")
    assert list(read_source(str(tmp_path / "a"))) == [
        Document("a:1", ("Un\tdeux.", "Trois.")),
        Document("a:2", ("Quatre.",)),
    ]


@pytest.mark.parametrize(("tab", "bar", "format"), [("\t", " ||| ", "tsv"), (" ||| ", "\t", "bars")])
def test_the_other_separator_in_one_sentence_does_not_mislead(tab: str, bar: str, format: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"d{tab}x{bar}y{bar}z{tab}w\n" + f"d{tab}Un.{tab}One.\n" * 3)
    assert detect_format(CorpusFiles(path=str(tmp_path / "a"))) == format


def test_source_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"Un.\nDeux.\n\nTrois.\n"))

    monkeypatch.setattr("sys.stdin", Stdin)
    assert list(read_source("-")) == [Document("stdin:1", ("Un.", "Deux.")), Document("stdin:2", ("Trois.",))]
    assert not Stdin.buffer.closed


def test_documents_come_out_before_the_end_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first_read = threading.Event()
    waited: list[bool] = []

    def write() -> None:
        with open(pipe, "wb", buffering=0) as file:
            file.write(b"d1\tUn.\tOne.\nd2\tDeux.\tTwo.\n")
            waited.append(first_read.wait(10))
            file.write(b"d3\tTrois.\tThree.\n")

    writer = threading.Thread(target=write)
    writer.start()
    documents = read_corpus(CorpusFiles(path=str(pipe)))
    assert next(documents).id == "d1"
    first_read.set()
    assert [document.id for document in documents] == ["d2", "d3"]
    writer.join()
    assert waited == [True]


def test_pairs_of_plain_files_are_documents_of_their_own(tmp_path: Path) -> None:
    files, _ = written(tmp_path, "text")
    assert [(d.id, d.source, d.target) for d in read_corpus(files, sentence_level=True)] == [
        ("set.fr:1", (SOURCE[0][0],), (TARGET[0][0],)),
        ("set.fr:2", (SOURCE[0][1],), (TARGET[0][1],)),
        ("set.fr:4", (SOURCE[1][0],), (TARGET[1][0],)),
    ]


@pytest.mark.parametrize("case", ["ids", "starts", "tsv", "tmx", "nist-sgml"])
def test_pairs_with_document_marks_keep_their_documents(case: str, tmp_path: Path) -> None:
    files, expected = written(tmp_path, case)
    assert list(read_corpus(files, languages=("fr", "en"), sentence_level=True)) == expected


def test_sentences_format_can_be_named(tmp_path: Path) -> None:
    files, _ = written(tmp_path, "text")
    named = CorpusFiles(source=files.source, target=files.target, format="sentences")
    assert [len(document) for document in read_corpus(named)] == [1, 1, 1]


def test_several_blank_lines_between_documents(tmp_path: Path) -> None:
    (tmp_path / FR).write_text("\n\nUn.\n\n \nDeux.\n\n")
    (tmp_path / EN).write_text("One.\n\nTwo.")
    documents = read_corpus(CorpusFiles(source=str(tmp_path / FR), target=str(tmp_path / EN)))
    assert [(d.source, d.target) for d in documents] == [(("Un.",), ("One.",)), (("Deux.",), ("Two.",))]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"path": "missing.tsv"}, "missing.tsv: no such file"),
        ({"path": "folder"}, "folder: this is a folder, not a file"),
        ({"path": "empty"}, "empty: no documents"),
        ({"path": "empty", "format": "tsv"}, "empty: no documents"),
        ({"source": "empty", "target": "empty"}, "no documents"),
        ({"path": "prose"}, "Give the format, one of tsv, bars, jsonl, wmt-xml, tmx"),
        ({"path": "prose", "format": "csv"}, "unknown format 'csv'"),
        ({"path": "prose", "format": "text"}, "the format text needs source and target"),
        ({"source": "prose", "target": "prose", "format": "tsv"}, "the format tsv needs path"),
        ({"source": "prose"}, "a corpus needs one file or two"),
        ({"path": "prose", "source": "prose", "target": "prose"}, "a corpus needs one file or two"),
        ({"path": "broken.gz", "format": "tsv"}, "cannot be read"),
        ({"source": "prose", "target": "prose", "document_starts": "wrong"}, "must start at line 0, not at 1"),
        ({"source": "prose", "target": "prose", "document_starts": "prose"}, "'Prose.' is not a line index"),
        ({"source": "prose", "target": "prose", "document_starts": "back"}, "start 1 comes after start 1"),
    ],
)
def test_what_cannot_be_read_at_all(
    fields: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "prose").write_text("Prose.\nMore of it.\n")
    (tmp_path / "wrong").write_text("1\n")
    (tmp_path / "back").write_text("0\n1\n1\n")
    (tmp_path / "broken.gz").write_bytes(gzip.compress(os.urandom(5000))[:2000])
    with pytest.raises(DocnmtError) as caught:
        list(read_corpus(CorpusFiles(**fields)))  # type: ignore[arg-type]
    first, remedy = str(caught.value).split("\n", 1)
    assert message in str(caught.value)
    assert first and remedy.startswith("  ")
