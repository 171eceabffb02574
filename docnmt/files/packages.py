"""A document that is a zip archive of several XML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from docnmt.files.archive import write_zip
from docnmt.files.segments import Segment
from docnmt.files.xml_text import XmlText


class PackageText:
    """The segments of its parts, one part after the other."""

    def __init__(self, data: bytes, parts: Mapping[str, XmlText]):
        self._data, self._parts = data, parts

    @property
    def segments(self) -> Sequence[Segment]:
        return [segment for part in self._parts.values() for segment in part.segments]

    def write(self, translations: Sequence[Segment]) -> bytes:
        changed: dict[str, bytes] = {}
        start = 0
        for name, part in self._parts.items():
            end = start + len(part.segments)
            changed[name] = part.write(translations[start:end])
            start = end
        if start != len(translations):
            raise ValueError(f"{len(translations)} translations for {start} segments")
        return write_zip(self._data, changed)
