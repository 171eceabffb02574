"""Translated files that wait to be fetched: not for long, and not without end."""

from __future__ import annotations

import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30 * 60
BYTES = 256 << 20  # of all of them; the oldest go first


@dataclass(frozen=True)
class Download:
    path: Path
    name: str  # to save it under
    size: int
    made: float


class Downloads:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="docnmt-")
        self._found: dict[str, Download] = {}

    def add(self, data: bytes, name: str) -> str:
        """The name under which to ask for it, which nobody can guess."""
        key = secrets.token_urlsafe(16) + Path(name).suffix
        path = Path(self._folder.name) / key
        path.write_bytes(data)
        self._found[key] = Download(path, name, len(data), time.monotonic())
        self._tidy_up()
        return key

    def get(self, key: str) -> Download | None:
        self._tidy_up()
        return self._found.get(key)

    def close(self) -> None:
        self._folder.cleanup()

    def _tidy_up(self) -> None:
        room = BYTES
        for key, each in reversed(list(self._found.items())):
            room -= each.size
            newest = each is next(reversed(self._found.values()))
            if time.monotonic() - each.made > SECONDS or (room < 0 and not newest):
                each.path.unlink(missing_ok=True)
                del self._found[key]
