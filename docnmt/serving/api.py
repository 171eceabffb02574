"""The API, compatible with LibreTranslate: requests and answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from docnmt.base import __version__
from docnmt.decoding.excerpts import Excerpt, whole
from docnmt.decoding.files import best_translations
from docnmt.decoding.translator import Translator
from docnmt.documents.segment import KINDS, PACKED, is_document, kind_of
from docnmt.documents.translate import FileSentences, Sentence, Translated
from docnmt.serving.pool import Pool, options_of
from docnmt.serving.queue import Mode
from docnmt.serving.requests import (
    AUTO,
    ENDINGS,
    Detector,
    FileAsked,
    Languages,
    Parameters,
    TextsAsked,
    bad,
    name_of,
    read_parameters,
    require,
    text_of,
    upload_of,
)
from docnmt.serving.uploads import Downloads, FewFiles, encoding_told, file_name
from docnmt.serving.web import GONE, Keys, Settings
from docnmt.serving.worker import ModelInfo

T = TypeVar("T")
A = TypeVar("A", bound=FileAsked)
SHORT = 2_000  # characters; longer texts are cut and joined in a thread, as they would keep other requests waiting

Detected = dict[str, object]


class Answer(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class API:
    def __init__(self, pool: Pool, settings: Settings, detector: Detector, downloads: Downloads):
        self.pool, self.settings, self.detector, self.downloads = pool, settings, detector, downloads
        self.languages = Languages(pool.models.values())
        self.keys = Keys(settings.keys)
        self.files = FewFiles()

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.list_languages, methods=["GET"]),
            Route("/translate_file", self.translate_file, methods=["POST"]),
            Route("/download_file/{key}", self.download_file, methods=["GET"]),
            Route("/frontend/settings", self.frontend_settings, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/docs", self.docs, methods=["GET"]),
        ]

    async def translate(self, request: Request) -> Response:
        parameters = await self._read(request)
        asked = await self._asked(TextsAsked, parameters)
        model, detected = await self._model(parameters, " ".join(asked.texts))
        found = await while_connected(request, translate_texts(self.pool, model, asked))
        answers: dict[str, list[Any]] = {"translatedText": [ranked[0] for ranked, _ in found]}
        if detected:
            answers["detectedLanguage"] = [detected] * len(found)
        if asked.alternatives:
            answers["alternatives"] = [ranked[1:] for ranked, _ in found]
        if any(unmet for _, unmet in found):
            answers["unmetTerms"] = [unmet for _, unmet in found]
        return Answer(answers if asked.is_list else {name: values[0] for name, values in answers.items()})

    async def detect(self, request: Request) -> Response:
        text = text_of(await self._read(request), "q")
        found = await asyncio.to_thread(self.detector.languages, text)
        return Answer([_detected(*each) for each in found])

    async def list_languages(self, request: Request) -> Response:
        return Answer(self.languages.listed())

    async def translate_file(self, request: Request) -> Response:
        parameters = await self._read(request)
        require(parameters, "file", "source", "target")
        file = upload_of(parameters)
        path = PurePosixPath(file_name(file.filename or ""))
        if not is_document(path.name):
            raise bad(f"file format not supported. Supported are {', '.join(KINDS)}.")
        how = await self._asked(FileAsked, parameters)
        with self.files.one_more():
            data = await file.read()
            await file.close()
            text = "" if kind_of(path.name) in PACKED else data[:10_000].decode("utf-8", "ignore")
            model, _ = await self._model(parameters, text)
            mode = Mode(model.name, how.context, glossary=how.glossary)
            work = self.pool.call(translate_upload, data, path.name, how, mode, model=model.name, long=True)
            translated, told = await while_connected(request, work)
        name = f"{path.stem}.{model.target_language}{path.suffix}"
        key = await asyncio.to_thread(self.downloads.add, translated, name)
        return Answer({"translatedFileUrl": str(request.url_for("download_file", key=key)), **told})

    async def download_file(self, request: Request) -> Response:
        found = await asyncio.to_thread(self.downloads.get, request.path_params["key"])
        if found is None:
            raise HTTPException(404, "There is no such file, or it has been deleted.")
        headers = {"Cache-Control": "no-store"}
        return FileResponse(found.path, filename=found.name, media_type="application/octet-stream", headers=headers)

    async def frontend_settings(self, request: Request) -> Response:
        default = self.pool.models[self.pool.default]
        sides = {"source": default.source_language, "target": default.target_language}
        return Answer(
            {
                "apiKeys": bool(self.keys),
                "charLimit": self.settings.characters,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": bool(self.keys),
                "language": {side: {"code": code, "name": name_of(code)} for side, code in sides.items()},
                "suggestions": False,
                "supportedFilesFormat": list(KINDS),
            }
        )

    async def health(self, request: Request) -> Response:
        up = self.pool.alive > 0
        return Answer({"status": "ok" if up else "no model process is up"}, 200 if up else 503)

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.pool.metrics.text(), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return Answer(description(self.settings, list(self.pool.models)))

    async def docs(self, request: Request) -> Response:
        return HTMLResponse(as_page(description(self.settings, list(self.pool.models))))

    async def _read(self, request: Request) -> Parameters:
        parameters = await read_parameters(request)
        given = parameters.get("api_key")
        self.keys.check(request, "" if given is None else text_of(parameters, "api_key"))
        return parameters

    async def _asked(self, kind: type[A], parameters: Parameters) -> A:
        """Read in a thread if there is a large glossary."""
        glossary = parameters.get("glossary")
        if isinstance(glossary, dict) and len(glossary) > 100:
            return await asyncio.to_thread(kind.of, parameters, self.settings)
        return kind.of(parameters, self.settings)

    async def _model(self, parameters: Parameters, text: str) -> tuple[ModelInfo, Detected | None]:
        """The model for the languages asked for, and the detected language if that was asked for."""
        source, target = text_of(parameters, "source"), self.languages.find(text_of(parameters, "target"))
        languages = self.languages
        if "model" in parameters:
            info = self.pool.models.get(text_of(parameters, "model"))
            if info is None:
                raise bad(f"unknown model. Known are {', '.join(self.pool.models)}.")
            languages = Languages([info])
        if source != AUTO:
            return languages.model(self.languages.find(source), target), None
        candidates = languages.sources_of(target) or languages.sources
        if len(candidates) > 1 and not text:
            raise bad("the language cannot be detected. Give source.")
        language, sure = await asyncio.to_thread(self.detector.best_of, text, candidates)
        return languages.model(language, target), _detected(language, sure)


def _detected(language: str, probability: float) -> Detected:
    return {"confidence": round(100 * probability, 1), "language": language}


# ---- Strings of a request as one document: cut into sentences as files are ----


def read_texts(texts: Sequence[str], format: str, languages: tuple[str, str]) -> list[FileSentences]:
    return [FileSentences(text.encode(), f"q{ENDINGS[format]}", languages) for text in texts]


def as_document(texts: Sequence[FileSentences], previous: Sequence[FileSentences]) -> Excerpt:
    sentences = [sentence for text in texts for sentence in text.sentences]
    return whole(sentences, [sentence for text in previous for sentence in text.texts])


def write_ranked(texts: Sequence[FileSentences], found: Mapping[int, Sequence[Translated]]) -> list[list[str]]:
    """For each string its translations, the best first, no two the same."""
    ranks: list[list[str]] = []
    for rank in range(max(map(len, found.values()), default=1)):
        best: Iterator[Translated] = iter([found[n][min(rank, len(found[n]) - 1)] for n in range(len(found))])
        ranks.append([text.write(best).decode() for text in texts])
    return [list(dict.fromkeys(each)) for each in zip(*ranks, strict=True)]


Unmet = list[dict[str, str]]


def unmet_terms(sentences: Iterable[tuple[Sentence, Translated]]) -> Unmet:
    """Terms of the glossary that the translations lack."""
    return [
        {"term": term, "translation": wanted, "sentence": sentence.text}
        for sentence, translated in sentences
        for term, wanted in translated.unmet
    ]


async def translate_texts(pool: Pool, info: ModelInfo, asked: TextsAsked) -> list[tuple[list[str], Unmet]]:
    """For each string its translations, and the terms that the best one lacks."""
    texts = await _aside(asked, read_texts, asked.texts, asked.format, info.languages)
    previous = await _aside(asked, read_texts, asked.previous, asked.format, info.languages)
    mode = Mode(info.name, asked.context, 1 + asked.alternatives, asked.glossary)
    found = {place: ranked async for place, ranked in pool.translate(as_document(texts, previous), mode)}
    ranked = await _aside(asked, write_ranked, texts, found)
    best = (found[place][0] for place in range(len(found)))
    unmet = [unmet_terms(zip(text.sentences, best, strict=False)) for text in texts]
    return list(zip(ranked, unmet, strict=True))


async def _aside(asked: TextsAsked, function: Any, *arguments: object) -> Any:
    """Runs a function in a thread, unless the text is so short that a thread costs more."""
    if sum(map(len, asked.texts)) + sum(map(len, asked.previous)) < SHORT:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def translate_upload(
    translator: Translator, data: bytes, name: str, how: FileAsked, mode: Mode
) -> tuple[bytes, dict[str, Any]]:
    """The translated file, and what there is to tell about it."""
    before = read_texts(how.previous, "text", translator.card.languages)
    said = [sentence for text in before for sentence in text.texts]
    file = FileSentences(data, name, translator.card.languages, how.encoding)
    done = list(best_translations(translator, options_of(translator, mode), file, said))
    unmet = unmet_terms(zip(file.sentences, done, strict=True))
    return file.write(iter(done)), {**({"unmetTerms": unmet} if unmet else {}), **encoding_told(file.encoding)}


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Gives up when the client disconnects."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(*GONE)
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# ---- The API as OpenAPI describes it, with this server's limits filled in, and as a page for people ----

# A test asks a server for everything in the description and compares its answers.

Schema = dict[str, Any]
_FILE = Path(__file__).parent / "static" / "openapi.json"


def description(settings: Settings, models: list[str]) -> Schema:
    found: Schema = json.loads(_FILE.read_text(encoding="utf-8"))
    found["info"]["version"] = __version__
    schemas = found["components"]["schemas"]
    schemas["LongText"]["maxLength"] = settings.characters
    schemas["LongTexts"]["maxItems"] = settings.strings
    schemas["Alternatives"]["maximum"] = settings.alternatives
    schemas["Model"]["enum"] = models
    return found


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The API of docnmt</title>
<link rel="icon" href="static/icon.svg">
<link rel="stylesheet" href="static/style.css">
<link rel="stylesheet" href="static/docs.css">
</head>
<body>
<header class="top"><div><span class="brand">docnmt</span> <a href="./">Translate</a></div></header>
<main>
<h1>The API</h1>
{main}
</main>
</body>
</html>
"""


def as_page(described: Schema) -> str:
    """All of the description on one plain page."""
    info = described["info"]
    parts = [
        f"<p>{escape(info['description'])}</p>",
        f'<p class="dim">Version {escape(info["version"])}. For programs: <a href="openapi.json">openapi.json</a>. '
        'Errors are returned as <code>{"error": "..."}</code>.</p>',
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation, described)
    return _PAGE.format(main="\n".join(parts))


def _operation(name: str, operation: Schema, described: Schema) -> Iterator[str]:
    yield f"<section><h2><code>{escape(name)}</code></h2><p>{escape(operation['description'])}</p>"
    content = operation.get("requestBody", {}).get("content", {})
    for kind, body in list(content.items())[:1]:
        others = f", or as {', '.join(list(content)[1:])}" if len(content) > 1 else ""
        yield f"<h3>Parameters</h3><p>As {escape(kind + others)}:</p>"
        yield _table(body["schema"], described)
    answer = operation["responses"]["200"]["content"].get("application/json")
    if answer:
        schema = _resolved(answer["schema"], described)
        many = schema.get("type") == "array"
        yield f"<h3>Answer</h3><p>{'A list of objects' if many else 'An object'} with</p>"
        yield _table(_resolved(schema["items"], described) if many else schema, described)
    told = [
        f"<li><b>{status}</b> {escape(_resolved(response, described)['description'])}</li>"
        for status, response in operation["responses"].items()
        if status != "200"
    ]
    yield f"<h3>Other answers</h3><ul>{''.join(told)}</ul></section>"


def _table(schema: Schema, described: Schema) -> str:
    rows = []
    for name, value in schema["properties"].items():
        needed = "" if name in schema["required"] else ' <span class="dim">(may be left out)</span>'
        told = escape(value.get("description", ""))
        rows.append(
            f"<tr><th scope=row><code>{escape(name)}</code>{needed}</th>"
            f"<td>{escape(_kind(value, described))}</td><td>{told}</td></tr>"
        )
    head = "<tr><th scope=col>name</th><th scope=col>what it is</th><th scope=col></th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _resolved(schema: Schema, described: Schema) -> Schema:
    found: Any = {**schema}
    for part in schema.get("allOf", []):
        found = _resolved(part, described) | found
    if "$ref" in schema:
        found = described
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
    return dict(found)


def _kind(value: Schema, described: Schema) -> str:
    """In words: what type, and within which limits."""
    schema = _resolved(value, described)
    for name in ("oneOf", "anyOf"):
        if name in schema:
            return ", or ".join(_kind(each, described) for each in schema[name])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = " or ".join(kind)
    if kind == "array":
        kind = f"list of ({_kind(schema['items'], described)})"
    limits = {"maxLength": "at most {:,} characters", "maxItems": "at most {:,}", "maximum": "at most {:,}"}
    told = [text.format(schema[name]) for name, text in limits.items() if name in schema]
    if "default" in schema:
        told.append(f"default {json.dumps(schema['default'])}")
    return ", ".join([kind, *told])
