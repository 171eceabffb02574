"""Zip archives: only what changed is packed anew, and hostile ones are told before they are unpacked."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents import archive
from docnmt.documents.archive import Archive, write_zip

NAMES = st.lists(st.sampled_from(["mimetype", "a.xml", "b/c.xml", "é.txt", "d/e/f"]), unique=True, min_size=1)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def packed(files: dict[str, bytes], methods: list[int] | None = None, streamed: bool = False) -> bytes:
    class Pipe(io.BytesIO):
        """Cannot go back, so that sizes are written behind the data."""

        def seekable(self) -> bool:
            return not streamed

        def tell(self) -> int:
            if streamed:
                raise OSError
            return super().tell()

    out = Pipe()
    with zipfile.ZipFile(out, "w") as writer:
        for number, (name, content) in enumerate(files.items()):
            entry = zipfile.ZipInfo(name, (1999, 12, 31, 23, 59, 58))
            entry.external_attr, entry.comment = 0o640 << 16, b"remark"
            writer.writestr(entry, content, methods[number % len(methods)] if methods else zipfile.ZIP_DEFLATED)
        writer.comment = b"all"
    return out.getvalue()


def described(data: bytes) -> list[tuple[object, ...]]:
    with zipfile.ZipFile(io.BytesIO(data)) as reader:
        assert reader.testzip() is None
        return [
            (entry.filename, entry.date_time, entry.compress_type, entry.external_attr, entry.comment, reader.comment)
            for entry in reader.infolist()
        ]


@given(names=NAMES, data=st.data(), streamed=st.booleans())
@settings(max_examples=80, deadline=None)
def test_only_what_changed_changes(names: list[str], data: st.DataObject, streamed: bool) -> None:
    files = {name: data.draw(st.binary(max_size=50)) * 3 for name in names}
    methods = data.draw(st.lists(st.sampled_from(METHODS), min_size=1, max_size=4))
    original = packed(files, methods, streamed)
    assert Archive(original, "x") == files
    assert write_zip(original, files) == write_zip(original, {}) == original
    changed = {name: data.draw(st.binary(max_size=50)) for name in data.draw(st.sets(st.sampled_from(names)))}
    result = write_zip(original, changed)
    assert Archive(result, "x") == files | changed
    assert described(result) == described(original)


def test_unchanged_entries_keep_their_packed_bytes() -> None:
    content = b"to be packed, " * 100
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as writer:
        writer.writestr("a", content)
        writer.writestr("b", b"old")
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as reader:
        first = out.getvalue()[: reader.getinfo("b").header_offset]
    assert write_zip(out.getvalue(), {"b": b"new"}).startswith(first)


def test_names_in_old_code_pages_and_folders_stay() -> None:
    data = packed({"xx.txt": b"1", "folder/": b"", "b": b"2"}).replace(b"xx.txt", b"\x82x.txt")
    assert list(Archive(data, "x")) == ["éx.txt", "b"]
    result = write_zip(data, {"b": b"3"})
    assert Archive(result, "x") == {"éx.txt": b"1", "b": b"3"}
    assert [entry[0] for entry in described(result)] == ["éx.txt", "folder/", "b"]


def error_of(data: bytes) -> str:
    with pytest.raises(DocnmtError) as caught:
        dict(Archive(data, "some.docx"))
    message = str(caught.value)
    assert message.startswith("some.docx: ") and "\n  " in message
    return message


def test_bombs_are_told_by_their_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = packed({"a": bytes(1 << 25)})
    assert len(bomb) < 1 << 16
    assert "would unpack to 33,554,432" in error_of(bomb)
    monkeypatch.setattr(archive, "MAX_UNPACKED", 1_000)
    assert "would unpack to 1,001" in error_of(packed({"a": b"\x01" * 1_001}, [zipfile.ZIP_STORED]))


def test_a_small_archive_of_empty_elements_is_a_bomb() -> None:
    """Parsing them takes half a minute, though they unpack to a few megabytes."""
    assert "would unpack to 3,600,000" in error_of(packed({"word/document.xml": b"<w:p/>" * 600_000}))


def test_a_bomb_that_lies_about_its_size_is_broken() -> None:
    data = packed({"a": bytes(1 << 25)})
    lie = data.replace(struct.pack("<L", 1 << 25), struct.pack("<L", 100))
    assert lie != data
    assert "broken" in error_of(lie)


def test_too_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    Archive(packed({str(i): b"" for i in range(3)}), "x")
    assert "more than 3 entries" in error_of(packed({str(i): b"" for i in range(4)}))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "C:x", "a\\..\\x", "\\x", "a\x00b"])
def test_names_that_lead_outside(name: str) -> None:
    stand_in = "q" * len(name)
    data = packed({stand_in: b""}).replace(stand_in.encode(), name.encode())
    assert "outside the archive's folder" in error_of(data)


def test_the_same_name_twice() -> None:
    assert "several entries named aa" in error_of(packed({"aa": b"1", "ab": b"2"}).replace(b"ab", b"aa"))


def test_encrypted_entries() -> None:
    data = bytearray(packed({"a": b"1"}))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as reader:
        directory = reader.start_dir
    data[6] |= 1  # in the entry's header, and in the directory
    data[directory + 8] |= 1
    assert "a is encrypted" in error_of(bytes(data))


def test_packed_as_no_document_is() -> None:
    assert "compression method" in error_of(packed({"a": b"1"}, [zipfile.ZIP_LZMA]))


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4 not a zip", b"PK\x03\x04 cut off"])
def test_no_archive(data: bytes) -> None:
    assert ("broken" if data.startswith(b"PK") else "is not a zip archive, although its name says so") in error_of(data)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damage_is_an_error_or_harmless(data: st.DataObject) -> None:
    original = bytearray(packed({"a": b"some text " * 9, "b": b"more"}, [8, 0]))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    try:
        dict(Archive(bytes(original), "some.docx"))
    except DocnmtError as error:
        assert str(error).startswith("some.docx: ")
