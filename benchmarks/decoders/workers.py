"""A process for each family of systems, which measures one of them when it is its turn."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from decoders.material import SIZES, alike, cut, spread
from decoders.systems import SYSTEMS, CTranslate2, Decoder, InTorch, Layout, Marian, System


@dataclass(frozen=True)
class Setting:
    """How a system is run."""

    layout: Layout
    batch: int  # sentences


@dataclass(frozen=True)
class Measured:
    seconds: list[float]
    tokens: int

    @property
    def rate(self) -> float:
        """Target tokens a second."""
        return self.tokens / median(self.seconds)


class Workers:
    """The processes, seen from outside."""

    def __init__(self, size: str, folder: Path, say: Callable[[str], None], cpu_time: bool = False):
        self.size, self.folder, self.say, self.cpu_time = size, folder, say, cpu_time
        self.settings: dict[str, Setting] = {}  # the best one of each system, once it is known
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def measure(self, system: str, setting: Setting, repeat: int = 1, **material: Any) -> Measured:
        """`material`: groups=number, or alike=(sentences, length)."""
        family = SYSTEMS[system].family
        if family not in self.processes:
            self.processes[family] = start("--worker", self.size, str(self.folder))
        process = self.processes[family]
        assert process.stdin and process.stdout
        asked = {"system": system, **asdict(setting), "repeat": repeat, "cpu_time": self.cpu_time, **material}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise SystemExit(f"{system} stopped with code {process.wait()}")
        return Measured(**json.loads(answer))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *problem: object) -> None:
        for process in self.processes.values():
            process.communicate()  # the end of its input is its end


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, sys.argv[0], *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def make(system: System, folder: Path, layout: Layout) -> Decoder:
    families: dict[str, Callable[[System, Path, Layout], Decoder]] = {"ctranslate2": CTranslate2, "marian": Marian}
    return families.get(system.family, InTorch)(system, folder, layout)


def work(size_name: str, folder: Path) -> None:
    """The inside: for every line of JSON on standard input one measurement, answered by one line of JSON."""
    size = SIZES[size_name]
    made: dict[str, tuple[Layout, Decoder]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        clock = time.process_time if asked["cpu_time"] else time.monotonic
        system, layout = SYSTEMS[asked["system"]], Layout(**asked["layout"])
        groups = spread(size, asked["groups"]) if "groups" in asked else alike(size, *asked["alike"])
        batches = cut(groups, asked["batch"], layout.workers)
        if system.name not in made or made[system.name][0] != layout:
            if system.name in made:
                made.pop(system.name)[1].close()
            made[system.name] = layout, make(system, folder, layout)
            made[system.name][1].run(batches[-1:] * 2 * layout.workers)  # the first call pays for more than itself
        decoder = made[system.name][1]
        wanted = [[sentence.length for sentence in batch] for batch in batches]
        seconds = []
        for _ in range(asked["repeat"]):
            begin = clock()
            lengths = decoder.run(batches)
            seconds.append(clock() - begin)
            if system.family == "marian":
                wanted = lengths
            elif lengths != wanted:
                raise SystemExit(f"{system.name} wrote translations of {lengths} words where {wanted} were asked for")
        print(json.dumps({"seconds": seconds, "tokens": sum(map(sum, wanted))}), flush=True)
    for _, decoder in made.values():
        decoder.close()


def load(system_name: str, folder: Path) -> None:
    """In a process of its own: how long a model takes to load once everything is imported."""
    system = SYSTEMS[system_name]
    if system.family == "ctranslate2":
        import ctranslate2  # noqa: F401
    else:
        import docnmt.engine
        import docnmt.model_folder  # noqa: F401
    begin = time.monotonic()
    decoder = make(system, folder, Layout(1, 1))
    print(json.dumps({"seconds": time.monotonic() - begin}), flush=True)
    decoder.close()
