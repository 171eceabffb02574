"""A server on a port of this machine, in a thread, for tests of what the network does."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from docnmt.serving.pool import Pool
from docnmt.serving.requests import Detector
from docnmt.serving.server import PatientProtocol, listen, make_app, settle
from docnmt.serving.uploads import Downloads
from docnmt.serving.web import Settings
from tests.serving_fakes import FakeModels, load_telling


class Live:
    """`blocked` is the longest that the event loop did not get its turn, in seconds of this process's own work: what
    other processes do to it does not count."""

    def __init__(self, app: Any = None, **settings: Any):
        self.bound = listen("127.0.0.1", 0)
        self.port = self.bound.getsockname()[1]
        self.blocked = 0.0
        self._app, self._settings = app, settings
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self) -> None:
        if self._app is not None:
            await self._serve(self._app)
            return
        downloads = Downloads()
        async with Pool({"fr-en": "fr-en"}, workers=1, models=FakeModels(load_telling)) as pool:
            self.pool = pool
            await self._serve(make_app(pool, Settings(**self._settings), Detector({}), downloads))
        downloads.close()

    async def _serve(self, app: Any) -> None:
        config = uvicorn.Config(app, http=PatientProtocol, lifespan="off", log_level="error")
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        await settle()
        watch = asyncio.create_task(self._watch())
        await self._server.serve(sockets=[self.bound])
        watch.cancel()

    async def _watch(self) -> None:
        await asyncio.sleep(0.2)
        self._ready.set()
        while True:
            before = time.process_time()
            await asyncio.sleep(0.002)
            self.blocked = max(self.blocked, time.process_time() - before)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def __enter__(self) -> Live:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        gc.unfreeze()


def is_closed(connection: socket.socket, seconds: float) -> bool:
    """Whether the server hangs up within so many seconds; what it says before that is let go."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@contextmanager
def connections(live: Live, count: int) -> Iterator[list[socket.socket]]:
    opened = [live.connect() for _ in range(count)]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()
