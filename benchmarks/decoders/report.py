"""How the figures are shown: a table for each part, the targets, a plot."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from decoders.material import SIZES
from decoders.parts import DOCUMENT, SENTENCE, paired
from decoders.systems import CORES, REFERENCE, SYSTEMS

from docnmt.base.report import Column, Table

Figures = dict[str, Any]


def _throughput(figures: Figures) -> Table:
    columns = ("layout", "batch", "tokens/s", "spread", "ratio", "to sentence")
    table = Table("target tokens a second", [Column("system", text=True), *map(Column, columns)])
    for name, row in figures.items():
        rate, rounds = row["tokens_per_second"], row["rounds"]
        table.add(
            name,
            row["layout"],
            str(row["batch"]),
            f"{rate:,.0f}",
            f"±{(max(rounds) - min(rounds)) / 2 / rate:.1%}",
            f"{row['to_reference']:.2f}",
            f"{row['to_sentence_model']:.2f}" if "to_sentence_model" in row else "",
        )
    table.notes.append(f"layout: workers x threads; ratio: to {REFERENCE}, the median of the ratios within a round")
    table.notes.append("to sentence: of the document model to the sentence model (the paper, on its GPUs: 0.42)")
    return table


def _latency(figures: Figures) -> Table:
    threads = list(next(iter(figures.values()))["milliseconds"])
    table = Table("one sentence of 8 words alone, milliseconds", [Column("system", text=True)])
    table.columns = [*table.columns, *(Column(f"{n} thread{'s' * (n > 1)}") for n in threads)]
    for name, row in figures.items():
        table.add(name, *(f"{row['milliseconds'][n]:.1f}" for n in threads))
    return table


def _load(figures: Figures) -> Table:
    table = Table("seconds to load a model", [Column("system", text=True), Column("s")])
    for name, row in figures.items():
        table.add(name, f"{row['seconds']:.2f}")
    return table


def _by_count(title: str) -> Callable[[Figures], Table]:
    def made(figures: Figures) -> Table:
        counts = list(next(iter(figures.values()))["tokens_per_second"])
        table = Table(title, [Column("system", text=True), *(Column(f"{count:,}") for count in counts)])
        for name, row in figures.items():
            table.add(name, *(f"{rate:,.0f}" for rate in row["tokens_per_second"].values()))
        return table

    return made


TABLES: dict[str, Callable[[Figures], Table]] = {
    "throughput": _throughput,
    "latency": _latency,
    "load": _load,
    "growth": _by_count("tokens a second by the number of sentences"),
    "cores": _by_count("tokens a second by the number of cores"),
}


def table(part: str, size: str, figures: Figures) -> Table:
    sizes, vocabulary = SIZES[size].model, SIZES[size].vocabulary
    made = TABLES[part](figures)
    made.title = f"{size}: {made.title}"
    layers = f"{sizes.encoder_layers}+{sizes.decoder_layers} layers"
    made.notes.append(f"{size}: width {sizes.width}, {layers}, vocabulary {vocabulary:,}; {CORES} cores")
    return made


# ---- targets ----


@dataclass(frozen=True)
class Target:
    part: str
    system: str
    over: str  # the system it is compared with; "": none
    wanted: dict[str, float]  # by size
    at_most: bool = False

    def reached(self, figures: Figures) -> float:
        row = figures[self.system]
        if self.part == "throughput":
            return paired(row["rounds"], figures[self.over]["rounds"])
        return row["best"] / figures[self.over]["best"] if self.part == "latency" else row["seconds"]


TARGETS = (
    Target("throughput", SENTENCE, REFERENCE, {"small": 1.1, "base": 1.1, "opus": 1.3}),
    Target("throughput", f"{SENTENCE}, shortlist", REFERENCE, {"small": 1.3, "base": 1.6, "opus": 2.0}),
    Target("throughput", f"{DOCUMENT}, shortlist", REFERENCE, {"small": 1.0, "base": 1.2, "opus": 1.2}),
    Target("throughput", DOCUMENT, SENTENCE, {"base": 0.72}),
    Target("latency", SENTENCE, REFERENCE, {"small": 1.0, "base": 1.0}, at_most=True),
    Target("load", SENTENCE, "", {"base": 1.5, "opus": 2.0}, at_most=True),
    Target("load", DOCUMENT, "", {"base": 1.5, "opus": 2.0}, at_most=True),
)


def targets(figures: Figures) -> list[dict[str, Any]]:
    """What was to be reached beside what was, for all that was measured."""
    found = []
    for size, parts in figures.items():
        for target in TARGETS:
            measured = parts.get(target.part, {})
            if size in target.wanted and {target.system, target.over or target.system} <= measured.keys():
                wanted, reached = target.wanted[size], target.reached(measured)
                found.append(
                    {
                        "size": size,
                        "what": f"{target.part}, {target.system}" + (f" / {target.over}" if target.over else ", s"),
                        "wanted": f"{'≤' if target.at_most else '≥'} {wanted}",
                        "reached": reached,
                        "met": reached <= wanted if target.at_most else reached >= wanted,
                    }
                )
    return found


def target_table(rows: list[dict[str, Any]]) -> Table:
    columns = [Column("size", text=True), Column("target", text=True), Column("wanted"), Column("reached"), Column("")]
    made = Table("targets", columns)
    for row in rows:
        made.add(row["size"], row["what"], row["wanted"], f"{row['reached']:.2f}", "met" if row["met"] else "missed")
    return made


# ---- plot ----

COLOURS = {"ctranslate2": "#868e96", "marian": "#c2410c", "transformers": "#a16207", "docnmt": "#0b7285"}


def plot(figures: Figures, path: str | Path) -> None:
    """A row for each size: rates of all systems, and how they grow with the number of sentences."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    wanted = [(size, part) for size, parts in figures.items() for part in ("throughput", "growth") if part in parts]
    columns = len({part for _, part in wanted})
    rows = len({size for size, _ in wanted})
    figure, axes = pyplot.subplots(rows, columns, figsize=(7 * columns, 4 * rows), squeeze=False, layout="constrained")
    for axis, (size, part) in zip(axes.flat, wanted, strict=True):
        (_bars if part == "throughput" else _lines)(axis, figures[size][part])
        axis.set_title(f"{size}: target tokens a second")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _bars(axis: Any, figures: Figures) -> None:
    names = list(reversed(figures))
    for name in names:
        rate, rounds = figures[name]["tokens_per_second"], figures[name]["rounds"]
        axis.barh(
            name,
            rate,
            xerr=[[rate - min(rounds)], [max(rounds) - rate]],
            color=COLOURS[SYSTEMS[name].family],
            alpha=0.6 if SYSTEMS[name].context else 1,
            capsize=2,
        )
    axis.axvline(figures[REFERENCE]["tokens_per_second"], color="black", linewidth=1, linestyle=":")


def _lines(axis: Any, figures: Figures) -> None:
    for name, row in figures.items():
        rates = row["tokens_per_second"]
        style = "--" if SYSTEMS[name].context else "-"
        axis.plot(list(rates), list(rates.values()), style, marker="o", color=COLOURS[SYSTEMS[name].family], label=name)
    axis.set_xscale("log")
    axis.set_xlabel("sentences")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)


def machine() -> dict[str, Any]:
    packages = ("torch", "ctranslate2", "transformers")
    return {"processor": _processor(), "cores": CORES, "python": platform.python_version()} | {
        name: version(name) for name in packages
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
