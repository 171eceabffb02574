"""Documents of any length through the queue: asked for in stretches, each with the context it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from docnmt.decoding.results import TranslatedSentence
from docnmt.decoding.terms import Glossary
from docnmt.serving.models import ModelInfo
from docnmt.serving.pool import Overloaded, Pool

LENGTH = 64  # sentences asked for at a time: a long text must not fill the queue, nor run out of time
ABREAST = 4  # stretches at a time
PATIENCE = 5  # times to wait for a place in the queue
ALTERNATIVES = 5  # translations of a sentence to choose from

Found = tuple[int, int, TranslatedSentence]  # document, position, result


@dataclass(frozen=True)
class Stretch:
    first: int  # its place in the document
    sentences: Sequence[str]  # with the context of those that are wanted
    wanted: frozenset[int]  # places in `sentences`


@dataclass(frozen=True)
class Wanted:
    """A document, and the places in it to translate; the others are context."""

    sentences: Sequence[str]
    places: Sequence[int]  # in order

    def stretches(self, model: ModelInfo, context: bool) -> Iterator[Stretch]:
        if context and model.in_order:  # it needs its own translations of the sentences before
            if self.places:
                yield Stretch(0, self.sentences, frozenset(self.places))
            return
        before, after = (model.context.previous, model.context.following) if context else (0, 0)
        for start in range(0, len(self.places), LENGTH):
            places = self.places[start : start + LENGTH]
            first = max(0, places[0] - before)
            sentences = self.sentences[first : places[-1] + 1 + after]
            yield Stretch(first, sentences, frozenset(place - first for place in places))


async def translations(
    pool: Pool, documents: Sequence[Wanted], model: ModelInfo, context: bool, glossary: Glossary | None = None
) -> AsyncGenerator[Found, None]:
    """The wanted sentences of all documents as they get done."""
    waiting = ((n, stretch) for n, document in enumerate(documents) for stretch in document.stretches(model, context))
    done: asyncio.Queue[Found | Exception | None] = asyncio.Queue()

    async def work() -> None:
        try:
            for number, stretch in waiting:
                async for place, result in _patiently(pool, stretch.sentences, model, context, glossary):
                    if place in stretch.wanted:
                        done.put_nowait((number, stretch.first + place, result))
            done.put_nowait(None)
        except Exception as error:
            done.put_nowait(error)

    workers = [asyncio.create_task(work()) for _ in range(ABREAST)]
    at_work = len(workers)
    try:
        while at_work:
            found = await done.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                at_work -= 1
            else:
                yield found
                await asyncio.sleep(0)  # many may be done at once, and others have their turn, too
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _patiently(
    pool: Pool, sentences: Sequence[str], model: ModelInfo, context: bool, glossary: Glossary | None
) -> AsyncGenerator[tuple[int, TranslatedSentence], None]:
    """Where the queue is full, once more in a while: a long text must not fail half way for that."""
    for trial in range(PATIENCE + 1):
        answers = pool.translate(sentences, model=model.name, context=context, nbest=ALTERNATIVES, glossary=glossary)
        try:
            async with aclosing(cast(AsyncGenerator[tuple[int, TranslatedSentence], None], answers)) as results:
                async for each in results:
                    yield each
            return
        except Overloaded as error:  # before the first answer: all sentences are taken, or none
            if trial == PATIENCE:
                raise
            await asyncio.sleep(error.retry_after)
