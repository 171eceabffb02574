"""Text files in other encodings than UTF-8: told, guessed, named; written back as they were."""

from __future__ import annotations

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.documents.encodings import TextEncoding
from docnmt.documents.translate import FileSentences, Translated

FRENCH = "L'été à la mer."
CUE = "1\r\n00:00:01,000 --> 00:00:02,000\r\n{}\r\n"


def said(file: FileSentences, text: str) -> bytes:
    return file.write(iter([Translated(text)]))


@pytest.mark.parametrize(
    "language, encoding, text",
    [
        ("fr", "cp1252", FRENCH),
        ("pl", "cp1250", "Gęś i żółw."),
        ("ru", "cp1251", "Он пришёл."),
        ("ru-RU", "cp1251", "Он пришёл."),
        ("el", "cp1253", "Καλημέρα."),
        ("tr", "cp1254", "Güneş ışığı."),
        ("zh", "gb18030", "他来了。"),
        ("zh-Hant", "big5", "他來了。"),
        ("ja", "cp932", "彼が来た。"),
        ("ko", "cp949", "그가 왔다."),
    ],
)
def test_old_subtitles_are_in_the_encoding_that_was_usual_for_their_language(language, encoding, text):
    data = CUE.format(text).encode(encoding)
    file = FileSentences(data, "a.srt", (language, "en"))
    assert (file.encoding, [*file.texts]) == (TextEncoding(encoding, guessed=True), [text])
    assert said(file, text) == data
    assert said(file, "Summer.") == CUE.format("Summer.").encode()


def test_a_translation_that_the_encoding_has_no_letters_for_is_in_utf8():
    file = FileSentences(CUE.format(FRENCH).encode("cp1252"), "a.srt", ("fr", "zh"))
    assert said(file, "café") == CUE.format("café").encode("cp1252")
    assert said(file, "海边") == CUE.format("海边").encode()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.srt", "a.json"])
def test_an_encoding_that_is_named(name):
    text = {"a.srt": CUE, "a.json": '{{"a": "{}"}}'}.get(name, "{}\n").format(FRENCH)
    file = FileSentences(text.encode("cp850"), name, ("fr", "en"), "CP850")
    assert (file.encoding, [*file.texts]) == (TextEncoding("cp850"), [FRENCH])
    assert said(file, "Où ?") == text.replace(FRENCH, "Où ?").encode("cp850")


def test_utf8_and_byte_order_marks_need_no_guess():
    for data, found in [
        (b"abc", "UTF-8"),
        (b"\xef\xbb\xbfabc", "UTF-8"),
        ("\ufeffabc".encode("utf-16-le"), "UTF-16-LE"),
    ]:
        file = FileSentences(data, "a.txt", ("fr", "en"), "cp1252" if found != "UTF-8" else "")
        assert (file.encoding, [*file.texts]) == (TextEncoding(found), ["abc"])
        assert said(file, "abc") == data
    assert FileSentences(b"<p>abc</p>", "a.html", ("fr", "en")).encoding is None


@pytest.mark.parametrize(
    "name, data, language, encoding, problem",
    [
        ("a.txt", FRENCH.encode("cp1252"), "fr", "", "a.txt, line 1: byte 0xE9 is not valid UTF-8\n  Give the file's"),
        ("a.srt", CUE.format("\x81").encode("latin-1"), "fr", "", "a.srt, line 3: byte 0x81 is not valid cp1252"),
        ("a.srt", CUE.format("é").encode("latin-1"), "tlh", "", "a.srt, line 3: byte 0xE9 is not valid UTF-8"),
        ("a.txt", b"abc", "fr", "rot13", "a.txt: unknown encoding 'rot13'"),
        ("a.txt", b"abc", "fr", "a\0b", "a.txt: unknown encoding"),
        ("a.html", b"<p>abc</p>", "fr", "cp1252", "a.html: a file of this kind states its own encoding"),
    ],
)
def test_what_cannot_be_read_so_is_told(name, data, language, encoding, problem):
    with pytest.raises(DocnmtError) as caught:
        FileSentences(data, name, (language, "en"), encoding)
    assert problem in str(caught.value)
