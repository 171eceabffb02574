"""Whose turn it is, what goes together, and how much may wait."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.decoding.excerpts import Excerpt
from docnmt.serving.queue import BATCH, SMALLEST, WAIT, Call, Job, Mode, Overloaded, Queue

FR, EN = Mode("fr-en"), Mode("en-fr")


def jobs(count: int, group: Mode | Call = FR, arrived: float = 0.0, text: str = "a") -> list[Job]:
    """The sentences of a document that came in at some time."""
    finished: asyncio.Queue[Job] = asyncio.Queue()
    return [Job(group, finished, n, Excerpt.of_texts([text]), arrived) for n in range(count)]


def call(long: bool = False, arrived: float = 0.0) -> list[Job]:
    return [Job(Call("fr-en", print, (), long), asyncio.Queue(), arrived=arrived)]


def taken(queue: Queue) -> list[Job]:
    return asyncio.run(asyncio.wait_for(queue.take(), 5))


def nothing_to_take(queue: Queue) -> bool:
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(queue.take(), 0.02))
    return True


@given(st.lists(st.tuples(st.sampled_from([FR, EN]), st.integers(1, 40), st.floats(0, 1)), min_size=1, max_size=8))
def test_everything_is_taken_once_in_batches_of_one_group(requests):
    queue = Queue(10_000, 1, 60)
    added = []
    for group, count, arrived in requests:
        added += jobs(count, group, arrived)
        queue.add(added[-count:])
    found = []
    while queue.waiting:
        batch = taken(queue)
        assert len({job.group for job in batch}) == 1
        assert len(batch) <= BATCH
        assert [job.order for job in batch] == sorted(job.order for job in batch)
        found += batch
    assert len(found) == len(added)
    assert set(map(id, found)) == set(map(id, added))


def test_a_long_document_does_not_keep_a_short_one_waiting():
    queue = Queue(10_000, 1, 60)
    long, short = jobs(1000), jobs(3, arrived=1.0)
    queue.add(long)
    queue.add(short)
    assert set(short) < set(taken(queue))


def test_short_documents_do_not_keep_a_long_one_waiting_for_ever():
    queue = Queue(10_000, 1, 60)
    long = jobs(200)
    queue.add(long)
    waiting = set(long)
    for second in range(1, 10):  # more than a batch every second
        queue.add(jobs(150, arrived=float(second)))
        waiting -= set(taken(queue))
    assert not waiting
    assert queue.waiting > 0


def test_what_comes_soon_after_goes_into_the_same_batch(monkeypatch):
    monkeypatch.setattr("docnmt.serving.queue.WAIT", 0.5)  # a busy machine loses more than the usual 5 ms

    async def run() -> int:
        queue = Queue(100, 1, 60)
        taking = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        queue.add(jobs(1, arrived=time.monotonic()))
        await asyncio.sleep(WAIT)
        queue.add(jobs(1, arrived=time.monotonic()))
        return len(await taking)

    assert asyncio.run(run()) == 2


def test_processes_that_are_free_share_what_there_is():
    async def run(count: int) -> list[int]:
        queue = Queue(1000, 2, 60)
        taking = [asyncio.create_task(queue.take()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add(jobs(count))
        await asyncio.wait(taking, timeout=0.2)
        for task in taking:
            task.cancel()
        return sorted(len(task.result()) for task in taking if task.done() and not task.cancelled())

    assert asyncio.run(run(40)) == [20, 20]
    assert asyncio.run(run(SMALLEST)) == [SMALLEST]  # so little is not worth two


def test_texts_that_are_long_make_small_batches():
    queue = Queue(1000, 1, 60)
    queue.add(jobs(10, text="a" * 10_000))
    assert len(taken(queue)) == 2
    queue = Queue(1000, 1, 60)
    queue.add(jobs(2, text="a" * 1_000_000))
    assert len(taken(queue)) == 1


def test_all_of_a_request_or_nothing_fits():
    queue = Queue(10, 2, 60)
    queue.add(jobs(8))
    with pytest.raises(Overloaded) as error:
        queue.admit(3)
    assert error.value.retry_after >= 1
    assert queue.waiting == 8
    queue.admit(2)
    queue.add(jobs(2))
    taken(queue)
    queue.admit(500)
    queue.add(jobs(500))  # nobody else waits
    assert queue.waiting == 500


def test_what_cannot_be_done_in_time_is_not_taken_on():
    queue = Queue(1000, 2, patience=10)
    queue.done(jobs(10), 10)  # a second a sentence
    queue.add(jobs(25))
    with pytest.raises(Overloaded) as error:
        queue.admit(1)
    assert error.value.retry_after == 13  # 25 sentences, two processes


def test_what_nobody_waits_for_leaves():
    queue = Queue(10, 1, 60)
    stays, leaves = jobs(4), jobs(5)
    queue.add(stays)
    queue.add(leaves)
    queue.give_up(leaves)
    queue.give_up(leaves)
    assert queue.waiting == 4
    assert taken(queue) == stays
    queue.give_up(stays)  # too late, and no harm
    assert queue.waiting == 0
    assert nothing_to_take(queue)


def test_what_failed_is_tried_alone():
    queue = Queue(10, 1, 60)
    again = jobs(3)
    queue.add(jobs(2, arrived=1.0))
    queue.add_again(again)
    assert [taken(queue) for _ in again] == [[job] for job in again]
    assert len(taken(queue)) == 2


def test_one_process_stays_free_of_what_takes_long():
    queue = Queue(10, 2, 60)
    files = [call(long=True, arrived=n) for n in range(2)]
    for file in files:
        queue.add(file)
    assert taken(queue) == files[0]
    assert nothing_to_take(queue)
    queue.add(jobs(1, arrived=9.0))
    assert taken(queue)[0].group == FR
    queue.done(files[0], 1.0)
    assert taken(queue) == files[1]


def test_a_single_process_does_what_takes_long_too():
    queue = Queue(10, 1, 60)
    queue.add(call(long=True))
    assert len(taken(queue)) == 1


def test_calls_are_never_in_one_batch():
    queue = Queue(10, 1, 60)
    calls = [call(arrived=1.0) for _ in range(3)]
    for each in calls:
        queue.add(each)
    assert [taken(queue) for _ in calls] == calls
