"""What a file consists of for a translator: segments of text with marks in them; which kinds of files there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Protocol

from docnmt.base.errors import DocnmtError

# ---- What a file consists of for a translator ----

# What a file consists of for a translator: segments of plain text, in reading order, with marks inside them.
#
# A file is one document. Its kind (docx, html, ...) takes the segments out of the bytes and puts translated segments
# back into the same bytes; all that is not text stays where it is. With the segments unchanged the bytes are
# unchanged.


@dataclass(frozen=True, slots=True)
class Mark:
    """Something inside a segment that is no text: where bold begins or ends, a link, a line break, a picture."""

    at: int  # it stands before this character of the text; len(text) for the end
    code: str  # the kind's own spelling, which nobody else looks into
    pair: int = 0  # the two marks of a pair share a number; 0 stands alone
    closing: bool = False  # the second of a pair


@dataclass(frozen=True, slots=True)
class Segment:
    """A paragraph, heading, cell, alternative text, cue, message: what is read in one go."""

    text: str  # as a reader sees it, without markup
    marks: tuple[Mark, ...] = ()  # in the order in which they stand
    translate: bool = True  # False: read as context, comes back as it is (a translation that is already there)

    def reads_as(self, other: Segment) -> bool:
        return (self.text, self.marks) == (other.text, other.marks)


class FileText(Protocol):
    """A file that was read: its segments, and the way back."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    def write(self, translations: Sequence[Segment]) -> bytes:
        """The file with these in place of its segments, as many and in the same order, with the same marks."""
        ...


# ---- How much a file may hold ----

# Each piece of a file takes memory by itself, however short it is: a few hundred bytes. So there may be as many as a
# file of this size can have: then reading takes at most 12 times its size, and 64 MB (benchmarks/reading.py).
MAX_TEXT = 1 << 26  # bytes of what is read, pictures aside: twenty long novels
MAX_PARAGRAPH = 1_000_000  # characters
MAX_IN_PARAGRAPH = 50_000  # marks, or elements of XML
_ANYWAY, _BYTES = 50_000, 24  # pieces that a file of any size may have; beyond them one for so many bytes


class Room:
    """Counts the pieces of a file while it is read."""

    def __init__(self, size: int, name: str):
        self._left, self._name = _ANYWAY + size // _BYTES, name

    def take(self, pieces: int = 1) -> None:
        self._left -= pieces
        if self._left < 0:
            problem = "more sentences, marks or messages than a file of its size can have, nearly all of them tiny"
            raise DocnmtError(f"{self._name}: {problem}\n  Split it into smaller files.")

    def add(self, segment: Segment) -> Segment:
        """A segment that was read."""
        if len(segment.text) > MAX_PARAGRAPH:
            problem = f"a paragraph of more than {MAX_PARAGRAPH:,} characters: {segment.text[:40]!r}..."
            raise DocnmtError(f"{self._name}: {problem}\n  Part it into paragraphs.")
        if len(segment.marks) > MAX_IN_PARAGRAPH:
            problem = f"more than {MAX_IN_PARAGRAPH:,} tags in one paragraph: {segment.text[:40]!r}..."
            raise DocnmtError(f"{self._name}: {problem}\n  Part it into paragraphs.")
        self.take(1 + len(segment.marks))
        return segment


# ---- Which files are read as documents with a layout, and by which module ----

# The module of this package that reads a kind: it has read(data, name, languages) -> FileText. `name` is the file's,
# for errors; `languages` are those of source and target, "" where not known.
KINDS: dict[str, str] = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".epub": "epub",
    ".docx": "docx",
    ".odt": "odt",
    ".xliff": "xliff",
    ".xlf": "xliff",
    ".po": "po",
    ".pot": "po",
    ".json": "json_strings",
    ".arb": "json_strings",
    ".srt": "subtitles",
    ".vtt": "subtitles",
}
# Kinds that are not read, by what to do instead. As lines of text they would lose their keys, or their markup.
_FOREIGN = {
    ".doc .pdf .rtf .xls .xlsx .ppt .pptx .ods .odp .pages .mobi .azw3 .tex .rst .adoc .org .fb2": (
        "Save it as .docx, .odt, .html or .txt."
    ),
    ".yaml .yml .toml .ini .properties .strings .stringsdict .resx .resw .ts .csv .php .ftl": (
        "Export its texts as .po, .xliff or .json; or have its lines translated as sentences: --format text."
    ),
    ".ass .ssa .sub .sbv .ttml .dfxp .smi": "Save the subtitles as .srt or .vtt.",
}
_REMEDIES = {suffix: remedy for suffixes, remedy in _FOREIGN.items() for suffix in suffixes.split()}
PACKED = ("epub", "docx", "odt")  # no text to look at on a terminal


def kind_of(name: str) -> str:
    """Empty for a file that is no document with a layout, but lines of sentences."""
    return KINDS.get(PurePath(name).suffix.lower(), "")


def is_document(name: str) -> bool:
    if remedy := _REMEDIES.get(PurePath(name).suffix.lower()):
        raise DocnmtError(f"{name}: not a kind of file that is read\n  {remedy}")
    return bool(kind_of(name))


def read_document(data: bytes, name: str, languages: tuple[str, str] = ("", "")) -> FileText:
    kind = kind_of(name)
    if not kind:
        raise DocnmtError(f"{name}: not a kind of file that is known\n  Known are {', '.join(KINDS)}.")
    if len(data) > MAX_TEXT and kind not in PACKED:
        raise DocnmtError(f"{name}: more than {MAX_TEXT >> 20} MB\n  Split it into smaller files.")
    text: FileText = import_module(f"docnmt.documents.{kind}").read(data, name, languages)
    return text
