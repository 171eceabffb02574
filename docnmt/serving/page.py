"""The page "Translate": its files, and what its script asks for, under /page/."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from docnmt.base.errors import DocnmtError
from docnmt.corpus.memories import tmx
from docnmt.decoding.excerpts import Excerpt
from docnmt.documents.translate import Translated
from docnmt.serving.api import Answer, while_connected
from docnmt.serving.explain import aligned, explained
from docnmt.serving.pool import Pool
from docnmt.serving.queue import Busy, Mode, Overloaded
from docnmt.serving.requests import (
    Parameters,
    bad,
    checked,
    flag_of,
    glossary_of,
    json_object,
    kind_of_body,
    name_of,
    read_parameters,
    text_of,
    upload_of,
)
from docnmt.serving.uploads import MOST, FewFiles, read_upload, write_upload
from docnmt.serving.web import FAILED, in_sentences
from docnmt.serving.worker import ModelInfo, OutOfMemory

# What people call the kinds of files, and the endings of each.
KIND_NAMES = {
    "Word": (".docx",),
    "OpenDocument": (".odt",),
    "EPUB": (".epub",),
    "HTML": (".html", ".htm", ".xhtml"),
    "Markdown": (".md", ".markdown"),
    "subtitles": (".srt", ".vtt"),
    "PO": (".po", ".pot"),
    "XLIFF": (".xliff", ".xlf"),
    "JSON": (".json", ".arb"),
    "plain text": (".txt",),
}
STATIC = Path(__file__).parent / "static"
SMALL = 8 * 1024  # bytes of JSON that are parsed at once; more are parsed in a process
LONGEST = 5_000  # characters of a sentence to be explained; the page's own sentences are shorter


def routes(pool: Pool) -> list[BaseRoute]:
    page = Page(pool)
    questions = (page.sentences, page.translate, page.explanation, page.alignment, page.file, page.tmx)
    return [
        Route("/", page.html),
        Mount("/static", Files(directory=STATIC)),
        Route("/page/models", page.models),
        *(Route(f"/page/{question.__name__}", question, methods=["POST"]) for question in questions),
    ]


class Files(StaticFiles):
    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Browsers check for a newer file each time: scripts of two versions would not work together."""
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


class Page:
    def __init__(self, pool: Pool):
        self.pool = pool
        self.files = FewFiles()

    async def html(self, request: Request) -> Response:
        return FileResponse(STATIC / "translate.html", headers={"Cache-Control": "no-cache"})

    async def models(self, request: Request) -> Response:
        models = [
            {
                "name": info.name,
                "languages": info.languages,
                "names": [name_of(info.source_language), name_of(info.target_language)],
                "context": [info.context.previous, info.context.following] if info.uses_context else None,
                "demo": "demo" in Path(info.folder).parts,  # `docnmt demo` writes it to such a folder
            }
            for info in self.pool.models.values()
        ]
        return Answer({"models": models, "default": self.pool.default, "kinds": list(KIND_NAMES)})

    # ---- files in and out; pasted text is one ----

    async def sentences(self, request: Request) -> Response:
        """A file cut into sentences."""
        asked = await read_parameters(request)
        file, model, encoding = upload_of(asked), self._model(asked), text_of(asked, "encoding", "")
        with self.files.one_more():
            work = self.pool.call(read_upload, await file.read(), file.filename, encoding, model=model.name, long=True)
            return Response(await while_connected(request, work), media_type=Answer.media_type)

    async def file(self, request: Request) -> Response:
        """The file with the translations on the page; null for what stays as it is."""
        asked = await read_parameters(request)
        file, model, texts = upload_of(asked), self._model(asked), text_of(asked, "texts")
        how = file.filename, texts, text_of(asked, "encoding", "")
        with self.files.one_more():
            work = self.pool.call(write_upload, await file.read(), *how, model=model.name, long=True)
            return Response(await while_connected(request, work), media_type="application/octet-stream")

    async def tmx(self, request: Request) -> Response:
        languages = {info.name: info.languages for info in self.pool.models.values()}
        body = await json_body(request)  # which may be long in coming
        with self.files.one_more():
            work = self.pool.call(write_tmx, body, languages, long=True)
            return Response(await while_connected(request, work), media_type="application/octet-stream")

    # ---- translations ----

    async def translate(self, request: Request) -> Response:
        """A line of JSON for each sentence as it gets done."""
        body = await json_body(request)
        if len(body) < SMALL:
            asked, documents = read_documents(None, body)
        else:
            asked, documents = await while_connected(request, self.pool.call(read_documents, body))
        mode = Mode(self._model(asked).name, asked["context"], ALTERNATIVES, asked["glossary"])
        return StreamingResponse(self._lines(documents, mode), media_type="application/x-ndjson")

    async def _lines(self, documents: list[Excerpt], mode: Mode) -> AsyncIterator[str]:
        try:
            async with aclosing(translations(self.pool, documents, mode)) as results:
                async for document, place, found in results:
                    texts = list(dict.fromkeys(each.text.strip() for each in found))
                    unmet = {"unmet": found[0].unmet} if found[0].unmet else {}
                    yield json.dumps({"document": document, "sentence": place, "texts": texts, **unmet}) + "\n"
        except (DocnmtError, OutOfMemory, Busy) as error:
            yield _last_line(in_sentences(str(error)))  # the status has been sent already
        except Exception:
            yield _last_line(FAILED)
            raise

    # ---- words ----

    async def explanation(self, request: Request) -> Response:
        asked = await read_parameters(request)
        source, target = (list_of(asked.get(name), name) for name in ("source", "target"))
        position = asked.get("position")
        if len(source) != len(target):
            raise bad("source and target have different numbers of sentences")
        if type(position) is not int or not 0 <= position < len(source) or not source[position]:
            raise bad("position is not the number of a sentence")
        _check_lengths(*source, *target)
        work = self.pool.call(explained, source, target, position, model=self._model(asked).name)
        return Response(await while_connected(request, work), media_type=Answer.media_type)

    async def alignment(self, request: Request) -> Response:
        asked = await read_parameters(request)
        pair = text_of(asked, "source"), text_of(asked, "target")
        _check_lengths(*pair)
        work = self.pool.call(aligned, *pair, model=self._model(asked).name)
        return Answer(await while_connected(request, work))

    def _model(self, asked: Parameters) -> ModelInfo:
        name = text_of(asked, "model", self.pool.default)
        if name not in self.pool.models:
            raise bad("there is no such model. Reload the page")
        return self.pool.models[name]


def _last_line(error: str) -> str:
    return json.dumps({"error": error}) + "\n"


def _check_lengths(*texts: str) -> None:
    if any(len(text) > LONGEST for text in texts):
        raise bad(f"a sentence has more than {LONGEST:,} characters")


# ---- Bodies that may be large: parsed in a model process, as megabytes of JSON would keep others waiting ----


async def json_body(request: Request) -> bytes:
    if kind_of_body(request) != "application/json":
        raise bad("the body is not JSON")
    return await request.body()


def read_documents(_: Any, body: bytes) -> tuple[Parameters, list[Excerpt]]:
    """The parameters of /page/translate, and the documents. All are checked here: what is returned is small."""
    asked = json_object(body)
    documents = asked.get("documents")
    if not isinstance(documents, list):
        raise bad("documents is not a list")
    found: list[Excerpt] = []
    room = MOST
    for document in documents:
        found.append(_wanted(document))
        room -= max(1, len(found[-1].sentences))
        if room < 0:
            raise DocnmtError(f"more than {MOST:,} sentences\n  Translate them with docnmt translate.")
    model = {"model": text_of(asked, "model")[:LONGEST]} if "model" in asked else {}
    return {**model, "context": flag_of(asked, "context", True), "glossary": glossary_of(asked)}, found


def write_tmx(_: Any, body: bytes, languages: dict[str, tuple[str, str]]) -> bytes:
    """A translation memory of `pairs`, in the languages of `model`."""
    asked = json_object(body)
    model, pairs = text_of(asked, "model", next(iter(languages))), asked.get("pairs")
    if model not in languages:
        raise DocnmtError("there is no such model\n  Reload the page.")
    if not isinstance(pairs, list):
        raise bad("pairs is not a list")
    rows = []
    for pair in pairs:
        row = list_of(pair, "pair")
        if len(row) != 3:
            raise bad("a pair must be three texts: the name of a document, a sentence, its translation")
        rows.append((row[0], row[1], row[2]))
    return tmx(rows, languages[model])


def list_of(given: object, name: str) -> list[str]:
    if not isinstance(given, list):
        raise bad(f"{name} is not a list")
    return [checked(each, name) for each in given]


def _wanted(asked: Any) -> Excerpt:
    if not isinstance(asked, dict):
        raise bad("a document is not an object")
    sentences = list_of(asked.get("sentences"), "sentences")
    places = range(len(sentences))
    wanted = asked.get("wanted", list(places))
    if not isinstance(wanted, list) or not all(type(place) is int and place in places for place in wanted):
        raise bad("wanted is not a list of sentence positions")
    return Excerpt.of_texts(sentences, sorted(set(wanted)))


# ---- Documents of any length through the queue: asked for in portions ----

LENGTH = 64  # sentences asked for at a time: a long text must not fill the queue or run into the time limit
ABREAST = 4  # portions at a time
PATIENCE = 5  # times to wait for a place in the queue
ALTERNATIVES = 5  # translations of a sentence to choose from

Found = tuple[int, int, list[Translated]]  # document, place, translations


def portions(document: Excerpt, in_order: bool) -> Iterator[Excerpt]:
    """A system that needs its own translations of the sentences before gets all at once."""
    places = list(document.wanted)
    length = len(places) if in_order else LENGTH
    for start in range(0, len(places), length or 1):
        yield replace(document, wanted={place: document.wanted[place] for place in places[start : start + length]})


async def translations(pool: Pool, documents: Sequence[Excerpt], mode: Mode) -> AsyncGenerator[Found, None]:
    """The wanted sentences of all documents as they get done."""
    in_order = mode.context and pool.models[mode.model].in_order
    waiting = ((n, portion) for n, document in enumerate(documents) for portion in portions(document, in_order))
    done: asyncio.Queue[Found | Exception | None] = asyncio.Queue()

    async def work() -> None:
        try:
            for number, portion in waiting:
                async for place, found in _patiently(pool, portion, mode):
                    done.put_nowait((number, place, found))
            done.put_nowait(None)
        except Exception as error:
            done.put_nowait(error)

    workers = [asyncio.create_task(work()) for _ in range(ABREAST)]
    at_work = len(workers)
    try:
        while at_work:
            found = await done.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                at_work -= 1
            else:
                yield found
                await asyncio.sleep(0)  # many may be done at once: others get their turn
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _patiently(pool: Pool, document: Excerpt, mode: Mode) -> AsyncGenerator[tuple[int, list[Translated]], None]:
    """Tries again later if the queue is full: a long text must not fail half way because of that."""
    for trial in range(PATIENCE + 1):
        try:
            async with aclosing(pool.translate(document, mode)) as results:
                async for each in results:
                    yield each
            return
        except Overloaded as error:  # before the first answer: the queue takes all sentences or none
            if trial == PATIENCE:
                raise
            await asyncio.sleep(error.retry_after)
