"""How large the house is: `make size`. Code that lies in data, C or static files is listed beside it.

`python tools/size.py docnmt/interop docnmt/corpus/ldc.py` prints the size of these folders and files alone.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

COUNTED = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
WALKS = {  # a command, and how many modules of ours it may load
    "docnmt.load": ("import docnmt; docnmt.load", 35),
    "train": ("from docnmt.training.two_step import train", 60),
    "translate x.docx": ("import docnmt.cli.translate, docnmt.decoding.jobs, docnmt.documents.docx", 60),
}


def loaded(statement: str) -> int:
    """How many modules of ours a new Python has loaded after a statement."""
    count = "import sys; print(sum(m.split('.')[0] == 'docnmt' for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{statement}\n{count}"], capture_output=True, text=True, check=True)
    return int(done.stdout)


class Size(NamedTuple):
    tokens: int
    modules: int
    lines: int
    code_lines: int
    wide: int  # lines over 100 columns

    def __str__(self) -> str:
        return f"{self.tokens:>9,} tokens {self.lines:>7,} lines {self.modules:>4} modules"


def size_of(path: Path) -> Size:
    text = path.read_text(encoding="utf-8")
    found = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type in COUNTED]
    code_lines = len({row for t in found for row in range(t.start[0], t.end[0] + 1)})
    wide = sum(len(line) > 100 for line in text.splitlines())
    return Size(len(found), path.name not in ("__init__.py", "__main__.py"), text.count("\n"), code_lines, wide)


def together(sizes: Iterable[Size]) -> Size:
    return Size(*map(sum, zip(*sizes, strict=True)))


def main(chosen: list[str]) -> int:
    files = subprocess.run(["git", "ls-files", "docnmt", "tools"], capture_output=True, text=True, check=True)
    paths = [Path(name) for name in files.stdout.split()]
    sizes = {path: size_of(path) for path in paths if path.suffix == ".py"}
    for name in chosen:
        print(f"{name:<40} {together(size for path, size in sizes.items() if path.is_relative_to(name))}")
    if chosen:
        return 0
    whole = together(sizes.values())
    print(f"Python tokens              {whole.tokens:>9,}   (to reach: 190,000)")
    print(f"modules                    {whole.modules:>9,}   (135)")
    print(f"lines                      {whole.lines:>9,}")
    print(f"tokens a code line         {whole.tokens / whole.code_lines:>9.1f}   (10.3)")
    print(f"lines over 100 columns     {whole.wide / whole.lines:>9.1%}   (8 %)")
    longest = max((size.lines, path) for path, size in sizes.items())
    print(f"longest file               {longest[0]:>9,}   (400) {longest[1]}")
    print("\nby package:")
    packages: dict[str, list[Size]] = {}
    for path, size in sizes.items():
        packages.setdefault("/".join(path.parent.parts[:2]), []).append(size)
    for package, own in sorted(packages.items()):
        print(f"  {package:<24} {together(own)}")
    print("\nbeside the Python, lines:")
    kinds: dict[str, int] = {}
    for path in paths:
        if path.suffix not in (".py", ".typed", ".png"):
            kinds[path.suffix] = kinds.get(path.suffix, 0) + path.read_bytes().count(b"\n")
    for suffix, count in sorted(kinds.items()):
        print(f"  {suffix:<24} {count:>9,}")
    print("\nmodules of ours loaded by:")
    for name, (statement, most) in WALKS.items():
        print(f"  {name:<24} {loaded(statement):>9}   ({most})")
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "docnmt", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - started)
    print(f"docnmt --help, seconds     {sorted(times)[2]:>9.2f}   (0.20)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
