"""What nobody may do to a server: hold connections, keep its event loop, its processes, its memory or its disk."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import socket
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
from docnmt.serving.pool import Pool
from docnmt.serving.queue import Mode
from docnmt.serving.server import listen
from docnmt.serving.uploads import FILES, PREFIX, Downloads
from docnmt.serving.worker import Gone, OutOfMemory, Shelf, Worker
from tests.judging_samples import make_sample
from tests.live_server import Live, connections, is_closed
from tests.serving_fakes import FakeModels, dying_load, languages, load_telling, sleep

HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(autouse=True)
def hurried(monkeypatch) -> None:
    monkeypatch.setattr(web, "REST_SECONDS", 0.3)


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
def ask(path, body, kind="application/json", **headers):
    server = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    server.request("POST", path, body, {"Content-Type": kind, "Host": "localhost", **headers})
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
asked = {"q": "Une phrase.", "source": "fr", "target": "en"}
ask("/translate", json.dumps({**asked, "q": ["a"] * 120_000}))
ask("/translate", json.dumps({**asked, "glossary": {"e" + "\u0301" * 100_000: "a"}}))
ask("/translate", json.dumps({**asked, "glossary": {f"{n}" + "\u0323\u0301" * 95: "a" for n in range(400)}}))
documents = [{"sentences": ["Une phrase."]}]
glossary = {f"mot{n}": "word" for n in range(300_000)}
ask("/page/translate", json.dumps({"documents": documents, "glossary": glossary}))
ask("/page/translate", json.dumps({"documents": documents, "context": [[]] * 1_000_000}))
ask("/page/translate", json.dumps({"documents": documents, "model": {"a": [[]] * 1_000_000}}))
form = "application/x-www-form-urlencoded"
ask("/translate", "source=fr&target=en&q=" + "%41" * 200_000, form)
ask("/translate_file", "q=" + "%41" * 3_000_000, form)
part = "--x\\r\\nContent-Disposition: form-data; name="
fields = part + '"glossary"\\r\\n\\r\\n' + json.dumps(glossary) + "\\r\\n--x--\\r\\n"
ask("/translate_file", fields, "multipart/form-data; boundary=x")
"""


@pytest.mark.slow
def test_nothing_keeps_the_event_loop_for_long():
    with Live() as live:
        done = subprocess.run([sys.executable, "-c", HOSTILE, str(live.port)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        statuses = [line.split() for line in done.stdout.splitlines()]
        assert (
            " ".join(status for _, status in statuses) == "200 400 200 400 400 200 400 400 200 400 400 400 400 413 400"
        )
        assert live.blocked < 0.05


@pytest.mark.slow
def test_tiny_chunks_do_not_keep_the_event_loop():
    chunks = b"1\r\n \r\n" * 40_000
    with Live() as live, connections(live, 1) as (one,):
        head = b"POST /page/tmx HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        one.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            one.sendall(chunks)
        assert is_closed(one, 10)
        assert live.blocked < 0.05


def test_chunks_of_an_ordinary_size_are_taken():
    from tests.serving_app import Server

    body = b'{"q": "a", "source": "fr", "target": "en"' + b" " * 39_000 + b"}"
    pieces = [body[at : at + 65] for at in range(0, len(body), 65)]
    with Live(Server().app) as live, connections(live, 1) as (one,):
        one.sendall(HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        one.sendall(b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_request_with_two_lengths_is_refused():
    with Live(silent) as live, connections(live, 1) as (one,):
        one.sendall(HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 400")
        assert is_closed(one, 10)


def test_small_answers_are_not_held_back():
    """On a connection that is kept, they would wait 40 ms for the client's last packet to be confirmed."""
    with listen("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_client_that_is_busy_sending_still_gets_its_answer():
    from tests.serving_app import Server

    with Live(Server(characters=100).app) as live:
        client = http.client.HTTPConnection("127.0.0.1", live.port, timeout=20)
        client.request("POST", "/translate", b" " * (8 << 20), {"Content-Type": "text/plain", "Host": "localhost"})
        assert client.getresponse().status == 413


def test_bodies_of_all_requests_together_have_a_limit(monkeypatch):
    from tests.serving_app import Server

    monkeypatch.setattr(web, "HELD", 100_000)
    server = Server()
    head = HEAD + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with Live(server.app) as live, connections(live, 2) as (slow, one):
        slow.sendall(head % 90_001 + b" " * 90_000)
        time.sleep(0.3)
        one.sendall(head % 20_000 + b" " * 20_000)
        assert one.recv(1000).startswith(b"HTTP/1.1 429")
        slow.sendall(b"}")
        assert slow.recv(1000).startswith(b"HTTP/1.1 400")
    assert server.translate("a" * 9_000).status_code == 200, "what was held has been let go"


def test_a_body_that_does_not_come_takes_no_place_for_files():
    from tests.serving_app import Server

    head = b"POST /page/tmx HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Live(Server().app) as live, connections(live, FILES + 1) as (*waiting, one):
        for each in waiting:
            each.sendall(head + b"Content-Length: 1000\r\n\r\n{")
        time.sleep(0.3)
        one.sendall(head + b"Content-Length: 13\r\n\r\n" + b'{"pairs": []}')
        assert one.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_client_that_leaves_while_it_sends_is_no_failure_of_the_server():
    from tests.serving_app import Server

    server = Server()
    with Live(server.app) as live, connections(live, 1) as (one,):
        one.sendall(HEAD + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        time.sleep(0.3)
        one.close()
        time.sleep(0.3)
    assert [dict(labels)["status"] for labels in server.pool.metrics.requests.values] == ["499"]


# ---- processes ----


def run(work, **options):
    async def running():
        models = options.pop("models", FakeModels(load_telling))
        async with Pool({"one": "fr-en"}, **({"workers": 1, "models": models} | options)) as pool:
            return await work(pool)

    return asyncio.run(asyncio.wait_for(running(), 120))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        assert shelf.get(name).card.languages[0] == name[:2]
    assert loaded == ["fr-en", "de-en", "es-en"]
    assert [name in shelf for name in shelf.folders] == [True, False, True]
    shelf.get("de-en")
    assert loaded[-1] == "de-en" and "fr-en" not in shelf
    tight = Shelf({"fr-en": "fr-en"}, FakeModels(load, bytes=400), room=100)
    assert tight.get("fr-en")  # one that is too large by itself is tried


SERVER = """
import asyncio, os
from docnmt.serving.pool import Pool
from tests.serving_fakes import FakeModels, load_telling, sleep
async def serve():
    async with Pool({"one": "fr-en"}, workers=1, models=FakeModels(load_telling)) as pool:
        print(pool._workers[0]._process.pid, flush=True)
        await pool.call(sleep, 100)
if __name__ == "__main__":
    asyncio.run(serve())
"""


@pytest.mark.slow
def test_the_processes_of_a_killed_server_end_though_they_are_at_work(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        time.sleep(0.3)
        server.kill()
    until = time.monotonic() + 20
    while _runs(worker) and time.monotonic() < until:
        time.sleep(0.05)
    still_there = _runs(worker)
    if still_there:
        os.kill(worker, signal.SIGKILL)
    assert not still_there


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


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
