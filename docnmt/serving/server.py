"""`docnmt serve` from start to stop: settings, the application, a socket with uvicorn on it."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from docnmt.base.errors import DocnmtError
from docnmt.serving import page as pages
from docnmt.serving.api import API, Answer
from docnmt.serving.metrics import Metrics
from docnmt.serving.pool import LONG, Pool
from docnmt.serving.queue import Busy
from docnmt.serving.requests import Detector, name_of, subwords_of
from docnmt.serving.uploads import Downloads
from docnmt.serving.web import FAILED, GONE, BodyLimits, KeysForPages, Middleware, Security, Settings, in_sentences
from docnmt.serving.worker import CallFailed, ModelInfo, OutOfMemory, named

# ---- The application: API and page, with the layers around them ----


def make_app(pool: Pool, settings: Settings, detector: Detector, downloads: Downloads) -> ASGIApp:
    api = API(pool, settings, detector, downloads)
    own, page = api.routes(), pages.routes(pool)
    app: ASGIApp = Starlette(routes=[*own, *page], exception_handlers=dict.fromkeys(ERRORS, _told))
    if api.keys:
        app = KeysForPages(app, api.keys, frozenset([*_first_parts(own), "static"]))
    app = Measured(BodyLimits(app, settings.body_bytes, settings.seconds), pool.metrics, [*own, *page])
    if settings.origins:
        app = CORSMiddleware(app, allow_origins=settings.origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return Security(app, settings.names, settings.origins)


def _first_parts(routes: Sequence[BaseRoute]) -> list[str]:
    return [route.path.split("/")[1] for route in routes if isinstance(route, Route | Mount)]


class Measured(Middleware):
    """Counts and times requests."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Sequence[BaseRoute]):
        self.app, self.metrics = app, metrics
        self._paths = {route.path for route in routes if isinstance(route, Route)}
        self._parts = {f"/{part}" for part in _first_parts(routes)}

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        """A label of which there are few: paths that lead nowhere are not counted one by one."""
        first = "/" + path.split("/")[1] if path.startswith("/") else ""
        return path if path in self._paths else first if first in self._parts else "other"


# ---- Errors as answers ----

ERRORS = (ClientDisconnect, HTTPException, DocnmtError, Busy, OutOfMemory, CallFailed, Exception)
# What Starlette says by itself, and what we say.
UNTOLD = {
    "Not Found": "There is nothing at this address. /docs lists what there is.",
    "Method Not Allowed": "This address does not take such requests. /docs lists what there is.",
}


async def _told(request: Request, error: Exception) -> Response:
    status, message, headers = 500, FAILED, {}
    if isinstance(error, ClientDisconnect):
        status, message = GONE
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = UNTOLD.get(error.detail, error.detail)
    elif isinstance(error, DocnmtError):
        status, message = 400, str(error)
    elif isinstance(error, Busy):
        status, message, headers = error.status, str(error), {"Retry-After": str(error.retry_after)}
    elif isinstance(error, OutOfMemory):
        status, message = 413, f"This is too large for a model process: {error}. Send less at once."
    return Answer({"error": in_sentences(message)}, status, headers)


# ---- Connections, with limits that uvicorn lacks: headers must arrive in time, no address may take them all ----

CONNECTIONS = 1000  # in all; beyond that requests are answered with 503
PER_ADDRESS = 200  # note that a proxy is one address
HEADER_SECONDS = 20
CHUNKS = 300  # of a body; if there are more, they must have
CHUNK_BYTES = 64  # on average

_TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 10\r\nContent-Length: 0\r\n\r\n"


class StrictConnection(h11.Connection):
    """Refuses bodies in tiny chunks, as each takes h11 as long as a large one, and requests of two lengths, which a
    proxy before us may understand in another way."""

    _chunks = _bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > CHUNKS and self._bytes < CHUNK_BYTES * self._chunks:
                raise h11.RemoteProtocolError("the chunks of the body are too small")
        return event


class PatientProtocol(H11Protocol):
    """Waits for the headers of a request, but not for ever."""

    _late: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self.conn = StrictConnection(h11.SERVER, 64 * 1024)  # bytes of headers, as uvicorn has it

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # half an answer has been sent
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        clients = [getattr(each, "client", None) for each in self.connections]
        if sum(client[0] == self.client[0] for client in clients if client and self.client) > PER_ADDRESS:
            transport.write(_TOO_MANY)
            transport.close()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """uvicorn's own time limit between requests ends with the first byte of the next."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


# ---- Listening: a socket, uvicorn, and a shutdown that lets requests finish ----


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise DocnmtError(f"cannot listen on {host}, port {port} ({error})\n  Give another --port or --host.") from None
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # for its connections; asyncio does not set it for them
    found.set_inheritable(False)  # the model processes must not hold it open
    return found


def address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_loopback(bound: socket.socket) -> bool:
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


async def settle() -> None:
    """To be called when all is loaded, before the first request."""
    await anyio.sleep(0)  # makes it load its backend now
    gc.collect()
    gc.freeze()  # later collections skip modules and models, which saves a tenth of a second each


async def serve(app: ASGIApp, bound: socket.socket, seconds: float) -> None:
    """Serves until it is told to stop; requests under way then have `seconds` to finish."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        lifespan="off",
        log_level="error",  # clients that do not speak HTTP are not worth a line
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(seconds) + 1,
        timeout_keep_alive=30,
    )
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # bad forms are reported to those who send them
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it is done
        signal.signal(number, lambda *_: None)
    await settle()
    await uvicorn.Server(config).serve(sockets=[bound])


# ---- `docnmt serve`: a port, the model processes, the application ----


async def run(
    models: Sequence[str],
    settings: Settings,
    say: Callable[[str], object],
    *,
    host: str,
    port: int,
    workers: int,
    room: int,
    memory: int,
) -> None:
    """Serves model folders until it is told to stop. `workers`: model processes, 0 for one per core; `room`: sentences
    that may wait; `memory`: bytes that each process may use."""
    with listen(host, port) as bound:  # first: a port in use is reported before models are loaded
        say("loading ...")
        if not is_loopback(bound):
            settings = replace(settings, names=[*settings.names, socket.gethostname()])
        workers = workers or len(os.sched_getaffinity(0))
        downloads = Downloads()
        scratch = str(downloads.scratch.path)
        pool = Pool(named(models), workers=workers, room=room, seconds=settings.seconds, memory=memory, scratch=scratch)
        try:
            async with pool:
                detector = Detector(subwords_of(pool.models.values()))
                app = make_app(pool, settings, detector, downloads)
                for info in pool.models.values():
                    say(told(info))
                keys = "API key required" if settings.keys else "no API key required"
                processes = "1 model process" if workers == 1 else f"{workers} model processes"
                say(f"{address(bound)}   {processes}, {keys}; Ctrl-C stops it")
                await serve(app, bound, LONG * settings.seconds)  # a file may be in progress
                say("stopped")
        finally:
            downloads.close()


def told(info: ModelInfo) -> str:
    languages = f"{name_of(info.source_language)} to {name_of(info.target_language)}"
    context = f"sees {info.context.previous} sentences before"
    if info.context.following:
        context += f" and {info.context.following} after"
    return f"{info.name}: {languages}, {context if info.uses_context else 'single sentences'}"
