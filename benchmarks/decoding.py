"""Decoding speed beside peers: target tokens a second, the same weights and lengths, one run, interleaved, medians.

    python benchmarks/decoding.py [--sizes small base opus] [--only throughput latency ...] [--systems NAME ...]
                                  [--rounds 5] [--groups 8] [--json FILE] [--plot FILE.png] [--quick]
                                  [--cpu-time]

All systems decode with one set of random weights, beam 4, and lengths that are forced: each sentence is given as many
target words as it has source pieces, rounded up to a multiple of 4, and a batch holds sentences of one target length.
Lengths are log-normal with mean 25 (4 to 90). The document models read a context of about 50 pieces a sentence, two
sentences of about 25. A shortlist leaves about 800 words to choose from; CTranslate2 has the same one as its
vocabulary map. The size "opus" is that of OPUS-MT's models: there the weights go out as Marian's own file, which Marian
itself reads if `pip install pymarian` has brought it (600 MB) and from which CTranslate2's converter takes them, and in
the layout of transformers. The families of systems run in processes of
their own and take turns, round after round; each system at the layout (workers x threads) and the batch size that a
short pilot found best for it.

--cpu-time counts the seconds of processor time that a system's threads take, not those that pass: so ratios are about
right on a machine that has other work, too.

Parts: throughput; latency, of one short sentence alone; load, how long a model takes to load; growth, from one sentence
to 10,000; cores, one and all.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from decoders import parts, report
from decoders.material import SIZES, write_models
from decoders.parts import Plan
from decoders.systems import REFERENCE, SYSTEMS
from decoders.workers import Workers, load, work
from rich.console import Console

from docnmt.base.files import write_json
from docnmt.base.progress import Progress

PARTS: dict[str, Callable[[Plan, Workers], dict[str, Any]]] = {
    "throughput": parts.throughput,
    "latency": parts.latency,
    "load": parts.load_times,
    "growth": parts.growth,
    "cores": parts.cores,
}


def measure(plan: Plan, only: list[str], console: Console, cpu_time: bool) -> dict[str, Any]:
    """For each size the figures of each part."""
    figures: dict[str, Any] = {}
    for size in plan.sizes:
        figures[size] = {}
        with tempfile.TemporaryDirectory(prefix="decoding-") as folder:
            write_models(Path(folder), SIZES[size])
            with Workers(size, Path(folder), Progress().say, cpu_time) as workers:
                at_size = replace(plan, systems=[name for name in plan.systems if can_run(name, size)])
                for name in only:
                    figures[size][name] = PARTS[name](at_size, workers)
                    report.table(name, size, figures[size][name]).print(console)
    return figures


def can_run(system: str, size: str) -> bool:
    """Marian itself reads models of its own kind, and is measured where it is installed."""
    return SYSTEMS[system].family != "marian" or (SIZES[size].of_marian and find_spec("pymarian") is not None)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", nargs="+", default=["small", "base"], choices=list(SIZES))
    options.add_argument("--only", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    options.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS), metavar="SYSTEM")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--groups", type=int, default=8, help="of 64 sentences each, in one pass")
    options.add_argument("--most", type=int, default=10_000, help="sentences, where growth ends")
    options.add_argument("--quick", action="store_true", help="a tiny model, once: only to see that everything runs")
    options.add_argument("--cpu-time", action="store_true", help="of processor seconds, for a busy machine")
    options.add_argument("--json", default="", metavar="FILE")
    options.add_argument("--plot", default="", metavar="FILE.png")
    options.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--load", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        return work(chosen.worker[0], Path(chosen.worker[1]))
    if chosen.load:
        return load(chosen.load[0], Path(chosen.load[1]))
    if chosen.plot and not {"throughput", "growth"} & set(chosen.only):
        options.error("--plot shows throughput and growth: measure one of them")
    console = Console(highlight=False, width=110)
    systems = [name for name in SYSTEMS if name in (REFERENCE, *chosen.systems)]
    plan = Plan(chosen.sizes, systems, chosen.rounds, chosen.groups, chosen.most)
    plan = parts.quick(plan) if chosen.quick else plan
    plan = parts.by_cpu_time(plan) if chosen.cpu_time else plan
    figures = measure(plan, chosen.only, console, chosen.cpu_time)
    targets = report.targets(figures)
    if targets:
        report.target_table(targets).print(console)
    if chosen.json:
        machine = report.machine()
        write_json(chosen.json, {"machine": machine, "plan": asdict(plan), "sizes": figures, "targets": targets})
    if chosen.plot:
        report.plot(figures, chosen.plot)


if __name__ == "__main__":
    main()
