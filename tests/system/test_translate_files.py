"""`docnmt translate` on files with a layout: alone, many at once, broken ones among them, stopped and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

import docnmt.documents.translate as file_translation
from docnmt.decoding.files import translate_bytes
from docnmt.decoding.translator import Translator, load
from docnmt.documents import KINDS
from tests.system.conftest import Tiny, command, first_documents, start_docnmt


@pytest.fixture(scope="module")
def sentences(tiny: Tiny) -> list[str]:
    return [line.split("\t")[1] for line in first_documents(tiny.folder / "corpus" / "test.tsv", 4)]


@pytest.fixture
def letter(sentences: list[str], tmp_path: Path) -> Path:
    """Paragraphs of several sentences, a title, and what is no text."""
    path = tmp_path / "letter.txt"
    path.write_text(
        f"{sentences[0]}\r\n\r\n  {' '.join(sentences[1:4])}\r\n\r\n***\r\n12.\r\n{sentences[4]}", newline=""
    )
    return path


def table(message: str, name: str) -> str:
    (row,) = (line for line in message.splitlines() if name in line and line.startswith("│"))
    return row


# ---- one file ----


def test_a_text_file(model, letter, sentences, tmp_path):
    """What comes out is what the sentences are as one document."""
    out = tmp_path / "out.txt"
    done = command("translate", model, letter, "-o", out)
    assert done.code == 0 and done.out == "", done.err
    found = load(model).translate(sentences[:5])
    expected = [said or given for said, given in zip(found, sentences, strict=False)]  # a sentence is never dropped
    text = out.read_bytes().decode()
    assert text == f"{expected[0]}\r\n\r\n  {' '.join(expected[1:4])}\r\n\r\n***\r\n12.\r\n{expected[4]}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter.txt", "out.txt"]
    assert command("translate", model, letter).out == text
    assert translate_bytes(load(model), letter.read_bytes(), "letter.txt").decode() == text


def test_a_text_that_goes_on(model, sentences, tmp_path):
    """Of files with a layout and of lines, into files and to standard output: as in one document."""
    whole = [said or given for said, given in zip(load(model).translate(sentences[:6]), sentences, strict=False)]
    assert whole[3:] != load(model).translate(sentences[3:6]), "no context is used"
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text(" ".join(sentences[:3]))
    after.write_text(" ".join(sentences[3:6]))
    assert command("translate", model, after, "--previous", before).out == " ".join(whole[3:])
    command("translate", model, after, "--previous", before, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == " ".join(whole[3:])
    said, lines = tmp_path / "said.fr", tmp_path / "lines.fr"
    said.write_text("\n".join(["Rien.", "", *sentences[:3], "", ""]))  # its last document counts
    lines.write_text("\n".join([*sentences[3:6], "", *sentences[3:5]]) + "\n")
    expected = [*load(model).translate(sentences[:6])[3:], "", *load(model).translate(sentences[3:5])]
    assert command("translate", model, lines, "--previous", said).out.splitlines() == expected
    refused = command("translate", model, lines, after, "--previous", said, "-o", tmp_path / "folder")
    assert refused.code and "--previous can only be used with one file" in refused.err


def test_lines_if_somebody_says_so(model, sentences, tmp_path):
    path, corpus = tmp_path / "a.txt", tmp_path / "a.fr"
    for file in (path, corpus):
        file.write_text("\n".join([*sentences[:3], "", *sentences[3:5]]) + "\n", encoding="utf-8")
    assert command("translate", model, path, "--format", "text").out == command("translate", model, corpus).out
    assert "For n-best lists" in command("translate", model, path, "--nbest", 2).err
    assert command("translate", model, path, "--nbest", 2, "--format", "text").code == 0


def test_options_reach_files(model, letter):
    greedy = command("translate", model, letter, "--context", "off", "--beam", 1)
    assert greedy.code == 0, greedy.err
    assert greedy.out == translate_bytes(load(model), letter.read_bytes(), "a.txt", context="off", beam=1).decode()
    assert greedy.out != command("translate", model, letter).out


def test_where_a_translation_may_go(model, letter, tmp_path):
    before = letter.read_bytes()
    for out in (letter, tmp_path):
        done = command("translate", model, letter, "-o", out)
        assert done.code == 2 and "overwritten" in done.err
    (tmp_path / "a.docx").write_bytes(b"")
    for files in ((letter, letter.with_name("b.txt")), (tmp_path / "a.docx",)):
        done = command("translate", model, *files)
        assert done.code == 2 and "-o" in done.err
    done = command("translate", model, letter, "-o", f"{tmp_path}/new/")
    assert done.code == 0, done.err
    assert (tmp_path / "new" / "letter.txt").exists() and letter.read_bytes() == before


def test_no_input_is_written_over_by_the_translation_of_another(model, letter, tmp_path):
    other = tmp_path / "deeper" / "letter.txt"
    other.parent.mkdir()
    other.write_text("Un autre.\n", encoding="utf-8")
    done = command("translate", model, other, letter.with_name("no.txt"), "-o", tmp_path)
    assert done.code == 2
    before = letter.read_bytes()
    copy = tmp_path / "copy.txt"
    copy.write_text("Un chat.", encoding="utf-8")
    (tmp_path / "out").mkdir()
    os.link(letter, tmp_path / "out" / "copy.txt")
    done = command("translate", model, copy, letter, "-o", tmp_path / "out")
    assert done.code == 2 and f"{letter}: would be overwritten by the translation of {copy}" in done.err
    assert letter.read_bytes() == before


# ---- many files ----


def test_a_batch_goes_on_past_broken_files(model, letter, sentences, tmp_path):
    files = {
        "good.txt": sentences[0].encode(),
        "latin.txt": b"caf\xe9\n",
        "empty.txt": b"",
        "zeros.txt": b"\0\0\0",
        "lines.fr": "".join(f"{s}\n" for s in sentences[:2]).encode(),
        "paper.pdf": b"%PDF-1.4",
        "app.yaml": b"title: Bonjour\n",
    }
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with open(folder / "huge.txt", "wb") as file:
        file.truncate(2 << 30)
    names = [*files, "huge.txt", "missing.txt"]
    started = time.monotonic()
    done = command("translate", model, *(folder / name for name in names), letter, "-o", out)
    assert time.monotonic() - started < 30
    assert done.code == 2 and "Traceback" not in done.err
    assert "6 of 10 files could not be translated" in done.err
    assert sorted(path.name for path in out.iterdir()) == ["empty.txt", "good.txt", "letter.txt", "lines.fr"]
    assert (out / "letter.txt").read_bytes().decode() == command("translate", model, letter).out
    for name, said in {
        "latin.txt": "line 1: byte 0xE9",
        "zeros.txt": "NUL bytes",
        "huge.txt": "larger than 256 MB",
        "missing.txt": "no such file",
        "paper.pdf": "this kind of file is not supported",
        "app.yaml": "this kind of file is not supported",
        "letter.txt": "text",
        "lines.fr": "text",
    }.items():
        assert said in table(done.err, name), done.err


def test_a_folder_is_translated_into_a_folder(model, letter, sentences, tmp_path):
    folder = tmp_path / "in"
    (folder / "deep" / ".hidden").mkdir(parents=True)
    (folder / "one.txt").write_text(f"{sentences[0]}\n")
    (folder / "deep" / "one.md").write_text(f"# {sentences[1]}\n")
    (folder / "deep" / "picture.png").write_bytes(b"\x89PNG")
    (folder / "deep" / ".hidden" / "two.txt").write_text("Non.\n")
    done = command("translate", model, folder, letter, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert found == ["deep/one.md", "letter.txt", "one.txt"]
    assert (tmp_path / "out" / "one.txt").read_text() == command("translate", model, folder / "one.txt").out
    assert "skipped" in done.err and "picture.png" in done.err
    (folder / "one.txt").unlink()
    assert command("translate", model, folder, "-o", tmp_path / "again").code == 0
    assert (tmp_path / "again" / "deep" / "one.md").exists()


def test_a_file_that_fails_while_it_is_translated(model, letter, tmp_path, monkeypatch):
    original = Translator.translate_documents

    def failing(translator, documents, **options):
        if "bad" in documents[0].id:
            raise MemoryError("no room")
        return original(translator, documents, **options)

    monkeypatch.setattr(Translator, "translate_documents", failing)
    bad = tmp_path / "bad.txt"
    bad.write_text("Un chat.", encoding="utf-8")
    done = command("translate", model, bad, letter, "-o", tmp_path / "out")
    assert done.code == 2 and "no room" in table(done.err, "bad.txt")
    assert (tmp_path / "out" / "letter.txt").exists()


def test_a_batch_that_works_has_a_table_and_no_error(model, letter, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Un chat.\n", encoding="utf-8")
    done = command("translate", model, letter, other, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert "seconds" in done.err and " 1 " in table(done.err, "other.txt")


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
def test_wrongly_named_files_of_every_kind(model, tmp_path, kind):
    """A program, and a picture: an error for people, or nothing changed; the file beside it is translated."""
    suffix = next(suffix for suffix, name in KINDS.items() if name == kind)
    (tmp_path / f"a{suffix}").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 4)
    (tmp_path / "good.txt").write_text("Un chat.", encoding="utf-8")
    done = command("translate", model, tmp_path / f"a{suffix}", tmp_path / "good.txt", "-o", tmp_path / "out")
    assert "Traceback" not in done.err and done.code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.txt"]


# ---- stopped and started again ----


class Broken(BaseException):
    pass


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_translation, "BLOCK", 2)


@pytest.fixture
def book(sentences: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(" ".join(sentences[n : n + 3]) for n in range(0, 12, 3)), encoding="utf-8")
    return path


def test_blocks_change_nothing(model, book, tmp_path, small_blocks, monkeypatch):
    done = command("translate", model, book, "-o", tmp_path / "small.txt")
    assert done.code == 0, done.err
    monkeypatch.undo()
    assert command("translate", model, book).out == (tmp_path / "small.txt").read_text(encoding="utf-8")


def test_a_stopped_batch_goes_on_where_it_was(model, letter, book, tmp_path, small_blocks, monkeypatch):
    original, calls = Translator.translate_documents, []

    def breaking(translator, documents, **options):
        calls.append(documents)
        if len(calls) == 5:
            raise Broken
        return original(translator, documents, **options)

    expected = {path.name: command("translate", model, path).out for path in (letter, book)}
    monkeypatch.setattr(Translator, "translate_documents", breaking)
    out = tmp_path / "out"
    with pytest.raises(Broken):
        command("translate", model, letter, book, "-o", out)
    done = command("translate", model, letter, book, "-o", out)
    assert done.code == 0, done.err
    counted = len(calls)
    assert {path.name: path.read_bytes().decode() for path in out.iterdir()} == expected
    shutil.rmtree(out)
    assert command("translate", model, letter, book, "-o", out).code == 0
    assert counted == len(calls) - counted + 1, "finished blocks are translated again"


def test_ctrl_c_says_that_it_can_go_on(model, book, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "translate_documents", stopped)
    done = command("translate", model, book, "-o", tmp_path / "out.txt")
    assert done.code == 130 and "run the same command again" in done.err
    assert not (tmp_path / "out.txt").exists()


def test_a_killed_translation_goes_on(model, sentences, tmp_path):
    """SIGKILL in a book of many blocks of the real size."""
    book, out = tmp_path / "book.txt", tmp_path / "out" / "book.txt"
    book.write_text("\n\n".join(" ".join(sentences) for _ in range(1000 // len(sentences))), encoding="utf-8")
    arguments = ("translate", model, book, "-o", out, "--beam", "1")
    process = start_docnmt(*arguments)
    deadline = time.monotonic() + 100
    while process.poll() is None and not list(tmp_path.glob("out/*.parts/*/00000000")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate()
    if process.returncode != -signal.SIGKILL:
        pytest.skip("the machine was faster than the signal")
    finished = {part: part.stat().st_mtime_ns for part in tmp_path.glob("out/*.parts/*/0*")}
    assert finished and not out.exists()
    process = start_docnmt(*arguments)
    while process.poll() is None:
        for part, at in finished.items():
            with contextlib.suppress(FileNotFoundError):
                assert part.stat().st_mtime_ns == at, "a finished block was translated again"
        time.sleep(0.02)
    assert process.returncode == 0, process.communicate()[1]
    assert out.read_text(encoding="utf-8").count("\n\n") == book.read_text(encoding="utf-8").count("\n\n")
    assert [path.name for path in out.parent.iterdir()] == ["book.txt"]
