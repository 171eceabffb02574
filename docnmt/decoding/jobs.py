"""Translating files: layouts kept, N lines in and N lines out, nothing finished lost.

A corpus is cut into blocks of whole documents, a file with a layout into blocks of sentences. Each finished block is a
small file of its own beside the output until all are there and the output is put together from them in order. So a run
that was stopped goes on with the blocks that are missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Protocol

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_atomically, write_json
from docnmt.base.lines import MAX_CHARACTERS, STDIN, Flaw, InputFile
from docnmt.corpus.read import detect_source_format, read_source
from docnmt.decoding.files import FileWork, languages_of
from docnmt.decoding.results import Options, TranslatedDocument
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.documents.segment import KINDS, is_document, kind_of
from docnmt.documents.translate import FileSentences, read_bytes

BLOCK = 2048  # sentences
TERMS = ".terms"  # beside a block, what became of the glossary's terms in it


@dataclass(frozen=True)
class Placed:
    """A document and where it stands in its file: the empty lines before it, and its first line or sentence."""

    document: Document
    blank_lines: int = 0
    line: int = 1


Render = Callable[[Placed, TranslatedDocument], Iterable[str]]


def read_placed(path: str, format: str) -> tuple[str, Iterator[Placed]]:
    """The format and the documents of a file; plain text keeps its empty lines, which part documents."""
    if not format:
        is_document(path)  # which tells of kinds that are not read
    name = format or detect_source_format(path)
    if name == "text":
        return name, _placed_text(path)
    return name, _placed_records(path, name)


def _placed_records(path: str, format: str) -> Iterator[Placed]:
    first = 1
    for document in read_source(path, format=format):
        yield Placed(document, line=first)
        first += len(document)


def _placed_text(path: str) -> Iterator[Placed]:
    with InputFile(path) as file:
        sentences: list[str] = []
        blank, first, documents = 0, 1, 0
        for number, line in enumerate(file.lines(MAX_CHARACTERS), 1):
            if isinstance(line, Flaw):
                raise BadInput(line.kind, line.problem, line.remedy, file=file.name, line=number)
            if line.strip():
                if not sentences:
                    first = number
                    documents += 1
                sentences.append(line)
                continue
            if sentences:
                yield Placed(Document(f"{file.stem}:{documents}", tuple(sentences)), blank, first)
                sentences, blank = [], 0
            blank += 1
        if sentences or blank:
            yield Placed(Document(f"{file.stem}:{documents}", tuple(sentences)), blank, first)


# ---- what comes out ----


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


# ---- doing it ----

Tick = Callable[[int], object]


class Block(Protocol):
    """What is translated in one go and kept in a file of its own until the whole is there."""

    @property
    def sentences(self) -> int: ...

    def write(self, translator: Translator, options: Options, out: IO[str], tick: Tick) -> None: ...


class Work(Protocol):
    """A file to be translated."""

    @property
    def kind(self) -> str: ...

    def blocks(self) -> Iterator[Block]: ...

    def join(self, parts: Iterable[Path], out: IO[bytes]) -> None:
        """Puts the translation together from the blocks as they were written."""
        ...


@dataclass(frozen=True)
class CorpusBlock:
    documents: list[Placed]
    render: Render
    previous: Sequence[str] = ()  # sentences before the first document, which are context

    @property
    def sentences(self) -> int:
        return sum(len(placed.document) for placed in self.documents)

    def write(self, translator: Translator, options: Options, out: IO[str], tick: Tick) -> None:
        documents = [placed.document for placed in self.documents]
        results = translator.translate_documents(documents, previous=self.previous, options=options)
        for placed, result in zip(self.documents, results, strict=True):
            out.writelines(f"{line}\n" for line in self.render(placed, result))
            tick(len(placed.document))


class CorpusWork:
    """Documents line by line, or in another of the formats for corpora."""

    def __init__(self, path: str, format: str, nbest: int, previous: Sequence[str] = ()):
        self.kind, self.documents = read_placed(path, format)
        self.render, self.previous = renderer(self.kind, nbest), previous

    def blocks(self, size: int | None = None) -> Iterator[CorpusBlock]:
        for number, block in enumerate(blocks(self.documents, size)):
            yield CorpusBlock(block, self.render, () if number else self.previous)

    def join(self, parts: Iterable[Path], out: IO[bytes]) -> None:
        for part in parts:
            with open(part, "rb") as piece:
                shutil.copyfileobj(piece, out)


def is_corpus(path: str, format: str) -> bool:
    """A file with a layout is a corpus, too, if somebody says in which format."""
    return bool(format) or not is_document(path)


def open_work(path: str, format: str, translator: Translator, nbest: int, previous: Sequence[str] = ()) -> Work:
    if is_corpus(path, format):
        return CorpusWork(path, format, nbest, previous)
    return FileWork(path, languages_of(translator), previous)


def read_previous(path: str, translator: Translator) -> tuple[str, ...]:
    """The sentences of a file that another one goes on from: of a corpus those of its last document."""
    if not is_corpus(path, ""):
        return tuple(FileSentences(read_bytes(path), path, languages_of(translator)).texts)
    last = Placed(Document("", ()))
    for placed in read_placed(path, "")[1]:
        last = placed if len(placed.document) else last  # empty lines at the end are no document
    return last.document.sentences


def count_sentences(files: list[str], format: str) -> int:
    return sum(len(placed.document) for file in files for placed in read_placed(file, format)[1])


def translate_stream(
    translator: Translator,
    path: str,
    out: IO[str],
    options: Options,
    format: str,
    tick: Tick,
    previous: Sequence[str] = (),
) -> None:
    """From a corpus or standard input straight to a stream."""
    typed = path == STDIN and sys.stdin.isatty()  # someone is waiting for each document
    for block in CorpusWork(path, format, options.nbest, previous).blocks(1 if typed else None):
        block.write(translator, options, out, tick)
        out.flush()


class FileJob:
    """Files translated block by block."""

    def __init__(
        self,
        translator: Translator,
        options: Options,
        model_key: str = "",
        tick: Tick = lambda count: None,
        previous: Sequence[str] = (),
    ):
        self.translator, self.options, self.model_key, self.tick = translator, options, model_key, tick
        self.previous = previous  # sentences before each file
        self.kept: list[Path] = []  # the blocks of files that are done

    def translate(self, path: str, out: Path, format: str = "", work: Work | None = None) -> None:
        work = work or open_work(path, format, self.translator, self.options.nbest, self.previous)
        key = _key(path, work.kind, self.options, self.model_key, self.previous)
        parts = out.with_name(out.name + ".parts") / key
        parts.mkdir(parents=True, exist_ok=True)
        finished = []
        for number, block in enumerate(work.blocks()):
            part = parts / f"{number:08d}"
            finished.append(part)
            if part.exists():
                self.tick(block.sentences)
                continue
            with write_atomically(part) as file:
                block.write(self.translator, self.options, file, self.tick)
                if self.options.glossary is not None:
                    write_json(part.with_suffix(TERMS), self.translator.terms.take())
        with write_atomically(out, binary=True) as output:
            work.join(finished, output)
        self.kept.append(parts)

    def finish(self) -> None:
        """The blocks of finished files stay until now: a run over many files that was stopped does none again."""
        for parts in self.kept:
            for noted in sorted(parts.glob(f"*{TERMS}")):  # of earlier runs, too
                self.translator.terms.give(json.loads(noted.read_text(encoding="utf-8")))
            shutil.rmtree(parts.parent)
        self.kept = []


def blocks(documents: Iterable[Placed], size: int | None = None) -> Iterator[list[Placed]]:
    size = size or BLOCK
    block: list[Placed] = []
    sentences = 0
    for placed in documents:
        block.append(placed)
        sentences += len(placed.document)
        if sentences >= size:
            yield block
            block, sentences = [], 0
    if block:
        yield block


def _key(path: str, format: str, options: Options, model_key: str, previous: Sequence[str]) -> str:
    """Names the work, so that the finished blocks of other work are never taken for this one's."""
    try:
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  Check the path.") from None
    text = json.dumps([content, format, asdict(options), model_key, BLOCK, *previous], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_folders(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The files that are given, each with its name in an output folder, and of folders what is in them at any depth;
    and those in folders that are left out, as no reader knows their kind."""
    found: dict[str, str] = {}
    left_out: list[str] = []
    for name in given:
        if not os.path.isdir(name):
            if name in found:
                raise DocnmtError(f"{name}: is given twice\n  Give it once.")
            found[name] = Path(name).name.removesuffix(".gz")
            continue
        inside = sorted(path for path in Path(name).rglob("*") if path.is_file())
        visible = [path for path in inside if not any(p.startswith(".") for p in path.relative_to(name).parts)]
        known = {str(path): str(path.relative_to(name)) for path in visible if kind_of(path.name)}
        if not known:
            raise DocnmtError(f"{name}: no file in this folder is of a kind that is read\n  Known: {', '.join(KINDS)}.")
        found |= known
        left_out += (str(path) for path in visible if str(path) not in known)
    return found, left_out


def output_paths(files: Mapping[str, str], out: str, into_folder: bool = False) -> dict[str, Path]:
    """Where each file's translation goes: one file to `out` itself, several into the folder `out` under the names they
    come with."""
    if len(files) == 1 and not into_folder and not Path(out).is_dir() and not out.endswith(os.sep):
        paths = {file: Path(out) for file in files}
    else:
        paths = {file: Path(out) / name for file, name in files.items()}
    first: dict[Path, str] = {}
    for file, path in paths.items():
        if path in first:
            raise DocnmtError(
                f"{first[path]} and {file} would both be written to {path}\n  Translate them into different folders."
            )
        first[path] = file
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    inputs = {_identity(file): file for file in files}
    for file, path in paths.items():
        clash = inputs.get(_identity(path)) if path.exists() else None
        if clash is not None:
            by = "its own translation" if clash == file else f"the translation of {file}"
            raise DocnmtError(f"{clash}: would be written over by {by}\n  Give another name to -o.")
    return paths


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What a file is, whatever it is called; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
