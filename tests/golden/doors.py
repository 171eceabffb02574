"""The ways in that users have: the command line in this process, model folders, a server in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from docnmt.cli import main
from tests.golden.record import HERE

MODEL = HERE / "model"  # made once, by model.toml; never made again


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def command(*arguments: object, stdin: str = "") -> Said:
    """`docnmt ...` in this process, by one thread and on a wide terminal."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True), io.StringIO()
    before = sys.stdin, warnings.showwarning, torch.get_num_threads(), dict(os.environ)
    os.environ |= {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    torch.set_num_threads(1)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode())), encoding="utf-8")  # type: ignore[arg-type]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as stopped:
                code = stopped.code if isinstance(stopped.code, int) else 1
    finally:
        sys.stdin, warnings.showwarning = before[:2]
        torch.set_num_threads(before[2])
        os.environ.clear()
        os.environ.update(before[3])
    return Said(code, out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]


def done(*arguments: object, stdin: str = "") -> str:
    """What a command that must succeed prints."""
    said = command(*arguments, stdin=stdin)
    assert said.code == 0, f"docnmt {' '.join(map(str, arguments))}\n{said.err}"
    return said.out


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """An empty current folder, so that no path of this machine is in what is recorded."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path(name)


def environment(**changed: str) -> dict[str, str]:
    root = str(HERE.parents[1])
    return {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1", **changed}


# ---- a server ----


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Server:
    def __init__(self, *arguments: object):
        words = [sys.executable, "-m", "docnmt", "serve", *map(str, arguments), "--port", "0", "--workers", "1"]
        self.process = subprocess.Popen(words, env=environment(), text=True, stdout=subprocess.PIPE)
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("http://"):
                self.host = line.split()[0].removeprefix("http://").rstrip("/")
                return
        raise AssertionError("".join(self.said))

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body or None, named)
            answer = connection.getresponse()
            read = answer.read()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, read)
        finally:
            connection.close()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


# ---- the one place that knows names from inside the package ----
#
# docs/files.md has translate_bytes as part of the Python API; a translator that is a plain function, with words aligned
# where they are the same, can get in nowhere else.


def translated(data: bytes, name: str, say: Callable[[str], str]) -> bytes:
    """A file whose sentences are translated by `say`."""
    import docnmt.decoding.excerpts as excerpts
    import docnmt.decoding.files as files
    from docnmt.decoding.translator import Options, TranslatedDocument, TranslatedSentence
    from docnmt.decoding.units import SENTENCE_RULE

    def translate_documents(documents: Any, **_: Any) -> Any:
        for document in documents:
            texts = (say(sentence) if sentence else "" for sentence in document.sentences)
            yield TranslatedDocument(document.id, tuple(TranslatedSentence((text,), (0.0,)) for text in texts))

    fake: Any = SimpleNamespace(
        options=Options(),
        card=SimpleNamespace(languages=("fr", "en")),
        rule=lambda context: SENTENCE_RULE,
        translate_documents=translate_documents,
    )
    original = excerpts.align
    excerpts.align = lambda _, pairs: [_same_words(*pair) for pair in pairs]  # type: ignore[assignment]
    try:
        return files.translate_bytes(fake, data, name)
    finally:
        excerpts.align = original


def _same_words(source: str, target: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The n-th time that a word is in one is the n-th time that it is in the other."""
    import re

    def places(text: str) -> dict[tuple[str, int], tuple[int, int]]:
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for match in re.finditer(r"\w+", text):
            word = match[0].casefold()
            found[word, sum(known == word for known, _ in found)] = match.span()
        return found

    here, there = places(source), places(target)
    return [(span, there[word]) for word, span in here.items() if word in there]
