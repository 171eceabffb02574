"""What a request asks for, as JSON or as a form, in the dialect of LibreTranslate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from docnmt.serving.settings import Settings
from docnmt.serving.texts import ENDINGS

AUTO = "auto"
FIELDS = 2_000  # of a form
LARGEST_FIELD = 64 << 20  # bytes; the body as a whole has a lower limit
_FLAGS = {"true": True, "false": False}

Parameters = Mapping[str, Any]


def bad(message: str) -> HTTPException:
    return HTTPException(400, f"Invalid request: {message}")


async def read_parameters(request: Request) -> Parameters:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return _from_json(await request.body())
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data", ""):
        raise HTTPException(415, f"Invalid request: {kind} is neither JSON nor a form")
    fields: list[tuple[str, Any]] = _fields(request.scope["query_string"])
    if kind == "application/x-www-form-urlencoded":
        fields += _fields(await request.body())
    elif kind:
        fields += await _multipart(request)
    found: dict[str, Any] = {}
    for name, value in fields:
        if name == "q" and "q" in found:  # several are a list
            found["q"] = [*(found["q"] if isinstance(found["q"], list) else [found["q"]]), value]
        else:
            found[name] = value
    return {name: _typed(name, value) for name, value in found.items()}


def _fields(encoded: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except ValueError:  # not UTF-8, or too many
        raise bad("the form cannot be read") from None


async def _multipart(request: Request) -> list[tuple[str, Any]]:
    try:
        return (await request.form(max_files=1, max_fields=FIELDS, max_part_size=LARGEST_FIELD)).multi_items()
    except (ValueError, LookupError):  # a charset that does not exist, parts that are none
        raise bad("the form cannot be read") from None


def _from_json(body: bytes) -> Parameters:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise bad("the body is not JSON") from None
    if not isinstance(found, dict):
        raise bad("the body is not a JSON object")
    return found


def _typed(name: str, value: Any) -> Any:
    """Forms have nothing but strings."""
    if name == "context" and isinstance(value, str):
        return _FLAGS.get(value.lower(), value)
    if name == "alternatives" and isinstance(value, str) and value.isdecimal():
        return int(value[:9])
    return value


def text_of(parameters: Parameters, name: str, default: str | None = None) -> str:
    value = parameters.get(name, default)
    if value is None:
        raise bad(f"missing {name} parameter")
    if not isinstance(value, str):
        raise bad(f"{name} is not a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad(f"{name} has half a character, a lone surrogate") from None
    if "\0" in value:
        raise bad(f"{name} has a zero character")
    return value


def flag_of(parameters: Parameters, name: str, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise bad(f"{name} is neither true nor false")
    return value


def upload_of(parameters: Parameters) -> UploadFile:
    file = parameters.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise bad("missing file parameter")
    return file


@dataclass(frozen=True)
class TextsAsked:
    """What /translate is to translate, and how."""

    texts: list[str]
    is_list: bool
    format: str
    alternatives: int
    context: bool

    @classmethod
    def of(cls, parameters: Parameters, settings: Settings) -> TextsAsked:
        q = parameters.get("q")
        if isinstance(q, list) and len(q) > settings.strings:
            raise bad(f"request ({len(q)}) exceeds batch limit ({settings.strings})")
        texts = [text_of({"q": each}, "q") for each in q] if isinstance(q, list) else [text_of(parameters, "q")]
        length = sum(map(len, texts))
        if length > settings.characters:
            raise bad(f"request ({length}) exceeds text limit ({settings.characters})")
        format = text_of(parameters, "format", "text")
        if format not in ENDINGS:
            raise bad(f"{format} format is not supported")
        alternatives = parameters.get("alternatives", 0)
        if type(alternatives) not in (int, float) or alternatives not in range(settings.alternatives + 1):
            raise bad(f"alternatives is not a number from 0 to {settings.alternatives}")
        return cls(texts, isinstance(q, list), format, int(alternatives), flag_of(parameters, "context", True))
