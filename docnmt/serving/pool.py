"""The model processes: sentences of many requests share batches, and other calls run beside them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Self, TypeVar

from docnmt.base.errors import DocnmtError
from docnmt.decoding.excerpts import Excerpt, translate_excerpts
from docnmt.decoding.scoring import OFF
from docnmt.decoding.translator import Options, Translator
from docnmt.document import NO_CONTEXT
from docnmt.documents.translate import Translated
from docnmt.serving.metrics import Metrics
from docnmt.serving.queue import Busy, Call, Job, Mode, Queue
from docnmt.serving.worker import FOLDERS, MEMORY, Gone, ModelInfo, Models, OutOfMemory, Worker

T = TypeVar("T")
LONG = 10  # how many time limits a whole file may take
PORTION = 256  # sentences of a request that enter the queue in one turn of the event loop
GRACE = 1.0  # seconds a process has to finish what nobody waits for any more
PAUSES = (0, 1, 5, 15)  # seconds before each attempt to restart a process that died


class TimedOut(Busy):
    """It took longer than the time limit."""


class WorkerDied(Busy):
    """A process died doing this work, and so did another one that did nothing else."""


class Pool:
    """Owns the model processes. Used from one event loop: `async with Pool(...) as pool`."""

    models: Mapping[str, ModelInfo]  # by name
    default: str

    def __init__(
        self,
        folders: Mapping[str, str],
        *,
        workers: int,
        room: int = 1024,
        seconds: float = 60,
        memory: int = MEMORY,
        scratch: str | None = None,
        models: Models = FOLDERS,
    ):
        """Model folders by name, the first is the default. `room` is the number of sentences that may wait, `seconds`
        the time limit of a request, `memory` the bytes that a process may use, models and all. A process loads a model
        when it is first asked for it. `scratch` is a folder for files that are not kept."""
        self.models, self.default = {}, next(iter(folders))
        self.seconds, self.metrics = seconds, Metrics()
        self._workers = [
            Worker(folders, models, memory, scratch and f"{scratch}/process-{number}") for number in range(workers)
        ]
        self._queue = Queue(room, workers, patience=seconds / 2)
        self._under_way: dict[Worker, Sequence[Job]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.metrics.waiting.read = lambda: self._queue.waiting
        self.metrics.workers.read = lambda: self.alive

    async def __aenter__(self) -> Self:
        try:
            started = await asyncio.gather(*(worker.start() for worker in self._workers))
        except (Gone, OutOfMemory) as error:
            self._stop()
            raise DocnmtError(
                f"a process died while loading the model: {error}\n"
                "  There may be too little memory: use fewer --workers, or give each more --memory."
            ) from None
        except BaseException:
            self._stop()
            raise
        self.models = {info.name: info for info in started[0]}
        self._tasks = [asyncio.create_task(self._run(worker)) for worker in self._workers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stop()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    @property
    def alive(self) -> int:
        """How many processes are up."""
        return sum(worker.alive for worker in self._workers)

    # ---- what can be asked ----

    async def translate(
        self,
        document: Excerpt,
        mode: Mode,
        *,
        deadline: float | None = None,
    ) -> AsyncGenerator[tuple[int, list[Translated]], None]:
        """Yields (place, translations) as sentences get done, in any order; every place that is wanted once.

        As many translations as the model can give, if `mode` asks for more. `deadline` as of time.monotonic(); the
        pool's own time limit if None. Raises Overloaded, TimedOut, WorkerDied. Closing the iterator takes what has not
        started out of the queue.
        """
        info = self.models[mode.model]
        mode = replace(mode, context=mode.context and info.uses_context, nbest=min(mode.nbest, info.most))
        finished: asyncio.Queue[Job] = asyncio.Queue()
        if info.in_order and mode.context:
            excerpts = iter([document] if len(document) else [])
        else:
            excerpts = document.one_by_one(info.context if mode.context else NO_CONTEXT)
        waiting = (Job(mode, finished, position, excerpt) for position, excerpt in enumerate(excerpts))
        deadline = deadline or time.monotonic() + self.seconds
        self._queue.admit(len(document))
        jobs: list[Job] = []
        try:
            while portion := list(islice(waiting, PORTION)):
                jobs += portion
                self._queue.add(portion)
                await asyncio.sleep(0)  # others have their turn, too
            for _ in range(len(jobs)):
                job = await self._next(finished, deadline)
                for found in job.answer.items():
                    yield found
        finally:
            self._give_up(jobs)

    async def call(
        self,
        function: Callable[..., T],
        *arguments: object,
        model: str | None = None,
        deadline: float | None = None,
        long: bool = False,
    ) -> T:
        """Runs function(translator, *arguments) in a process; it has to be a function of a module.

        `long` is for whole files: one process is kept free of them, and they have more time.
        """
        finished: asyncio.Queue[Job] = asyncio.Queue()
        job = Job(Call(model or self.default, function, arguments, long), finished)
        deadline = deadline or time.monotonic() + self.seconds * (LONG if long else 1)
        self._queue.admit(1)
        self._queue.add([job])
        try:
            answer: T = (await self._next(finished, deadline)).answer
        finally:
            self._give_up([job])
        return answer

    def _give_up(self, jobs: Sequence[Job]) -> None:
        """Nobody waits for these jobs any more. A process that works on nothing else, and does not finish, is ended."""
        self._queue.give_up(jobs)
        for worker, under_way in self._under_way.items():
            if not any(job.wanted for job in under_way):
                asyncio.get_running_loop().call_later(GRACE, self._end, worker, under_way)

    def _end(self, worker: Worker, jobs: Sequence[Job]) -> None:
        if self._under_way.get(worker) is jobs:
            worker.end("its client is gone")

    async def _next(self, finished: asyncio.Queue[Job], deadline: float) -> Job:
        if finished.empty():
            try:
                async with asyncio.timeout(max(0, deadline - time.monotonic())):
                    job = await finished.get()
            except TimeoutError:
                raise TimedOut("The time limit was exceeded. Send less at once, or try again later.") from None
        else:
            job = finished.get_nowait()
        if job.error is not None:
            raise job.error
        return job

    # ---- the work of a process ----

    async def _run(self, worker: Worker) -> None:
        while True:
            jobs = await self._queue.take()
            started = time.monotonic()
            self._under_way[worker] = jobs
            try:
                answers = await self._ask(worker, jobs)
                self._queue.done(jobs, time.monotonic() - started)
                for job, answer in zip(jobs, answers, strict=True):
                    job.finish(answer)
            except (Gone, OutOfMemory) as error:
                self._queue.done(jobs)
                died = WorkerDied(f"A model process died twice on this request: {error}. Send less at once.")
                self._again(jobs, died if isinstance(error, Gone) else error)
                del self._under_way[worker]
                await self._restart(worker, error)
            except Exception as error:
                self._queue.done(jobs)
                self._again(jobs, error)
            finally:
                self._under_way.pop(worker, None)

    async def _ask(self, worker: Worker, jobs: Sequence[Job]) -> Sequence[Any]:
        group = jobs[0].group
        if isinstance(group, Call):
            seconds = self.seconds * (LONG if group.long else 1)
            return [await worker.call(seconds, group.model, group.function, *group.arguments)]
        excerpts = [job.excerpt for job in jobs]
        answers: list[dict[int, list[Translated]]] = await worker.call(
            self.seconds, group.model, translate_batch, excerpts, group
        )
        sentences = sum(map(len, answers))
        self.metrics.batches.add(sentences)
        self.metrics.sentences.add(sentences, model=group.model)
        return answers

    def _again(self, jobs: Sequence[Job], error: Exception) -> None:
        """One of the jobs may be to blame: each that somebody still waits for is tried again, alone. A job that failed
        alone with an error, not by the death of its process, would only fail again."""
        wanted = [job for job in jobs if job.wanted]
        hopeless = [job for job in wanted if job.alone or (len(jobs) == 1 and not isinstance(error, WorkerDied))]
        self._queue.add_again([job for job in wanted if job not in hopeless])
        for job in hopeless:
            job.finish(error=error)

    async def _restart(self, worker: Worker, reason: Exception) -> None:
        print(f"docnmt: restarting a model process: {reason}", file=sys.stderr)
        self.metrics.restarts.add()
        for failures in count():
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            try:
                await worker.start()
                return
            except (Gone, OutOfMemory, DocnmtError) as error:
                print(f"docnmt: the model process did not start: {error}", file=sys.stderr)


# ---- in the processes ----


def options_of(translator: Translator, mode: Mode) -> Options:
    context = None if mode.context else OFF
    return replace(translator.options, nbest=mode.nbest, context=context, glossary=mode.glossary)


def translate_batch(
    translator: Translator, excerpts: Sequence[Excerpt], mode: Mode
) -> list[dict[int, list[Translated]]]:
    return translate_excerpts(translator, options_of(translator, mode), excerpts)
