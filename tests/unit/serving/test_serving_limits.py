"""What nobody may do to a server: hold connections, keep its event loop, its processes, its memory or its disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from docnmt.decoding.excerpts import Excerpt
from docnmt.judging.app import judging_app
from docnmt.judging.store import Store
from docnmt.serving import pool as pool_module
from docnmt.serving import server as module
from docnmt.serving import web
from docnmt.serving.pool import OutOfMemory, Pool
from docnmt.serving.queue import Mode
from docnmt.serving.uploads import PREFIX, Downloads
from docnmt.serving.worker import Gone, Shelf, Worker
from tests.judging_samples import make_sample
from tests.live_server import Live, connections, is_closed
from tests.serving_fakes import FakeModels, dying_load, languages, load_telling, sleep

HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"


async def silent(scope, receive, send) -> None:
    """An application that answers at once and reads nothing."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


# ---- connections ----


def test_headers_that_do_not_come_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.5)
    with Live(silent) as live, connections(live, 3) as (silence, half, second):
        half.sendall(HEAD)
        second.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert second.recv(1000).startswith(b"HTTP/1.1 200")
        second.sendall(b"GET / HTTP/1.1\r\nHo")  # uvicorn's own limit ends with the first byte
        assert all(is_closed(each, 10) for each in (silence, half, second))


def test_a_request_under_way_is_not_hurried(monkeypatch):
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.3)

    async def slow(scope, receive, send) -> None:
        await asyncio.sleep(0.8)
        await silent(scope, receive, send)

    with Live(slow) as live, connections(live, 1) as (one,):
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 200")


def test_one_address_has_not_all_connections(monkeypatch):
    monkeypatch.setattr(module, "PER_ADDRESS", 3)
    with Live(silent) as live, connections(live, 4) as (*_, last):
        assert last.recv(1000).startswith(b"HTTP/1.1 429")
        assert is_closed(last, 10)


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"POST /translate HTTP/1.1", b"413"), (b"POST /health HTTP/1.1", b"405"), (b"PUT /translate HTTP/1.1", b"405")],
)
def test_what_is_refused_before_its_end_is_not_read_to_its_end(head, status):
    from tests.serving_app import Server

    length = 10**9 if status == b"413" else 5000
    with Live(Server(characters=100).app) as live, connections(live, 1) as (one,):
        one.sendall(head + b"\r\nHost: localhost\r\nContent-Length: %d\r\n\r\nabc" % length)
        assert one.recv(1000).startswith(b"HTTP/1.1 " + status)
        assert is_closed(one, 10)


def test_judging_waits_no_longer_for_a_body(tmp_path, monkeypatch):
    monkeypatch.setattr("docnmt.judging.app._BODY_SECONDS", 0.5)
    app = judging_app(Store(tmp_path / "store", make_sample()))
    with Live(app) as live, connections(live, 1) as (one,):
        one.sendall(b"POST /api/judges HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        one.sendall(b"Content-Length: 100\r\n\r\n{")
        assert one.recv(1000).startswith(b"HTTP/1.1 408")
        assert is_closed(one, 10)


# ---- the event loop ----

HOSTILE = """
import http.client, json, sys
def ask(path, body):
    server = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    server.request("POST", path, body, {"Content-Type": "application/json", "Host": "localhost"})
    answer = server.getresponse()
    answer.read()
    print(path, answer.status)
pairs = [["text", "Une phrase de quelques mots.", "A sentence of some words."]] * 120_000
ask("/page/tmx", json.dumps({"model": "fr-en", "pairs": pairs}))
ask("/page/translate", json.dumps({"documents": [{"sentences": []}] * 300_000}))
ask("/page/translate", json.dumps({"documents": [{"sentences": ["12"] * 10_000}]}))
ask("/page/explanation", "[" + "[]," * 200_000 + "[]]")
ask("/translate", '{"q": [' + "[]," * 200_000 + "[]]}")
ask("/translate", json.dumps({"q": "1. " * 16_000, "source": "fr", "target": "en"}))
"""


@pytest.mark.slow
def test_nothing_keeps_the_event_loop_for_long():
    with Live() as live:
        done = subprocess.run([sys.executable, "-c", HOSTILE, str(live.port)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        statuses = [line.split() for line in done.stdout.splitlines()]
        assert [status for _, status in statuses] == ["200", "400", "200", "400", "400", "200"]
        assert live.blocked < 0.05


# ---- processes ----


def run(work, **options):
    async def running():
        models = options.pop("models", FakeModels(load_telling))
        async with Pool({"one": "fr-en"}, **({"workers": 1, "models": models} | options)) as pool:
            return await work(pool)

    return asyncio.run(asyncio.wait_for(running(), 120))


def test_the_process_of_what_nobody_waits_for_is_ended(monkeypatch):
    monkeypatch.setattr(pool_module, "GRACE", 0.1)

    async def work(pool: Pool) -> None:
        left = asyncio.create_task(pool.call(sleep, 100, long=True))
        await asyncio.sleep(0.3)
        left.cancel()
        assert await pool.call(languages, "x") == ("fr", "en", "x")  # it waits for the new process
        assert pool.metrics.restarts.values == {(): 1}
        assert pool._queue.waiting == 0 and not pool._under_way

    run(work)


def test_a_process_whose_work_is_awaited_by_one_of_many_goes_on(monkeypatch):
    monkeypatch.setattr(pool_module, "GRACE", 0.1)

    async def texts(pool: Pool, *sentences: str) -> list[str]:
        return [best.text async for _, (best,) in pool.translate(Excerpt.of_texts(sentences), Mode(pool.default))]

    async def work(pool: Pool) -> None:
        leaves, stays = (asyncio.create_task(texts(pool, word)) for word in ("SLEEP 0.7", "a"))
        await asyncio.sleep(0.3)
        leaves.cancel()
        assert await stays == ["¡ a []"]
        assert not pool.metrics.restarts.values

    run(work)


def take_memory(translator, size: int) -> int:
    return len(bytearray(size))


def test_a_process_that_takes_too_much_memory_dies_alone():
    async def work(pool: Pool) -> None:
        assert await pool.call(take_memory, 10 << 20) == 10 << 20
        with pytest.raises(OutOfMemory, match=r"more than its 300 MB of memory \(--memory\)"):
            await pool.call(take_memory, 400 << 20)
        assert await pool.call(take_memory, 10 << 20) == 10 << 20
        assert pool.metrics.restarts.values == {(): 1}

    run(work, memory=300 << 20)


def test_the_end_of_a_process_is_told_in_words():
    async def dies() -> None:
        worker = Worker({"one": "fr-en"}, FakeModels(dying_load), 1 << 30)
        with pytest.raises(Gone, match="it ended with status 1"):
            await worker.start()
        worker.stop()

    asyncio.run(dies())
    for message in ("a\n  Do b.", "a", "a."):
        assert web.in_sentences(message).endswith(".")
    assert web.in_sentences("x.txt: is empty\n  Give another one") == "x.txt: is empty. Give another one."


def test_models_are_loaded_when_they_are_asked_for_and_the_oldest_go():
    loaded: list[str] = []

    def load(folder: str):
        loaded.append(folder)
        return load_telling(folder)

    shelf = Shelf({name: name for name in ("fr-en", "de-en", "es-en")}, FakeModels(load, bytes=40), room=100)
    for name in ("fr-en", "de-en", "fr-en", "es-en"):
        assert shelf.get(name).card.source_language == name[:2]
    assert loaded == ["fr-en", "de-en", "es-en"]
    assert [name in shelf for name in shelf.folders] == [True, False, True]
    shelf.get("de-en")
    assert loaded[-1] == "de-en" and "fr-en" not in shelf
    tight = Shelf({"fr-en": "fr-en"}, FakeModels(load, bytes=400), room=100)
    assert tight.get("fr-en")  # one that is too large by itself is tried


# ---- the disk ----


def test_what_a_killed_server_left_is_removed_when_the_next_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / f"{PREFIX}killed"
    killed.mkdir()
    (killed / "letter.en.txt").write_text("private")
    other = tmp_path / "docnmt-notes"
    other.mkdir()
    long_ago = time.time() - 3600
    os.utime(killed, (long_ago, long_ago))
    first = Downloads()
    assert not killed.exists() and other.exists()
    kept = Path(first.scratch.path)
    os.utime(kept, (long_ago, long_ago))
    second = Downloads()
    assert kept.exists(), "another server's, which is at work"
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == [other]


def test_what_was_killed_a_moment_ago_is_removed_and_what_starts_is_not(tmp_path, monkeypatch):
    """A server that is restarted as soon as it dies is the common case."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, starting = Downloads(), tmp_path / f"{PREFIX}starting"
    (killed.scratch.path / "letter.en.txt").write_text("private")
    assert killed.scratch._lock is not None
    os.close(killed.scratch._lock)  # as when its process ends
    starting.mkdir()
    with contextlib.closing(Downloads()) as server:
        assert sorted(tmp_path.iterdir()) == sorted([server.scratch.path, starting])
