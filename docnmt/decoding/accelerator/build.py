"""Builds the C files beside this one. Where no compiler is found the engine goes without: same words, more slowly.

They are built once a machine and source, in the user's cache folder, in about a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
FLAGS = ("-O3", "-march=native", "-funroll-loops", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")


def built() -> ctypes.CDLL | None:
    """None where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or os.name != "posix":
        return None
    sources = sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")])
    text = b"".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(text + repr((FLAGS, platform.machine(), _processor())).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docnmt"
    file = cache / f"accelerator-{key[:16]}.so"
    try:
        if not file.exists():
            cache.mkdir(parents=True, exist_ok=True)
            temporary = file.with_suffix(f".{os.getpid()}")
            compiled = [source for source in sources if source.suffix == ".c"]
            subprocess.run([compiler, *FLAGS, "-o", temporary, *compiled, "-lm"], check=True, capture_output=True)
            temporary.replace(file)
        return ctypes.CDLL(str(file))
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    """-march=native builds for this one alone; a cache folder may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor()
