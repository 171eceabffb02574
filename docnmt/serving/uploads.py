"""A text or file that somebody put on the page: taken apart into documents of sentences, and written with their
translations as they stand on the page. Runs where the model is; between the two nothing is kept."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import FileMachine, languages_of
from docnmt.decoding.jobs import Placed, read_placed, renderer
from docnmt.decoding.results import TranslatedDocument, TranslatedSentence
from docnmt.decoding.translator import Translator
from docnmt.documents.segment import is_document
from docnmt.documents.translate import FileSentences
from docnmt.serving.requests import bad, text_of

MOST = 10_000  # sentences: beyond that a page is no help, to its reader and to the browser

Texts = Sequence[str | None]  # for each sentence, document after document, its translation; None: it stays as it is


class Upload(Protocol):
    name: str  # of its translation

    def documents(self) -> list[dict[str, Any]]:
        """For each its id and its sentences: the text, whether to translate it, and whether a paragraph begins."""
        ...

    def written(self, translator: Translator, texts: Texts) -> bytes: ...


def read_upload(translator: Translator, data: bytes, name: str) -> bytes:
    """Its name when it is translated, and its documents, as JSON: to write that takes long, too."""
    upload = _upload(translator, data, name)
    documents = upload.documents()
    if not any(sentence["translate"] for document in documents for sentence in document["sentences"]):
        raise DocnmtError(f"{name}: has nothing to translate\n  Give a text with words.")
    return json.dumps({"name": upload.name, "documents": documents}, ensure_ascii=False).encode("utf-8", "replace")


def write_upload(translator: Translator, data: bytes, name: str, given: str) -> bytes:
    """`given` are the translations, a list in JSON; null for what stays as it is."""
    texts = read_texts(given)
    upload = _upload(translator, data, name)
    count = sum(len(document["sentences"]) for document in upload.documents())
    if count != len(texts):
        raise DocnmtError(f"{name}: {count} sentences but {len(texts)} translations\n  Translate the file anew.")
    return upload.written(translator, texts)


def read_texts(given: str) -> Texts:
    try:
        texts = json.loads(given)
    except (ValueError, RecursionError):
        raise bad("texts is not JSON") from None
    if not isinstance(texts, list):
        raise bad("texts is not a list")
    return [None if text is None else text_of({"texts": text}, "texts") for text in texts]


def _upload(translator: Translator, data: bytes, name: str) -> Upload:
    name = PurePosixPath(name.replace("\\", "/").replace("\0", "")).name[-200:]
    if name in ("", ".."):
        raise DocnmtError("a file without a name\n  Its ending tells what it is: give it one.")
    return (LaidOut if is_document(name) else Corpus)(data, name, languages_of(translator))


def _translated_name(name: str, languages: tuple[str, str], ending: str = "") -> str:
    """report.docx -> report.en.docx, corpus.fr -> corpus.en"""
    path = PurePosixPath(name)
    ending = ending or ("" if path.suffix == f".{languages[0]}" else path.suffix)
    return f"{path.stem}.{languages[1] or 'translated'}{ending}"


def _check_count(name: str, count: int) -> None:
    if count > MOST:
        raise DocnmtError(f"{name}: has more than {MOST:,} sentences\n  Translate it with docnmt translate.")


class LaidOut:
    """A file of a kind that keeps its layout; pasted text is one."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]):
        self.file = FileSentences(data, name, languages)
        self.name = _translated_name(name, languages)
        _check_count(name, len(self.file))

    def documents(self) -> list[dict[str, Any]]:
        begins = set()
        at = 0
        for _, count, _ in self.file.segments:
            begins.add(at)
            at += count
        sentences = [
            {"text": sentence.text, "translate": sentence.translate, "begins": n in begins}
            for n, sentence in enumerate(self.file.sentences)
        ]
        return [{"id": "", "sentences": sentences}]

    def written(self, translator: Translator, texts: Texts) -> bytes:
        machine = FileMachine(translator, translator.options)
        given = {n: text for n, text in enumerate(texts) if text and self.file.sentences[n].translate}
        done = (
            sentence
            for block in self.file.blocks()
            for sentence in self.file.marked(machine, block, {n: given[n] for n in block if n in given}, {})
        )
        return self.file.write(done)


class Corpus:
    """Any other file is one with a sentence a line, or in another of the formats for corpora."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]):
        kind, self.placed = _read_corpus(data, name)
        self.render = renderer(kind, 1)
        ending = "" if kind in ("text", "jsonl") else ".tsv"
        self.name = _translated_name(name.removesuffix(".gz"), languages, ending)

    def documents(self) -> list[dict[str, Any]]:
        return [
            {
                "id": placed.document.id,
                "sentences": [{"text": s, "translate": bool(s), "begins": True} for s in placed.document.sentences],
            }
            for placed in self.placed
        ]

    def written(self, translator: Translator, texts: Texts) -> bytes:
        waiting = iter(texts)
        lines: list[str] = []
        for placed in self.placed:
            said = (next(waiting) or sentence for sentence in placed.document.sentences)
            result = TranslatedDocument(placed.document.id, tuple(TranslatedSentence((text,), (0.0,)) for text in said))
            lines += self.render(placed, result)
        return "".join(f"{line}\n" for line in lines).encode()


def _read_corpus(data: bytes, name: str) -> tuple[str, list[Placed]]:
    """The readers take files, not bytes: some read them twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            kind, documents = read_placed(str(path), "")
            return kind, list(_counted(name, documents))
        except DocnmtError as error:  # where it lies for the moment is nobody's business
            raise DocnmtError(str(error).replace(f"{folder}/", "")) from None


def _counted(name: str, documents: Iterator[Placed]) -> Iterator[Placed]:
    count = 0
    for placed in documents:
        count += len(placed.document)
        _check_count(name, count)
        yield placed
