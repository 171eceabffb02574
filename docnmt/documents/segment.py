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


class FileText(Protocol):
    """A file that was read: its segments, and the way back."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    def write(self, translations: Sequence[Segment]) -> bytes:
        """The file with these in place of its segments, as many and in the same order, with the same marks."""
        ...


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
    ".srt": "subtitles",
    ".vtt": "subtitles",
}
_FOREIGN = (".doc", ".pdf", ".rtf", ".xls", ".xlsx", ".ppt", ".pptx", ".ods", ".odp", ".pages", ".mobi", ".azw3")
PACKED = ("epub", "docx", "odt")  # no text to look at on a terminal


def kind_of(name: str) -> str:
    """Empty for a file that is no document with a layout, but lines of sentences."""
    return KINDS.get(PurePath(name).suffix.lower(), "")


def is_document(name: str) -> bool:
    if name.lower().endswith(_FOREIGN):
        raise DocnmtError(f"{name}: not a kind of file that is read\n  Save it as .docx, .odt, .html or .txt.")
    return bool(kind_of(name))


def read_document(data: bytes, name: str, languages: tuple[str, str] = ("", "")) -> FileText:
    kind = kind_of(name)
    if not kind:
        raise DocnmtError(f"{name}: not a kind of file that is known\n  Known are {', '.join(KINDS)}.")
    text: FileText = import_module(f"docnmt.documents.{kind}").read(data, name, languages)
    return text
