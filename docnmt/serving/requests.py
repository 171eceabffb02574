"""Parsing requests, JSON or forms, compatible with LibreTranslate; languages and their detection."""

from __future__ import annotations

import asyncio
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from docnmt.base.errors import DocnmtError
from docnmt.data.subwords import Subwords
from docnmt.decoding.terms import Glossary
from docnmt.serving.web import FORM_BYTES, TEXT_ROUTES, Settings
from docnmt.serving.worker import ModelInfo, code

# ---- The languages of the models ----

NAMES: dict[str, str] = tomllib.loads(
    resources.files("docnmt.text").joinpath("language_names.toml").read_text(encoding="utf-8")
)


def name_of(language: str) -> str:
    """`Portuguese (BR)` for pt-BR; a code that is not known is its own name."""
    base, _, region = language.partition("-")
    name = NAMES.get(base.lower())
    return language if name is None else f"{name} ({region})" if region else name


class Languages:
    """The language pairs of the models."""

    def __init__(self, models: Iterable[ModelInfo]):
        self.models = list(models)
        self.sources = list(dict.fromkeys(info.source_language for info in self.models))
        self.all = list(dict.fromkeys([*self.sources, *(info.target_language for info in self.models)]))

    def targets(self, source: str) -> list[str]:
        return list(dict.fromkeys(info.target_language for info in self.models if info.source_language == source))

    def sources_of(self, target: str) -> list[str]:
        return [source for source in self.sources if target in self.targets(source)]

    def find(self, asked: str) -> str:
        """The code of a language that is served. Case does not matter, and a code with a region matches one without:
        pt-BR finds pt, pt finds pt-BR."""
        wanted = code(asked).lower()
        same = [known for known in self.all if known.lower() == wanted]
        akin = [known for known in self.all if _base(known) == wanted or known.lower() == _base(wanted)]
        for known in (*same, *akin):
            return known
        raise DocnmtError(f"{asked} is not supported\n  /languages lists what is")

    def model(self, source: str, target: str) -> ModelInfo:
        for info in self.models:
            if info.languages == (source, target):
                return info
        raise DocnmtError(
            f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} ({source})"
        )

    def listed(self) -> list[dict[str, object]]:
        """As LibreTranslate lists them."""
        return [{"code": each, "name": name_of(each), "targets": self.targets(each)} for each in self.all]


def _base(language: str) -> str:
    """Without the region; private codes have none."""
    language = language.lower()
    return language if language.startswith("x-") else language.partition("-")[0]


# ---- Language detection, by the subwords of the models ----

# A vocabulary lists the pieces of its language by frequency. A text in that language consists of few and frequent
# pieces; in another language it falls apart into letters and bytes. So the likelihood of a text is that of its pieces
# by Zipf's law. Only languages of the models are known, and two that share a vocabulary cannot be told apart.

LONGEST = 2_000  # characters that are looked at
_SURE = 20.0  # letters; a longer text is no stronger evidence


def subwords_of(models: Iterable[ModelInfo]) -> dict[str, Subwords]:
    """The subwords of each language, from the first model that has it."""
    found: dict[str, Subwords] = {}
    for info in models:
        for language, side in zip(info.languages, ("source", "target"), strict=True):
            if language not in found:
                found[language] = Subwords.load(Path(info.folder) / f"{side}.spm")
    return found


class Detector:
    def __init__(self, subwords: Mapping[str, Subwords]):
        self._subwords = subwords
        self._worst = max(map(len, subwords.values()), default=1)

    def languages(self, text: str) -> list[tuple[str, float]]:
        """All languages with their probabilities, the likeliest first."""
        text = " ".join(text[:LONGEST].split())
        letters = sum(map(str.isalpha, text))
        if not letters or not self._subwords:
            even = 1 / max(1, len(self._subwords))
            return [(language, even) for language in self._subwords]
        means = {language: self._log_likelihood(text, each) / letters for language, each in self._subwords.items()}
        best = max(means.values())
        weights = {language: math.exp(min(letters, _SURE) * (mean - best)) for language, mean in means.items()}
        total = sum(weights.values())
        return sorted(((language, weight / total) for language, weight in weights.items()), key=lambda each: -each[1])

    def best_of(self, text: str, languages: Sequence[str]) -> tuple[str, float]:
        return next((each for each in self.languages(text) if each[0] in languages), (languages[0], 0.0))

    def _log_likelihood(self, text: str, subwords: Subwords) -> float:
        ranks = (self._worst if rank is None else rank for rank in subwords.ranks(text))
        return -sum(math.log(rank + 1) for rank in ranks)


# ---- Parameters, as JSON or as a form, in the dialect of LibreTranslate ----

AUTO = "auto"
FIELDS = 2_000  # of a form
LARGEST_FIELD = 64 << 20  # bytes; the body as a whole has a lower limit
BRACKETS = 60_000  # in a JSON body: building many small lists takes long
SHORT = 8 * 1024  # bytes of a form that are parsed at once; more are parsed in a thread
TERMS = 1_000  # of a glossary
GLOSSARY = 512 * 1024  # characters of one that is a field of a form
LISTS = ("q", "previous")  # a form may repeat them
ENDINGS = {"text": ".txt", "html": ".html"}  # of files that are read in the same way
_FLAGS = {"true": True, "false": False}

Parameters = Mapping[str, Any]


def bad(message: str) -> DocnmtError:
    return DocnmtError(f"Invalid request: {message}")


def kind_of_body(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_parameters(request: Request) -> Parameters:
    kind = kind_of_body(request)
    if kind == "application/json":
        return _from_json(await request.body())
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data", ""):
        raise HTTPException(415, f"Invalid request: {kind} is neither JSON nor a form")
    fields: list[tuple[str, Any]] = _fields(request.scope["query_string"])
    if kind == "application/x-www-form-urlencoded":
        fields += await _urlencoded(request)
    elif kind:
        fields += await _multipart(request)
    found: dict[str, Any] = {}
    for name, value in fields:
        if name in LISTS and name in found:
            found[name] = [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
        else:
            found[name] = value
    return {name: _typed(name, value) for name, value in found.items()}


def _fields(encoded: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except ValueError:  # not UTF-8, or too many
        raise bad("the form cannot be read") from None


async def _urlencoded(request: Request) -> list[tuple[str, str]]:
    body = await request.body()
    if len(body) > FORM_BYTES and request.scope["path"] not in TEXT_ROUTES:
        raise HTTPException(413, f"Invalid request: the form has more than {FORM_BYTES:,} bytes. Send multipart.")
    return _fields(body) if len(body) < SHORT else await asyncio.to_thread(_fields, body)


async def _multipart(request: Request) -> list[tuple[str, Any]]:
    try:
        return (await request.form(max_files=1, max_fields=FIELDS, max_part_size=LARGEST_FIELD)).multi_items()
    except (ValueError, LookupError, AssertionError):  # a charset that does not exist, parts that are none
        raise bad("the form cannot be read") from None


def _from_json(given: bytes, name: str = "the body") -> Parameters:
    if given.count(b"[") + given.count(b"{") > BRACKETS:
        raise bad(f"{name} has too many brackets")
    return json_object(given, name)


def json_object(given: bytes, name: str = "the body") -> dict[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        raise bad(f"{name} is not JSON") from None
    if not isinstance(found, dict):
        raise bad(f"{name} is not a JSON object")
    return found


def _typed(name: str, value: Any) -> Any:
    """A form has only strings."""
    if name == "context" and isinstance(value, str):
        return _FLAGS.get(value.lower(), value)
    if name == "glossary" and isinstance(value, str):
        if len(value) > GLOSSARY:
            raise bad(f"glossary has more than {GLOSSARY:,} characters")
        return _from_json(value.encode("utf-8", "replace"), "glossary")
    if name == "alternatives" and isinstance(value, str) and value.isdecimal():
        return int(value[:9])
    return value


def require(parameters: Parameters, *names: str) -> None:
    """Reports all missing parameters at once."""
    missing = [name for name in names if parameters.get(name) is None]
    if missing:
        raise bad(f"missing {', '.join(missing)} parameter{'s' * (len(missing) > 1)}")


def text_of(parameters: Parameters, name: str, default: str | None = None) -> str:
    value = parameters.get(name, default)
    if value is None and name not in parameters:
        raise bad(f"missing {name} parameter")
    return checked(value, name)


def checked(value: object, name: str) -> str:
    """A text as it may be; `name` says what it is."""
    if not isinstance(value, str):
        raise bad(f"{name} is not a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad(f"{name} contains a lone surrogate") from None
    if "\0" in value:
        raise bad(f"{name} contains a NUL character")
    return value


def flag_of(parameters: Parameters, name: str, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise bad(f"{name} is neither true nor false")
    return value


def texts_of(parameters: Parameters, name: str, settings: Settings) -> list[str]:
    """A string or a list of strings; empty if the parameter is missing."""
    value = parameters.get(name, [])
    given = value if isinstance(value, list) else [value]
    told = "request" if name == "q" else name  # as LibreTranslate says it
    if len(given) > settings.strings:
        raise bad(f"{told} ({len(given)}) exceeds batch limit ({settings.strings})")
    texts = [checked(each, name) for each in given]
    length = sum(map(len, texts))
    if length > settings.characters:
        raise bad(f"{told} ({length}) exceeds text limit ({settings.characters})")
    return texts


def glossary_of(parameters: Parameters) -> Glossary | None:
    """An object of terms and their translations; in a form as JSON."""
    terms = parameters.get("glossary", {})
    if terms == {}:
        return None
    if not isinstance(terms, dict):
        raise bad("glossary must be an object that maps terms to their translations")
    if len(terms) > TERMS:
        raise bad(f"glossary has more than {TERMS:,} terms")
    one, other = "a term of the glossary", "a translation in the glossary"
    return Glossary.of({checked(term, one): checked(text, other) for term, text in terms.items()})


def upload_of(parameters: Parameters) -> UploadFile:
    file = parameters.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise bad("missing file parameter")
    return file


@dataclass(frozen=True)
class FileAsked:
    """How /translate_file is to translate."""

    context: bool
    previous: list[str]  # texts before it, which are context
    glossary: Glossary | None
    encoding: str  # of a text file that is not in UTF-8; "": found out

    @classmethod
    def of(cls, parameters: Parameters, settings: Settings) -> Self:
        previous = texts_of(parameters, "previous", settings)
        context, encoding = flag_of(parameters, "context", True), text_of(parameters, "encoding", "")
        return cls(context, previous, glossary_of(parameters), encoding)


@dataclass(frozen=True)
class TextsAsked(FileAsked):
    """What /translate is to translate, and how."""

    texts: list[str]
    is_list: bool
    format: str
    alternatives: int

    @classmethod
    def of(cls, parameters: Parameters, settings: Settings) -> Self:
        require(parameters, "q", "source", "target")
        texts, how = texts_of(parameters, "q", settings), FileAsked.of(parameters, settings)
        format = text_of(parameters, "format", "text")
        if format not in ENDINGS:
            raise bad(f"{format} format is not supported")
        alternatives = parameters.get("alternatives", 0)
        if type(alternatives) not in (int, float) or alternatives not in range(settings.alternatives + 1):
            raise bad(f"alternatives is not a number from 0 to {settings.alternatives}")
        is_list = isinstance(parameters["q"], list)
        return cls(how.context, how.previous, how.glossary, "", texts, is_list, format, int(alternatives))
