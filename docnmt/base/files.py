"""Writing to disk so that a reader never sees half a file, whatever happens in between."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def write_atomically(path: str | Path, binary: bool = False) -> Iterator[IO[Any]]:
    """A file that takes its name only once it is whole and on disk. A device or a pipe is written to as it is."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        with open(path, "wb") if binary else open(path, "w", encoding="utf-8", newline="\n") as f:
            yield f
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") if binary else open(temporary, "w", encoding="utf-8", newline="\n") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    with write_atomically(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


@contextmanager
def folder_atomically(path: str | Path) -> Iterator[Path]:
    """A folder that takes its name only once all in it is whole; an older one of that name is replaced."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        if path.exists():  # a folder cannot be replaced by another in one call
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            os.rename(path, old)
            try:
                os.rename(temporary, path)
            except OSError:
                os.rename(old, path)
                raise
            shutil.rmtree(old)
        else:
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Clears away what processes that were killed while writing left behind."""
    for pattern in (".*.part", ".*.old"):
        for left in folder.glob(pattern):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
