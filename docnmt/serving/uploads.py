"""Files that come in and go out: what is put on the page, how many are in memory, translations kept to be fetched."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import secrets
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from starlette.exceptions import HTTPException

from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import Placed, corpus_format, placed_documents, renderer
from docnmt.decoding.scoring import align
from docnmt.decoding.translator import TranslatedDocument, TranslatedSentence, Translator
from docnmt.documents.encodings import TextEncoding
from docnmt.documents.segment import is_document
from docnmt.documents.translate import Draft, FileSentences, place_marks
from docnmt.serving.requests import bad, checked

FILES = 8  # that may be in memory at a time, being translated or waiting
MOST = 10_000  # sentences: a longer page helps neither its reader nor the browser
UNPACKED = 32 << 20  # bytes of a gzip file


class FewFiles:
    """Limits how many files are in memory at a time."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        if self.count >= FILES:
            raise HTTPException(429, "Too many files are being translated. Try again later.", {"Retry-After": "10"})
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


# ---- On the page: a file is taken apart into documents of sentences, and written with their translations ----

# Both run where the model is, and between them nothing is kept.

Texts = Sequence[str | None]  # the translation of each sentence of all documents; None: it stays as it is


class Upload(Protocol):
    name: str  # of the translated file
    encoding: TextEncoding | None  # that it was read in, if that is not for its format to say

    def documents(self) -> list[dict[str, Any]]:
        """The id and sentences of each: text, whether to translate it, whether a paragraph begins."""
        ...

    def written(self, translator: Translator, texts: Texts) -> bytes: ...


def read_upload(translator: Translator, data: bytes, name: str, encoding: str = "") -> bytes:
    """The name of the translated file, its encoding and the documents, as JSON, which may take long to write."""
    upload = _upload(translator, data, name, encoding)
    documents = upload.documents()
    if not any(sentence["translate"] for document in documents for sentence in document["sentences"]):
        raise DocnmtError(f"{name}: there is nothing to translate\n  Give a text with words.")
    told = {"name": upload.name, **encoding_told(upload.encoding), "documents": documents}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")


def encoding_told(encoding: TextEncoding | None) -> dict[str, Any]:
    """Of text files that are not in UTF-8."""
    if encoding is None or encoding.name == "UTF-8":
        return {}
    return {"encoding": {"name": encoding.name, "guessed": encoding.guessed}}


def write_upload(translator: Translator, data: bytes, name: str, given: str, encoding: str = "") -> bytes:
    """`given`: the translations as a JSON list, null for what stays as it is."""
    texts = read_texts(given)
    upload = _upload(translator, data, name, encoding)
    count = sum(len(document["sentences"]) for document in upload.documents())
    if count != len(texts):
        raise DocnmtError(f"{name}: {count} sentences, but {len(texts)} translations\n  Translate the file again.")
    return upload.written(translator, texts)


def read_texts(given: str) -> Texts:
    try:
        texts = json.loads(given)
    except (ValueError, RecursionError):
        raise bad("texts is not JSON") from None
    if not isinstance(texts, list):
        raise bad("texts is not a list")
    return [None if text is None else checked(text, "texts") for text in texts]


def _upload(translator: Translator, data: bytes, name: str, encoding: str) -> Upload:
    name = file_name(name)
    if name in ("", ".."):
        raise DocnmtError("the file has no name\n  Give it one: its extension tells what kind of file it is.")
    if is_document(name):
        return LaidOut(data, name, translator.card.languages, encoding)
    if encoding:
        raise DocnmtError(f"{name}: this kind of file must be UTF-8\n  Save it as UTF-8, and leave the encoding out.")
    return Corpus(data, name, translator.card.languages)


def file_name(given: str) -> str:
    """The name without folders: its end, as long as a file's may be, in characters that a file's may have."""
    name = PurePosixPath(given.replace("\\", "/").replace("\0", "")).name
    return name.encode("utf-8", "replace")[-200:].decode("utf-8", "ignore")


def _translated_name(name: str, languages: tuple[str, str], ending: str = "") -> str:
    """report.docx -> report.en.docx, corpus.fr -> corpus.en"""
    path = PurePosixPath(name)
    ending = ending or ("" if path.suffix == f".{languages[0]}" else path.suffix)
    return f"{path.stem}.{languages[1] or 'translated'}{ending}"


def _check_count(name: str, count: int) -> None:
    if count > MOST:
        raise DocnmtError(
            f"{name}: more than {MOST:,} sentences\n  Translate it on the command line: docnmt translate."
        )


class LaidOut:
    """A file of a kind that keeps its layout; pasted text is one, too."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str], encoding: str):
        self.file = FileSentences(data, name, languages, encoding)
        self.encoding = self.file.encoding
        self.name = _translated_name(name, languages)
        _check_count(name, len(self.file))

    def documents(self) -> list[dict[str, Any]]:
        sentences = []
        for segment, said in self.file.by_segment():
            role = {"role": segment.role} if segment.role else {}
            for number, sentence in enumerate(said):
                sentences.append({"text": sentence.text, "translate": sentence.translate, "begins": not number, **role})
        return [{"id": "", "sentences": sentences}]

    def written(self, translator: Translator, texts: Texts) -> bytes:
        drafts = (
            Draft(sentence, (text or "") if sentence.translate else "")
            for sentence, text in zip(self.file.sentences, texts, strict=True)
        )
        done = place_marks(dict(enumerate(drafts)), partial(align, translator))
        return self.file.write(iter(done.values()))


class Corpus:
    """Any other file: one sentence per line, or another corpus format."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]):
        kind, self.placed = _read_corpus(data, name)
        self.encoding: TextEncoding | None = None
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
    """The readers need a file, as some read it twice."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(_unpacked(data, name))
        try:
            kind, found, count = corpus_format(str(path)), [], 0
            for placed in placed_documents(str(path), kind):
                found.append(placed)
                count += len(placed.document)
                _check_count(name, count)
        except DocnmtError as error:  # do not reveal the temporary folder
            raise DocnmtError(str(error).replace(f"{folder}/", "")) from None
    return kind, found


def _unpacked(data: bytes, name: str) -> bytes:
    """A gzip file unpacked, as long as that is not too much; others as they are."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            unpacked = file.read(UNPACKED + 1)
    except (OSError, EOFError, zlib.error):
        raise DocnmtError(f"{name}: cannot be unpacked\n  Send it as it is, without gzip.") from None
    if len(unpacked) > UNPACKED:
        raise DocnmtError(f"{name}: unpacks to more than {UNPACKED >> 20} MB\n  Send a part of it.")
    return unpacked


# ---- Translations that wait to be fetched: not for long, and not without end ----

# All are in one folder, together with the temporary files of the processes, and it is removed with the server. A server
# that was killed leaves its folder behind; the next one finds it unlocked and removes it.

SECONDS = 30 * 60
BYTES = 256 << 20  # of all files that wait to be fetched; the oldest go first
PREFIX = "docnmt-serve-"
LOCK = "lock"


class Scratch:
    """A folder that stays locked as long as the server lives."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        unnamed = self.path / f"{LOCK}.new"
        self._lock = _locked(unnamed)
        os.rename(unnamed, self.path / LOCK)  # locked before it has its name: one that nobody holds is abandoned

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned() -> None:
    """Removes the folders of servers that are gone. One without a lock may be about to get one: it has a minute."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
            if folder.is_symlink() or found.st_uid != os.getuid():
                continue
            if not (folder / LOCK).exists() and time.time() - found.st_mtime < 60:
                continue
            lock = _locked(folder / LOCK)
        except OSError:
            continue
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(path: Path) -> int | None:
    """A handle that holds the lock; None if another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@dataclass(frozen=True)
class Download:
    path: Path
    name: str  # for saving it
    size: int
    made: float


class Downloads:
    def __init__(self) -> None:
        self.scratch = Scratch()
        self._found: dict[str, Download] = {}

    def add(self, data: bytes, name: str) -> str:
        """Returns a key for fetching it that nobody can guess."""
        key = secrets.token_urlsafe(16) + Path(name).suffix
        path = self.scratch.path / key
        path.write_bytes(data)
        self._found[key] = Download(path, name, len(data), time.monotonic())
        self._tidy_up()
        return key

    def get(self, key: str) -> Download | None:
        self._tidy_up()
        return self._found.get(key)

    def close(self) -> None:
        self.scratch.close()

    def _tidy_up(self) -> None:
        room = BYTES
        for key, each in reversed(list(self._found.items())):
            room -= each.size
            newest = each is next(reversed(self._found.values()))
            if time.monotonic() - each.made > SECONDS or (room < 0 and not newest):
                each.path.unlink(missing_ok=True)
                self._found.pop(key, None)
