"""A process with the models in it: it is sent a function, runs it on a model, and sends back what it gave."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docnmt.base.errors import DocnmtError
from docnmt.document import NO_CONTEXT, ContextSpec

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator


# ---- What is known of a model that is served ----


@dataclass(frozen=True)
class ModelInfo:
    name: str
    folder: str
    source_language: str  # a code: "fr", "pt-BR"; "x-source" where the model does not say
    target_language: str
    uses_context: bool
    context: ContextSpec  # what a sentence sees of its document
    in_order: bool  # it needs its own translations of the sentences before: a document is translated in order
    most: int  # translations that a sentence can have


def info_of(name: str, folder: str, translator: Translator) -> ModelInfo:
    rule, beam = translator.rule(None), translator.options.beam
    return ModelInfo(
        name=name,
        folder=folder,
        source_language=code(translator.card.source_language) or "x-source",
        target_language=code(translator.card.target_language) or "x-target",
        uses_context=rule is not None,
        context=rule.spec if rule else NO_CONTEXT,
        in_order=rule is not None and rule.remembers,
        most=2 * beam if beam > 1 else 1,
    )


def code(language: str) -> str:
    """As APIs write it: pt-BR, not pt_BR."""
    return language.strip().replace("_", "-")


def named(folders: Sequence[str]) -> dict[str, str]:
    """Folders by names that tell them apart: the last part of a path that is not just `model`, and as many before it as
    it takes."""
    paths = {folder: [part for part in Path(folder).resolve().parts if part != "model"] for folder in folders}
    names = {folder: folder for folder in folders}
    for length in range(max(map(len, paths.values())), 0, -1):
        shorter = {"/".join(parts[-length:]): folder for folder, parts in paths.items()}
        if len(shorter) == len(paths):
            names = shorter
    return names


Load = Callable[[str], "Translator"]  # from a folder; it goes to another process, so it is one of a module
START_SECONDS = 120.0  # to load models that are large, from a disk that is slow


class Gone(Exception):
    """The process has died, or was killed as it took too long."""


class CallFailed(Exception):
    """The function raised what it should not have."""


class Worker:
    """The process as seen from the server; it can be started again and again. One call at a time."""

    def __init__(self, folders: Mapping[str, str], load: Load):
        self.folders, self.load = folders, load
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(1)  # waits for the process while the event loop goes on

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    async def start(self) -> list[ModelInfo]:
        self.kill()
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, dict(self.folders), self.load), daemon=True)
        self._process.start()
        other.close()  # so that the end of the process is the end of what can be read
        infos: list[ModelInfo] = await self._wait(START_SECONDS, self._receive)
        return infos

    async def call(self, seconds: float, model: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What function(translator, *arguments) returns or raises. Gone if that takes more than so many seconds."""
        return await self._wait(seconds, self._exchange, (model, function, arguments))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None

    def stop(self) -> None:
        self.kill()
        self._thread.shutdown(wait=False)

    async def _wait(self, seconds: float, function: Callable[..., Any], *arguments: object) -> Any:
        under_way = asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        under_way.add_done_callback(lambda done: done.cancelled() or done.exception())  # if nobody waits any more
        done, _ = await asyncio.wait({under_way}, timeout=seconds)
        if not done and self._process is not None:
            self._process.kill()  # which ends the wait of the thread, too
        return await under_way

    def _exchange(self, message: tuple[str, Callable[..., Any], tuple[object, ...]]) -> Any:
        if self._connection is None:
            raise Gone
        try:
            self._connection.send(message)
        except (OSError, EOFError):
            raise Gone from None
        return self._receive()

    def _receive(self) -> Any:
        try:
            assert self._connection is not None
            error, answer = self._connection.recv()
        except (OSError, EOFError):
            raise Gone from None
        if error is not None:
            raise error
        return answer


def _work(connection: Connection, folders: Mapping[str, str], load: Load) -> None:
    """The process itself. It ends when the server hangs up, or is no more."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal and a service manager tell all: the server decides
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # of sentences that are too long and the like: nobody is there to read them
    try:
        translators = {name: load(folder) for name, folder in folders.items()}
        infos = [info_of(name, folders[name], translator) for name, translator in translators.items()]
    except (DocnmtError, OSError) as error:
        connection.send((DocnmtError(str(error)), None))
        return
    try:
        connection.send((None, infos))
        while True:
            model, function, arguments = connection.recv()
            connection.send(_answer(translators[model], function, arguments))
    except (EOFError, OSError):
        return


def _answer(translator: Translator, function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, Any]:
    try:
        return None, function(translator, *arguments)
    except DocnmtError as error:
        return DocnmtError(str(error)), None  # some of its kinds cannot be sent
    except Exception as error:
        print(f"docnmt: {time.strftime('%F %T')} in a model process:", file=sys.stderr)
        traceback.print_exc()
        return CallFailed(f"{type(error).__name__} in a model process"), None


def load_for_serving(folder: str) -> Translator:
    """One thread a process: there is a process for every core."""
    import torch

    from docnmt.decoding.translator import load

    torch.set_num_threads(1)
    return load(folder)
