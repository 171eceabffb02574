"""The page "Translate": its files, and what its script asks for, under /page/."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from docnmt.base.errors import DocnmtError
from docnmt.corpus.memories import tmx
from docnmt.decoding.results import TranslatedSentence
from docnmt.documents.segment import KINDS
from docnmt.serving.api import FILES, Answer, while_connected
from docnmt.serving.explain import aligned, explain
from docnmt.serving.pool import Overloaded, Pool, TimedOut, WorkerDied
from docnmt.serving.requests import Parameters, bad, flag_of, name_of, read_parameters, text_of, upload_of
from docnmt.serving.uploads import read_upload, write_upload
from docnmt.serving.worker import ModelInfo

# ---- Documents of any length through the queue ----

# Documents of any length through the queue: asked for in stretches, each with the context it needs.

LENGTH = 64  # sentences asked for at a time: a long text must not fill the queue, nor run out of time
ABREAST = 4  # stretches at a time
PATIENCE = 5  # times to wait for a place in the queue
ALTERNATIVES = 5  # translations of a sentence to choose from

Found = tuple[int, int, TranslatedSentence]  # document, position, result


@dataclass(frozen=True)
class Stretch:
    first: int  # its place in the document
    sentences: Sequence[str]  # with the context of those that are wanted
    wanted: frozenset[int]  # places in `sentences`


@dataclass(frozen=True)
class Wanted:
    """A document, and the places in it to translate; the others are context."""

    sentences: Sequence[str]
    places: Sequence[int]  # in order

    def stretches(self, model: ModelInfo, context: bool) -> Iterator[Stretch]:
        if context and model.in_order:  # it needs its own translations of the sentences before
            if self.places:
                yield Stretch(0, self.sentences, frozenset(self.places))
            return
        before, after = (model.context.previous, model.context.following) if context else (0, 0)
        for start in range(0, len(self.places), LENGTH):
            places = self.places[start : start + LENGTH]
            first = max(0, places[0] - before)
            sentences = self.sentences[first : places[-1] + 1 + after]
            yield Stretch(first, sentences, frozenset(place - first for place in places))


async def translations(
    pool: Pool, documents: Sequence[Wanted], model: ModelInfo, context: bool
) -> AsyncGenerator[Found, None]:
    """The wanted sentences of all documents as they get done."""
    waiting = ((n, stretch) for n, document in enumerate(documents) for stretch in document.stretches(model, context))
    done: asyncio.Queue[Found | Exception | None] = asyncio.Queue()

    async def work() -> None:
        try:
            for number, stretch in waiting:
                async for place, result in _patiently(pool, stretch.sentences, model, context):
                    if place in stretch.wanted:
                        done.put_nowait((number, stretch.first + place, result))
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
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _patiently(
    pool: Pool, sentences: Sequence[str], model: ModelInfo, context: bool
) -> AsyncGenerator[tuple[int, TranslatedSentence], None]:
    """Where the queue is full, once more in a while: a long text must not fail half way for that."""
    for trial in range(PATIENCE + 1):
        answers = pool.translate(sentences, model=model.name, context=context, nbest=ALTERNATIVES)
        try:
            async with aclosing(cast(AsyncGenerator[tuple[int, TranslatedSentence], None], answers)) as results:
                async for each in results:
                    yield each
            return
        except Overloaded as error:  # before the first answer: all sentences are taken, or none
            if trial == PATIENCE:
                raise
            await asyncio.sleep(error.retry_after)


STATIC = Path(__file__).parent / "static"
LONGEST = 5_000  # characters of a sentence to be explained; what is cut into sentences has fewer


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
        """Browsers ask each time if there is a newer one: scripts of two versions would not work together."""
        response = super().file_response(*arguments, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


class Page:
    def __init__(self, pool: Pool):
        self.pool = pool
        self._files = 0

    async def html(self, request: Request) -> Response:
        return FileResponse(STATIC / "translate.html", headers={"Cache-Control": "no-cache"})

    async def models(self, request: Request) -> Response:
        models = [
            {
                "name": info.name,
                "languages": [info.source_language, info.target_language],
                "names": [name_of(info.source_language), name_of(info.target_language)],
                "context": [info.context.previous, info.context.following] if info.uses_context else None,
            }
            for info in self.pool.models.values()
        ]
        return Answer({"models": models, "default": self.pool.default, "endings": list(KINDS)})

    # ---- files in and out; pasted text is one ----

    async def sentences(self, request: Request) -> Response:
        """A file cut into sentences."""
        asked = await read_parameters(request)
        file, model = upload_of(asked), self._model(asked)
        with self._room():
            work = self.pool.call(read_upload, await file.read(), file.filename, model=model.name, long=True)
            return Answer(await while_connected(request, work))

    async def file(self, request: Request) -> Response:
        """The file once more, with the translations that stand on the page; null for what stays as it is."""
        asked = await read_parameters(request)
        file, model = upload_of(asked), self._model(asked)
        try:
            given = json.loads(text_of(asked, "texts"))
        except (ValueError, RecursionError):
            raise bad("texts is not JSON") from None
        texts = texts_of({"texts": given}, "texts", nothing=True)
        with self._room():
            work = self.pool.call(write_upload, await file.read(), file.filename, texts, model=model.name, long=True)
            return Response(await while_connected(request, work), media_type="application/octet-stream")

    async def tmx(self, request: Request) -> Response:
        asked = await read_parameters(request)
        model, pairs = self._model(asked), asked.get("pairs")
        if not isinstance(pairs, list):
            raise bad("pairs is not a list")
        rows = []
        for pair in pairs:
            row = texts_of({"pair": pair}, "pair")
            if len(row) != 3:
                raise bad("a pair is not three texts: a document's name, a sentence, its translation")
            rows.append((row[0], row[1], row[2]))
        written = tmx(rows, (model.source_language, model.target_language))
        return Response(written, media_type="application/octet-stream")

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Not too many files are in memory at a time."""
        if self._files >= FILES:
            raise HTTPException(429, "Other files wait already. Try again later.", {"Retry-After": "10"})
        self._files += 1
        try:
            yield
        finally:
            self._files -= 1

    # ---- translations ----

    async def translate(self, request: Request) -> Response:
        """Lines of JSON, a sentence each, as they get done."""
        asked = await read_parameters(request)
        model, context, documents = self._model(asked), flag_of(asked, "context", True), asked.get("documents")
        if not isinstance(documents, list):
            raise bad("documents is not a list")
        wanted = [_wanted(document) for document in documents]
        return StreamingResponse(self._lines(wanted, model, context), media_type="application/x-ndjson")

    async def _lines(self, documents: list[Wanted], model: ModelInfo, context: bool) -> AsyncIterator[str]:
        try:
            async with aclosing(translations(self.pool, documents, model, context)) as results:
                async for document, position, result in results:
                    texts = list(dict.fromkeys(text.strip() for text in result.texts))
                    yield json.dumps({"document": document, "sentence": position, "texts": texts}) + "\n"
        except (DocnmtError, Overloaded, TimedOut, WorkerDied) as error:
            yield _last_line(str(error))  # the status is out already
        except Exception:
            yield _last_line("Something went wrong in the server. Its log says what.")
            raise

    # ---- words ----

    async def explanation(self, request: Request) -> Response:
        asked = await read_parameters(request)
        source, target, position = texts_of(asked, "source"), texts_of(asked, "target"), asked.get("position")
        if len(source) != len(target):
            raise bad("source and target have not as many sentences")
        if type(position) is not int or not 0 <= position < len(source) or not source[position]:
            raise bad("position is not that of a sentence")
        _check_lengths(*source, *target)
        work = self.pool.call(explain, source, target, position, model=self._model(asked).name)
        return Answer(await while_connected(request, work))

    async def alignment(self, request: Request) -> Response:
        asked = await read_parameters(request)
        pair = text_of(asked, "source"), text_of(asked, "target")
        _check_lengths(*pair)
        work = self.pool.call(aligned, *pair, model=self._model(asked).name)
        return Answer(await while_connected(request, work))

    def _model(self, asked: Parameters) -> ModelInfo:
        name = text_of(asked, "model", self.pool.default)
        if name not in self.pool.models:
            raise bad("there is no such model. Load the page again")
        return self.pool.models[name]


def _last_line(error: str) -> str:
    return json.dumps({"error": error}) + "\n"


# ---- what the script sends ----


def texts_of(asked: Parameters, name: str, nothing: bool = False) -> list[Any]:
    """A list of texts; where `nothing` is allowed, some may be null."""
    given = asked.get(name)
    if not isinstance(given, list):
        raise bad(f"{name} is not a list")
    return [None if nothing and each is None else text_of({name: each}, name) for each in given]


def _wanted(asked: Any) -> Wanted:
    if not isinstance(asked, dict):
        raise bad("a document is not an object")
    sentences = texts_of(asked, "sentences")
    places = range(len(sentences))
    wanted = asked.get("wanted", list(places))
    if not isinstance(wanted, list) or not all(type(place) is int and place in places for place in wanted):
        raise bad("wanted is not a list of places of sentences")
    return Wanted(sentences, sorted(set(wanted)))


def _check_lengths(*texts: str) -> None:
    if any(len(text) > LONGEST for text in texts):
        raise bad(f"a sentence has more than {LONGEST:,} characters")
