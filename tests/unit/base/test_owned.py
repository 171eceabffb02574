"""One owner of a folder at a time, for as long as it lives."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import docnmt.base.files as files
from docnmt.base.files import HOST, InUse, NoRoom, lock_trouble, owned, owner_of

ROOT = Path(files.__file__).parents[2]
HOLDER = """\
import sys, time
from docnmt.base.files import owned
with owned(sys.argv[1]):
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    monkeypatch.setattr(files, "LOOK_AGAIN", 0.01)


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that owns the folder."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "mine\n"
    return process


def test_who_comes_second_is_refused_and_told_by_whom(tmp_path):
    folder = tmp_path / "run" / "sentence"
    process = holder(folder)
    try:
        with pytest.raises(InUse) as refused, owned(folder):
            pass
        told = f"{folder}: in use by process {process.pid} on {HOST} since 20"
        assert str(refused.value).startswith(told)
        assert f"(-c {folder})" in str(refused.value)  # its command
        assert owner_of(folder) == refused.value.owner
    finally:
        process.kill()
        process.wait()


def test_a_killed_owner_owns_nothing(tmp_path):
    process = holder(tmp_path / "run")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "run.lock").read_text()  # it had no time to take its name away
    assert owner_of(tmp_path / "run") is None
    with owned(tmp_path / "run"):
        owner = owner_of(tmp_path / "run")
        assert owner is not None and owner.pid == os.getpid()
    assert (tmp_path / "run.lock").read_text() == ""


def test_who_waits_is_told_for_whom_and_comes_in_when_the_other_is_gone(tmp_path, monkeypatch):
    process, told = holder(tmp_path / "run"), []

    def tell(text: str) -> None:
        told.append(text)
        process.kill()

    with owned(tmp_path / "run", wait=tell):
        assert process.wait() == -signal.SIGKILL
    assert len(told) == 1 and f"waiting for process {process.pid} on {HOST}" in told[0]


def test_a_look_at_the_owner_keeps_nobody_out(tmp_path, monkeypatch):
    """It holds the lock for a moment: who is refused at once tries again."""
    monkeypatch.setattr(files, "PATIENCE", 5.0)
    with owned(tmp_path / "run"):
        pass
    look = os.open(tmp_path / "run.lock", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    slept = []
    monkeypatch.setattr(files.time, "sleep", lambda seconds: slept.append(os.close(look)))
    with owned(tmp_path / "run"):
        assert len(slept) == 1


def test_whatever_happens_inside_the_folder_is_free_again(tmp_path):
    with pytest.raises(KeyboardInterrupt), owned(tmp_path / "run"):
        raise KeyboardInterrupt
    with owned(tmp_path / "run"), pytest.raises(InUse), owned(tmp_path / "run"):
        pass


def test_a_full_disk_names_the_lock(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with (
            pytest.raises(NoRoom, match=f"{tmp_path / 'run.lock'}: cannot be written: the disk is full"),
            owned(tmp_path / "run"),
        ):
            pass
    with owned(tmp_path / "run"):
        pass


def test_a_lock_that_is_deleted_is_no_lock(tmp_path, monkeypatch):
    """Who waited for a file that is gone must not take it for the one that others find."""
    path, original = tmp_path / "run.lock", files._is_still
    answers = []

    def deleted_once(file, where):
        if not answers:
            path.unlink()
        answers.append(original(file, where))
        return answers[-1]

    monkeypatch.setattr(files, "_is_still", deleted_once)
    with owned(tmp_path / "run"), pytest.raises(InUse), owned(tmp_path / "run"):
        pass
    assert answers == [False, True]


# ---- file systems whose locks are none ----


def no_locks(file, how):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.parametrize(
    ("flock", "told"), [(no_locks, r"refuses locks \(No locks"), (lambda *_: None, "the same lock to two processes")]
)
def test_a_file_system_without_locks_is_told_once_and_worked_on(tmp_path, monkeypatch, flock, told):
    monkeypatch.setattr(files, "_TRIED", set())
    monkeypatch.setattr(files.fcntl, "flock", flock)
    with pytest.warns(UserWarning, match=told), owned(tmp_path / "run"):
        assert owner_of(tmp_path / "run") is None
    with warnings.catch_warnings(), owned(tmp_path / "run"):
        warnings.simplefilter("error")


def test_locks_that_hold_on_one_machine_alone_are_told(tmp_path, monkeypatch):
    assert lock_trouble(tmp_path) == ""
    monkeypatch.setattr(files, "_mount_options", lambda folder: ["rw", "vers=3", "nolock"])
    assert lock_trouble(tmp_path) == "mounted with nolock: its locks are not seen by other machines"


def test_the_options_are_those_of_the_innermost_mount(tmp_path, monkeypatch):
    mounts = f"a / ext4 rw 0 0\nb {tmp_path} nfs rw,nolock 0 0\nc {tmp_path}x ext4 ro 0 0\n"
    monkeypatch.setattr(files.Path, "read_text", lambda path, encoding: mounts)
    assert files._mount_options(tmp_path / "run") == ["rw", "nolock"]
    assert files._mount_options(tmp_path.parent) == ["rw"]


def test_waiting_does_not_eat_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOOK_AGAIN", 0.2)
    process = holder(tmp_path / "run")
    started = time.process_time()
    with owned(tmp_path / "run", wait=lambda text: process.kill()):
        assert time.process_time() - started < 0.1
    process.wait()
