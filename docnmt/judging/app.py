"""The judging page and its requests to the server."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping
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
from docnmt.judging.store import CHOICES, Place, Store, judge_key
from docnmt.serving.web import BodyLimits, Security, in_sentences
from docnmt.text.scripts import SIGNS, UNSPACED

# ---- where two translations of a sentence differ, word by word ----

Part = tuple[str, bool]  # some text, and whether the other translation lacks it

# Where no spaces separate words each character stands for itself.
_TOKEN = re.compile(rf"(\s*)([{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_]|[{SIGNS}])+|\S)")


@lru_cache(maxsize=10_000)
def differences(one: str, other: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts whole, in parts."""
    tokens = [_TOKEN.findall(text.strip()) for text in (one, other)]
    # A word counts as another if a space before it is gone, but at the beginning there is none to
    # miss.
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


# ---- the application ----

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
    app = Starlette(
        routes=[
            *(Route(path, _file(*file)) for path, file in _FILES.items()),
            Route(f"/{_LINK}{{secret}}", _endpoint(desk.link), methods=["GET"]),
            Route("/api/judges", _endpoint(desk.enter), methods=["POST"]),
            Route("/api/questions/{number}", _endpoint(desk.show), methods=["GET"]),
            Route("/api/questions/{number}", _endpoint(desk.judge), methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: lambda _, error: _refusal(error.status_code, error.detail),
            DocnmtError: lambda _, error: _refusal(400, str(error)),
            sqlite3.Error: lambda _, error: _refusal(503, f"This could not be saved ({error}). Try again."),
        },
    )
    return Security(BodyLimits(app, lambda path: _MAX_BODY, _BODY_SECONDS), names)


def _file(path: Path, kind: str) -> Callable[[Request], Response]:
    return lambda request: FileResponse(path, media_type=kind)


def _refusal(status: int, problem: str) -> Response:
    return JSONResponse({"error": in_sentences(problem)}, status)


Body = Mapping[str, Any]


def _endpoint(act: Callable[[Request, Body], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Reads the body and lets a thread do the rest, as that waits for the disk."""

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(act, request, await _body(request) if request.method == "POST" else {})

    return answer


async def _body(request: Request) -> Body:
    """A JSON object. Other sites' forms cannot send this type without the browser asking us first."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send application/json")
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return body


def _text(body: Body, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise HTTPException(400, f"{key} must be a string")
    return value


def _number(request: Request) -> int:
    given: str = request.path_params["number"]
    if not given.isdecimal() or len(given) > 9:
        raise HTTPException(404, "There is no such sentence. Reload the page.")
    return int(given)


class Desk:
    """What judges can do. A judge is shown nothing of the systems but their words: no names, no order, no ids."""

    def __init__(self, store: Store):
        self.store, self.sample = store, store.sample

    def enter(self, request: Request, body: Body) -> Response:
        """The first who gives a name gets it, and a link with its secret; later it takes the secret to use the name."""
        name, is_new = self.store.enter(_text(body, "name"))
        if not is_new:
            self._check(request, name)
        secret = self.store.secret(name) or ""
        told = {"judge": name, "link": f"{_LINK}{secret}", **self._progress(self.store.choices(name))}
        return _let_in(_answer(told), name, secret)

    def link(self, request: Request, _: Body) -> Response:
        """The judge whose secret it is, in any browser."""
        given = request.path_params["secret"]
        for name, secret in self.store.secrets().items():
            if hmac.compare_digest(secret.encode(), given.encode()):
                return _let_in(RedirectResponse(f"/#{quote(name)}", 303), name, given)
        raise HTTPException(404, "This link does not belong to any judge. Ask for yours again.")

    def show(self, request: Request, _: Body) -> Response:
        """A sentence with its document around it, of the translations what stands before it: a
        question that is answered already, or the next one."""
        name, number = request.query_params.get("judge", ""), _number(request)
        choices = self._choices(request, name, number)
        place = self.sample.questions[number - 1]
        document, here = self.sample.documents[place.document], place.position
        first = self.store.first_systems(name)[place.document]
        one, other = document.outputs[first], document.outputs[1 - first]
        pairs = [differences(*pair) for pair in zip(one[: here + 1], other[: here + 1], strict=True)]
        left, right = zip(*pairs, strict=True)
        return _answer(
            {
                **self._progress(choices),
                "question": number,
                "document": place.document + 1,
                "documents": len(self.sample.documents),
                "sentence": here + 1,
                "sentences": len(document.source),
                "source": {
                    "before": document.source[:here],
                    "sentence": document.source[here],
                    "after": document.source[here + 1 :],
                },
                "first": {"before": left[:-1], "sentence": left[-1]},
                "second": {"before": right[:-1], "sentence": right[-1]},
                "choice": choices.get(place),
            }
        )

    def judge(self, request: Request, body: Body) -> Response:
        name, choice, number = _text(body, "judge"), _text(body, "choice"), _number(request)
        if choice not in CHOICES:
            raise HTTPException(400, f"a choice is one of {', '.join(CHOICES)}")
        choices = self._choices(request, name, number)
        place = self.sample.questions[number - 1]
        self.store.judge(name, place, choice)
        return _answer(self._progress({**choices, place: choice}))

    def _progress(self, choices: Mapping[Place, str]) -> dict[str, Any]:
        """How far a judge is; `next` is the number, from 1, of the first question still to be answered."""
        numbers = (number for number, place in enumerate(self.sample.questions, 1) if place not in choices)
        return {"questions": len(self.sample.questions), "judged": len(choices), "next": next(numbers, None)}

    def _choices(self, request: Request, name: str, number: int) -> Mapping[Place, str]:
        """What a judge has said so far, provided that it reaches to this question: none is passed over."""
        if self.store.secret(name) is None:
            raise HTTPException(404, "No judge has this name. Reload the page.")
        self._check(request, name)
        choices = self.store.choices(name)
        if not 1 <= number <= (self._progress(choices)["next"] or len(self.sample.questions)):
            raise HTTPException(404, "There is no such sentence, or others must be judged first. Reload the page.")
        return choices

    def _check(self, request: Request, name: str) -> None:
        proof = request.cookies.get(_cookie(name), "")
        if not hmac.compare_digest((self.store.secret(name) or "").encode(), proof.encode("utf-8", "replace")):
            told = "This name is already in use. If it is yours, open your own link; otherwise choose another name."
            raise HTTPException(403, told)


def _answer(told: dict[str, Any]) -> Response:
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


# A browser keeps the secret of each judge as a cookie: scripts do not see it, other sites cannot
# send it.


def _let_in(answer: Response, name: str, secret: str) -> Response:
    answer.set_cookie(_cookie(name), secret, max_age=365 * 86400, httponly=True, samesite="strict")
    return answer


def _cookie(name: str) -> str:
    return f"judge-{hashlib.sha256(judge_key(name).encode()).hexdigest()[:16]}"
