"""Files through a translator: kinds that keep their layout, and corpora of sentences.

>>> docnmt.decoding.files.translate_file(translator, "letter.docx", "lettre.docx")
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Protocol

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_atomically
from docnmt.base.lines import MAX_CHARACTERS, STDIN, InputFile
from docnmt.corpus.read import detect_source_format, read_source
from docnmt.decoding.excerpts import Excerpt, translate_best
from docnmt.decoding.terms import Glossary
from docnmt.decoding.translator import Options, TranslatedDocument, Translator
from docnmt.document import ContextSpec, Document, windows
from docnmt.documents.encodings import TextEncoding
from docnmt.documents.segment import Mark, is_document, kind_of
from docnmt.documents.translate import FileSentences, Translated, read_bytes

BLOCK = 2048  # sentences of a corpus that are translated in one go

# ---- A file in one go ----


def in_blocks(
    translator: Translator, options: Options, file: FileSentences, previous: Sequence[str] = ()
) -> Iterator[Excerpt]:
    """A file in blocks, so that little is lost if a long one is stopped; `previous` are sentences before it."""
    context = translator.rule(options.context).spec
    for block in file.blocks():
        first = max(block.start - (context.previous if block.start else len(previous)), -len(previous))
        seen = range(first, min(block.stop + context.following, len(file)))
        texts = [previous[place] if place < 0 else file.sentences[place].text for place in seen]
        yield Excerpt(texts, {place: file.sentences[place] for place in block}, first, file.name)


def best_translations(
    translator: Translator, options: Options, file: FileSentences, previous: Sequence[str] = ()
) -> Iterator[Translated]:
    """Of all sentences of a file, the best of each."""
    for block in in_blocks(translator, options, file, previous):
        yield from translate_best(translator, options, block)


def translate_bytes(
    translator: Translator,
    data: bytes,
    name: str,
    *,
    context: ContextSpec | str | None = None,
    glossary: Glossary | Mapping[str, str] | None = None,
    beam: int | None = None,
    encoding: str = "",
    options: Options | None = None,
    previous: Sequence[str] = (),
) -> bytes:
    """The file `data`, of the kind that its name implies, in the other language; options as for Translator.translate.

    encoding: of a text file that is not in UTF-8, such as "cp1252"; that of subtitles is guessed if none is given
    """
    chosen = (options or translator.options).changed(context=context, glossary=glossary, beam=beam)
    file = FileSentences(data, name, translator.card.languages, encoding)
    return file.write(best_translations(translator, chosen, file, previous))


def translate_file(
    translator: Translator,
    path: str | Path,
    out: str | Path,
    *,
    context: ContextSpec | str | None = None,
    glossary: Glossary | Mapping[str, str] | None = None,
    beam: int | None = None,
    encoding: str = "",
    options: Options | None = None,
) -> None:
    """Translates a file (Word, OpenDocument, EPUB, HTML, Markdown, PO, XLIFF, subtitles, text ...), keeping its layout.

    Options as for Translator.translate and translate_bytes.
    """
    if Path(out).exists() and os.path.samefile(path, out):
        raise DocnmtError(f"{path}: the translation would overwrite this file\n  Give the translation another name.")
    chosen = (options or translator.options).changed(context=context, glossary=glossary, beam=beam)
    data = translate_bytes(translator, read_bytes(path), str(path), encoding=encoding, options=chosen)
    with write_atomically(out, binary=True) as file:
        file.write(data)


# ---- Corpora: documents and their places in a file ----


@dataclass(frozen=True)
class Placed:
    """A document and where it is in its file: the empty lines before it, and its first line or sentence."""

    document: Document
    blank_lines: int = 0
    line: int = 1


Render = Callable[[Placed, TranslatedDocument], Iterable[str]]


def corpus_format(path: str, format: str = "") -> str:
    if not format:
        is_document(path)  # which refuses kinds that are not supported
    return format or detect_source_format(path)


def placed_documents(path: str, format: str) -> Iterator[Placed]:
    """The documents of a file; plain text keeps its empty lines, which separate documents."""
    if format == "text":
        yield from _placed_text(path)
        return
    first = 1
    for document in read_source(path, format=format):
        yield Placed(document, line=first)
        first += len(document)


def _placed_text(path: str) -> Iterator[Placed]:
    with InputFile(path) as file:
        blank, documents = 0, 0
        for filled, lines in groupby(file.numbered_lines(MAX_CHARACTERS), lambda line: bool(line[1].strip())):
            if not filled:
                blank = sum(1 for _ in lines)  # counted, not kept: they may be millions
                continue
            numbers, texts = zip(*lines, strict=True)
            documents += 1
            yield Placed(Document(f"{file.stem}:{documents}", texts), blank, numbers[0])
            blank = 0
        if blank:
            yield Placed(Document(f"{file.stem}:{documents}", ()), blank)


# The output: `Placed` and its translation -> lines.


def as_text(placed: Placed, result: TranslatedDocument) -> Iterator[str]:
    yield from [""] * placed.blank_lines
    yield from (sentence.text for sentence in result.sentences)


def as_tsv(placed: Placed, result: TranslatedDocument) -> Iterator[str]:
    for source, sentence in zip(placed.document.sentences, result.sentences, strict=True):
        columns = (result.id, source, sentence.text)
        yield "\t".join(column.replace("\t", " ") for column in columns)


def as_jsonl(placed: Placed, result: TranslatedDocument) -> Iterator[str]:
    texts = [sentence.text for sentence in result.sentences]
    yield json.dumps({"id": result.id, "source": placed.document.sentences, "target": texts}, ensure_ascii=False)


def as_nbest(placed: Placed, result: TranslatedDocument) -> Iterator[str]:
    """`line ||| translation ||| score`, best first"""
    for number, sentence in enumerate(result.sentences, placed.line):
        for text, score in zip(sentence.texts, sentence.scores, strict=True):
            yield f"{number} ||| {text} ||| {score:.6f}"


def renderer(format: str, nbest: int) -> Render:
    if nbest > 1:
        return as_nbest
    return {"text": as_text, "jsonl": as_jsonl}.get(format, as_tsv)


# ---- A file to be translated, block by block ----

Tick = Callable[[int], object]


class Work(Protocol):
    kind: str
    memory: int  # bytes that it takes, at most
    encoding: TextEncoding | None  # of a text file with a layout

    def blocks(self) -> Iterator[Any]:
        """What is translated in one go, each with its number of sentences as its length."""
        ...

    def translate(self, block: Any, tick: Tick) -> Iterator[str]:
        """A block's translation as lines, in the form they are kept in until all blocks are done."""
        ...

    def join(self, blocks: Iterable[Iterable[str]], out: IO[bytes]) -> None:
        """Writes the whole translation."""
        ...


class CorpusWork:
    """Documents line by line, or in another of the formats for corpora; read as it is translated."""

    memory = 0
    encoding: TextEncoding | None = None

    def __init__(self, path: str, format: str, translator: Translator, options: Options, previous: Sequence[str] = ()):
        self.translator, self.options, self.previous = translator, options, previous
        self.path, self.kind = path, corpus_format(path, format)
        self.render = renderer(self.kind, options.nbest)
        self.size = 1 if path == STDIN and sys.stdin.isatty() else BLOCK  # someone waits for each document

    def blocks(self) -> Iterator[CorpusBlock]:
        previous = self.previous
        for documents in windows(
            placed_documents(self.path, self.kind), self.size, lambda placed: len(placed.document)
        ):
            yield CorpusBlock(documents, previous)
            previous = ()

    def translate(self, block: CorpusBlock, tick: Tick) -> Iterator[str]:
        documents = [placed.document for placed in block.documents]
        results = self.translator.translate_documents(documents, previous=block.previous, options=self.options)
        for placed, result in zip(block.documents, results, strict=True):
            yield from (f"{line}\n" for line in self.render(placed, result))
            tick(len(placed.document))

    def join(self, blocks: Iterable[Iterable[str]], out: IO[bytes]) -> None:
        for block in blocks:
            out.writelines(line.encode() for line in block)
            out.flush()


@dataclass(frozen=True)
class CorpusBlock:
    documents: list[Placed]
    previous: Sequence[str] = ()  # sentences before the first document, which are context

    def __len__(self) -> int:
        return sum(len(placed.document) for placed in self.documents)


class DocumentWork:
    """A file with a layout."""

    def __init__(
        self, path: str, translator: Translator, options: Options, previous: Sequence[str] = (), encoding: str = ""
    ):
        self.kind = kind_of(path)
        self.translator, self.options, self.previous = translator, options, previous
        data = read_bytes(path)
        self.memory = 12 * len(data)
        self.file = FileSentences(data, path, translator.card.languages, encoding)
        self.encoding = self.file.encoding

    def blocks(self) -> Iterator[Excerpt]:
        return in_blocks(self.translator, self.options, self.file, self.previous)

    def translate(self, block: Excerpt, tick: Tick) -> Iterator[str]:
        for done in translate_best(self.translator, self.options, block):
            marks = [[mark.at, mark.code, mark.pair, mark.closing] for mark in done.marks]
            yield json.dumps([done.text, marks]) + "\n"
        tick(len(block))

    def join(self, blocks: Iterable[Iterable[str]], out: IO[bytes]) -> None:
        done = (json.loads(line) for block in blocks for line in block)
        out.write(self.file.write(Translated(text, tuple(Mark(*mark) for mark in marks)) for text, marks in done))


def is_corpus(path: str, format: str) -> bool:
    """A file with a layout is also a corpus if its format is given."""
    return bool(format) or not is_document(path)


def open_work(
    path: str,
    format: str,
    translator: Translator,
    options: Options,
    previous: Sequence[str] = (),
    encoding: str = "",
) -> Work:
    if not is_corpus(path, format):
        return DocumentWork(path, translator, options, previous, encoding)
    if encoding:
        raise DocnmtError(f"{path}: a corpus must be in UTF-8\n  Convert it: iconv -f {encoding} -t UTF-8.")
    return CorpusWork(path, format, translator, options, previous)


def read_previous(path: str, translator: Translator) -> tuple[str, ...]:
    """The sentences of a file that another file continues: of a corpus, those of its last document."""
    if not is_corpus(path, ""):
        return tuple(FileSentences(read_bytes(path), path, translator.card.languages).texts)
    last = Placed(Document("", ()))
    for placed in placed_documents(path, corpus_format(path)):
        last = placed if len(placed.document) else last  # empty lines at the end are not a document
    return last.document.sentences
