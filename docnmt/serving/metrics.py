"""Figures of a running server, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]  # what is added to the metric's name, labels, value

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENTENCES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


class Metric:
    kind = ""

    def __init__(self, name: str, help: str):
        self.name, self.help = name, help

    def samples(self) -> Iterator[Sample]:
        raise NotImplementedError

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for suffix, labels, value in self.samples():
            shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            yield f"{self.name}{suffix}{f'{{{shown}}}' if shown else ''} {_number(value)}"


class Counter(Metric):
    kind = "counter"

    def __init__(self, name: str, help: str):
        super().__init__(name, help)
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(labels.items())
        self.values[key] = self.values.get(key, 0) + amount

    def samples(self) -> Iterator[Sample]:
        return (("", labels, value) for labels, value in self.values.items() or [((), 0)])


class Gauge(Metric):
    kind = "gauge"
    read: Callable[[], float] = float  # zero, until somebody knows better

    def samples(self) -> Iterator[Sample]:
        yield "", (), self.read()


class Histogram(Metric):
    kind = "histogram"

    def __init__(self, name: str, help: str, bounds: Sequence[float]):
        super().__init__(name, help)
        self.bounds = bounds
        self.counts: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = {}

    def add(self, value: float, **labels: str) -> None:
        key = tuple(labels.items())
        self.counts.setdefault(key, [0] * (len(self.bounds) + 1))[bisect_left(self.bounds, value)] += 1
        self.sums[key] = self.sums.get(key, 0) + value

    def samples(self) -> Iterator[Sample]:
        for labels, counts in self.counts.items():
            total = 0
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), counts, strict=True):
                total += count
                yield "_bucket", (*labels, ("le", bound)), total
            yield "_sum", labels, self.sums[labels]
            yield "_count", labels, total


class Metrics:
    def __init__(self) -> None:
        self.requests = Counter("docnmt_requests_total", "Requests answered, by route and status.")
        self.seconds = Histogram("docnmt_request_seconds", "Seconds from a request to the end of its answer.", SECONDS)
        self.waiting = Gauge("docnmt_queue_sentences", "Sentences that wait for a process.")
        self.batches = Histogram("docnmt_batch_sentences", "Sentences in a batch.", SENTENCES)
        self.sentences = Counter("docnmt_sentences_total", "Sentences translated, by model.")
        self.workers = Gauge("docnmt_workers", "Model processes that are up.")
        self.restarts = Counter("docnmt_worker_restarts_total", "Model processes that died and were started again.")

    def text(self) -> str:
        return "".join(f"{line}\n" for each in vars(self).values() for line in each.lines())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else repr(value)
