"""What is measured: each part a function from the plan and the workers of one size to its figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from decoders.systems import ALL_CORES, CORES, LAYOUTS, REFERENCE, SYSTEMS, Layout
from decoders.workers import Setting, Workers, start

SENTENCE, DOCUMENT = "docnmt sentence int8", "docnmt document int8"
FEW = (REFERENCE, SENTENCE, DOCUMENT)  # where more systems would show nothing new
SHORT = 8  # words of the sentence whose latency is measured
ALIKE = 24  # words of each sentence where their number is what changes


@dataclass(frozen=True)
class Plan:
    sizes: Sequence[str]
    systems: Sequence[str]
    rounds: int
    groups: int
    most: int  # sentences
    batches: Sequence[int] = (16, 32, 64)
    layouts: Mapping[str, Sequence[Layout]] = field(default_factory=lambda: LAYOUTS)
    calls: int = 20  # with one sentence, in one turn

    @property
    def few(self) -> list[str]:
        return [name for name in FEW if name in self.systems]


def quick(plan: Plan) -> Plan:
    """The same systems once with a tiny model, only to see that everything runs."""
    layouts = dict.fromkeys(LAYOUTS, (ALL_CORES, Layout(1, 1)))
    sizes = ("tiny-opus",) if "opus" in plan.sizes else ("tiny",)
    return Plan(sizes, plan.systems, rounds=1, groups=2, most=3, batches=(2, 4), layouts=layouts, calls=2)


def by_cpu_time(plan: Plan) -> Plan:
    """Only threads: the time of other processes is not a worker's own."""
    layouts = {family: [each for each in tried if not each.processes] for family, tried in plan.layouts.items()}
    return replace(plan, layouts=layouts)


def throughput(plan: Plan, workers: Workers) -> dict[str, Any]:
    """Target tokens a second with all cores, each system at the setting that is best for it."""
    settings = {name: best_setting(plan, workers, name) for name in plan.systems}
    rates: dict[str, list[float]] = {name: [] for name in plan.systems}
    for number, name in turns(plan.rounds, plan.systems):
        rates[name].append(workers.measure(name, settings[name], groups=plan.groups).rate)
        workers.say(f"{workers.size}, round {number}/{plan.rounds}, {name}: {rates[name][-1]:,.0f} tokens/s")
    figures: dict[str, Any] = {}
    for name, values in rates.items():
        without_context = name.replace("document", "sentence")
        figures[name] = {
            "tokens_per_second": median(values),
            "rounds": values,
            "layout": str(settings[name].layout),
            "batch": settings[name].batch,
            "to_reference": paired(values, rates[REFERENCE]),
        }
        if SYSTEMS[name].context and without_context in rates:
            figures[name]["to_sentence_model"] = paired(values, rates[without_context])
    return figures


def latency(plan: Plan, workers: Workers) -> dict[str, Any]:
    """Milliseconds for one short sentence alone, with one thread and with as many as there are cores."""
    systems = [name for name in plan.systems if SYSTEMS[name].int8]
    found: dict[str, dict[int, list[float]]] = {name: {1: [], CORES: []} for name in systems}
    for number, name in turns(plan.rounds, systems):
        for threads, values in found[name].items():
            setting = Setting(Layout(1, threads), 1)
            values.append(1000 * median(workers.measure(name, setting, repeat=plan.calls, alike=(1, SHORT)).seconds))
            workers.say(f"{workers.size}, round {number}/{plan.rounds}, {name}, {setting.layout}: {values[-1]:.1f} ms")
    return {
        name: {
            "milliseconds": {threads: median(values) for threads, values in by_threads.items()},
            "best": min(median(values) for values in by_threads.values()),
        }
        for name, by_threads in found.items()
    }


def load_times(plan: Plan, workers: Workers) -> dict[str, Any]:
    """Seconds to load a model, everything imported, the files in the system's cache."""
    seconds: dict[str, list[float]] = {name: [] for name in plan.few}
    for _, name in turns(plan.rounds, plan.few):
        answer, _ = start("--load", name, str(workers.folder)).communicate()
        seconds[name].append(json.loads(answer)["seconds"])
        workers.say(f"{workers.size}, {name}: loaded in {seconds[name][-1]:.2f} s")
    return {name: {"seconds": median(values)} for name, values in seconds.items()}


def growth(plan: Plan, workers: Workers) -> dict[str, Any]:
    """Tokens a second by the number of sentences, which are all as long as each other: no number needs more batches
    than another because of lengths."""
    found: dict[str, dict[int, float]] = {name: {} for name in plan.few}
    settings = {name: best_setting(plan, workers, name) for name in plan.few}
    for count in _steps(plan.most):
        rates: dict[str, list[float]] = {name: [] for name in plan.few}
        for _, name in turns(1 if count > 100 else plan.rounds, plan.few):  # the larger, the steadier
            rates[name].append(workers.measure(name, settings[name], alike=(count, ALIKE)).rate)
        for name in plan.few:
            found[name][count] = median(rates[name])
            workers.say(f"{workers.size}, sentences: {count:,}, {name}: {found[name][count]:,.0f} tokens/s")
    return {name: {"tokens_per_second": rates} for name, rates in found.items()}


def _steps(most: int) -> list[int]:
    """1, 3, 10, 30 ..."""
    return [first * 10**power for power in range(len(str(most))) for first in (1, 3) if first * 10**power <= most]


def cores(plan: Plan, workers: Workers) -> dict[str, Any]:
    """Tokens a second with one core and with all."""
    best = {name: best_setting(plan, workers, name) for name in plan.few}
    rates: dict[str, dict[int, list[float]]] = {name: {1: [], CORES: []} for name in plan.few}
    for number, name in turns(plan.rounds, plan.few):
        for count, values in rates[name].items():
            setting = best[name] if count == CORES else replace(best[name], layout=Layout(1, 1))
            values.append(workers.measure(name, setting, groups=plan.groups).rate)
            workers.say(
                f"{workers.size}, round {number}/{plan.rounds}, {name}, {setting.layout}: {values[-1]:,.0f} tokens/s"
            )
    return {
        name: {"tokens_per_second": {count: median(values) for count, values in by_count.items()}}
        for name, by_count in rates.items()
    }


def best_setting(plan: Plan, workers: Workers, name: str) -> Setting:
    """A short pilot: first the layout, then the batch size."""
    if name not in workers.settings:
        middle = plan.batches[len(plan.batches) // 2]
        rates: dict[Setting, float] = {}

        def fastest(settings: Iterable[Setting]) -> Setting:
            for setting in settings:
                if setting not in rates:
                    rates[setting] = workers.measure(name, setting, groups=max(1, plan.groups // 2)).rate
                    workers.say(
                        f"{workers.size}, pilot, {name}, {setting.layout}, batches of {setting.batch}: "
                        f"{rates[setting]:,.0f} tokens/s"
                    )
            return max(rates, key=lambda setting: rates[setting])

        layout = fastest(Setting(each, middle) for each in plan.layouts[SYSTEMS[name].family]).layout
        workers.settings[name] = fastest(Setting(layout, size) for size in plan.batches)
    return workers.settings[name]


def turns(rounds: int, systems: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Round after round each system once: what else the machine does falls on all."""
    return ((number, name) for number in range(1, rounds + 1) for name in systems)


def paired(rates: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios within a round."""
    return median(rate / other for rate, other in zip(rates, others, strict=True))
