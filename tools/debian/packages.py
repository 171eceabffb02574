"""Packages: fetched with apt, without root, and read where they are. Nothing is installed, unpacked to disk or run.

What is there already is not fetched again; links in a package stay unread.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress

MAX_FILE = 32_000_000  # bytes of one file: the largest catalogue has a third of that
MAX_TOTAL = 1_000_000_000  # of all files read for one source

Files = dict[str, bytes]
Wanted = Callable[[str], bool]

_URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+) (?P<bytes>\d+) ?(?:(?P<kind>\w+):(?P<digest>[0-9a-f]+))?$", re.M)
# What apt says of a package that this release does not have.
_MISSING = re.compile(
    r"Unable to locate package (\S+)|Can't select candidate version from package (\S+) as|"
    r"Package '?([^' ]+)'? has no installation candidate"
)
_BATCH_PACKAGES = 25  # fetched by one call of apt, which takes a second to start
_NO_APT = (
    "packages are fetched with {}, which is not on this machine\n"
    "  Run this on Debian or Ubuntu (a container will do: docker run -it -v $PWD:/work debian), then copy the folder."
)
_NO_LISTS = "  Run `apt-get update` once as root, so that apt knows what there is, and try again."


@dataclass(frozen=True)
class Package:
    name: str
    file: str  # the name apt gives it; version and architecture are in it
    bytes: int
    kind: str = ""  # of the hash
    digest: str = ""

    @property
    def version(self) -> str:
        return self.file.split("_")[1].replace("%3a", ":") if self.file.count("_") else ""


class Apt:
    """The machine's own apt, with the sources that its administrator trusts."""

    def __init__(self) -> None:
        for program in ("apt-get", "dpkg-deb"):
            if shutil.which(program) is None:
                raise DocnmtError(_NO_APT.format(program))

    def find(self, names: Iterable[str]) -> dict[str, Package]:
        """The packages that this release has."""
        wanted = list(dict.fromkeys(names))
        while wanted:
            done = self._run(["--print-uris", "download", *wanted])
            if done.returncode == 0:
                listed = [
                    Package(m["file"].split("_")[0], m["file"], int(m["bytes"]), m["kind"] or "", m["digest"] or "")
                    for m in _URI.finditer(done.stdout)
                ]
                return {package.name: package for package in listed if package.name in wanted}
            missing = {name for match in _MISSING.findall(done.stderr) for name in match if name}
            if not missing & set(wanted):
                raise DocnmtError(f"apt-get failed: {_said(done.stderr)}\n{_NO_LISTS}")
            wanted = [name for name in wanted if name not in missing]
        return {}

    def fetch(self, packages: Sequence[Package], folder: Path) -> None:
        """Into a folder, under their own names."""
        names = [package.name for package in packages]
        done = self._run(["-q", "download", *names], folder)
        if done.returncode:
            raise DocnmtError(
                f"apt-get could not download {', '.join(names)}: {_said(done.stderr)}\n"
                "  Check the network and the space on the disk, and try again: what is there is kept."
            )

    def _run(self, arguments: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LC_ALL": "C"}
        return subprocess.run(["apt-get", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def _said(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.startswith("E:")]
    return " ".join(lines)[:400] or "no reason given"


def download(apt: Apt, packages: Mapping[str, Package], cache: Path, progress: Progress) -> dict[str, Path]:
    """The files of the packages. A file gets its name in the cache only when it is complete."""
    cache.mkdir(parents=True, exist_ok=True)
    files = {package.name: cache / package.file for package in packages.values()}
    missing = [p for p in packages.values() if not _is_whole(files[p.name], p)]
    total, needed = (sum(package.bytes for package in some) for some in (packages.values(), missing))
    free = shutil.disk_usage(cache).free
    if needed > free:
        raise DocnmtError(
            f"{cache}: {needed / 1e6:,.0f} MB to download, {free / 1e6:,.0f} MB free\n"
            "  Name another folder with --cache, or fewer sources with --only."
        )
    partial = cache / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    with progress.bar("download", total, "bytes", start=total - needed) as advance:
        for start in range(0, len(missing), _BATCH_PACKAGES):
            batch = missing[start : start + _BATCH_PACKAGES]
            partial.mkdir()
            apt.fetch(batch, partial)
            for package in batch:
                _check(partial / package.file, package)
                os.replace(partial / package.file, files[package.name])
                advance(package.bytes, note=package.name)
            shutil.rmtree(partial)
    return files


def _is_whole(file: Path, package: Package) -> bool:
    return file.is_file() and file.stat().st_size == package.bytes


def _check(file: Path, package: Package) -> None:
    problem = "" if _is_whole(file, package) else "is not whole"
    if not problem and package.kind:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, package.kind.lower().removesuffix("sum"))  # SHA256, MD5Sum ...
        if found.hexdigest() != package.digest:
            problem = "does not have the hash that the release names"
    if problem:
        raise DocnmtError(f"{file.name}: {problem} after download\n  Run the command again; `apt-get update` may help.")


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
            while unpacking.stdout.read(1 << 20):  # padding of the archive, so that dpkg-deb can finish
                pass
        except BaseException:
            unpacking.kill()
            raise
        said = unpacking.stderr.read().decode(errors="replace").strip()
    if unpacking.returncode:
        raise _broken(path.name, said)
    return size


def read_tar(stream: IO[bytes], wanted: Wanted, files: Files, room: int, name: str) -> int:
    """Adds the wanted files of a tar stream; returns their size in bytes."""
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
