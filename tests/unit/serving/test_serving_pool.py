"""Model processes: everybody gets their own sentences back, whatever happens to others' and to the processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.decoding.excerpts import Excerpt
from docnmt.serving.pool import Pool, TimedOut, WorkerDied
from docnmt.serving.queue import Mode, Overloaded
from docnmt.serving.worker import CallFailed
from tests.serving_fakes import (
    FakeModels,
    dying_load,
    expected,
    languages,
    load_remembering,
    load_telling,
    refuse,
    refusing_load,
    sleep,
)

pytestmark = pytest.mark.slow  # each starts processes


def with_pool(work: Callable[[Pool], Awaitable[Any]], load=load_telling, **options) -> Any:
    async def run() -> Any:
        folders = {"one": "fr-en", "two": "en-fr"}
        async with Pool(folders, models=FakeModels(load), **({"workers": 1, "seconds": 60} | options)) as pool:
            return await work(pool)

    return asyncio.run(asyncio.wait_for(run(), 120))


async def texts(pool: Pool, sentences: list[str], model="one", context=True, deadline=None) -> list[str]:
    document, mode = Excerpt.of_texts(sentences), Mode(model, context)
    found = {place: best.text async for place, (best,) in pool.translate(document, mode, deadline=deadline)}
    assert sorted(found) == list(range(len(sentences)))
    return [found[n] for n in range(len(sentences))]


def all_expected(sentences: list[str], context: bool = True) -> list[str]:
    return [expected(sentences, n, context) for n in range(len(sentences))]


@pytest.mark.parametrize("load", [load_telling, load_remembering])
def test_nobody_sees_the_sentences_of_others(load):
    """Many requests at once, of all sizes: each answer is a function of its own document alone."""
    words = st.text("abcdé", min_size=1, max_size=6)
    requests = st.lists(
        st.tuples(st.lists(words, max_size=12), st.booleans(), st.sampled_from(["one", "two"])), min_size=1, max_size=20
    )

    async def work(pool: Pool) -> None:
        loop = asyncio.get_running_loop()

        async def check(found) -> None:
            asked = (texts(pool, sentences, context=context, model=model) for sentences, context, model in found)
            for (sentences, context, _), got in zip(found, await asyncio.gather(*asked), strict=True):
                assert got == all_expected(sentences, context)

        @settings(max_examples=30, deadline=None)
        @given(requests)
        def prove(found) -> None:
            asyncio.run_coroutine_threadsafe(check(found), loop).result()

        await asyncio.to_thread(prove)
        batches = pool.metrics.batches.counts[()]
        assert sum(batches) > sum(batches[:2]), "some batches had many sentences"

    with_pool(work, load, workers=2)


def test_what_can_be_asked():
    async def work(pool: Pool) -> None:
        assert pool.default == "one"
        languages_of = {name: (info.source_language, info.target_language) for name, info in pool.models.items()}
        assert languages_of == {"one": ("fr", "en"), "two": ("en", "fr")}
        assert pool.models["one"].uses_context and not pool.models["one"].in_order
        assert pool.alive == 1

        assert await texts(pool, []) == []
        document = Excerpt.of_texts(["a", "12 %"])
        found = {n: [each.text for each in r] async for n, r in pool.translate(document, Mode("one", nbest=3))}
        assert found[0] == [expected(["a"], 0, rank=rank) for rank in range(3)]
        assert found[1] == ["12 %"]  # no words
        more = [r async for _, r in pool.translate(Excerpt.of_texts(["a"]), Mode("one", nbest=99))]
        assert len(more[0]) == pool.models["one"].most

        assert await pool.call(languages, "x") == ("fr", "en", "x")
        assert await pool.call(languages, "y", model="two") == ("en", "fr", "y")

    with_pool(work)


def test_a_full_queue_takes_nothing_more():
    async def work(pool: Pool) -> None:
        busy = asyncio.create_task(texts(pool, ["SLEEP 0.3"]))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(texts(pool, ["a"] * 5))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as error:
            await texts(pool, ["b"])
        assert error.value.retry_after >= 1
        assert await waiting == all_expected(["a"] * 5)
        await busy
        assert await texts(pool, ["b"]) == all_expected(["b"])

    with_pool(work, room=5)


def test_a_request_that_is_given_up_leaves_the_queue():
    async def work(pool: Pool) -> None:
        busy = asyncio.create_task(texts(pool, ["SLEEP 0.3"]))
        await asyncio.sleep(0.1)
        given_up = asyncio.create_task(texts(pool, ["a"] * 50))
        async with aclosing(pool.translate(Excerpt.of_texts(["b"] * 50), Mode("one"))) as closed:
            closing = asyncio.create_task(anext(closed))
            await asyncio.sleep(0)
            assert pool._queue.waiting == 100
            given_up.cancel()
            closing.cancel()
            await asyncio.gather(given_up, closing, return_exceptions=True)
        assert pool._queue.waiting == 0
        await busy
        assert pool.metrics.sentences.values == {(("model", "one"),): 1}

    with_pool(work)


def test_time_limits():
    async def work(pool: Pool) -> None:
        with pytest.raises(TimedOut):
            await texts(pool, ["SLEEP 0.5"], deadline=time.monotonic() + 0.05)
        with pytest.raises(TimedOut):
            await pool.call(sleep, 0.2, deadline=time.monotonic() + 0.05)
        assert await texts(pool, ["a"]) == all_expected(["a"])
        assert not pool.metrics.restarts.values

    with_pool(work)


def test_a_process_that_hangs_is_ended():
    async def work(pool: Pool) -> None:
        with pytest.raises(TimedOut):
            await texts(pool, ["SLEEP 60"], deadline=time.monotonic() + 0.1)
        assert await texts(pool, ["a"], deadline=time.monotonic() + 20) == all_expected(["a"])
        assert pool.metrics.restarts.values

    with_pool(work, seconds=0.5)


def test_a_process_that_dies_is_replaced_and_its_work_done_again(tmp_path):
    async def work(pool: Pool) -> None:
        sentences = ["a", f"DIE UNLESS {tmp_path}/died", "b"]
        assert await texts(pool, sentences) == all_expected(sentences)
        assert pool.metrics.restarts.values == {(): 1}
        assert pool.alive == 1

    with_pool(work)


def test_what_kills_processes_is_told_and_hurts_nobody_else():
    async def work(pool: Pool) -> None:
        harmless = [[f"{n}{letter}" for letter in "abc"] for n in range(10)]
        asked = [texts(pool, ["a", "DIE"]), *(texts(pool, sentences) for sentences in harmless)]
        deadly, *others = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(deadly, WorkerDied)
        assert others == [all_expected(sentences) for sentences in harmless]

    with_pool(work)


def test_an_error_in_a_batch_is_that_of_one_request_only():
    async def work(pool: Pool) -> None:
        asked = [texts(pool, ["FAIL"]), texts(pool, ["a", "b"]), pool.call(refuse)]
        failed, fine, refused = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(failed, CallFailed) and "as it was told" not in str(failed)
        assert fine == all_expected(["a", "b"])
        assert isinstance(refused, DocnmtError) and str(refused) == "not this"
        assert not pool.metrics.restarts.values

    with_pool(work)


def test_texts_are_not_kept_waiting_by_files():
    async def work(pool: Pool) -> None:
        files = [asyncio.create_task(pool.call(sleep, 0.4, long=True)) for _ in range(2)]
        await asyncio.sleep(0.05)
        started = time.monotonic()
        assert await texts(pool, ["a"]) == all_expected(["a"])
        assert time.monotonic() - started < 0.3
        await asyncio.gather(*files)

    with_pool(work, workers=2)


def test_a_model_that_cannot_be_loaded_is_told():
    async def work(pool: Pool) -> None: ...

    with pytest.raises(DocnmtError, match="no such model"):
        with_pool(work, refusing_load)
    with pytest.raises(DocnmtError, match="died while loading"):
        with_pool(work, dying_load)
