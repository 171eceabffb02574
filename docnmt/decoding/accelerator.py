"""Builds and calls accelerator.c. Where no compiler is found the engine goes without: same words, more slowly.

The library is built once a machine and source, in the user's cache folder, in about a second.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("accelerator.c")
LANES = 8  # numbers at a time: heads of other multiples go without
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")


class Accelerator:
    def __init__(self, library: ctypes.CDLL):
        self.library = library
        for name in ("attend", "put", "continuations"):
            getattr(library, name).restype = None

    def put(self, projected: Tensor, keys: Tensor, values: Tensor, slots: Tensor, place: int, beam: int) -> None:
        _, heads, room, size = keys.shape
        numbers = _longs(place, len(slots), beam, heads, size, room)
        self.library.put(_at(projected), _at(keys), _at(values), _at(slots), *numbers)

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, slots: Tensor, counts: Tensor, places: Tensor | None = None
    ) -> Tensor:
        """query [rows, width], or the first part of wider rows; keys, values [slots, heads, room, size]; slots, counts
        [sentences]; places [rows, longest] -> [rows, width]"""
        _, heads, room, size = keys.shape
        beam = len(query) // len(slots)
        out, weights = query.new_empty(len(query), heads * size), query.new_empty(room + LANES)
        longest = 0 if places is None else places.shape[1]
        seen = None if places is None else _at(places)
        numbers = _longs(longest, len(slots), beam, heads, size, room)
        pointers = [_at(tensor) for tensor in (keys, values, slots, counts)]
        stride = ctypes.c_long(query.stride(0))
        self.library.attend(_at(query), stride, *pointers, seen, *numbers, _at(weights), _at(out))
        return out

    def continuations(self, logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        logits, scores = logits.contiguous(), scores.contiguous()  # named, so that they outlive the call
        sentences, beam = scores.shape
        words = logits.shape[1]
        totals = logits.new_empty(sentences, count)
        origins, found = (torch.empty(sentences, count, dtype=torch.int64) for _ in range(2))
        blocks = logits.new_empty(words // 64 + 1)
        numbers = _longs(sentences, beam, words, count)
        pointers = [_at(tensor) for tensor in (blocks, totals, origins, found)]
        self.library.continuations(_at(logits), _at(scores), *numbers, *pointers)
        return totals, origins, found


def _at(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _longs(*numbers: int) -> list[ctypes.c_long]:
    return [ctypes.c_long(number) for number in numbers]


@functools.cache
def accelerator() -> Accelerator | None:
    """None where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or os.name != "posix":
        return None
    key = hashlib.sha256(SOURCE.read_bytes() + repr((FLAGS, platform.machine(), _processor())).encode()).hexdigest()
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docnmt"
    built = folder / f"accelerator-{key[:16]}.so"
    try:
        if not built.exists():
            folder.mkdir(parents=True, exist_ok=True)
            temporary = built.with_suffix(f".{os.getpid()}")
            subprocess.run([compiler, *FLAGS, "-o", temporary, SOURCE, "-lm"], check=True, capture_output=True)
            temporary.replace(built)
        return Accelerator(ctypes.CDLL(str(built)))
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    """-march=native builds for this one alone; a cache folder may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor()
