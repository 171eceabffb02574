"""A server under load: nothing wrong, nothing lost, and how fast beside `docnmt translate`.

    python benchmarks/serving.py [--model MODEL] [--corpus FILE] [--seconds 120] [--clients 64] [--malformed 10000]

Starts `docnmt serve` on this machine and asks it, over many connections at once, for texts of a few documents of a
corpus. Every answer is compared with what `docnmt translate` makes of the same text. First the rate that the server
sustains is found, by as many clients as its queue has room for, who ask again as soon as they are answered; then all
clients offer it twice that rate, then half; then come requests that make no sense. The rate of `docnmt translate` is
that of as many processes on the same texts, once they are loaded. The clients run on the same machine and take their
share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle, islice, repeat
from pathlib import Path
from typing import Any

from malformed import malformed
from rich.console import Console
from rich.table import Table

from docnmt.base.files import write_json
from docnmt.corpus.read import read_source
from docnmt.document import Document

DEMO = "runs/demo"
TEXTS = 60  # asked for again and again
LENGTH = 24  # sentences of a text, or a few more
ROOM = 512  # sentences that may wait in the server: fewer than all clients can ask for at once
SILENCE = 30.0  # seconds after which a request counts as not answered


@dataclass(frozen=True)
class Question:
    text: str
    answer: str
    sentences: int


@dataclass
class Outcome:
    """What became of the requests of one phase."""

    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)  # of those that were translated
    sentences: int = 0
    wrong: int = 0

    @property
    def rate(self) -> float:
        return self.sentences / self.seconds

    @property
    def failures(self) -> int:
        """Answers that are wrong, and requests that got no answer or another one than a translation or 429."""
        return self.wrong + sum(n for status, n in self.statuses.items() if status not in ("200", "429"))

    def percentile(self, share: float) -> float:
        found = sorted(self.latencies)
        return found[min(len(found) - 1, int(share * len(found)))] if found else float("nan")


# ---- docnmt translate ----


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def questions(documents: Sequence[Document], model: str) -> list[Question]:
    """Texts, a sentence a line, with what the command line makes of them."""
    texts = ["\n".join(document.sentences) for document in documents]
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{n}.txt" for n in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            Path(name).write_text(text, encoding="utf-8")
        (Path(folder) / "out").mkdir()
        words = [sys.executable, "-m", "docnmt", "translate", model, *names, "-o", f"{folder}/out"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        answers = [(Path(folder) / "out" / Path(name).name).read_text(encoding="utf-8") for name in names]
    return [Question(*each) for each in zip(texts, answers, map(len, documents), strict=True)]


def translate_alone(model: str, corpus: str, seconds: float) -> None:
    """One of the processes beside each other: says when it is ready, and its rate when it was told to go."""
    import torch

    from docnmt.decoding.translator import load

    torch.set_num_threads(1)
    translator, documents = load(model, "cpu"), read_documents(corpus)
    started = time.monotonic()
    sentences = sum(len(result.sentences) for result in translator.translate_documents(documents))
    passes = max(1, round(seconds / (time.monotonic() - started)))
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    for _ in translator.translate_documents(islice(cycle(documents), passes * len(documents))):
        pass
    print(passes * sentences / (time.monotonic() - started), flush=True)


def rate_alone(model: str, corpus: str, workers: int, seconds: float) -> float:
    """Sentences a second of several processes together."""
    words = [sys.executable, __file__, "--alone", "--model", model, "--corpus", corpus, "--seconds", str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(words, env=environment(), **pipes) for _ in range(workers)]  # type: ignore[call-overload]
    for process in running:
        process.stdout.readline()
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def read_documents(corpus: str) -> list[Document]:
    """Documents put together to texts."""
    texts: list[Document] = []
    sentences: list[str] = []
    for document in read_source(corpus):
        sentences += filter(None, document.sentences)
        if len(sentences) >= LENGTH:
            texts.append(Document(str(len(texts)), tuple(sentences)))
            sentences = []
    return texts[:TEXTS] or [Document("0", tuple(sentences))]


# ---- the server and its clients ----


@contextmanager
def server(model: str, workers: int) -> Iterator[int]:
    """Its port."""
    words = [sys.executable, "-m", "docnmt", "serve", model, "--port", "0", "--workers", str(workers)]
    words += ["--queue", str(ROOM)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(words, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout
        try:
            address = next(line for line in process.stdout if "http://" in line)
            yield int(address.split()[0].strip("/").rpartition(":")[2])
        finally:
            process.terminate()


class Connection:
    """HTTP as plain as can be: the clients are to cost little. Opened anew where the server has closed it."""

    def __init__(self, port: int):
        self.port, self.streams = port, None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        async with asyncio.timeout(SILENCE):
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self.streams
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(top.partition("content-length:")[2].partition("\r\n")[0])
            answer = await reader.readexactly(length)
            if "connection: close" in top:
                self.close()
            return top.split()[1], answer

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


class Load:
    """Clients that ask for translations at some rate."""

    def __init__(self, port: int, languages: tuple[str, str], asked: Sequence[Question], clients: int):
        source, target = languages
        self.port, self.clients = port, clients
        bodies = (json.dumps({"q": each.text, "source": source, "target": target}).encode() for each in asked)
        self.asked = list(zip(asked, bodies, strict=True))
        self.average = sum(each.sentences for each in asked) / len(asked)

    async def run(self, seconds: float, rate: float | None = None) -> Outcome:
        """Requests a second; None: as many clients as there is room for ask again as soon as they have an answer."""
        clients = self.clients if rate else max(1, min(self.clients, int(ROOM / self.average)))
        outcome, numbers = Outcome(), count()
        started = time.monotonic()
        times = repeat(started) if rate is None else (started + n / rate for n in count())

        async def client() -> None:
            connection = Connection(self.port)
            while (due := next(times)) < started + seconds and time.monotonic() < started + seconds:
                await asyncio.sleep(max(0, due - time.monotonic()))
                await self._ask(connection, next(numbers), outcome)
            connection.close()

        await asyncio.gather(*(client() for _ in range(clients)))
        outcome.seconds = time.monotonic() - started
        return outcome

    async def _ask(self, connection: Connection, number: int, outcome: Outcome) -> None:
        question, body = self.asked[number % len(self.asked)]
        begin = time.monotonic()
        try:
            status, answer = await connection.ask("POST", "/translate", body)
        except (OSError, EOFError, TimeoutError) as error:
            connection.close()
            outcome.statuses[type(error).__name__] += 1
            return
        outcome.statuses[status] += 1
        if status == "200":
            outcome.latencies.append(time.monotonic() - begin)
            outcome.sentences += question.sentences
            outcome.wrong += json.loads(answer)["translatedText"] != question.answer


async def ask_nonsense(port: int, number: int, at_once: int = 16) -> Counter[str]:
    """The statuses of so many malformed requests; a tenth of them is damaged on the wire."""
    statuses: Counter[str] = Counter()
    seeds = iter(range(number))

    async def client() -> None:
        for seed in seeds:
            raw = malformed(seed).raw()
            if seed % 10 == 0:
                at = seed * 7919 % len(raw)
                raw = raw[:at] + bytes([seed % 256]) + raw[at + 1 :]
            try:
                async with asyncio.timeout(SILENCE):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(raw)
                    writer.write_eof()
                    answer = await reader.read(4096)
                    writer.close()
                statuses[answer.split()[1].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "closed"] += 1
            except (OSError, EOFError, TimeoutError) as error:
                statuses[type(error).__name__] += 1

    await asyncio.gather(*(client() for _ in range(at_once)))
    return statuses


# ---- the phases ----


async def phases(
    port: int, asked: Sequence[Question], clients: int, seconds: float, nonsense: int, console: Console
) -> dict[str, Any]:
    connection = Connection(port)
    listed = json.loads((await connection.ask("GET", "/languages"))[1])
    connection.close()
    load = Load(port, (listed[0]["code"], listed[0]["targets"][0]), asked, clients)
    await load.run(seconds / 12)  # to warm up
    console.print("[dim]finding the rate that it sustains")
    sustained = await load.run(seconds / 4)
    rate = sustained.rate / load.average
    console.print(f"[dim]{sustained.rate:,.0f} sentences/s; now twice that, {clients} clients, {seconds:.0f} s")
    double = await load.run(seconds, 2 * rate)
    console.print("[dim]now half of it")
    half = await load.run(seconds / 2, rate / 2)
    console.print(f"[dim]now {nonsense:,} malformed requests")
    statuses = await ask_nonsense(port, nonsense)
    after = await load.run(min(1.0, seconds))
    return {"sustained": sustained, "double": double, "half": half, "nonsense": statuses, "after": after}


def show(console: Console, found: dict[str, Any], alone: float) -> dict[str, Any]:
    table = Table(title="docnmt serve under load")
    for heading in ("", "requests", "answered", "429", "wrong", "sentences/s", "p50 s", "p95 s"):
        table.add_column(heading, justify="left" if not heading else "right")
    told = {"sustained": "sustained", "double": "twice that", "half": "half of it", "after": "at the end"}
    figures: dict[str, Any] = {"translate_sentences_per_second": alone}
    for name, label in told.items():
        phase: Outcome = found[name]
        counts = phase.statuses.total(), phase.statuses["200"], phase.statuses["429"], phase.failures
        times = phase.percentile(0.5), phase.percentile(0.95)
        table.add_row(label, *(f"{n:,}" for n in counts), f"{phase.rate:,.0f}", *(f"{t:.3f}" for t in times))
        keys = ("requests", "translated", "refused", "failures", "p50", "p95", "sentences_per_second")
        figures[name] = dict(zip(keys, (*counts, *times, phase.rate), strict=True))
    console.print(table)
    ratio = found["double"].rate / alone
    nonsense: Counter[str] = found["nonsense"]
    failed = sum(number for status, number in nonsense.items() if status.startswith("5") or not status.isdecimal())
    failed -= nonsense["closed"]  # what is no HTTP may be hung up on
    console.print(f"docnmt translate: {alone:,.0f} sentences/s; the server at twice its own rate: {ratio:.0%} of that")
    console.print(f"malformed requests: {dict(sorted(nonsense.items()))}, of which failures: {failed}")
    return {**figures, "ratio": ratio, "malformed": dict(nonsense), "malformed_failures": failed}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default=f"{DEMO}/document/model")
    options.add_argument("--corpus", default=f"{DEMO}/corpus/test.tsv")
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--clients", type=int, default=64)
    options.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--malformed", type=int, default=10_000)
    options.add_argument("--json", default="", metavar="FILE")
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.alone:
        translate_alone(chosen.model, chosen.corpus, chosen.seconds)
        return
    console = Console(highlight=False)
    documents = read_documents(chosen.corpus)
    console.print(f"[dim]docnmt translate, {chosen.workers} processes")
    alone = rate_alone(chosen.model, chosen.corpus, chosen.workers, chosen.seconds / 6)
    asked = questions(documents, chosen.model)
    with server(chosen.model, chosen.workers) as port:
        work = phases(port, asked, chosen.clients, chosen.seconds, chosen.malformed, console)
        found = asyncio.run(work)
    figures = show(console, found, alone)
    if chosen.json:
        write_json(chosen.json, figures)
    failures = sum(figures[name]["failures"] for name in ("sustained", "double", "half", "after"))
    if failures or figures["malformed_failures"]:
        sys.exit("some answers were wrong or lost")


if __name__ == "__main__":
    main()
