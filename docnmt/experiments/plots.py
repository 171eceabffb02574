"""Plots of a report, as SVG that stands in the page and takes its colours from it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docnmt.base.errors import missing_extra

INK = "#010203"  # stands for the page's own colour of text, light or dark
COLOURS = ("#0b7285", "#c2410c", "#6b46c1", "#868e96", "#2f9e44", "#1c7ed6")


def need_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plots need matplotlib", "plots") from None
    matplotlib.use("svg")
    return matplotlib


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    colour: int = 0


@dataclass(frozen=True)
class Bar:
    value: float
    low: float  # ends of the interval
    high: float


def line_plot(title: str, x: str, y: str, lines: Sequence[Line], level: tuple[str, float] | None = None) -> str:
    """`level` is a value to compare with, drawn across."""

    def draw(axes: Any) -> None:
        for line in lines:
            xs, ys = zip(*line.points, strict=True)
            style = "--" if line.dashed else "-"
            axes.plot(xs, ys, style, marker="o", markersize=3, color=COLOURS[line.colour], label=line.name)
        if level is not None:
            axes.axhline(level[1], color=INK, linewidth=1, linestyle=":", label=level[0])
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False, fontsize=9)

    return _svg(title, x, y, draw)


def bar_plot(title: str, x: str, y: str, groups: Sequence[str], series: Mapping[str, Sequence[Bar]]) -> str:
    """Bars with their intervals, a colour a series, side by side in each group."""

    def draw(axes: Any) -> None:
        width = 0.8 / len(series)
        for number, (name, bars) in enumerate(series.items()):
            places = [group - 0.4 + width * (number + 0.5) for group in range(len(groups))]
            spread = [[bar.value - bar.low for bar in bars], [bar.high - bar.value for bar in bars]]
            axes.bar(places, [bar.value for bar in bars], 0.9 * width, color=COLOURS[number], label=name)
            axes.errorbar(
                places, [bar.value for bar in bars], yerr=spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2
            )
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(range(len(groups)), groups)
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=9)

    return _svg(title, x, y, draw)


def _svg(title: str, x: str, y: str, draw: Callable[[Any], None]) -> str:
    matplotlib = need_matplotlib()
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,  # the same plot is the same text each time
        "font.family": "sans-serif",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"font: [^;\"]*?(\d+(?:\.\d+)?px)[^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    # Ids are unique in a plot but not in a page with several.
    mark = re.sub(r"\W+", "-", title)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", svg)
    return re.sub(r'href="#([^"]+)"', rf'href="#{mark}-\1"', svg)
