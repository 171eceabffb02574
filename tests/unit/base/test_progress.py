"""What long work says where nobody sees a bar: lines, with the rate and the time left."""

from __future__ import annotations

import io
import itertools

import pytest
from rich.console import Console

from docnmt.base import progress
from docnmt.base.progress import Progress, spoken


@pytest.fixture
def seconds(monkeypatch):
    """Every look at the clock is ten seconds after the one before."""
    ticks = itertools.count(0, 10)
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(ticks)))


def lines(terminal: bool, **call: object) -> list[str]:
    out = io.StringIO()
    shown = Progress(Console(file=out, force_terminal=terminal, width=200))
    with shown.bar("work", 40, "pieces", start=20) as advance:
        for _ in range(20):
            advance(1, **call)
    return out.getvalue().splitlines()


def test_in_a_log_there_is_a_line_a_minute(seconds):
    first, *rest = lines(terminal=False)
    assert first == "work: 26/40 pieces (0.10 pieces/s, 2 min left)"
    assert len(rest) == 3  # two more minutes, and the end


def test_or_a_line_whenever_the_work_says_so(seconds):
    said = lines(terminal=False, log=True, note="loss 1.0")
    assert len(said) == 21
    assert said[0] == "work: 21/40 pieces (0.10 pieces/s, 3 min left)  loss 1.0"
    assert not any("left" in line for line in lines(terminal=False, log=False))


def test_a_terminal_has_its_bar_instead(seconds):
    assert not any(line.startswith("work: 2") and "left" in line for line in lines(terminal=True, log=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.1, "1 s"), (1.4, "1 s"), (89, "89 s"), (91, "2 min"), (3000, "50 min"), (5399, "90 min"), (5400, "1.5 h"),
     (71 * 3600, "71.0 h"), (72 * 3600, "3.0 days"), (10 * 86400, "10.0 days")],
)  # fmt: skip
def test_times_are_said_as_people_say_them(seconds, text):
    assert spoken(seconds) == text
