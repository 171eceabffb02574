"""What is written is read back the same, and a file is there whole or not at all."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import detect_format, read_corpus
from docnmt.corpus.rows import write_jsonl, write_text, write_tsv
from docnmt.document import ParallelDocument

# Any text a translator may meet: all scripts, marks and emoji. A byte order mark at the start of a file is not text.
CHARACTERS = st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="\ufeff")
SENTENCES = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=40),
    st.sampled_from(
        ["« Ça va ? »", "你好，世界。", " spaces ", "a ||| b", "</s>", "<seg>", '{"a": 1}', "\u2028", "x\u200by", "🙂"]
    ),
).filter(lambda text: bool(text.strip()))
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=5)
NAMES = st.text(CHARACTERS, min_size=1, max_size=12).filter(lambda name: bool(name.strip()))
CORPORA = st.lists(st.tuples(NAMES, PAIRS), min_size=1, max_size=4, unique_by=lambda document: document[0]).map(
    lambda corpus: [ParallelDocument(name, *map(tuple, zip(*pairs, strict=True))) for name, pairs in corpus]
)


@settings(max_examples=100, deadline=None)
@given(corpus=CORPORA, packed=st.booleans())
def test_round_trip(corpus: list[ParallelDocument], packed: bool) -> None:
    end = ".gz" if packed else ""
    with tempfile.TemporaryDirectory() as folder:
        tsv, jsonl, source, target = (f"{folder}/{name}{end}" for name in ("a.tsv", "a.jsonl", "b.x", "b.y"))
        write_tsv(tsv, corpus)
        write_jsonl(jsonl, iter(corpus))
        write_text(source, target, corpus)
        assert list(read_corpus(CorpusFiles(path=tsv, format="tsv"))) == corpus
        assert list(read_corpus(CorpusFiles(path=jsonl))) == corpus
        numbered = [ParallelDocument(f"b:{n}", d.source, d.target) for n, d in enumerate(corpus, 1)]
        assert list(read_corpus(CorpusFiles(source=source, target=target, format="text"))) == numbered


def test_written_formats_are_told(tmp_path: Path) -> None:
    corpus = [ParallelDocument("a", ("un",), ("one",))]
    write_tsv(str(tmp_path / "1"), corpus)
    write_jsonl(str(tmp_path / "2"), corpus)
    assert [detect_format(CorpusFiles(path=str(tmp_path / name))) for name in "12"] == ["tsv", "jsonl"]


def test_packed_files_are_the_same_every_time(tmp_path: Path) -> None:
    corpus = [ParallelDocument("a", ("un",), ("one",))]
    for name in ("1.gz", "2.gz"):
        write_tsv(str(tmp_path / name), corpus)
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()
    header = (tmp_path / "1.gz").read_bytes()[:8]
    assert header[:2] == b"\x1f\x8b"
    assert header[4:8] == bytes(4)  # no time of writing


@pytest.mark.parametrize("character", [chr(code) for code in range(0x20) if code != 9] + ["\x7f", "\x85", "\ud800"])
def test_control_characters_are_refused(character: str, tmp_path: Path) -> None:
    assert unicodedata.category(character) in ("Cc", "Cs")
    corpus = [ParallelDocument("doc", ("un", f"x{character}y"), ("one", "two"))]
    for write in (write_tsv, write_jsonl):
        with pytest.raises(BadInput, match="document doc"):
            write(str(tmp_path / "a"), corpus)
    with pytest.raises(BadInput, match="document doc"):
        write_text(str(tmp_path / "a"), str(tmp_path / "b"), corpus)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "message"), [("x\ty", "a tab inside"), (" ", "an empty sentence")])
@pytest.mark.parametrize("where", ["id", "source", "target"])
def test_what_tsv_cannot_hold_is_refused(place: str, message: str, where: str, tmp_path: Path) -> None:
    fields = {"id": "a", "source": ("un",), "target": ("one",)} | {where: place if where == "id" else (place,)}
    with pytest.raises(BadInput, match=message):
        write_tsv(str(tmp_path / "a"), [ParallelDocument(**fields)])  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_old_file_stays_when_writing_breaks_off(tmp_path: Path) -> None:
    def broken() -> Iterator[ParallelDocument]:
        yield ParallelDocument("a", ("un",), ("one",))
        raise KeyboardInterrupt

    for name in ("s", "t"):
        (tmp_path / name).write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_text(str(tmp_path / "s"), str(tmp_path / "t"), broken())
    with pytest.raises(KeyboardInterrupt):
        write_tsv(str(tmp_path / "s"), broken())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"s": "old", "t": "old"}


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocnmtError, match=r"the folder .* does not exist"):
        write_tsv(str(tmp_path / "no" / "a.tsv"), [])
