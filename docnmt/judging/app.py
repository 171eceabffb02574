"""The judging page and what it asks of the server."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from docnmt.base.errors import DocnmtError
from docnmt.judging.sampling import Place, Sample
from docnmt.judging.store import CHOICES, Store, judge_key
from docnmt.serving.web import BodyLimits, Security, in_sentences
from docnmt.text.scripts import SIGNS, UNSPACED

# ---- Where two translations of a sentence differ, word by word ----

Part = tuple[str, bool]  # some text, and whether the other translation lacks it

# Where no spaces part words each character stands for itself.
_TOKEN = re.compile(rf"(\s*)([{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_]|[{SIGNS}])+|\S)")


@lru_cache(maxsize=10_000)
def differences(one: str, other: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts whole, in parts."""
    tokens = [_TOKEN.findall(text.strip()) for text in (one, other)]
    # A word counts as another if a space before it is gone, but at the beginning there is none to miss.
    keys = [[(bool(space) or not k, word) for k, (space, word) in enumerate(side)] for side in tokens]
    apart = [[True] * len(side) for side in tokens]
    for block in SequenceMatcher(None, keys[0], keys[1]).get_matching_blocks():
        for side, begin in zip(apart, (block.a, block.b), strict=True):
            side[begin : begin + block.size] = [False] * block.size
    left, right = (_parts(side, marks) for side, marks in zip(tokens, apart, strict=True))
    return left, right


def _parts(tokens: list[tuple[str, str]], apart: list[bool]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for number, (space, word) in enumerate(tokens):
        between = apart[number] and number > 0 and apart[number - 1]
        for text, differs in ((space, between), (word, apart[number])):
            if parts and parts[-1][1] == differs:
                parts[-1] = parts[-1][0] + text, differs
            elif text:
                parts.append((text, differs))
    return tuple(parts)


# ---- What a judge is shown of a sentence ----

# What a judge is shown of a sentence. Of the systems it tells nothing but their words: no names, no order, no ids.


def progress(sample: Sample, choices: Mapping[Place, str]) -> dict[str, Any]:
    """How far a judge is; `next` is the number, from 1, of the first question still to be answered."""
    numbers = (number for number, place in enumerate(sample.questions, 1) if place not in choices)
    return {"questions": len(sample.questions), "judged": len(choices), "next": next(numbers, None)}


def question(
    sample: Sample, number: int, first_systems: tuple[int, ...], choices: Mapping[Place, str]
) -> dict[str, Any]:
    """One sentence with its document around it: of the translations, what stands before it."""
    place = sample.questions[number - 1]
    document = sample.documents[place.document]
    here, first = place.position, first_systems[place.document]
    one, other = document.outputs[first], document.outputs[1 - first]
    pairs = [differences(*pair) for pair in zip(one[: here + 1], other[: here + 1], strict=True)]
    return {
        **progress(sample, choices),
        "question": number,
        "document": place.document + 1,
        "documents": len(sample.documents),
        "sentence": here + 1,
        "sentences": len(document.source),
        "source": {
            "before": document.source[:here],
            "sentence": document.source[here],
            "after": document.source[here + 1 :],
        },
        "first": _translation([pair[0] for pair in pairs]),
        "second": _translation([pair[1] for pair in pairs]),
        "choice": choices.get(place),
    }


def _translation(sentences: list[tuple[Part, ...]]) -> dict[str, Any]:
    return {"before": sentences[:-1], "sentence": sentences[-1]}


_OWN = Path(__file__).parent / "static"
_SHARED = Path(__file__).parents[1] / "serving" / "static"
_FILES = {
    "/": (_OWN / "judge.html", "text/html"),
    "/static/judge.css": (_OWN / "judge.css", "text/css"),
    "/static/judge.js": (_OWN / "judge.js", "text/javascript"),
    "/static/style.css": (_SHARED / "style.css", "text/css"),
    "/static/icon.svg": (_SHARED / "icon.svg", "image/svg+xml"),
}
_MAX_BODY = 4096  # bytes; a name and a choice need far fewer
_BODY_SECONDS = 20
_LINK = "as/"  # before a judge's secret, in the address of his own link


def judging_app(store: Store, names: Collection[str] = ()) -> ASGIApp:
    """The application for one store; `names` are those of the server."""
    desk = Desk(store)

    async def enter(request: Request) -> Response:
        name = _text(await _body(request), "name")
        told = await run_in_threadpool(desk.enter, name, _proof(request, name))
        answer = JSONResponse(told, headers={"Cache-Control": "no-store"})
        _let_in(answer, name, told["link"].removeprefix(_LINK))
        return answer

    async def link(request: Request) -> Response:
        """The judge whose secret it is, in any browser."""
        given = request.path_params["secret"]
        known = await run_in_threadpool(store.secrets)
        name = next(
            (name for name, secret in known.items() if hmac.compare_digest(secret.encode(), given.encode())), None
        )
        if name is None:
            raise HTTPException(404, "This link is nobody's. Ask for yours once more.")
        answer = RedirectResponse(f"/#{quote(name)}", 303)
        _let_in(answer, name, given)
        return answer

    async def show(request: Request) -> Response:
        name = request.query_params.get("judge", "")
        return await _answer(desk.show, name, _proof(request, name), request.path_params["number"])

    async def judge(request: Request) -> Response:
        body = await _body(request)
        name, choice = _text(body, "judge"), _text(body, "choice")
        return await _answer(desk.judge, name, _proof(request, name), request.path_params["number"], choice)

    app = Starlette(
        routes=[
            *(Route(path, _file(*file)) for path, file in _FILES.items()),
            Route(f"/{_LINK}{{secret}}", link, methods=["GET"]),
            Route("/api/judges", enter, methods=["POST"]),
            Route("/api/questions/{number:int}", show, methods=["GET"]),
            Route("/api/questions/{number:int}", judge, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: lambda _, error: _refusal(error.status_code, error.detail),
            DocnmtError: lambda _, error: _refusal(400, str(error)),
            sqlite3.Error: lambda _, error: _refusal(503, f"This could not be saved ({error}). Try again."),
        },
    )
    return Security(BodyLimits(app, lambda path: _MAX_BODY, _BODY_SECONDS), names)


class Desk:
    """What judges can do. It waits for the disk, so it is asked in threads."""

    def __init__(self, store: Store):
        self.store, self.sample = store, store.sample

    def enter(self, name: str, proof: str) -> dict[str, Any]:
        """The name is a judge's who has its secret; the first who gives a name gets it, and a link with it."""
        if self.store.secret(name):
            self._check(name, proof)
        name = self.store.enter(name)
        link = f"{_LINK}{self.store.secret(name)}"
        return {"judge": name, "link": link, **progress(self.sample, self.store.choices(name))}

    def show(self, name: str, proof: str, number: int) -> dict[str, Any]:
        """A question that is answered already, or the next one."""
        choices = self._choices(name, proof, number)
        return question(self.sample, number, self.store.first_systems(name), choices)

    def judge(self, name: str, proof: str, number: int, choice: str) -> dict[str, Any]:
        if choice not in CHOICES:
            raise HTTPException(400, f"a choice is one of {', '.join(CHOICES)}")
        choices = self._choices(name, proof, number)
        place = self.sample.questions[number - 1]
        self.store.judge(name, place, choice)
        return progress(self.sample, {**choices, place: choice})

    def _check(self, name: str, proof: str) -> None:
        if not hmac.compare_digest(self.store.secret(name).encode(), proof.encode("utf-8", "replace")):
            told = "Somebody judges under this name. If it is you, open your own link; else take another name."
            raise HTTPException(403, told)

    def _choices(self, name: str, proof: str, number: int) -> Mapping[Place, str]:
        """What a judge has said so far, provided that it reaches to this question: none is passed over."""
        if not self.store.knows(name):
            raise HTTPException(404, "Nobody of this name judges here. Load the page again.")
        self._check(name, proof)
        choices = self.store.choices(name)
        if not 1 <= number <= (progress(self.sample, choices)["next"] or len(self.sample.questions)):
            raise HTTPException(404, "There is no such sentence, or it is not its turn yet. Load the page again.")
        return choices


# A browser keeps the secret of each judge as a cookie: scripts do not see it, other sites cannot send it.


def _proof(request: Request, name: str) -> str:
    return request.cookies.get(_cookie(name), "")


def _let_in(answer: Response, name: str, secret: str) -> None:
    answer.set_cookie(_cookie(name), secret, max_age=365 * 86400, httponly=True, samesite="strict")


def _cookie(name: str) -> str:
    return f"judge-{hashlib.sha256(judge_key(name).encode()).hexdigest()[:16]}"


async def _answer(act: Callable[..., dict[str, Any]], *arguments: Any) -> Response:
    return JSONResponse(await run_in_threadpool(act, *arguments), headers={"Cache-Control": "no-store"})


def _refusal(status: int, problem: str) -> Response:
    return JSONResponse({"error": in_sentences(problem)}, status)


def _file(path: Path, kind: str) -> Callable[[Request], Response]:
    return lambda request: FileResponse(path, media_type=kind)


async def _body(request: Request) -> Mapping[str, Any]:
    """A JSON object. Other sites' forms cannot send this type without the browser asking us first."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send application/json")
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "not JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "not a JSON object")
    return body


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise HTTPException(400, f"{key} must be a string")
    return value
