"""The API as OpenAPI describes it. A test asks a server for everything in here and compares its answers."""

from __future__ import annotations

from typing import Any

from docnmt.serving.texts import ENDINGS
from docnmt.serving.web import Settings
from docnmt.version import __version__

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_TEXT: Schema = {"type": "string", "pattern": "^[^\\u0000]*$"}
_FORM = "application/x-www-form-urlencoded"
_KEY: Schema = {**_TEXT, "type": ["string", "null"], "description": "where the server asks for one"}
_STATUS_TEXTS = {
    400: "the request cannot be understood, or asks for what is not served",
    403: "an API key is missing or wrong",
    404: "not there (any more)",
    408: "the request did not arrive in time",
    413: "too large",
    415: "neither JSON nor a form",
    429: "too much to do: try again after Retry-After seconds",
    500: "a fault of the server",
    503: "it took longer than the time limit, or no model process is up",
}


def description(settings: Settings, models: list[str]) -> Schema:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "docnmt",
            "version": __version__,
            "description": "Document-level translation, in the dialect of LibreTranslate. A list of strings is one "
            "document: its sentences see each other as context.",
        },
        "paths": {
            "/translate": {"post": _translate(settings, models)},
            "/detect": {"post": _detect()},
            "/languages": {"get": _operation("The languages and what they are translated into", _ref("Languages"))},
            "/translate_file": {"post": _translate_file(models)},
            "/download_file/{key}": {"get": _download_file()},
            "/frontend/settings": {"get": _operation("What a page needs to know", _ref("Settings"))},
            "/health": {"get": _operation("Whether the server can work", _ref("Health"), {503: _ref("Health")})},
        },
        "components": {"schemas": _schemas()},
    }


def _translate(settings: Settings, models: list[str]) -> Schema:
    text: Schema = {**_TEXT, "maxLength": settings.characters}
    texts: Schema = {"type": "array", "items": text, "maxItems": settings.strings}
    asked = _object(
        required=("q", "source", "target"),
        q={
            "oneOf": [text, texts],
            "description": f"A text, or a list of texts that are one document; {settings.characters:,} characters "
            "in all.",
        },
        source={**_STRING, "description": "the code of a language, or auto"},
        target={**_STRING, "description": "the code of a language"},
        format={"enum": list(ENDINGS), "default": "text"},
        alternatives={
            "type": "integer",
            "minimum": 0,
            "maximum": settings.alternatives,
            "default": 0,
            "description": "how many other translations to give at most",
        },
        context={"type": "boolean", "default": True, "description": "false: each sentence by itself"},
        model={"enum": models, "description": "where several translate the same languages"},
        api_key=_KEY,
    )
    errors = (400, 403, 408, 413, 415, 429, 500, 503)
    body = _json_or_form(asked)
    some = {"q": {"oneOf": [text, {**texts, "minItems": 1}], "description": "several q are a list"}}
    body["content"][_FORM]["schema"] = {**asked, "properties": asked["properties"] | some}  # none cannot be written
    return _operation("Translate", _ref("Translation"), errors=errors, body=body)


def _detect() -> Schema:
    asked = _object(required=("q",), q=_TEXT, api_key=_KEY)
    errors = (400, 403, 408, 413, 415, 500)
    told = "Which of the served languages a text is in"
    return _operation(told, {"type": "array", "items": _ref("Detected")}, errors=errors, body=_json_or_form(asked))


def _translate_file(models: list[str]) -> Schema:
    asked = _object(
        required=("file", "source", "target"),
        file={"type": "string", "format": "binary", "description": "its name's ending tells what it is"},
        source=_STRING,
        target=_STRING,
        context={"type": "boolean", "default": True},
        model={"enum": models},
        api_key=_TEXT,
    )
    body = {"required": True, "content": {"multipart/form-data": {"schema": asked}}}
    errors = (400, 403, 408, 413, 415, 429, 500, 503)
    return _operation("Translate a file", _ref("File"), errors=errors, body=body)


def _download_file() -> Schema:
    operation = _operation("Fetch a translated file", {}, errors=(404, 500))
    operation["responses"]["200"]["content"] = {"application/octet-stream": {}}
    operation["parameters"] = [{"name": "key", "in": "path", "required": True, "schema": _STRING}]
    return operation


def _schemas() -> Schema:
    texts: Schema = {"type": "array", "items": _STRING}
    language = _object(required=("code", "name"), code=_STRING, name=_STRING)
    return {
        "Error": _object(required=("error",), error=_STRING),
        "Detected": _object(
            required=("confidence", "language"),
            confidence={"type": "number", "minimum": 0, "maximum": 100, "description": "percent"},
            language=_STRING,
        ),
        "Translation": _object(
            required=("translatedText",),
            translatedText={"oneOf": [_STRING, texts], "description": "a list for a list"},
            detectedLanguage={"oneOf": [_ref("Detected"), {"type": "array", "items": _ref("Detected")}]},
            alternatives={"anyOf": [texts, {"type": "array", "items": texts}]},
        ),
        "Languages": {
            "type": "array",
            "items": _object(required=("code", "name", "targets"), code=_STRING, name=_STRING, targets=texts),
        },
        "File": _object(required=("translatedFileUrl",), translatedFileUrl={**_STRING, "format": "uri"}),
        "Health": _object(required=("status",), status=_STRING),
        "Settings": _object(
            required=("apiKeys", "charLimit", "filesTranslation", "keyRequired", "language", "supportedFilesFormat"),
            apiKeys={"type": "boolean"},
            charLimit={"type": "integer"},
            filesTranslation={"type": "boolean"},
            frontendTimeout={"type": "integer"},
            keyRequired={"type": "boolean"},
            language=_object(required=("source", "target"), source=language, target=language),
            suggestions={"type": "boolean"},
            supportedFilesFormat=texts,
        ),
    }


def _operation(
    summary: str,
    answer: Schema,
    others: dict[int, Schema] | None = None,
    *,
    errors: tuple[int, ...] = (500,),
    body: Schema | None = None,
) -> Schema:
    """`others` are answers to other statuses that are no errors in form."""
    answers = {200: answer, **{status: _ref("Error") for status in errors}, **(others or {})}
    responses: Schema = {}
    for status, schema in answers.items():
        told = _STATUS_TEXTS.get(status, "done")
        responses[str(status)] = {"description": told, "content": {"application/json": {"schema": schema}}}
        if status in (429, 503) and schema == _ref("Error"):
            responses[str(status)]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return {"summary": summary, "responses": responses, **({"requestBody": body} if body else {})}


def _json_or_form(schema: Schema) -> Schema:
    kinds = ("application/json", _FORM)
    return {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}


def _object(*, required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
