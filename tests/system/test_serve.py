"""`docnmt serve` as people run it: a process on a port, and a published client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from docnmt.serving.requests import Detector, subwords_of
from docnmt.serving.worker import FOLDERS
from tests.system.conftest import Result, Tiny, command, environment

LIMIT = 60  # seconds for anything


class Live:
    """A server in a process of its own."""

    def __init__(self, *arguments: object):
        words = [sys.executable, "-m", "docnmt", "serve", *map(str, arguments), "--port", "0", "--workers", "1"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(words, env=environment(), text=True, **pipes)
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line)
            if "http://" in line:
                self.url = line.split()[0].rstrip("/")
                break
        else:
            raise AssertionError("".join(self.said))

    def post(self, path: str, **fields: object) -> dict:
        body, headers = json.dumps(fields).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)

    def translate(self, q: object, **more: object) -> dict:
        return self.post("/translate", q=q, source="fr", target="en", **more)

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=LIMIT) as answer:
            return answer.read().decode()

    def stop(self) -> int:
        self.process.terminate()
        self.said += self.process.stdout
        return self.process.wait(LIMIT)


@pytest.fixture(scope="module")
def live(models: dict[str, Path]) -> Iterator[Live]:
    server = Live(models["document"], models["sentence"])
    yield server
    server.stop()


@pytest.fixture(scope="module")
def text(tiny: Tiny) -> str:
    """A few paragraphs, each line of several sentences."""
    lines = (tiny.folder / "corpus" / "dev.fr").read_text(encoding="utf-8").splitlines()
    return "\n\n".join(" ".join(lines[start : start + 4]) for start in (0, 4, 8)) + "\n"


def translated(model: Path, text: str, folder: Path, *options: str) -> str:
    """What the command line makes of it."""
    (folder / "text.txt").write_text(text, encoding="utf-8")
    done: Result = command("translate", model, folder / "text.txt", *options)
    assert done.code == 0, done.err
    return done.out


def test_answers_are_those_of_docnmt_translate(live, models, text, tmp_path):
    with_context, without = (translated(models["document"], text, tmp_path, *o) for o in ((), ("--context", "off")))
    assert with_context != without
    assert live.translate(text) == {"translatedText": with_context}
    assert live.translate(text, context=False) == {"translatedText": without}
    assert live.translate(text, model="sentence") == {"translatedText": translated(models["sentence"], text, tmp_path)}
    parts = text.split("\n\n")
    assert "\n\n".join(live.translate(parts)["translatedText"]) == with_context  # a list is one document


def test_many_at_once_get_their_own(live, models, tiny, tmp_path):
    lines = (tiny.folder / "corpus" / "dev.fr").read_text(encoding="utf-8").splitlines()
    texts = [" ".join(lines[n : n + 1 + n % 3]) for n in range(0, 48, 3)]
    expected = [translated(models["document"], text, tmp_path) for text in texts]
    found: dict[int, str] = {}

    def ask(n: int) -> None:
        found[n] = live.translate(texts[n])["translatedText"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert [found[n] for n in range(len(texts))] == expected


def test_a_published_client_works_unchanged(live, text):
    package = pytest.importorskip("libretranslatepy", reason="needs libretranslatepy: pip install 'docnmt[dev]'")
    client = package.LibreTranslateAPI(live.url)
    assert client.languages() == [
        {"code": "fr", "name": "French", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]
    assert client.detect(text)[0]["language"] == "fr"
    assert client.translate(text, "fr", "en") == live.translate(text)["translatedText"]
    with pytest.raises(HTTPError) as error:
        client.translate(text, "fr", "de")
    assert json.load(error.value) == {"error": "de is not supported. /languages lists what is."}


def test_html_and_alternatives(live):
    found = live.translate("<p>Le <b>chat</b> dort.</p><p>Il pleut.</p>", format="html", alternatives=1)
    for each in (found["translatedText"], *found["alternatives"]):
        assert each.count("<p>") == each.count("</p>") == 2 and each.count("<b>") == each.count("</b>") == 1


def test_a_file_comes_back_as_the_command_line_makes_it(live, models, text, tmp_path):
    fields = {'name="source"': "fr", 'name="target"': "en", 'name="file"; filename="a.txt"': text}
    parts = (f"--x\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n" for name, value in fields.items())
    body = "".join([*parts, "--x--\r\n"]).encode()
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(f"{live.url}/translate_file", body, headers)
    url = json.load(urllib.request.urlopen(request, timeout=LIMIT))["translatedFileUrl"]
    assert live.get(url.removeprefix(live.url)) == translated(models["document"], text, tmp_path)


def test_it_says_what_it_serves_and_only_to_this_machine(live):
    said = "".join(live.said)
    assert "document: French to English, sees 2 sentences before" in said
    assert "sentence: French to English, single sentences" in said
    assert live.url.startswith("http://127.0.0.1:")
    live.translate("Le chat dort.")
    assert "docnmt_batch_sentences_count" in live.get("/metrics")


def test_a_process_that_is_killed_is_replaced(live, text):
    before = live.translate(text)
    threads = Path(f"/proc/{live.process.pid}/task").iterdir()
    children = [pid for thread in threads for pid in (thread / "children").read_text().split()]
    command_lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    (worker,) = (pid for pid, line in command_lines.items() if b"spawn_main" in line)
    os.kill(worker, signal.SIGKILL)
    assert live.translate(text) == before
    assert "docnmt_worker_restarts_total 1" in live.get("/metrics")


def test_a_client_that_hangs_up_is_not_worked_for(live, text):
    body = json.dumps({"q": [text] * 30, "source": "fr", "target": "en"}).encode()
    host, port = live.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /translate HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json"
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        deadline = time.monotonic() + LIMIT
        while "docnmt_queue_sentences 0" in live.get("/metrics") and time.monotonic() < deadline:
            pass
    while 'status="499"} 1' not in live.get("/metrics") and time.monotonic() < deadline:
        pass
    assert "docnmt_queue_sentences 0" in live.get("/metrics")


def test_a_stop_lets_requests_finish(models, text):
    live = Live(models["document"], "--queue", "100")
    answers: list[dict] = []
    asking = [threading.Thread(target=lambda: answers.append(live.translate(text))) for _ in range(6)]
    for thread in asking:
        thread.start()
    deadline = time.monotonic() + LIMIT
    while "docnmt_queue_sentences 0" in live.get("/metrics") and not answers and time.monotonic() < deadline:
        pass
    assert live.stop() == 0
    for thread in asking:
        thread.join(LIMIT)
    assert len(answers) == 6 and all(answer == answers[0] for answer in answers)
    assert live.said[-1] == "stopped\n"


def test_a_port_that_is_taken_and_models_that_are_none_are_told(live, tmp_path, monkeypatch):
    port = live.url.rpartition(":")[2]
    monkeypatch.chdir(tmp_path)
    for arguments, told in (
        ((), "no model is given, and there is no demo model at runs/demo/document/model"),
        ((tmp_path,), "not a model folder"),
        ((live_model(live), "--port", port), f"cannot listen on 127.0.0.1, port {port}"),
        ((live_model(live), "--host", "203.0.113.1"), "cannot listen on 203.0.113.1"),
        ((live_model(live), "--keys", tmp_path / "none"), "cannot be read"),
        ((live_model(live), "--queue", "0"), "--queue 0"),
        ((live_model(live), "--workers", "-1"), "--workers -1"),
    ):
        done = command("serve", *arguments)
        assert done.code == 2
        assert told in done.message


def test_what_is_not_installed_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = command("serve", model)
    assert done.code == 2
    assert f"uvicorn is needed to serve Install it: {sys.executable} -m pip install " in done.message


def live_model(live: Live) -> str:
    return live.process.args[4]  # type: ignore[index]


def test_languages_are_told_apart_by_sub_words(models, tiny):
    info = FOLDERS.describe("document", str(models["document"]))
    detector = Detector(subwords_of([info]))
    for side, language in (("fr", "fr"), ("en", "en")):
        lines = (tiny.folder / "corpus" / f"dev.{side}").read_text(encoding="utf-8").split("\n")
        lines = [line for line in lines if len(line) > 20][:50]
        right = sum(detector.languages(line)[0][0] == language for line in lines)
        assert right >= 48
    assert dict(detector.languages("12 %")) == {"fr": 0.5, "en": 0.5}
