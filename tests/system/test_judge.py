"""`docnmt judge` and `docnmt judgements`, from files to the table."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from docnmt.judging.store import Store
from tests.judging_samples import NAMES, make_sample, prefer, write_files
from tests.system.conftest import command, environment, start_docnmt

LENGTHS = (8, 9, 8, 10, 8)


@contextmanager
def judging(folder: Path, *options: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The page's address and the process that serves it, which gets SIGTERM in the end."""
    source, one, other = write_files(folder, LENGTHS)
    process = start_docnmt(
        "judge", one, other, "--source", source, "--port", 0, "--store", folder / "j.sqlite", *options
    )
    try:
        told = iter(process.stdout)
        address = next((line.split()[2] for line in told if line.startswith("judge at ")), "")
        assert address, process.stderr.read()
        yield address, process
    finally:
        process.terminate()
        process.communicate(timeout=20)


BROWSER = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # keeps a judge's secret, as one would


def ask(url: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with BROWSER.open(request, timeout=20) as answer:
        return json.load(answer)


def test_a_server_that_is_killed_goes_on_with_all_it_was_told(tmp_path):
    with judging(tmp_path, "--documents", 3) as (address, process):
        ask(f"{address}api/judges", {"name": "Anna"})
        for number in (1, 2, 3, 4):
            told = ask(f"{address}api/questions/{number}", {"judge": "Anna", "choice": "first"})
        assert told["judged"] == 4
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with judging(tmp_path, "--documents", 3) as (address, process):
        assert ask(f"{address}api/judges", {"name": "Anna"})["next"] == 5
        assert ask(f"{address}api/questions/2?judge=Anna")["choice"] == "first"
        process.send_signal(signal.SIGINT)  # Ctrl-C is how it is stopped
        assert process.wait(timeout=20) == 0
    assert not list(tmp_path.glob("j.sqlite-*"))  # a store that was closed is one file


def test_another_sample_needs_another_store(tmp_path):
    source, one, other = write_files(tmp_path, LENGTHS)
    Store(tmp_path / "j.sqlite", make_sample((2, 2))).close()
    done = command("judge", one, other, "--source", source, "--port", 0, "--store", tmp_path / "j.sqlite")
    assert done.code == 2 and "another sample" in done.message


def test_a_port_that_is_taken(tmp_path):
    source, one, other = write_files(tmp_path, LENGTHS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("judge", one, other, "--source", source, "--port", port, "--store", tmp_path / "j.sqlite")
    assert done.code == 2 and f"port {port}" in done.message
    assert not (tmp_path / "j.sqlite").exists()


def test_a_source_that_does_not_fit_is_named_before_anything_is_made(tmp_path):
    source, one, other = write_files(tmp_path, LENGTHS)
    one.write_text("story-0\tPhrase\tSentence\n", encoding="utf-8")
    done = command("judge", one, other, "--source", source, "--store", tmp_path / "j.sqlite")
    assert done.code == 2 and f"{one}, line 1, document story-0: expected 8 sentences, found 1" in done.message
    assert not (tmp_path / "j.sqlite").exists()


def test_without_the_packages_of_the_page_their_pip_line_is_named(tmp_path):
    source, one, other = write_files(tmp_path, LENGTHS)
    words = ["judge", str(one), str(other), "--source", str(source)]
    code = f"import sys; sys.modules['starlette'] = None; from docnmt.cli import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), text=True, capture_output=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "starlette is needed to judge" in done.stderr
    assert re.search(r"pip install .*(starlette|\[serve\])", done.stderr)


# ---- judgements ----


@pytest.fixture
def kept(tmp_path) -> Path:
    path = tmp_path / "kept.sqlite"
    store = Store(path, make_sample((4, 3, 5)))
    prefer(store, "Anna", ">=<<=<<=<")
    prefer(store, "Ben", "==<>=<<<=")
    store.close()
    return path


def test_the_summary_is_printed_and_written(kept, tmp_path):
    paths = {name: tmp_path / f"out.{name}" for name in ("csv", "json", "markdown", "latex")}
    done = command("judgements", kept, *(part for name, path in paths.items() for part in (f"--{name}", path)))
    assert done.code == 0, done.err
    figures = json.loads(paths["json"].read_text(encoding="utf-8"))
    assert figures["systems"] == list(NAMES)
    assert [figures["overall"][name] for name in ("better", "equal", "worse")] == [2, 13, 9]
    said = " ".join(done.out.split())
    for text in (said, paths["markdown"].read_text(encoding="utf-8")):
        assert "37.5 %" in text and "Overall" in text and f"Fleiss' kappa: {figures['agreement']['kappa']:.2f}" in text
    assert r"37.5 \%" in paths["latex"].read_text(encoding="utf-8")
    with open(paths["csv"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = [sum(row["better"] == better for row in rows) for better in ("a", "equal", "b")]
    assert counts == [2, 13, 9]


def test_some_judges_only(kept):
    done = command("judgements", kept, "--judges", "ben")
    assert done.code == 0 and "Ben" in done.out and "Anna" not in done.out
    done = command("judgements", kept, "--judges", "Zoe")
    assert done.code == 2 and "no judgements by 'Zoe' Choose from Anna, Ben." in done.message


def test_stores_that_are_none(tmp_path):
    done = command("judgements", tmp_path / "none.sqlite")
    assert done.code == 2 and "no such file" in done.message
    Store(tmp_path / "new.sqlite", make_sample()).close()
    done = command("judgements", tmp_path / "new.sqlite")
    assert done.code == 2 and "no judgements yet" in done.message
