"""Files that a server keeps for a while: translations that wait to be fetched, and what its processes write.

All are in one folder, which goes with the server. A server that was killed leaves its folder behind; the next one that
is started removes it: nobody holds its lock any more.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30 * 60
BYTES = 256 << 20  # of all that wait to be fetched; the oldest go first
PREFIX = "docnmt-serve-"
LOCK = "lock"


class Scratch:
    """A folder that is locked as long as the server lives."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self.path)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned() -> None:
    """Folders of servers that are no more. Those that are being made have no lock yet: they stay for a minute."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
            if folder.is_symlink() or found.st_uid != os.getuid() or time.time() - found.st_mtime < 60:
                continue
            lock = _locked(folder)
        except OSError:
            continue
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """A handle that holds the folder's lock; None if another process does."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


# ---- translations that wait to be fetched: not for long, and not without end ----


@dataclass(frozen=True)
class Download:
    path: Path
    name: str  # to save it under
    size: int
    made: float


class Downloads:
    def __init__(self) -> None:
        self.scratch = Scratch()
        self._found: dict[str, Download] = {}

    def add(self, data: bytes, name: str) -> str:
        """The name under which to ask for it, which nobody can guess."""
        key = secrets.token_urlsafe(16) + Path(name).suffix
        path = self.scratch.path / key
        path.write_bytes(data)
        self._found[key] = Download(path, name, len(data), time.monotonic())
        self._tidy_up()
        return key

    def get(self, key: str) -> Download | None:
        self._tidy_up()
        return self._found.get(key)

    def close(self) -> None:
        self.scratch.close()

    def _tidy_up(self) -> None:
        room = BYTES
        for key, each in reversed(list(self._found.items())):
            room -= each.size
            newest = each is next(reversed(self._found.values()))
            if time.monotonic() - each.made > SECONDS or (room < 0 and not newest):
                each.path.unlink(missing_ok=True)
                self._found.pop(key, None)
