"""The page "Translate": its files, and what its script asks for, under /page/."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from docnmt.base.errors import DocnmtError
from docnmt.decoding.terms import Glossary
from docnmt.serving.api import FILES, Answer, while_connected
from docnmt.serving.explain import aligned, explain
from docnmt.serving.models import ModelInfo
from docnmt.serving.pool import OutOfMemory, Overloaded, Pool, TimedOut, WorkerDied
from docnmt.serving.questions import json_body, list_of, read_documents, write_tmx
from docnmt.serving.requests import (
    Parameters,
    bad,
    flag_of,
    glossary_of,
    name_of,
    read_parameters,
    text_of,
    upload_of,
)
from docnmt.serving.stretches import Wanted, translations
from docnmt.serving.uploads import read_upload, write_upload
from docnmt.serving.web import in_sentences

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
SMALL = 8 * 1024  # bytes of JSON that are read at once; more go to a process
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
                "demo": "demo" in Path(info.folder).parts,  # `docnmt demo` writes it to such a folder
            }
            for info in self.pool.models.values()
        ]
        return Answer({"models": models, "default": self.pool.default, "kinds": list(KIND_NAMES)})

    # ---- files in and out; pasted text is one ----

    async def sentences(self, request: Request) -> Response:
        """A file cut into sentences."""
        asked = await read_parameters(request)
        file, model = upload_of(asked), self._model(asked)
        with self._room():
            work = self.pool.call(read_upload, await file.read(), file.filename, model=model.name, long=True)
            return Response(await while_connected(request, work), media_type=Answer.media_type)

    async def file(self, request: Request) -> Response:
        """The file once more, with the translations that stand on the page; null for what stays as it is."""
        asked = await read_parameters(request)
        file, model, texts = upload_of(asked), self._model(asked), text_of(asked, "texts")
        with self._room():
            work = self.pool.call(write_upload, await file.read(), file.filename, texts, model=model.name, long=True)
            return Response(await while_connected(request, work), media_type="application/octet-stream")

    async def tmx(self, request: Request) -> Response:
        languages = {info.name: (info.source_language, info.target_language) for info in self.pool.models.values()}
        with self._room():
            work = self.pool.call(write_tmx, await json_body(request), languages, long=True)
            return Response(await while_connected(request, work), media_type="application/octet-stream")

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
        body = await json_body(request)
        if len(body) < SMALL:
            asked, documents = read_documents(None, body)
        else:
            asked, documents = await while_connected(request, self.pool.call(read_documents, body))
        model, context, glossary = self._model(asked), flag_of(asked, "context", True), glossary_of(asked)
        return StreamingResponse(self._lines(documents, model, context, glossary), media_type="application/x-ndjson")

    async def _lines(
        self, documents: list[Wanted], model: ModelInfo, context: bool, glossary: Glossary | None
    ) -> AsyncIterator[str]:
        try:
            async with aclosing(translations(self.pool, documents, model, context, glossary)) as results:
                async for document, position, result in results:
                    texts = list(dict.fromkeys(text.strip() for text in result.texts))
                    yield json.dumps({"document": document, "sentence": position, "texts": texts}) + "\n"
        except (DocnmtError, OutOfMemory, Overloaded, TimedOut, WorkerDied) as error:
            yield _last_line(in_sentences(str(error)))  # the status is out already
        except Exception:
            yield _last_line("Something went wrong in the server. Its log says what.")
            raise

    # ---- words ----

    async def explanation(self, request: Request) -> Response:
        asked = await read_parameters(request)
        source, target, position = list_of(asked, "source"), list_of(asked, "target"), asked.get("position")
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


def _check_lengths(*texts: str) -> None:
    if any(len(text) > LONGEST for text in texts):
        raise bad(f"a sentence has more than {LONGEST:,} characters")
