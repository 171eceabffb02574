"""A process that holds models: it receives a function, calls it with a model, and sends back the result."""

from __future__ import annotations

import asyncio
import errno
import gc
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any

import torch

from docnmt.base.errors import DocnmtError
from docnmt.data.context import ContextRule
from docnmt.data.subwords import Subwords
from docnmt.decoding.translator import Translator, load
from docnmt.document import NO_CONTEXT, ContextSpec
from docnmt.model_folder import is_int8, load_card

# ---- The models: what is known of each, and which of them a process holds in memory ----

MEMORY = 4 << 30  # bytes a process may use on top of what it has before it loads a model
WEIGHTS = 3  # times its file size that a model takes in memory: weights, the copy packed for a CPU, and loading
WEIGHTS_INT8 = 9  # the same for an int8 file, which is float32 while it is loaded


class OutOfMemory(Exception):
    """A process needs more memory than it may use."""


@dataclass(frozen=True)
class ModelInfo:
    name: str
    folder: str
    source_language: str  # a code: "fr", "pt-BR"; "x-source" where the model does not say
    target_language: str
    uses_context: bool
    context: ContextSpec  # what a sentence sees of its document
    in_order: bool  # it sees its own translations of earlier sentences: a document is translated in order
    most: int  # the longest n-best list

    @property
    def languages(self) -> tuple[str, str]:
        return self.source_language, self.target_language


def info_of(name: str, folder: str, languages: tuple[str, str], rule: ContextRule | None, beam: int) -> ModelInfo:
    return ModelInfo(
        name=name,
        folder=folder,
        source_language=code(languages[0]) or "x-source",
        target_language=code(languages[1]) or "x-target",
        uses_context=rule is not None,
        context=rule.spec if rule else NO_CONTEXT,
        in_order=rule is not None and rule.remembers,
        most=2 * beam if beam > 1 else 1,
    )


def code(language: str) -> str:
    """As APIs write a language: pt-BR, not pt_BR."""
    return language.strip().replace("_", "-")


def named(folders: Sequence[str]) -> dict[str, str]:
    """Model folders by short names: the last part of the path other than `model`, and as many parts before it as it
    takes to tell the folders apart."""
    paths = {folder: [part for part in Path(folder).resolve().parts if part != "model"] for folder in folders}
    names = {folder: folder for folder in folders}
    for length in range(max(map(len, paths.values())), 0, -1):
        shorter = {"/".join(parts[-length:]): folder for folder, parts in paths.items()}
        if len(shorter) == len(paths):
            names = shorter
    return names


class Models:
    """Where models come from: folders. It is sent to the processes."""

    def describe(self, name: str, folder: str) -> ModelInfo:
        """What a model is, without loading it."""
        card = load_card(folder)
        source, target = (Subwords.load(Path(folder) / f"{side}.spm") for side in ("source", "target"))
        rule = card.rule(source, None, target) if card.context.active else None
        return info_of(name, folder, card.languages, rule, card.decoding.beam)

    def load(self, folder: str) -> Translator:
        return load(folder)

    def size(self, folder: str) -> int:
        """Bytes of memory that it will take, about."""
        times = WEIGHTS_INT8 if is_int8(folder) else WEIGHTS
        return times * (Path(folder) / "weights.safetensors").stat().st_size


FOLDERS = Models()


class Shelf:
    """The models that a process holds, each loaded when it is first used. When they would take more than `room` bytes,
    the least recently used go."""

    def __init__(self, folders: Mapping[str, str], models: Models, room: int):
        self.folders, self.models, self.room = folders, models, room
        self._held: OrderedDict[str, tuple[Translator, int]] = OrderedDict()  # the most recently used is the last

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def get(self, name: str) -> Translator:
        if name not in self._held:
            size = self.models.size(self.folders[name])
            self._make_room(size)
            self._held[name] = self.models.load(self.folders[name]), size
        self._held.move_to_end(name)
        return self._held[name][0]

    def _make_room(self, size: int) -> None:
        while self._held and sum(held for _, held in self._held.values()) + size > self.room:
            self._held.popitem(last=False)
            gc.collect()  # a model has reference cycles


def limit_memory(size: int) -> None:
    """Limits this process to `size` bytes more than it has now. Beyond that it fails with an error of its own, before
    the system picks a process to kill."""
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (has + size if most == resource.RLIM_INFINITY else most, most))


def is_out_of_memory(error: BaseException) -> bool:
    """As Python, the system and torch report it."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )


# ---- The process as the server sees it ----

START_SECONDS = 120.0  # for a large model on a slow disk


class Gone(Exception):
    """The process has died, or was killed because it took too long."""


class CallFailed(Exception):
    """The function raised an unexpected error."""


class Worker:
    """The process as the server sees it. It can be restarted, and takes one call at a time."""

    def __init__(self, folders: Mapping[str, str], models: Models, memory: int, scratch: str | None = None):
        """`memory`: bytes it may use; `scratch`: a folder for its temporary files."""
        self.arguments = dict(folders), models, memory, scratch
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._reason = ""  # why it was ended
        self._thread = ThreadPoolExecutor(1)  # waits for the process, so that the event loop need not

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    async def start(self) -> list[ModelInfo]:
        infos: list[ModelInfo] = await self._wait(START_SECONDS, self._start)
        return infos

    async def call(self, seconds: float, model: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What function(translator, *arguments) returns or raises; Gone if that takes more than `seconds`."""
        return await self._wait(seconds, self._exchange, model, function, arguments)

    def end(self, reason: str) -> None:
        """Kills the process: whoever waits for it gets Gone with the reason."""
        if self._process is not None:
            self._reason = reason
            self._process.kill()

    def stop(self) -> None:
        self._kill()
        self._thread.shutdown(wait=False)

    async def _wait(self, seconds: float, function: Callable[..., Any], *arguments: object) -> Any:
        under_way = asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        under_way.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be waiting any more
        done, _ = await asyncio.wait({under_way}, timeout=seconds)
        if not done:
            self.end(f"it took more than {seconds:g} s")
        return await under_way

    # ---- in the thread ----

    def _start(self) -> Any:
        self._kill()
        context = multiprocessing.get_context("spawn")  # a fork would copy locks held by other threads
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, *self.arguments), daemon=True)
        self._process.start()
        other.close()  # so that reading fails when the process ends
        return self._exchange()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
        self._reason = ""

    def _exchange(self, *message: object) -> Any:
        if self._connection is None:
            raise Gone("it is not running")
        try:
            if message:
                self._connection.send(message)
            error, answer = self._connection.recv()
        except (OSError, EOFError):
            raise Gone(self._why()) from None
        if error is not None:
            raise error
        return answer

    def _why(self) -> str:
        if self._reason or self._process is None:
            return self._reason or "it is not running"
        self._process.join(5)
        status = self._process.exitcode
        return f"it was killed by signal {-status}" if status and status < 0 else f"it ended with status {status}"


# ---- The process itself ----


def _work(connection: Connection, folders: Mapping[str, str], models: Models, memory: int, scratch: str | None) -> None:
    """Runs until the server closes the connection or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # terminals signal all processes: the server decides
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_the_server, daemon=True).start()
    warnings.simplefilter("ignore")  # about sentences that are too long and the like: nobody would read them
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)  # left by the process before
        Path(scratch).mkdir(mode=0o700, parents=True)
        tempfile.tempdir = scratch
    shelf = Shelf(folders, models, memory // 2)
    too_much = OutOfMemory(f"it needs more than its {memory >> 20:,} MB of memory (--memory)")
    torch.set_num_threads(1)  # there is one process for each core
    try:
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


def _end_with_the_server() -> None:
    """A server that was killed cannot end its processes, and one that is at work does not see it go."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _answer(
    shelf: Shelf, model: str, function: Callable[..., Any], arguments: tuple[object, ...], too_much: OutOfMemory
) -> tuple[Exception | None, Any]:
    try:
        translator = shelf.get(model)
        answer = function(translator, *arguments)
        translator.terms.take()  # nobody reads them here
        return None, answer
    except DocnmtError as error:
        return DocnmtError(str(error)), None  # its subclasses cannot all be pickled
    except Exception as error:
        if is_out_of_memory(error):
            return too_much, None
        print(f"docnmt: {time.strftime('%F %T')} in a model process:", file=sys.stderr)
        traceback.print_exc()
        return CallFailed(f"{type(error).__name__} in a model process"), None
