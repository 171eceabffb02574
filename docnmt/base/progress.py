"""Progress on the terminal: a bar with count, rate and time left, and plain lines in between."""

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


SILENCE = 60.0  # seconds after which progress is printed again if there is no bar


def spoken(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.1f} days"


def _rate(speed: float, unit: str) -> str:
    return f"{speed:,.{0 if speed >= 10 else 2}f} {unit}/s"


class RateColumn(ProgressColumn):
    """`1,234 sentences/s`"""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(_rate(speed, task.fields.get("unit", "")) if speed else "")


class Progress:
    """Bars and lines on one console. `quiet` prints nothing (other processes of a parallel run, tests)."""

    def __init__(self, console: Console | None = None, quiet: bool = False):
        self.console = console or Console(stderr=True, highlight=False)
        self.quiet = quiet

    def say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, start: int = 0) -> Iterator[Callable[..., Any]]:
        """Yields `advance(count=1, note="", log=None)`; `start` is how much was done before.

        Without a terminal, lines replace the bar: after a minute of silence, or whenever `log` says so.
        """
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=min(24, max(4, self.console.width - 68))),  # the figures come first
            TextColumn("{task.completed:,.0f}" + ("/{task.total:,.0f}" if total is not None else "")),
            RateColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn() if total is None else TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        started = heard = time.monotonic()
        done = 0
        with RichProgress(
            *columns, console=self.console, transient=True, disable=self.quiet or not self.console.is_terminal
        ) as bars:
            task = bars.add_task(label, total=total, completed=start, unit=unit, note="")

            def advance(count: int = 1, note: str = "", log: bool | None = None) -> None:
                nonlocal done, heard
                done += count
                if note:
                    bars.update(task, note=note)
                bars.advance(task, count)
                now = time.monotonic()
                if bars.disable and (now - heard >= SILENCE if log is None else log):
                    heard = now
                    speed = done / max(now - started, 1e-9)
                    of, left = "", ""
                    if total is not None:
                        of, left = f"/{total:,}", f", {spoken((total - start - done) / max(speed, 1e-9))} left"
                    line = f"{label}: {start + done:,}{of} {unit} ({_rate(speed, unit)}{left})"
                    self.say(f"{line}  {note}".rstrip())

            yield advance
        seconds = time.monotonic() - started
        if seconds >= 1 and done:
            self.say(f"{label}: {done:,} {unit} in {seconds:,.0f} s ({_rate(done / seconds, unit)})")

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
                if waiting >= 256:  # redrawing the bar for every line would cost more than the work
                    advance(waiting)
                    waiting = 0
            advance(waiting)
