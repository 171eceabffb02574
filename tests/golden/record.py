"""What a record is: a canonical text, its hash, and the numbers in it, which another machine may round differently."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

BUILT = find_spec("docnmt.engine._accelerator") is not None  # the C extension
HERE = Path(__file__).parent
RECORDS = HERE / "records"
Found = Iterator[tuple[str, Any]]  # names and values: text, bytes, or what JSON can say


class Exact(str):
    """A text that depends on the machine; elsewhere it is not compared."""


@dataclass(frozen=True)
class Source:
    """A function that gives records; one with cases is called once for each."""

    name: str  # of its file in records/
    give: Callable[..., Found]
    cases: tuple[str, ...]
    slow: bool

    def records(self, case: str) -> dict[str, Any]:
        found = self.give(case) if case else self.give()
        return {f"{case}/{name}" if case else name: value for name, value in found}


SOURCES: dict[str, Source] = {}


def golden(cases: Iterable[str] = (), slow: bool = False) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    def add(give: Callable[..., Found]) -> Callable[..., Found]:
        SOURCES[give.__name__] = Source(give.__name__, give, tuple(cases), slow)
        return give

    return add


# ---- texts and fingerprints ----


def text_of(value: Any) -> str:
    """All of a value, for people and for the exact hash: one line for each entry of a list or an object. Versions,
    in signatures and the like, are left out."""
    return re.sub(r"((?:version|docnmt)\W{1,5})\d+\.\d+\.\d+", r"\1*", _text_of(value))


def _text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(f"{key}\t{_json(each)}\n" for key, each in value.items())
    if isinstance(value, list):
        return "".join(f"{_json(each)}\n" for each in value)
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def fingerprint(value: Any) -> dict[str, Any]:
    numbers: list[float] = []
    portable = text_of(_without_numbers(value, numbers))
    made: dict[str, Any] = {"text": _hash(portable)}
    if portable != text_of(value):
        made["exact"] = _hash(text_of(value))
    if numbers:
        made["numbers"] = [float(f"{number:.6g}") for number in numbers]
    return made


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_numbers(value: Any, numbers: list[float]) -> Any:
    if isinstance(value, Exact):
        return "#"
    if isinstance(value, float):
        numbers.append(value)
        return "#"
    if isinstance(value, dict):
        return {key: _without_numbers(each, numbers) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_numbers(each, numbers) for each in value]
    return value


def differs(found: dict[str, Any], known: dict[str, Any], like: bool) -> str:
    """What is different, in words; `like`: this machine rounds as the one that the record was made on."""
    if found["text"] != known["text"]:
        return "text"
    pairs = list(zip(found.get("numbers", []), known.get("numbers", []), strict=True))
    worst = max((abs(one - other) / (abs(other) + 1e-2) for one, other in pairs), default=0.0)
    if worst > 1e-2 or any(math.isnan(one) != math.isnan(other) for one, other in pairs):
        return f"numbers, by up to {worst:.2g} of their size"
    return "last digits" if like and found.get("exact") != known.get("exact") else ""


@functools.cache
def machine() -> dict[str, str]:
    """What decides how numbers are rounded, and how help is laid out."""
    return {
        "processor": f"{_processor()} {torch.backends.cpu.get_cpu_capability()}",
        "torch": torch.__version__,
        "python": ".".join(map(str, sys.version_info[:2])),
        "compiler": str(BUILT),  # whether one built the C extension
    }


def _processor() -> str:
    """Of one maker and model: with the same instructions, libraries choose other kernels on others."""
    described = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    told = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (.+)$", described.partition("\n\n")[0], re.MULTILINE))
    return " ".join([platform.machine(), *(told.values() or [platform.processor()])])


# ---- files ----


def known(source: str) -> dict[str, Any]:
    path = RECORDS / f"{source}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"machine": {}, "records": {}}


def write_texts(folder: Path, source: str, records: dict[str, Any]) -> Path:
    for name, value in records.items():
        path = folder / source / re.sub(r"[^\w./=+-]", "_", name)
        path = path.with_name(path.name + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(value), encoding="utf-8", errors="surrogatepass", newline="")
    return folder / source


def told(source: Source, case: str) -> str:
    """Which records differ from what they were; empty if none."""
    records, before = source.records(case), known(source.name)
    expected = {name: each for name, each in before["records"].items() if not case or name.startswith(f"{case}/")}
    like = before["machine"] == machine()
    wrong = dict.fromkeys(records.keys() - expected.keys(), "is new")
    wrong |= dict.fromkeys(expected.keys() - records.keys(), "is missing")
    for name in records.keys() & expected.keys():
        if said := differs(fingerprint(records[name]), expected[name], like):
            wrong[name] = said
    if not wrong:
        return ""
    folder = Path(tempfile.mkdtemp(prefix="docnmt-golden-"))
    write_texts(folder, source.name, {name: records[name] for name in wrong if name in records})
    lines = [f"  {name}: {said}" for name, said in sorted(wrong.items())]
    if not BUILT:
        lines.append("The C extension is not built, and they were made with it: python setup.py build_ext --inplace")
    return "\n".join([f"{len(wrong)} records of {source.name} differ; the new texts are in {folder}", *lines])
