"""Files and folders that are whole or not there."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

import docnmt.base.files
from docnmt.base.files import (
    HOST,
    NoRoom,
    check_card,
    check_hashes,
    folder_atomically,
    hashes,
    write_atomically,
    write_card,
    write_json,
)


class Stop(BaseException):
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- files ----


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "a.txt"
    with write_atomically(path) as file:
        file.write("half")
        file.flush()
        assert not path.exists()
        file.write(", é\n")
    assert path.read_bytes() == "half, é\n".encode()
    assert names(tmp_path) == ["a.txt"]


def test_a_file_of_bytes(tmp_path):
    with write_atomically(tmp_path / "a", binary=True) as file:
        file.write(b"\x00\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"


@pytest.mark.parametrize("error", [OSError, Stop, KeyboardInterrupt])
def test_a_file_that_fails_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "a.txt"
    with pytest.raises(error), write_atomically(path) as file:
        file.write("new")
        raise error
    assert names(tmp_path) == []
    path.write_text("old", encoding="utf-8")
    with pytest.raises(error), write_atomically(path) as file:
        file.write("new")
        raise error
    assert names(tmp_path) == ["a.txt"] and path.read_text(encoding="utf-8") == "old"


def test_json_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"good": 1, "bad": object()})
    assert names(tmp_path) == []
    write_json(tmp_path / "a.json", {"é": [1, 2]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "é": [\n    1,\n    2\n  ]\n}\n'


# ---- folders ----


def fill(folder: Path, text: str) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "a").write_text(text, encoding="utf-8")
    (folder / "b").write_text(text, encoding="utf-8")


def content(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}


def test_a_folder_appears_whole(tmp_path):
    path = tmp_path / "deep" / "folder"
    with folder_atomically(path) as folder:
        fill(folder, "new")
        assert not path.exists()
    assert content(path) == {"inner/a": "new", "b": "new"}
    assert names(path.parent) == ["folder"]


def test_a_folder_takes_the_place_of_another(tmp_path):
    for text in ("old", "new"):
        with folder_atomically(tmp_path / "folder") as folder:
            fill(folder, text)
            (folder / text).write_text("", encoding="utf-8")
    assert content(tmp_path / "folder") == {"inner/a": "new", "b": "new", "new": ""}
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("error", [OSError, Stop, KeyboardInterrupt])
@pytest.mark.parametrize("older", [False, True])
def test_a_folder_that_fails_leaves_what_was_there(tmp_path, error, older):
    if older:
        with folder_atomically(tmp_path / "folder") as folder:
            fill(folder, "old")
    with pytest.raises(error), folder_atomically(tmp_path / "folder") as folder:
        fill(folder, "new")
        raise error
    assert names(tmp_path) == (["folder"] if older else [])
    if older:
        assert content(tmp_path / "folder") == {"inner/a": "old", "b": "old"}


@pytest.mark.parametrize("failing", [1, 2])
def test_a_folder_that_cannot_be_put_in_place_leaves_the_older_one(tmp_path, monkeypatch, failing):
    """Replacing a folder takes two renamings; either may fail."""
    with folder_atomically(tmp_path / "folder") as folder:
        fill(folder, "old")
    original, calls = os.rename, []

    def rename(*paths: object) -> None:
        calls.append(paths)
        if len(calls) == failing:
            raise OSError("no")
        original(*paths)

    monkeypatch.setattr(docnmt.base.files.os, "rename", rename)
    with pytest.raises(OSError, match="no"), folder_atomically(tmp_path / "folder") as folder:
        fill(folder, "new")
    assert names(tmp_path) == ["folder"]
    assert content(tmp_path / "folder") == {"inner/a": "old", "b": "old"}


def test_what_an_earlier_process_of_this_number_left_does_no_harm(tmp_path):
    left = tmp_path / f".folder.{HOST}.{os.getpid()}.part"
    left.mkdir()
    (left / "rubbish").write_text("x", encoding="utf-8")
    with folder_atomically(tmp_path / "folder") as folder:
        fill(folder, "new")
    assert content(tmp_path / "folder") == {"inner/a": "new", "b": "new"}
    assert names(tmp_path) == ["folder"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with write_atomically(pipe) as file:
        file.write("text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


# ---- full disks, lost names, changed bytes ----


@pytest.mark.parametrize("write", [write_atomically, folder_atomically])
def test_a_full_disk_names_what_found_no_room(tmp_path, write):
    with (
        pytest.raises(NoRoom, match=f"{tmp_path / 'a'}: cannot be written: the disk is full") as caught,
        write(tmp_path / "a"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.path == tmp_path / "a"
    assert names(tmp_path) == []


def test_a_full_disk_names_the_folder_and_not_what_it_was_called_until_then(tmp_path):
    with (
        pytest.raises(NoRoom, match=f"^{tmp_path / 'a'}: cannot be written: the disk is full"),
        folder_atomically(tmp_path / "a") as made,
        write_atomically(made / "file"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []


@pytest.mark.parametrize("write", [write_atomically, folder_atomically])
def test_a_new_name_is_on_disk_before_anybody_is_told(tmp_path, write, monkeypatch):
    done = []
    rename, replace, sync = os.rename, os.replace, os.fsync
    monkeypatch.setattr(os, "rename", lambda *names: (done.append("named"), rename(*names)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("named"), replace(*names)))

    def noted(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with write(tmp_path / "a") as made:
        if write is folder_atomically:
            (made / "file").write_bytes(b"x")
    assert done[0] == "file" and done[-2:] == ["named", "folder"]


def test_hashes_find_a_changed_byte(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    known = hashes(tmp_path)
    check_hashes(tmp_path, known)
    (tmp_path / "b").write_bytes(b"twO")
    with pytest.raises(OSError, match="b has changed since it was written"):
        check_hashes(tmp_path, known)


def test_a_card_finds_a_change_in_itself_and_in_its_folder(tmp_path):
    card, table = tmp_path / "card.json", {"update": 12, "best": [(4.245285432948205, 10)], "name": "é"}
    (tmp_path / "a").write_bytes(b"one")
    write_card(card, table)
    check_card(card, json.loads(card.read_text()))
    with pytest.raises(OSError, match=r"card\.json has changed since it was written"):
        check_card(card, json.loads(card.read_text().replace("12", "13")))
    (tmp_path / "a").write_bytes(b"onE")
    with pytest.raises(OSError, match="a has changed since it was written"):
        check_card(card, json.loads(card.read_text()))
