"""A file's translation in parts: a block of sentences each, kept on disk until the file is put together from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from docnmt.documents.segment import Mark, kind_of
from docnmt.documents.translate import FileSentences, Translated, read_bytes

if TYPE_CHECKING:
    from docnmt.decoding.results import Options
    from docnmt.decoding.translator import Translator


@dataclass(frozen=True)
class SentenceBlock:
    file: FileSentences
    places: range

    @property
    def sentences(self) -> int:
        return len(self.places)

    def write(self, translator: Translator, options: Options, out: IO[str], tick: Callable[[int], object]) -> None:
        for done in self.file.translate(translator, self.places, options):
            marks = [[mark.at, mark.code, mark.pair, mark.closing] for mark in done.marks]
            out.write(json.dumps([done.text, marks]) + "\n")
        tick(self.sentences)


class FileWork:
    """A file with a layout that is to be translated."""

    def __init__(self, path: str, languages: tuple[str, str]):
        self.kind = kind_of(path)
        self.file = FileSentences(read_bytes(path), path, languages)

    def blocks(self) -> Iterator[SentenceBlock]:
        return (SentenceBlock(self.file, places) for places in self.file.blocks())

    def join(self, parts: Iterable[Path], out: IO[bytes]) -> None:
        out.write(self.file.write(_read(parts)))


def _read(parts: Iterable[Path]) -> Iterator[Translated]:
    for part in parts:
        with open(part, encoding="utf-8") as lines:
            for line in lines:
                text, marks = json.loads(line)
                yield Translated(text, tuple(Mark(*mark) for mark in marks))
