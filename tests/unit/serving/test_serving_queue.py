"""Whose turn it is, what goes together, and how much may wait."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.serving import queue as line_module
from docnmt.serving.excerpts import Excerpt
from docnmt.serving.queue import BATCH, SMALLEST, Call, Group, Job, Line, Overloaded

FR, EN = Group("fr-en", True, 1), Group("en-fr", True, 1)


def jobs(count: int, group: Group | Call = FR, arrived: float = 0.0, text: str = "a") -> list[Job]:
    """The sentences of a document that came in at some time."""
    finished: asyncio.Queue[Job] = asyncio.Queue()
    return [Job(group, finished, n, Excerpt((text,), (0,)), arrived) for n in range(count)]


def call(long: bool = False, arrived: float = 0.0) -> list[Job]:
    return [Job(Call("fr-en", print, (), long), asyncio.Queue(), arrived=arrived)]


def taken(line: Line) -> list[Job]:
    return asyncio.run(asyncio.wait_for(line.take(), 5))


def nothing_to_take(line: Line) -> bool:
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(line.take(), 0.02))
    return True


@given(st.lists(st.tuples(st.sampled_from([FR, EN]), st.integers(1, 40), st.floats(0, 1)), min_size=1, max_size=8))
def test_everything_is_taken_once_in_batches_of_one_group(requests):
    line = Line(10_000, 1, 60)
    added = []
    for group, count, arrived in requests:
        added += jobs(count, group, arrived)
        line.add(added[-count:])
    found = []
    while line.waiting:
        batch = taken(line)
        assert len({job.group for job in batch}) == 1
        assert len(batch) <= BATCH
        assert [job.order for job in batch] == sorted(job.order for job in batch)
        found += batch
    assert len(found) == len(added)
    assert set(map(id, found)) == set(map(id, added))


def test_a_long_document_does_not_keep_a_short_one_waiting():
    line = Line(10_000, 1, 60)
    long, short = jobs(1000), jobs(3, arrived=1.0)
    line.add(long)
    line.add(short)
    assert set(short) < set(taken(line))


def test_short_documents_do_not_keep_a_long_one_waiting_for_ever():
    line = Line(10_000, 1, 60)
    long = jobs(200)
    line.add(long)
    waiting = set(long)
    for second in range(1, 10):  # more than a batch every second
        line.add(jobs(150, arrived=float(second)))
        waiting -= set(taken(line))
    assert not waiting
    assert line.waiting > 0


def test_what_comes_soon_after_goes_into_the_same_batch():
    async def run() -> int:
        line = Line(100, 1, 60)
        taking = asyncio.create_task(line.take())
        await asyncio.sleep(0)
        line.add(jobs(1, arrived=line_module.time.monotonic()))
        await asyncio.sleep(line_module.WAIT / 5)
        line.add(jobs(1, arrived=line_module.time.monotonic()))
        return len(await taking)

    assert asyncio.run(run()) == 2


def test_processes_that_are_free_share_what_there_is():
    async def run(count: int) -> list[int]:
        line = Line(1000, 2, 60)
        taking = [asyncio.create_task(line.take()) for _ in range(2)]
        await asyncio.sleep(0)
        line.add(jobs(count))
        await asyncio.wait(taking, timeout=0.02)
        for task in taking:
            task.cancel()
        return sorted(len(task.result()) for task in taking if task.done() and not task.cancelled())

    assert asyncio.run(run(40)) == [20, 20]
    assert asyncio.run(run(SMALLEST)) == [SMALLEST]  # so little is not worth two


def test_texts_that_are_long_make_small_batches():
    line = Line(1000, 1, 60)
    line.add(jobs(10, text="a" * 10_000))
    assert len(taken(line)) == 2
    line = Line(1000, 1, 60)
    line.add(jobs(2, text="a" * 1_000_000))
    assert len(taken(line)) == 1


def test_all_of_a_request_or_nothing_fits():
    line = Line(10, 2, 60)
    line.add(jobs(8))
    with pytest.raises(Overloaded) as error:
        line.add(jobs(3))
    assert error.value.retry_after >= 1
    assert line.waiting == 8
    line.add(jobs(2))
    taken(line)
    line.add(jobs(500))  # nobody else waits
    assert line.waiting == 500


def test_what_cannot_be_done_in_time_is_not_taken_on():
    line = Line(1000, 2, patience=10)
    line.done(jobs(10), 10)  # a second a sentence
    line.add(jobs(25))
    with pytest.raises(Overloaded) as error:
        line.add(jobs(1))
    assert error.value.retry_after == 13  # 25 sentences, two processes


def test_what_nobody_waits_for_leaves():
    line = Line(10, 1, 60)
    stays, leaves = jobs(4), jobs(5)
    line.add(stays)
    line.add(leaves)
    line.remove(leaves)
    line.remove(leaves)
    assert line.waiting == 4
    assert taken(line) == stays
    line.remove(stays)  # too late, and no harm
    assert line.waiting == 0
    assert nothing_to_take(line)


def test_what_failed_is_tried_alone():
    line = Line(10, 1, 60)
    again = jobs(3)
    line.add(jobs(2, arrived=1.0))
    line.add_again(again)
    assert [taken(line) for _ in again] == [[job] for job in again]
    assert len(taken(line)) == 2


def test_one_process_stays_free_of_what_takes_long():
    line = Line(10, 2, 60)
    files = [call(long=True, arrived=n) for n in range(2)]
    for file in files:
        line.add(file)
    assert taken(line) == files[0]
    assert nothing_to_take(line)
    line.add(jobs(1, arrived=9.0))
    assert taken(line)[0].group == FR
    line.done(files[0], 1.0)
    assert taken(line) == files[1]


def test_a_single_process_does_what_takes_long_too():
    line = Line(10, 1, 60)
    line.add(call(long=True))
    assert len(taken(line)) == 1


def test_calls_are_never_in_one_batch():
    line = Line(10, 1, 60)
    calls = [call(arrived=1.0) for _ in range(3)]
    for each in calls:
        line.add(each)
    assert [taken(line) for _ in calls] == calls
