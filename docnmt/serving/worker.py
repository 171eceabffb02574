"""A process with the models in it: it is sent a function, runs it on a model, and sends back what it gave."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.serving.models import ModelInfo, Models, OutOfMemory, Shelf, is_out_of_memory, limit_memory

START_SECONDS = 120.0  # to load a model that is large, from a disk that is slow


class Gone(Exception):
    """The process has died, or was killed as it took too long."""


class CallFailed(Exception):
    """The function raised what it should not have."""


class Worker:
    """The process as seen from the server; it can be started again and again. One call at a time."""

    def __init__(self, folders: Mapping[str, str], models: Models, memory: int, scratch: str | None = None):
        """It may use so many bytes, and has its temporary files in the folder `scratch`."""
        self.arguments = dict(folders), models, memory, scratch
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._reason = ""  # for which it was ended
        self._thread = ThreadPoolExecutor(1)  # waits for the process while the event loop goes on

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    async def start(self) -> list[ModelInfo]:
        infos: list[ModelInfo] = await self._wait(START_SECONDS, self._start)
        return infos

    async def call(self, seconds: float, model: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What function(translator, *arguments) returns or raises. Gone if that takes more than so many seconds."""
        return await self._wait(seconds, self._exchange, (model, function, arguments))

    def end(self, reason: str) -> None:
        """Whoever waits for it gets Gone, with the reason."""
        if self._process is not None:
            self._reason = reason
            self._process.kill()

    def stop(self) -> None:
        self._kill()
        self._thread.shutdown(wait=False)

    async def _wait(self, seconds: float, function: Callable[..., Any], *arguments: object) -> Any:
        under_way = asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        under_way.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody waits any more
        done, _ = await asyncio.wait({under_way}, timeout=seconds)
        if not done:
            self.end(f"it took more than {seconds:g} s")
        return await under_way

    # ---- in the thread ----

    def _start(self) -> Any:
        self._kill()
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, *self.arguments), daemon=True)
        self._process.start()
        other.close()  # so that the end of the process is the end of what can be read
        return self._receive()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
        self._reason = ""

    def _exchange(self, message: tuple[str, Callable[..., Any], tuple[object, ...]]) -> Any:
        if self._connection is None:
            raise Gone("it is not there")
        try:
            self._connection.send(message)
        except (OSError, EOFError):
            raise Gone(self._why()) from None
        return self._receive()

    def _receive(self) -> Any:
        try:
            assert self._connection is not None
            error, answer = self._connection.recv()
        except (OSError, EOFError):
            raise Gone(self._why()) from None
        if error is not None:
            raise error
        return answer

    def _why(self) -> str:
        if self._reason or self._process is None:
            return self._reason or "it is not there"
        self._process.join(5)
        status = self._process.exitcode
        return f"it was killed by signal {-status}" if status and status < 0 else f"it ended with status {status}"


# ---- the process itself ----


def _work(connection: Connection, folders: Mapping[str, str], models: Models, memory: int, scratch: str | None) -> None:
    """It ends when the server hangs up, or is no more."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal and a service manager tell all: the server decides
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # of sentences that are too long and the like: nobody is there to read them
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)  # of the process before
        Path(scratch).mkdir(mode=0o700, parents=True)
        tempfile.tempdir = scratch
    shelf = Shelf(folders, models, memory // 2)
    too_much = OutOfMemory(f"it needs more than the {memory >> 20:,} MB that it may use (--memory)")
    try:
        models.prepare()
        infos = [models.describe(name, folder) for name, folder in folders.items()]
        limit_memory(memory)
        shelf.get(infos[0].name)
    except (DocnmtError, OSError, MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            connection.send((too_much, None))
        elif isinstance(error, DocnmtError | OSError):
            connection.send((DocnmtError(str(error)), None))
        else:
            raise
        return
    try:
        connection.send((None, infos))
        while True:
            model, function, arguments = connection.recv()
            failure, answer = _answer(shelf, model, function, arguments, too_much)
            connection.send((failure, answer))
            if failure is too_much:
                return
    except (EOFError, OSError):
        return


def _answer(
    shelf: Shelf, model: str, function: Callable[..., Any], arguments: tuple[object, ...], too_much: OutOfMemory
) -> tuple[Exception | None, Any]:
    try:
        translator = shelf.get(model)
        answer = function(translator, *arguments)
        translator.terms.take()  # nobody asks for them
        return None, answer
    except DocnmtError as error:
        return DocnmtError(str(error)), None  # some of its kinds cannot be sent
    except Exception as error:
        if is_out_of_memory(error):
            return too_much, None
        print(f"docnmt: {time.strftime('%F %T')} in a model process:", file=sys.stderr)
        traceback.print_exc()
        return CallFailed(f"{type(error).__name__} in a model process"), None
