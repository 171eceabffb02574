"""Input files as checked lines: plain or gzip, never held in memory whole; encodings and flaws."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from docnmt.base.errors import BadInput, DocnmtError

# ---- Text files as text: UTF-8, or UTF-16 or UTF-32 with a byte order mark, and back to the same bytes ----

_BOMS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32-LE"),  # begins like UTF-16's, so it comes first
    (codecs.BOM_UTF32_BE, "UTF-32-BE"),
    (codecs.BOM_UTF16_LE, "UTF-16-LE"),
    (codecs.BOM_UTF16_BE, "UTF-16-BE"),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    mark: bytes  # the byte order mark, which is not part of the text
    name: str

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.name)


def byte_order_mark(data: bytes) -> tuple[bytes, str]:
    """The mark and the encoding it stands for; both are empty where there is none."""
    return next(((mark, encoding) for mark, encoding in _BOMS if data.startswith(mark)), (b"", ""))


def decoded(data: bytes, name: str) -> tuple[str, Encoding]:
    mark, encoding = byte_order_mark(data)
    encoding = encoding or "UTF-8"
    try:
        return data[len(mark) :].decode(encoding), Encoding(mark, encoding)
    except UnicodeDecodeError as error:
        at = len(mark) + error.start
        line = data.count(b"\n", 0, at) + 1
        raise DocnmtError(
            f"{name}, line {line}: byte 0x{data[at]:02X} is not valid {encoding}\n"
            "  Convert the file: iconv -f OLD_ENCODING -t UTF-8."
        ) from None


# ---- Corpus files: plain or gzip, checked line by line, never held whole in memory ----

# A bad line becomes a `Flaw`, so that parallel files stay aligned when bad lines are skipped.

MAX_CHARACTERS = 20_000
# Formats with a whole document on one line may have lines this many times longer than a sentence.
SENTENCES_PER_LINE = 100
BLOCK = 1 << 18
MAX_CONTENT = 1 << 28  # bytes of a file that has to be read as a whole
STDIN = "-"

# C0 (except tab and newline), DEL, C1, the two non-characters that show a wrong byte order, and
# lone surrogates, which stand for undecodable bytes and broken JSON escapes in a str.
_FORBIDDEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
_IN_BLOCK = re.compile(f"[{_FORBIDDEN}]")
_IN_SENTENCE = re.compile(f"[\n{_FORBIDDEN}]")
_UNDECODED = re.compile("[\ud800-\udfff]")

# UTF-16, common for translation memories, has no escape for broken surrogate pairs: they become a lone surrogate.
_HALF = "half"
codecs.register_error(_HALF, lambda error: ("\ud800", cast(UnicodeDecodeError, error).end))


@dataclass(frozen=True)
class CorpusFiles:
    """One corpus as a recipe names it."""

    path: str = ""  # one file that holds both sides
    source: str = ""  # or one file per side
    target: str = ""
    document_ids: str = ""  # parallel files: the document id of each line
    document_starts: str = ""  # parallel files: the 0-based index of each document's first line
    format: str = ""  # if the content does not tell
    encoding: str = ""  # if it is not UTF-8: "gb18030", "big5", ...
    swap: bool = False  # the target side comes first in the file(s)
    only: str = ""  # documents whose id starts with one of these, separated by commas; "": all
    name: str = ""  # its name in tables; "": the file's name

    @property
    def title(self) -> str:
        return self.name or Path(self.path or self.source).name.removesuffix(".gz").split(".")[0]

    def __str__(self) -> str:
        return self.path or f"{self.source or '?'} and {self.target or '?'}"


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line or sentence that cannot be used; `text` is its readable part."""

    kind: str
    problem: str
    remedy: str
    text: str


Line = str | Flaw


def find_flaw(text: str, limit: int) -> Flaw | None:
    """Why `text` cannot be used as a sentence, if it cannot."""
    if len(text) > limit:
        return _long_line(text[:200], limit)
    found = _IN_SENTENCE.search(text)
    if found is None:
        return None
    found = _UNDECODED.search(text) or found  # undecodable bytes are the more serious problem
    legible = _IN_SENTENCE.sub("\ufffd", text)
    code, column = ord(found[0]), found.start() + 1
    if 0xDC80 <= code <= 0xDCFF:
        problem = f"byte 0x{code - 0xDC00:02X} at character {column} is not valid UTF-8"
        return Flaw("bad UTF-8", problem, "Convert the file: iconv -f OLD_ENCODING -t UTF-8.", legible)
    if 0xD800 <= code <= 0xDFFF:
        problem = f"half of a surrogate pair (U+{code:04X}) at character {column}"
        return Flaw("bad UTF-8", problem, "Write the complete character, or remove it.", legible)
    problem = f"control character U+{code:04X} at character {column}"
    return Flaw("control character", problem, "Remove it or replace it with a space.", legible)


def _long_line(start: str, limit: int) -> Flaw:
    remedy = "Split the text into sentences, one per line, or remove the line."
    return Flaw("long line", f"more than {limit:,} characters", remedy, _IN_SENTENCE.sub("\ufffd", start))


class InputFile:
    """A file (or `-`, standard input) open for reading, plain or gzip by its first bytes, in UTF-8 by default."""

    def __init__(self, path: str, encoding: str = ""):
        self.name = path if path != STDIN else "stdin"
        self.stem = Path(self.name.removesuffix(".gz")).stem
        self._file = _open(path)
        self._stream = _unpacked(self._file)
        if encoding:
            self._stream = io.BufferedReader(_Recoded(self._stream, encoding, self.name), BLOCK)
        self._closing = path != STDIN

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closing:
            self._stream.close()
            self._file.close()

    def head(self) -> str:
        """The beginning of the text, to recognise formats by; reading still starts there."""
        head = self._block(self._stream.peek)
        return head.decode(_encoding(head), "replace")

    def content(self) -> bytes:
        """The whole content, for formats that are not a stream of lines."""
        blocks, size = [], 0
        while block := self._read():
            blocks.append(block)
            size += len(block)
            if size > MAX_CONTENT:
                raise DocnmtError(f"{self.name}: larger than {MAX_CONTENT:,} bytes\n  Split it into smaller files.")
        return b"".join(blocks)

    def lines(self, limit: int) -> Iterator[Line]:
        """Every line without its line break; a Flaw in place of a bad one."""
        return chain.from_iterable(self._line_blocks(limit))

    def numbered_lines(self, limit: int) -> Iterator[tuple[int, str]]:
        """Every line with its number, from 1; a bad line is an error."""
        for number, line in enumerate(self.lines(limit), 1):
            if isinstance(line, Flaw):
                raise BadInput(line.kind, line.problem, line.remedy, file=self.name, line=number)
            yield number, line

    def chunks(self) -> Iterator[str]:
        """The text in pieces cut anywhere; bytes that are not UTF-8 come as lone surrogates (see `find_flaw`)."""
        raw = self._read()
        encoding = _encoding(raw)
        decoder = codecs.getincrementaldecoder(encoding)("surrogateescape" if encoding == "utf-8-sig" else _HALF)
        while raw:
            yield decoder.decode(raw)
            raw = self._read()
        yield decoder.decode(b"", final=True)

    def _line_blocks(self, limit: int) -> Iterator[list[Line]]:
        # A character takes at most four bytes: beyond this a line is too long in any case.
        bound = 4 * limit + 4
        rest = self._read().removeprefix(codecs.BOM_UTF8)
        while True:
            whole, newline, rest = rest.rpartition(b"\n")
            if newline:
                yield _checked_lines(whole, limit)
            if len(rest) > bound:
                yield [_long_line(rest[:800].decode(errors="replace")[:200], limit)]
                rest = self._after_newline()
            chunk = self._read()
            if not chunk:
                break
            rest += chunk
        if rest:
            yield _checked_lines(rest, limit)

    def _after_newline(self) -> bytes:
        """Drops the rest of a line that is too long and returns what was read after it."""
        while chunk := self._read():
            _, newline, rest = chunk.partition(b"\n")
            if newline:
                return rest
        return b""

    def _read(self) -> bytes:
        # read1, not read: from a pipe it returns what is there, so a document is done before the next arrives.
        return self._block(self._stream.read1)

    def _block(self, read: Callable[[int], bytes]) -> bytes:
        try:
            return read(BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise DocnmtError(
                f"{self.name}: cannot be read: {error}\n  The file may be incomplete: copy it again."
            ) from error


def _open(path: str) -> io.BufferedReader:
    if path == STDIN:
        return cast(io.BufferedReader, sys.stdin.buffer)
    try:
        return io.BufferedReader(io.FileIO(path), BLOCK)
    except FileNotFoundError as error:
        raise DocnmtError(f"{path}: no such file\n  Check the path; it is relative to the current folder.") from error
    except IsADirectoryError as error:
        raise DocnmtError(f"{path}: this is a folder, not a file\n  Give the path of a file inside it.") from error
    except OSError as error:
        raise DocnmtError(f"{path}: {error.strerror}\n  Check the path and its permissions.") from error


def _unpacked(plain: io.BufferedReader) -> io.BufferedReader:
    if plain.peek(2)[:2] != b"\x1f\x8b":
        return plain
    unpacked = gzip.GzipFile(fileobj=cast(BinaryIO, plain))
    return io.BufferedReader(cast(io.RawIOBase, unpacked), BLOCK)


class _Recoded(io.RawIOBase):
    """Text in another encoding as UTF-8; undecodable bytes are kept and later reported as not UTF-8."""

    def __init__(self, stream: io.BufferedReader, encoding: str, name: str):
        self._stream, self._rest = stream, b""
        try:
            self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
        except LookupError:
            raise DocnmtError(
                f"{name}: unknown encoding {encoding!r}\n"
                "  Use the name of an encoding, such as gb18030, big5 or utf-16."
            ) from None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            raw = self._stream.read1(BLOCK)
            self._rest = self._decoder.decode(raw, final=not raw).encode("utf-8", "surrogateescape")
            if not raw:
                break
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _encoding(head: bytes) -> str:
    return "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def _checked_lines(block: bytes, limit: int) -> list[Line]:
    """The lines of a block that ends at the end of a line. Good blocks (nearly all are) are checked in one go."""
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return [_checked_line(line, limit) for line in block.split(b"\n")]
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    lines = text.split("\n")
    if _IN_BLOCK.search(text) or max(map(len, lines)) > limit:
        return [find_flaw(line, limit) or line for line in lines]
    return cast(list[Line], lines)


def _checked_line(raw: bytes, limit: int) -> Line:
    text = raw.removesuffix(b"\r").decode(errors="surrogateescape")
    return find_flaw(text, limit) or text
