"""What the page's script sends that may be large: read in a model process, as JSON of megabytes keeps all waiting."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from docnmt.base.errors import DocnmtError
from docnmt.corpus.memories import tmx
from docnmt.serving.requests import Parameters, bad, text_of
from docnmt.serving.stretches import Wanted
from docnmt.serving.uploads import MOST


async def json_body(request: Request) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise bad("the body is not JSON")
    return await request.body()


def read_documents(_: Any, body: bytes) -> tuple[Parameters, list[Wanted]]:
    """What /page/translate is asked but the documents, and these."""
    asked = _object(body)
    documents = asked.get("documents")
    if not isinstance(documents, list):
        raise bad("documents is not a list")
    found: list[Wanted] = []
    room = MOST
    for document in documents:
        found.append(_wanted(document))
        room -= max(1, len(found[-1].sentences))
        if room < 0:
            raise DocnmtError(f"more than {MOST:,} sentences\n  Translate them with docnmt translate.")
    return {name: value for name, value in asked.items() if name in ("model", "context", "glossary")}, found


def write_tmx(_: Any, body: bytes, languages: dict[str, tuple[str, str]]) -> bytes:
    """A translation memory of `pairs`, in the languages of `model`."""
    asked = _object(body)
    model, pairs = text_of(asked, "model", next(iter(languages))), asked.get("pairs")
    if model not in languages:
        raise DocnmtError("there is no such model\n  Load the page again.")
    if not isinstance(pairs, list):
        raise bad("pairs is not a list")
    rows = []
    for pair in pairs:
        row = list_of({"pair": pair}, "pair")
        if len(row) != 3:
            raise bad("a pair is not three texts: a document's name, a sentence, its translation")
        rows.append((row[0], row[1], row[2]))
    return tmx(rows, languages[model])


def list_of(asked: Parameters, name: str) -> list[str]:
    given = asked.get(name)
    if not isinstance(given, list):
        raise bad(f"{name} is not a list")
    return [text_of({name: each}, name) for each in given]


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise bad("the body is not JSON") from None
    if not isinstance(found, dict):
        raise bad("the body is not a JSON object")
    return found


def _wanted(asked: Any) -> Wanted:
    if not isinstance(asked, dict):
        raise bad("a document is not an object")
    sentences = list_of(asked, "sentences")
    places = range(len(sentences))
    wanted = asked.get("wanted", list(places))
    if not isinstance(wanted, list) or not all(type(place) is int and place in places for place in wanted):
        raise bad("wanted is not a list of places of sentences")
    return Wanted(sentences, sorted(set(wanted)))
