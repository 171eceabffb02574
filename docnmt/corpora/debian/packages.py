"""Reading the files of a package where they are: nothing is written to disk or run, links stay unread."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from docnmt.base.errors import DocnmtError

MAX_FILE = 32_000_000  # bytes of one file: the largest catalogue has a third of that
MAX_TOTAL = 1_000_000_000  # of all files read for one source

Files = dict[str, bytes]
Wanted = Callable[[str], bool]


def read_packages(paths: Iterable[Path], wanted: Wanted, advance: Callable[[int], object]) -> Files:
    """The wanted files of several packages by their paths, `usr/share/...`; a later package's replace an earlier's."""
    files: Files = {}
    total = 0
    for path in paths:
        total += _read_package(path, wanted, files, MAX_TOTAL - total)
        advance(1)
    return files


def _read_package(path: Path, wanted: Wanted, files: Files, room: int) -> int:
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None and unpacking.stderr is not None
        try:
            size = read_tar(unpacking.stdout, wanted, files, room, path.name)
            while unpacking.stdout.read(1 << 20):  # what pads the archive: dpkg-deb is to end by itself
                pass
        except BaseException:
            unpacking.kill()
            raise
        said = unpacking.stderr.read().decode(errors="replace").strip()
    if unpacking.returncode:
        raise _broken(path.name, said)
    return size


def read_tar(stream: IO[bytes], wanted: Wanted, files: Files, room: int, name: str) -> int:
    """Adds the wanted files of a tar stream; how many bytes they have."""
    total = 0
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                if inside.is_absolute() or ".." in inside.parts:
                    raise DocnmtError(
                        f"{name}: a path that leaves the package: {member.name}\n  Do not trust this file."
                    )
                if not member.isfile() or not wanted(str(inside)):
                    continue
                total += member.size
                if member.size > MAX_FILE or total > room:
                    raise DocnmtError(
                        f"{name}: {inside} is too large ({member.size:,} bytes)\n"
                        "  Leave its source out with --only: no translated text is that long."
                    )
                opened = archive.extractfile(member)
                assert opened is not None
                files[str(inside)] = opened.read()
    except (tarfile.TarError, EOFError) as error:
        raise _broken(name, str(error)) from None
    return total


def _broken(name: str, said: str) -> DocnmtError:
    return DocnmtError(f"{name}: not a whole package ({said})\n  Delete it from the cache and run the command again.")
