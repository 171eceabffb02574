"""Files through a translator: in one go, or in parts that are kept on disk until the file is put together from them.

>>> docnmt.decoding.files.translate_file(translator, "letter.docx", "lettre.docx")
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_atomically
from docnmt.decoding.alignment import align
from docnmt.decoding.results import Options
from docnmt.decoding.terms import Glossary
from docnmt.decoding.translator import Translator
from docnmt.document import ContextSpec, Document
from docnmt.documents.marks import Links
from docnmt.documents.segment import Mark, kind_of
from docnmt.documents.translate import FileSentences, Translated, read_bytes


@dataclass(frozen=True)
class FileMachine:
    """What documents/ is handed to translate with."""

    translator: Translator
    options: Options
    previous: Sequence[str] = ()  # sentences before the file, which are context

    def translate(self, name: str, sentences: Sequence[str], block: range, wanted: Mapping[int, str]) -> dict[int, str]:
        rule = self.translator.rule(self.options.context)
        first = max(0, block.start - rule.spec.previous) if rule else block.start
        last = min(len(sentences), block.stop + rule.spec.following) if rule else block.stop
        previous = self.previous if first == 0 else ()
        if rule is not None and rule.remembers:  # it needs its own translations of the sentences before
            document = Document(name, tuple(wanted.get(n, sentences[n]) for n in range(first, last)))
            (result,) = self.translator.translate_documents([document], previous=previous, options=self.options)
        else:  # an empty sentence costs nothing
            document = Document(name, tuple(wanted.get(n, "") for n in range(first, last)))
            contexts = [Document(name, tuple(sentences[first:last]))]
            (result,) = self.translator.translate_documents(
                [document], context_from=contexts, previous=previous, options=self.options
            )
        return {n: result.sentences[n - first].text.strip() for n in wanted}

    def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        return align(self.translator, pairs)


def languages_of(translator: Translator) -> tuple[str, str]:
    return translator.card.source_language, translator.card.target_language


def translate_bytes(
    translator: Translator,
    data: bytes,
    name: str,
    *,
    context: ContextSpec | str | None = None,
    glossary: Glossary | Mapping[str, str] | None = None,
    beam: int | None = None,
    options: Options | None = None,
) -> bytes:
    """The file `data`, whose kind its name tells, in the other language; options as for Translator.translate."""
    chosen = (options or translator.options).changed(context=context, glossary=glossary, beam=beam)
    return FileSentences(data, name, languages_of(translator)).translated(FileMachine(translator, chosen))


def translate_file(
    translator: Translator,
    path: str | Path,
    out: str | Path,
    *,
    context: ContextSpec | str | None = None,
    glossary: Glossary | Mapping[str, str] | None = None,
    beam: int | None = None,
    options: Options | None = None,
) -> None:
    """Translates a file (Word, OpenDocument, EPUB, HTML, Markdown, PO, XLIFF, subtitles, text ...), its layout kept.

    Options as for Translator.translate.
    """
    if Path(out).exists() and os.path.samefile(path, out):
        raise DocnmtError(f"{path}: would be written over by its own translation\n  Give another name.")
    chosen = (options or translator.options).changed(context=context, glossary=glossary, beam=beam)
    data = translate_bytes(translator, read_bytes(path), str(path), options=chosen)
    with write_atomically(out, binary=True) as file:
        file.write(data)


# ---- in parts ----


@dataclass(frozen=True)
class SentenceBlock:
    file: FileSentences
    places: range
    previous: Sequence[str] = ()

    @property
    def sentences(self) -> int:
        return len(self.places)

    def write(self, translator: Translator, options: Options, out: IO[str], tick: Callable[[int], object]) -> None:
        for done in self.file.translate(FileMachine(translator, options, self.previous), self.places):
            marks = [[mark.at, mark.code, mark.pair, mark.closing] for mark in done.marks]
            out.write(json.dumps([done.text, marks]) + "\n")
        tick(self.sentences)


class FileWork:
    """A file with a layout that is to be translated."""

    def __init__(self, path: str, languages: tuple[str, str], previous: Sequence[str] = ()):
        self.kind, self.previous = kind_of(path), previous
        data = read_bytes(path)
        self.size = len(data)
        self.file = FileSentences(data, path, languages)

    def blocks(self) -> Iterator[SentenceBlock]:
        return (SentenceBlock(self.file, places, self.previous) for places in self.file.blocks())

    def join(self, parts: Iterable[Path], out: IO[bytes]) -> None:
        out.write(self.file.write(_read(parts)))


def _read(parts: Iterable[Path]) -> Iterator[Translated]:
    for part in parts:
        with open(part, encoding="utf-8") as lines:
            for line in lines:
                text, marks = json.loads(line)
                yield Translated(text, tuple(Mark(*mark) for mark in marks))
