"""What is put on the page comes back from it: every kind of file, with the translations that stand there."""

from __future__ import annotations

import gzip
import json

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import translate_bytes
from docnmt.decoding.translator import Translator
from docnmt.serving import uploads
from tests.builders import loaded_model
from tests.fake_translator import Fake, backwards
from tests.office_files import docx

TEXT = b"Le chat voit la mer. Ma soeur aime le pain.\r\n\r\n***\r\n  Notre train quitte la gare !"
WORD = docx("<w:p><w:r><w:t>le chat voit </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>la mer</w:t></w:r></w:p>")
FILES = {
    "a.txt": TEXT,
    "a.docx": WORD,
    "a.html": b"<p>le chat voit <b>la mer</b>.</p><p>12.5</p>",
    "a.po": b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    b'msgid "le pain"\nmsgstr "bread"\n\nmsgid "la mer"\nmsgstr ""\n',
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nle chat voit\n\n2\n00:00:02,100 --> 00:00:03,000\nla mer.\n",
    "a.json": b'{"key": "le pain", "n": 3}',
}


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(loaded_model())


def read_upload(translator, data: bytes, name: str) -> dict:
    return json.loads(uploads.read_upload(translator, data, name))


def write_upload(translator, data: bytes, name: str, texts: list[str | None]) -> bytes:
    return uploads.write_upload(translator, data, name, json.dumps(texts))


def sentences(found: dict) -> list[dict]:
    return [sentence for document in found["documents"] for sentence in document["sentences"]]


def on_page(translator, data: bytes, name: str, say=None) -> list[str | None]:
    """What stands on the page: the translations, which it strips, nothing beside what is not to be translated."""
    texts: list[str | None] = []
    for document in read_upload(translator, data, name)["documents"]:
        given = [sentence["text"] for sentence in document["sentences"]]
        said = [text.strip() for text in translator.translate(given)] if say is None else map(say, given)
        texts += [t if s["translate"] else None for s, t in zip(document["sentences"], said, strict=True)]
    return texts


@pytest.mark.parametrize("name", FILES)
def test_a_file_written_from_the_page_is_the_one_that_translate_writes(translator, name):
    data = FILES[name]
    written = write_upload(translator, data, name, on_page(translator, data, name))
    assert written == translate_bytes(translator, data, name)
    assert written != data


@pytest.mark.parametrize("name", FILES)
def test_edits_are_in_the_file(translator, name):
    data = FILES[name]
    texts = [None if text is None else "Edited here." for text in on_page(translator, data, name)]
    untouched = write_upload(translator, data, name, [None] * len(texts))
    assert write_upload(translator, data, name, texts) != untouched
    if name == "a.txt":
        assert write_upload(translator, data, name, texts).decode() == (
            "Edited here. Edited here.\r\n\r\n***\r\n  Edited here."
        )
    if name not in ("a.po",):  # which notes that it was revised
        assert untouched == data


def test_paragraphs_and_what_is_not_to_be_translated():
    fake = Fake(backwards)
    rows = sentences(read_upload(fake, TEXT, "a.txt"))
    assert [row["begins"] for row in rows] == [True, False, True]
    assert all(row["translate"] for row in rows)
    rows = sentences(read_upload(fake, FILES["a.po"], "a.po"))
    assert {row["text"]: row["translate"] for row in rows} == {"le pain": False, "la mer": True}


def test_names_of_translations():
    fake = Fake(backwards)
    names = {"a.txt": "a.en.txt", "../../x/a.txt": "a.en.txt", "C:\\b\\my file.txt": "my file.en.txt", "a.fr": "a.en"}
    for given, name in {**names, "a": "a.en", "a.fr.gz": "a.en", "a.lines": "a.en.lines"}.items():
        data = gzip.compress(TEXT) if given.endswith(".gz") else TEXT
        assert read_upload(fake, data, given)["name"] == name
    with pytest.raises(DocnmtError, match="has no name"):
        read_upload(fake, TEXT, "a/..")


def test_lines_of_text_are_documents_and_keep_their_empty_lines():
    fake = Fake(backwards)
    data = b"le chat\nla mer\n\n\nle pain\n"
    found = read_upload(fake, data, "a.fr")
    assert [len(document["sentences"]) for document in found["documents"]] == [2, 1]
    texts = on_page(fake, data, "a.fr", backwards)
    assert write_upload(fake, data, "a.fr", texts) == b"chat le\nmer la\n\n\npain le\n"
    assert write_upload(fake, data, "a.fr", [None, "x", None]) == b"le chat\nx\n\n\nle pain\n"


def test_tables_and_json_lines():
    fake = Fake(backwards)
    rows = b"a\tle chat\tthe cat\na\tla mer\tthe sea\nb\tle pain\tbread\n"
    found = read_upload(fake, rows, "a.tsv")
    assert [document["id"] for document in found["documents"]] == ["a", "b"] and found["name"] == "a.en.tsv"
    written = write_upload(fake, rows, "a.tsv", on_page(fake, rows, "a.tsv", backwards))
    assert written.decode() == "a\tle chat\tchat le\na\tla mer\tmer la\nb\tle pain\tpain le\n"
    line = json.dumps({"id": "d", "source": ["le chat", None, "la mer"], "target": ["the cat", None, "the sea"]})
    texts = on_page(fake, line.encode(), "a.jsonl", backwards)
    assert texts == ["chat le", None, "mer la"]  # a gap is nothing to translate
    written = json.loads(write_upload(fake, line.encode(), "a.jsonl", texts))
    assert written["target"] == ["chat le", "", "mer la"]


def test_gzip_files_are_unpacked_within_limits(monkeypatch):
    found = read_upload(Fake(backwards), gzip.compress(b"a b\nc\n"), "a.txt.gz")
    assert [sentence["text"] for sentence in sentences(found)] == ["a b", "c"]
    monkeypatch.setattr(uploads, "UNPACKED", 1 << 20)
    with pytest.raises(DocnmtError, match="unpacks to more than 1 MB"):  # empty lines are no sentences to count
        read_upload(Fake(backwards), gzip.compress(b"\n" * ((1 << 20) + 1)), "a.tsv.gz")
    with pytest.raises(DocnmtError, match="cannot be unpacked"):
        read_upload(Fake(backwards), gzip.compress(b"a\n" * 1000)[:-9], "a.txt.gz")


@pytest.mark.parametrize("name", ["é" * 300 + ".tsv", "a\ud800.tsv", "\ud800" * 300 + ".tsv"])
def test_names_that_a_file_cannot_have(name):
    found = read_upload(Fake(backwards), b"d\tle pain\n", name)
    assert found["name"].endswith(".tsv")


def test_what_is_refused(monkeypatch):
    fake = Fake(backwards)
    with pytest.raises(DocnmtError, match="nothing to translate"):
        read_upload(fake, b"12 + 3\n***\n", "a.txt")
    with pytest.raises(DocnmtError, match="3 sentences, but 1 translations"):
        write_upload(fake, TEXT, "a.txt", ["x"])
    monkeypatch.setattr(uploads, "MOST", 2)
    for name in ("a.txt", "a.fr"):
        with pytest.raises(DocnmtError, match="more than 2 sentences"):
            read_upload(fake, b"Un. Deux. Trois.\n" if name == "a.txt" else b"un\ndeux\ntrois\n", name)
    with pytest.raises(DocnmtError) as refused:
        read_upload(fake, b"\xff\xfe\x00\x01" * 10, "photo.raw")
    assert str(refused.value).startswith("photo.raw")  # not where it lay for the moment
