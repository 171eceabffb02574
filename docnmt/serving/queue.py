"""The queue of work for the model processes: how much may wait, whose turn it is, what goes into a batch."""

from __future__ import annotations

import asyncio
import math
import time
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Any

from docnmt.decoding.excerpts import Excerpt
from docnmt.decoding.terms import Glossary

BATCH = 128  # sentences in a batch
BATCH_CHARACTERS = 24_000  # of a batch with its contexts, about: what a model decodes at once anyway
SMALLEST = 8  # sentences; it does not pay to split fewer among idle processes
WAIT = 0.005  # seconds to wait for more sentences while there is little to do
# Seconds by which each sentence of a document counts as later than the one before it: so a long document does not keep
# short ones waiting, and still gets its turn.
STEP = 0.01

_numbers = count()


class Busy(Exception):
    """Not now: it may be asked for again later."""

    status = 503
    retry_after = 1  # seconds


class Overloaded(Busy):
    """The queue is full."""

    status = 429

    def __init__(self, retry_after: int):
        super().__init__(f"The server is overloaded. Try again in {retry_after} s.")
        self.retry_after = retry_after


@dataclass(frozen=True)
class Mode:
    """How sentences are translated; those of one mode can be in one batch."""

    model: str
    context: bool = True
    nbest: int = 1
    glossary: Glossary | None = None


@dataclass(frozen=True, eq=False)
class Call:
    """Something else that a process is to do; each is a group by itself."""

    model: str
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    long: bool
    number: int = field(default_factory=_numbers.__next__)


@dataclass(eq=False)
class Job:
    group: Mode | Call
    finished: asyncio.Queue[Job]  # where it is put when it has an answer or an error
    position: int = 0  # among the jobs of its request
    excerpt: Excerpt | None = None
    arrived: float = field(default_factory=time.monotonic)
    alone: bool = False  # it failed with others before: now it goes in a batch of its own
    wanted: bool = True  # somebody still waits for it
    answer: Any = None
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.order = (self.arrived + STEP * self.position, next(_numbers))

    @property
    def size(self) -> int:
        return len(self.excerpt) if self.excerpt else 1

    def finish(self, answer: Any = None, error: Exception | None = None) -> None:
        self.answer, self.error = answer, error
        self.finished.put_nowait(self)


class Queue:
    def __init__(self, room: int, workers: int, patience: float):
        """Room for `room` sentences, or for as many as can be done in `patience` seconds if that is fewer."""
        self.room, self.workers, self.patience = room, workers, patience
        self.waiting = 0  # sentences
        self._groups: dict[Mode | Call, list[Job]] = {}  # each in the order of their turns; no list is empty
        self._arrived = asyncio.Event()
        self._idle = 0  # processes without work
        self._long = 0  # processes that do something long
        self._pace = 0.0  # seconds a process takes for a sentence, a moving average

    def admit(self, sentences: int) -> None:
        """Raises Overloaded if there is no room. A request that finds the queue empty is never too large."""
        delay = self.waiting * self._pace / self.workers
        if self.waiting and (self.waiting + sentences > self.room or delay > self.patience):
            raise Overloaded(math.ceil(min(max(1, delay), 60)))

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            insort(self._groups.setdefault(job.group, []), job, key=attrgetter("order"))
            self.waiting += job.size
        self._arrived.set()

    def add_again(self, jobs: Sequence[Job]) -> None:
        """Jobs that failed in a batch: each is tried again, alone."""
        for job in jobs:
            job.alone = True
        self.add(jobs)

    def give_up(self, jobs: Sequence[Job]) -> None:
        """Jobs of one group that nobody waits for any more: those not yet taken are removed."""
        for job in jobs:
            job.wanted = False
        group = jobs[0].group if jobs else None
        if group in self._groups:  # in one go: a request may have thousands
            kept = [job for job in self._groups[group] if job.wanted]
            self.waiting -= sum(job.size for job in self._groups[group]) - sum(job.size for job in kept)
            self._groups[group] = kept
            if not kept:
                del self._groups[group]

    async def take(self) -> list[Job]:
        """The next batch for a process, once there is one."""
        self._idle += 1
        try:
            while True:
                group = self._next()
                if group is None:
                    self._arrived.clear()
                    await self._arrived.wait()
                    continue
                first, count = self._groups[group][0], len(self._groups[group])
                early = first.arrived + WAIT - time.monotonic()
                if early <= 0 or isinstance(group, Call) or first.alone or count >= BATCH:
                    return self._batch(group)
                await asyncio.sleep(early)  # others may come, or another process may take these
        finally:
            self._idle -= 1

    def done(self, jobs: Sequence[Job], seconds: float | None = None) -> None:
        """A process is through with a batch, in `seconds`; None if it failed."""
        group = jobs[0].group
        if isinstance(group, Mode) and seconds is not None:
            pace = seconds / sum(job.size for job in jobs)
            self._pace = 0.8 * self._pace + 0.2 * pace if self._pace else pace
        elif isinstance(group, Call) and group.long:
            self._long -= 1
            self._arrived.set()  # another long one may have waited for this

    def _next(self) -> Mode | Call | None:
        """The group whose first job is due first. Long calls wait while all processes but one are busy with others."""
        full = self._long >= max(1, self.workers - 1)
        ready = (group for group in self._groups if not (full and isinstance(group, Call) and group.long))
        return min(ready, key=lambda group: self._groups[group][0].order, default=None)

    def _batch(self, group: Mode | Call) -> list[Job]:
        waiting = self._groups[group]
        share = math.ceil(sum(job.size for job in waiting[:BATCH]) / max(1, self._idle))
        most = min(BATCH, max(SMALLEST, share))
        end = sentences = characters = 0
        for job in waiting:
            sentences += job.size
            characters += job.excerpt.characters if job.excerpt else 0
            if end and (job.alone or waiting[0].alone or sentences > most or characters > BATCH_CHARACTERS):
                break
            end += 1
        if isinstance(group, Call) and group.long:
            self._long += 1
        taken = waiting[:end]
        del waiting[:end]
        if not waiting:
            del self._groups[group]
        self.waiting -= sum(job.size for job in taken)
        return taken
