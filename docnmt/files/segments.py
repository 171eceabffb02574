"""What a file consists of for a translator: segments of plain text, in reading order, with marks inside them.

A file is one document. Its kind (docx, html, ...) takes the segments out of the bytes and puts translated segments
back into the same bytes; all that is not text stays where it is. With the segments unchanged the bytes are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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
