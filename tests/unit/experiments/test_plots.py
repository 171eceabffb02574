"""Plots are SVG that can stand in a page beside others, and show the values they were given."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.experiments.report import COLOURS, INK, Bar, Line, bar_plot, line_plot, need_matplotlib

pytest.importorskip("matplotlib", reason='plots need matplotlib: pip install "docnmt[plots]"')

SVG = "{http://www.w3.org/2000/svg}"
LINES = [
    Line("true context", [(10, 3.0), (20, 2.5), (30, 2.0)]),
    Line("no context <&>", [(10, 3.0), (20, 2.9)], dashed=True, colour=1),
]
BARS = {"document model": [Bar(1.0, 0.5, 1.5), Bar(-0.5, -1.0, 0.2)], "control": [Bar(0.1, 0, 0.2), Bar(0, -0.1, 0.1)]}


def lines(title: str = "Step 2") -> str:
    return line_plot(title, "updates", "dev loss", LINES, ("sentence model", 2.8))


def bars(title: str = "Gain by sentence length") -> str:
    return bar_plot(title, "source words", "BLEU gain", ["1-5", "6+"], BARS)


def texts(svg: str) -> list[str]:
    """What can be read in the plot; a minus sign is as good as a hyphen."""
    return ["".join(text.itertext()).strip() for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("draw", [lines, bars])
def test_a_plot_is_well_formed_and_says_what_it_shows(draw):
    found = texts(draw())
    if draw is lines:
        wanted = ["Step 2", "updates", "dev loss", "true context", "no context <&>", "sentence model"]
    else:
        wanted = ["Gain by sentence length", "source words", "BLEU gain", "1-5", "6+", "document model", "control"]
    assert [text for text in wanted if text not in found] == []


@pytest.mark.parametrize("draw", [lines, bars])
def test_a_plot_fetches_nothing(draw):
    svg = draw()
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert not element.tag.endswith(("image", "script", "foreignObject"))
        for name, value in element.attrib.items():
            if name.endswith(("href", "src")):
                assert value.startswith("#")
    assert re.findall(r"url\((?!#)|@import", svg) == []


@pytest.mark.parametrize("draw", [lines, bars])
def test_the_parts_of_a_plot_point_at_parts_of_the_same_plot(draw):
    svgs = [draw("One plot"), draw("Another plot: (2)")]
    known = [re.findall(r'\bid="([^"]+)"', svg) for svg in svgs]
    assert not set(known[0]) & set(known[1])  # so both may stand in one page
    for svg, ids in zip(svgs, known, strict=True):
        assert len(set(ids)) == len(ids)
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)
        assert used and {one or other for one, other in used} <= set(ids)


@pytest.mark.parametrize("draw", [lines, bars])
def test_a_plot_takes_its_ink_from_the_page_and_is_the_same_each_time(draw):
    assert "currentColor" in draw() and INK not in draw()
    assert "#000000" not in draw()  # black would not be seen on a dark page
    assert draw() == draw()


def test_a_line_goes_through_its_points():
    """Steps of the same size in x and y are steps of the same size in the picture."""
    svg = line_plot("t", "x", "y", [Line("a", [(0, 0.0), (1, 1.0), (3, 3.0)])])
    paths = re.findall(r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \n"', svg)
    # The legend's sample of the line lies flat.
    ((x1, y1, x2, y2, x3, y3),) = [path for path in (tuple(map(float, path)) for path in paths) if path[1] != path[3]]
    assert (x3 - x2) == pytest.approx(2 * (x2 - x1), rel=1e-3) and x2 > x1
    assert (y3 - y2) == pytest.approx(2 * (y2 - y1), rel=1e-3) and y2 < y1  # upwards is less in SVG


def test_lines_are_told_apart():
    svg = lines()
    assert COLOURS[0] in svg and COLOURS[1] in svg and "stroke-dasharray" in svg


def test_bars_are_as_high_as_their_values():
    svg = bar_plot("t", "x", "y", ["a", "b"], {"s": [Bar(1.0, 1.0, 1.0), Bar(3.0, 3.0, 3.0)]})
    heights = []
    for path in re.findall(rf'<path d="([^"]+)"[^>]*style="fill: {COLOURS[0]}"', svg):
        ys = [float(y) for _, y in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path)]
        heights.append(max(ys) - min(ys))
    assert len(heights) == 2 and heights[1] == pytest.approx(3 * heights[0], rel=1e-3)


def test_a_bar_without_an_interval_is_drawn_all_the_same():
    svg = bar_plot("t", "x", "y", ["a"], {"s": [Bar(1.0, math.nan, math.nan)]})
    assert COLOURS[0] in svg


def test_a_single_point_is_a_line_too():
    assert "only" in texts(line_plot("t", "x", "y", [Line("only", [(14, 4.2)])]))


def test_without_matplotlib_there_is_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DocnmtError, match=r"plots need matplotlib\n.*pip install .*(matplotlib|\[plots\])"):
        need_matplotlib()
