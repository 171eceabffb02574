"""Builds the C files in csrc/. Where no compiler is found the engine goes without: same words, more slowly.

They are built once a machine and source, in the user's cache folder, in about a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "csrc"
FLAGS = ("-O3", "-march=native", "-funroll-loops", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")


def built() -> ctypes.CDLL | None:
    """None where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    sources = sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")])
    if compiler is None or os.name != "posix" or not sources:
        return None
    try:
        text = b"".join(source.read_bytes() for source in sources)
        key = hashlib.sha256(text + repr((FLAGS, platform.machine(), _processor())).encode()).hexdigest()
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docnmt"
        file = cache / f"accelerator-{key[:16]}.so"
        if not file.exists():
            cache.mkdir(parents=True, exist_ok=True)
            _compile(compiler, [source for source in sources if source.suffix == ".c"], file)
        return ctypes.CDLL(str(file))
    except (OSError, RuntimeError, subprocess.SubprocessError):  # Path.home() raises the second
        return None


def _compile(compiler: str, sources: list[Path], file: Path) -> None:
    """Others may be at it, too: whoever is done first, the file is whole."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix="building-")
    os.close(handle)
    try:
        subprocess.run(
            [compiler, *FLAGS, "-o", temporary, *sources, "-lm"], check=True, capture_output=True, timeout=120
        )
        os.replace(temporary, file)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _processor() -> str:
    """-march=native builds for this one alone; a cache folder may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() or platform.node()
