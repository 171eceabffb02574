"""Sources whose packages have the same pages in every language."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.debian.blocks import Block, Texts, align
from tools.debian.languages import ENGLISH, Language
from tools.debian.packages import MAX_FILE, Files

Parse = Callable[[str], list[Block]]
_ENGLISH = Language(ENGLISH)


@dataclass(frozen=True)
class Pages:
    """Where pages lie: each pattern has groups `page` and `language` (none: English); its key goes before the page."""

    parse: Parse
    patterns: Mapping[str, re.Pattern[str]]
    left_out: re.Pattern[str] = re.compile("(?!)")  # pages that are lists, not text
    align: Callable[[Sequence[Block], Sequence[Block]], Texts] = align

    def wants(self, path: str, language: Language) -> bool:
        place = self._place(path)
        return place is not None and (_ENGLISH.is_called(place[0]) or language.is_called(place[0]))

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        """The pages that are there in English and in the language, each with all of its English blocks."""
        english: dict[str, str] = {}
        foreign: dict[str, str] = {}
        for path in files:
            if place := self._place(path):
                for side, pages in ((_ENGLISH, english), (language, foreign)):
                    if side.is_called(place[0]):
                        pages[place[1]] = path
        for page in sorted(english.keys() & foreign.keys()):
            sides = [self.parse(text_of(files[side[page]])) for side in (english, foreign)]
            if texts := self.align(*sides):
                yield page, texts

    def _place(self, path: str) -> tuple[str, str] | None:
        """Language and page of a file."""
        for prefix, pattern in self.patterns.items():
            if found := pattern.fullmatch(path):
                page = f"{prefix}{found['page']}"
                return None if self.left_out.search(page) else (found["language"] or ENGLISH, page)
        return None


def text_of(raw: bytes) -> str:
    """The text of a file, unpacked if it is packed; nothing of one that cannot be read."""
    if raw[:2] == b"\x1f\x8b":
        try:
            unpacking = zlib.decompressobj(wbits=31)
            raw = unpacking.decompress(raw, MAX_FILE)
        except zlib.error:
            return ""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
