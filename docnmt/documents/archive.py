"""Zip archives (docx, odt, epub): unpacked within limits, and packed again with only the changed parts new."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise

from docnmt.base.errors import DocnmtError
from docnmt.documents.segment import MAX_TEXT, Room, Segment, SplicedFile

MAX_ENTRIES = 20_000
MAX_UNPACKED = 1 << 29
# Text shrinks to about a tenth, tables to a hundredth at most; anything that shrinks more is a zip bomb. Archives that
# are small when unpacked may shrink by any factor.
MAX_RATIO = 200
FREE_UNPACKED = 1 << 20

_ENTRY = b"PK\x01\x02"  # starts each entry of the directory at the end of an archive
_ENCRYPTED = 0x1
_UTF8 = 0x800
# What zipfile raises for bytes that make no sense.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
)
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|[\x00-\x1f]")


class Archive(Mapping[str, bytes]):
    """The files in an archive, in its order, each unpacked on access."""

    def __init__(self, data: bytes, name: str):
        self._data, self._name = data, name
        self.unpacked = 0  # bytes, so far
        self.room = Room(name)  # for the pieces of all its files together
        # Counted before zipfile reads the directory: a long one takes time and memory by itself.
        if data.count(_ENTRY) > MAX_ENTRIES:
            raise DocnmtError(
                f"{name}: more than {MAX_ENTRIES:,} entries in the archive\n  Documents never have this many."
            )
        with self._open() as archive:
            entries = archive.infolist()
            _check(entries, len(data), name)
        self._entries = {entry.filename: entry for entry in entries if not entry.is_dir()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, file: object) -> bool:
        return file in self._entries

    def __getitem__(self, file: str) -> bytes:
        entry = self._entries[file]
        self.unpacked += entry.file_size
        if self.unpacked > MAX_TEXT:
            problem = f"its text unpacks to more than {MAX_TEXT >> 20} MB"
            raise DocnmtError(f"{self._name}: {problem}\n  Split the document into smaller ones.")
        with self._open() as archive:
            return archive.read(entry)

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                yield archive
        except DocnmtError:
            raise
        except _BROKEN as error:
            problem = "is broken" if self._data.startswith(b"PK") else "is not a zip archive, although its name says so"
            remedy = "Open it in the program that made it and save it again."
            raise DocnmtError(f"{self._name}: the file {problem} ({error})\n  {remedy}") from error


def _check(entries: list[zipfile.ZipInfo], packed: int, name: str) -> None:
    names = [entry.filename for entry in entries]
    # zipfile never unpacks more than the directory says, so its numbers can be trusted here.
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED or unpacked > max(FREE_UNPACKED, MAX_RATIO * packed):
        problem = f"its {packed:,} bytes would unpack to {unpacked:,}"
        raise DocnmtError(f"{name}: {problem}\n  Such archives are made to fill up memory, so it is not read.")
    for entry in entries:
        # The name as it is in the archive: zipfile cuts it at a zero byte.
        if _OUTSIDE.search(entry.orig_filename):
            problem = f"it has an entry named {entry.orig_filename!r}, which is outside the archive's folder"
            raise DocnmtError(f"{name}: {problem}\n  Such archives are made to do harm, so it is not read.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            problem = f"{entry.filename} uses a compression method that documents never use"
            raise DocnmtError(f"{name}: {problem}\n  Open it in the program that made it and save it again.")
        if entry.flag_bits & _ENCRYPTED:
            problem = f"{entry.filename} is encrypted"
            raise DocnmtError(f"{name}: {problem}\n  Save the document without a password, then translate it.")
    if len(set(names)) != len(names):
        [(twice, _)] = Counter(names).most_common(1)
        problem = f"it has several entries named {twice}"
        raise DocnmtError(f"{name}: {problem}\n  Open it in the program that made it and save it again.")


def write_zip(original: bytes, changed: Mapping[str, bytes]) -> bytes:
    """The archive with other contents for some of its files; the others are copied as they are, packed.

    Order, compression, time and attributes of the entries stay. An archive in which nothing changes stays as it is.
    """
    with zipfile.ZipFile(io.BytesIO(original)) as old:
        new_contents = {file: content for file, content in changed.items() if old.read(file) != content}
        if not new_contents:
            return original
        out = io.BytesIO()
        ends = _ends(old)
        with zipfile.ZipFile(out, "w") as new:
            new.comment = old.comment
            for entry in old.infolist():
                start, end = entry.header_offset, ends[entry.header_offset]
                if entry.filename in new_contents:
                    new.writestr(_fresh(entry), new_contents[entry.filename])
                elif _is_copyable(entry, end - start):
                    entry.header_offset = out.seek(new.start_dir)
                    out.write(original[start:end])
                    new.start_dir = out.tell()
                    new.filelist.append(entry)
                else:
                    new.writestr(_fresh(entry), old.read(entry))
        return out.getvalue()


def _ends(archive: zipfile.ZipFile) -> dict[int, int]:
    """Where each entry ends, by where it begins: at the next one, so that whatever follows its data goes with it."""
    starts = sorted({entry.header_offset for entry in archive.infolist()})
    return dict(pairwise([*starts, archive.start_dir]))


def _is_copyable(entry: zipfile.ZipInfo, room: int) -> bool:
    """False if data overlaps, or if the directory would be written with another spelling of the name."""
    return room > entry.compress_size and (entry.filename.isascii() or bool(entry.flag_bits & _UTF8))


def _fresh(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    fresh = zipfile.ZipInfo(entry.filename, entry.date_time)
    for attribute in ("compress_type", "comment", "create_system", "internal_attr", "external_attr"):
        setattr(fresh, attribute, getattr(entry, attribute))
    return fresh


# ---- documents ----


class PackageText:
    """A document that is an archive of several files: the segments of one file after the other.

    `main` is the part that states the language of all of them.
    """

    def __init__(self, data: bytes, parts: Mapping[str, SplicedFile], main: str = ""):
        self._data, self._parts, self._main = data, parts, main
        self.segments: Sequence[Segment] = [segment for part in parts.values() for segment in part.segments]

    def write(self, translations: Sequence[Segment]) -> bytes:
        left = iter(translations)
        is_translated = list(translations) != self.segments
        contents = {
            name: part.write(list(islice(left, len(part.segments))), always=is_translated and name == self._main)
            for name, part in self._parts.items()
        }
        if next(left, None):
            raise ValueError(f"{len(translations)} translations for {len(self.segments)} segments")
        return write_zip(self._data, contents)
