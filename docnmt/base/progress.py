"""What long work shows on the terminal: a bar with count, rate and time left, and plain lines between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

T = TypeVar("T")


class RateColumn(ProgressColumn):
    """`1,234 sentences/s`"""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        unit = task.fields.get("unit", "")
        return Text(f"{speed:,.0f} {unit}/s" if speed and speed >= 10 else f"{speed:.2f} {unit}/s" if speed else "")


class Progress:
    """Bars and lines on one console. `quiet` says nothing at all (other processes of a parallel run, tests)."""

    def __init__(self, console: Console | None = None, quiet: bool = False):
        self.console = console or Console(stderr=True, highlight=False)
        self.quiet = quiet

    def say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, start: int = 0) -> Iterator[Callable[..., Any]]:
        """Yields `advance(count=1, note="")`; `start` is what was done before."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=min(24, max(4, self.console.width - 68))),  # the figures come first
            TextColumn("{task.completed:,.0f}" + ("/{task.total:,.0f}" if total is not None else "")),
            RateColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn() if total is None else TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        started = time.monotonic()
        done = 0
        with RichProgress(
            *columns, console=self.console, transient=True, disable=self.quiet or not self.console.is_terminal
        ) as bars:
            task = bars.add_task(label, total=total, completed=start, unit=unit, note="")

            def advance(count: int = 1, note: str = "") -> None:
                nonlocal done
                done += count
                if note:
                    bars.update(task, note=note)
                bars.advance(task, count)

            yield advance
        seconds = time.monotonic() - started
        if seconds >= 1 and done:
            rate = done / seconds
            self.say(f"{label}: {done:,} {unit} in {seconds:,.0f} s ({rate:,.{0 if rate >= 10 else 2}f} {unit}/s)")

    def track(
        self,
        items: Iterable[T],
        label: str,
        *,
        total: int | None = None,
        unit: str = "items",
        size: Callable[[T], int] = lambda _: 1,
    ) -> Iterator[T]:
        with self.bar(label, total, unit) as advance:
            waiting = 0
            for item in items:
                yield item
                waiting += size(item)
                if waiting >= 256:  # a bar redrawn for every line would cost more than the work
                    advance(waiting)
                    waiting = 0
            advance(waiting)
