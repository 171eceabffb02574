"""The server's application: API and pages, with what stands around them."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt.base.errors import DocnmtError
from docnmt.serving import pages
from docnmt.serving.api import API, Answer
from docnmt.serving.detection import Detector
from docnmt.serving.downloads import Downloads
from docnmt.serving.keys import KeysForPages
from docnmt.serving.limits import BodyLimits
from docnmt.serving.metrics import Metrics
from docnmt.serving.pool import CallFailed, Overloaded, Pool, TimedOut, WorkerDied
from docnmt.serving.security import Security
from docnmt.serving.settings import Settings


def make_app(
    pool: Pool,
    settings: Settings,
    detector: Detector,
    downloads: Downloads,
    *,
    names: Collection[str] = (),
    origins: Sequence[str] = (),
) -> ASGIApp:
    """`names` are those of the server, `origins` the other sites whose pages may use it."""
    api = API(pool, settings, detector, downloads)
    own, page = api.routes(), pages.routes(pool)
    handlers = {
        HTTPException: _refused,
        DocnmtError: _bad,
        Overloaded: _overloaded,
        TimedOut: _unavailable,
        WorkerDied: _unavailable,
        CallFailed: _failed,
        Exception: _failed,
    }
    app: ASGIApp = Starlette(routes=[*own, *page], exception_handlers=handlers)  # type: ignore[arg-type]
    if api.keys:
        app = KeysForPages(app, api.keys, frozenset(_first_parts(own)))
    app = Measured(BodyLimits(app, settings), pool.metrics, [*own, *page])
    if origins:
        app = CORSMiddleware(app, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return Security(app, names, origins)


def _first_parts(routes: Sequence[BaseRoute]) -> list[str]:
    return [route.path.split("/")[1] for route in routes if isinstance(route, Route | Mount)]


class Measured:
    """Counts and times requests."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Sequence[BaseRoute]):
        self.app, self.metrics = app, metrics
        self._paths = {route.path for route in routes if isinstance(route, Route)}
        self._parts = {f"/{part}" for part in _first_parts(routes)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            route = self._route(scope["path"])
            self.metrics.requests.add(route=route, status=str(status))
            self.metrics.seconds.add(time.monotonic() - started, route=route)

    def _route(self, path: str) -> str:
        """Not the path itself: there is no end of those that lead nowhere."""
        first = "/" + path.split("/")[1] if path.startswith("/") else ""
        return path if path in self._paths else first if first in self._parts else "other"


# ---- what goes wrong, in words ----


def _told(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return Answer({"error": " ".join(message.split())}, status, headers)


async def _refused(request: Request, error: HTTPException) -> Response:
    return _told(error.status_code, error.detail, dict(error.headers or {}))


async def _bad(request: Request, error: DocnmtError) -> Response:
    return _told(400, str(error))


async def _overloaded(request: Request, error: Overloaded) -> Response:
    return _told(429, str(error), {"Retry-After": str(error.retry_after)})


async def _unavailable(request: Request, error: Exception) -> Response:
    return _told(503, str(error), {"Retry-After": "1"})


async def _failed(request: Request, error: Exception) -> Response:
    return _told(500, "Something went wrong in the server. Its log says what.")
