"""A file as a translator sees it: segments of text with marks in them, and the way back into the file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from pkgutil import resolve_name
from typing import NamedTuple, Protocol

from docnmt.base.errors import DocnmtError

# ---- segments ----

# A file is one document: segments of plain text in reading order, with marks inside them. Its kind (docx, html, ...)
# takes the segments out of the bytes and puts translated ones back into the same bytes; everything else stays where it
# is. If no segment changes, no byte does.


@dataclass(frozen=True, slots=True)
class Mark:
    """Something inside a segment that is not text: where bold begins or ends, a link, a line break, a picture."""

    at: int  # it stands before this character of the text; len(text) for the end
    code: str  # the kind's own notation, opaque to everything else
    pair: int = 0  # the two marks of a pair share a number; 0 stands alone
    closing: bool = False  # the second of a pair


@dataclass(frozen=True, slots=True)
class Segment:
    """What is read in one go: a paragraph, heading, cell, alternative text, cue, message."""

    text: str  # as a reader sees it, without markup
    marks: tuple[Mark, ...] = ()  # in their order in the text
    translate: bool = True  # False: only read as context (it already has a translation) and left as it is
    role: str = ""  # heading, cell, note, title, header, picture; "": running text, or unknown

    def reads_as(self, other: Segment) -> bool:
        return (self.text, self.marks) == (other.text, other.marks)


class FileText(Protocol):
    """A file that was read: its segments, and the way back."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    def write(self, translations: Sequence[Segment]) -> bytes:
        """The file with these in place of its segments: as many, in the same order, with the same marks."""
        ...


# ---- back into the file ----

Span = tuple[int, int]


class Change(NamedTuple):
    """What to write in place of `start` to `end`: new text, and spans of the old file to copy; or a function that
    makes the new text from the splice, which it can ask for what has changed inside."""

    start: int
    end: int
    parts: Parts


class Splice:
    """A file with changes. A change inside another is applied to what the other copies."""

    def __init__(self, content: str, changes: Iterable[Change]):
        self._content = content
        self._changes = sorted(changes, key=lambda change: (change.start, change.end))
        self._starts = [change.start for change in self._changes]

    def whole(self) -> str:
        return "".join(self._copied(0, len(self._content) + 1, 0))

    def part(self, start: int, end: int) -> str:
        """From `start` to `end`, with the changes inside."""
        return "".join(self._copied(start, end, bisect_right(self._starts, start)))

    def _copied(self, start: int, end: int, first: int) -> Iterator[str]:
        for change in self._changes[first : bisect_left(self._starts, end)]:
            if change.start < start:
                continue  # inside the previous one
            yield self._content[start : change.start]
            if callable(change.parts):
                yield change.parts(self)
            else:
                for part in change.parts:
                    yield self.part(*part) if isinstance(part, tuple) else part
            start = change.end
        yield self._content[start:end]


Parts = Sequence[str | Span] | Callable[[Splice], str]


class Place(NamedTuple):
    """Where segments stand in a file: usually one, several where they can only be written together."""

    start: int
    segments: Sequence[Segment]
    changes: Callable[..., Iterable[Change]]  # called with a translation of each segment

    @classmethod
    def of(cls, start: int, end: int, segment: Segment, parts: Callable[[Segment], Parts]) -> Place:
        """A segment that fills `start` to `end`; `parts` makes what is written for its translation."""

        def changes(new: Segment) -> Iterable[Change]:
            return () if new.reads_as(segment) else (Change(start, end, parts(new)),)

        return cls(start, (segment,), changes)


class SplicedFile:
    """A file into which translations are spliced.

    `places` walks through the file and yields its places in reading order, and changes to make along with any
    translation (the language that a file says it is in). It is called again for writing: in between only the segments
    are kept, as places take a multiple of their memory. `finish` makes bytes of the new content.
    """

    def __init__(
        self,
        data: bytes,
        content: str,
        name: str,
        places: Callable[[], Iterable[Place | Change]],
        finish: Callable[[str], bytes],
        room: Room | None = None,
    ):
        """`room`: of the archive that the file is a part of."""
        self._data = data
        self._content, self._places, self._finish = content, places, finish
        room = room or Room(name)
        room.grow(len(data))
        try:
            self.segments: Sequence[Segment] = [
                room.add(segment) for place in places() if isinstance(place, Place) for segment in place.segments
            ]
        except TooManyMarks as error:
            problem = f"more than {MAX_IN_PARAGRAPH:,} tags or lines in the paragraph {str(error)!r}..."
            raise DocnmtError(f"{name}: {problem}\n  Split it into paragraphs.") from None

    def write(self, translations: Sequence[Segment], always: bool = False) -> bytes:
        """`always` makes the changes that go along with a translation, even if there is none."""
        if len(translations) != len(self.segments):
            raise ValueError(f"{len(translations)} translations for {len(self.segments)} segments")
        changes: list[Change] = []
        along: list[Change] = []
        left = iter(translations)
        for place in self._places():
            if isinstance(place, Place):
                changes += place.changes(*islice(left, len(place.segments)))
            else:
                along.append(place)
        if next(left, None) is not None:
            raise ValueError("translations are left: these are not the places that were read")
        if not changes and not always:
            return self._data
        changes += along
        return self._finish(Splice(self._content, changes).whole())


# ---- limits ----

# Each piece of a file takes a few hundred bytes of memory, however short it is, and each character up to four in a text
# with an emoji. So their number is limited by the size of the file: reading then takes at most 12 bytes for each of its
# bytes, and 64 MB (benchmarks/reading.py).
MAX_TEXT = 1 << 26  # bytes of text, without pictures: twenty long novels
MAX_PARAGRAPH = 1_000_000  # characters
MAX_IN_PARAGRAPH = 50_000  # marks, or elements of XML
MAX_NAMES = 10_000  # of elements and attributes in a file
_ANYWAY, _BYTES = 50_000, 56  # pieces that any file may have; beyond that, one for this many bytes


class TooManyMarks(Exception):
    """A paragraph has more marks or lines than allowed; the message is how the paragraph begins."""


class Room:
    """Counts the pieces of a file, or of all parts of an archive, while they are read."""

    def __init__(self, name: str):
        self._left, self._name = _ANYWAY, name

    def grow(self, size: int) -> None:
        self._left += size // _BYTES

    def take(self, pieces: int = 1) -> None:
        self._left -= pieces
        if self._left < 0:
            problem = "too many sentences, tags or messages for a file of this size, nearly all of them tiny"
            raise DocnmtError(f"{self._name}: {problem}\n  Split it into smaller files.")

    def add(self, segment: Segment) -> Segment:
        if len(segment.text) > MAX_PARAGRAPH:
            problem = f"more than {MAX_PARAGRAPH:,} characters in the paragraph {segment.text[:40]!r}..."
            raise DocnmtError(f"{self._name}: {problem}\n  Split it into paragraphs.")
        if len(segment.marks) > MAX_IN_PARAGRAPH:
            raise TooManyMarks(segment.text[:40])
        self.take(1 + len(segment.marks))
        return segment


# ---- kinds ----

# For each extension the module of this package that reads it, with read(data, name, languages) -> FileText. `name` is
# the file's, for errors; `languages` are those of source and target, "" if unknown.
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
# Kinds that are not supported, with what to do instead. As lines of text they would lose their keys or markup.
_FOREIGN = {
    ".doc .pdf .rtf .xls .xlsx .ppt .pptx .ods .odp .pages .mobi .azw3 .tex .latex .rst .adoc .asciidoc .org .fb2": (
        "Save it as .docx, .odt, .html or .txt."
    ),
    ".yaml .yml .toml .ini .conf .desktop .properties .strings .stringsdict .plist .resx .resw .ts .tsx .csv .php .ftl "
    ".svg": "Export its texts as .po, .xliff or .json, or save them as .txt, one per line.",
    ".ass .ssa .sub .sbv .ttml .dfxp .smi .lrc": "Save the subtitles as .srt or .vtt.",
}
_REMEDIES = {suffix: remedy for suffixes, remedy in _FOREIGN.items() for suffix in suffixes.split()}
PACKED = ("epub", "docx", "odt")  # not readable on a terminal


def kind_of(name: str) -> str:
    """The module for a file; empty for a file without layout, which is read as lines of sentences."""
    return KINDS.get(PurePath(name).suffix.lower(), "")


def is_document(name: str) -> bool:
    if remedy := _REMEDIES.get(PurePath(name).suffix.lower()):
        raise DocnmtError(f"{name}: this kind of file is not supported\n  {remedy}")
    return bool(kind_of(name))


def read_document(data: bytes, name: str, languages: tuple[str, str] = ("", "")) -> FileText:
    kind = kind_of(name)
    if not kind:
        raise DocnmtError(f"{name}: unknown kind of file\n  Supported: {', '.join(KINDS)}.")
    if len(data) > MAX_TEXT and kind not in PACKED:
        raise DocnmtError(f"{name}: larger than {MAX_TEXT >> 20} MB\n  Split it into smaller files.")
    text: FileText = resolve_name(f"docnmt.documents.{kind}:read")(data, name, languages)
    return text
