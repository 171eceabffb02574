"""How large the house is: `make size`. Code that lies in data, C or static files is listed beside it."""

from __future__ import annotations

import io
import subprocess
import sys
import time
import tokenize
from pathlib import Path

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


def main() -> int:
    files = subprocess.run(["git", "ls-files", "docnmt", "tools"], capture_output=True, text=True, check=True)
    paths = [Path(name) for name in files.stdout.split()]
    python = [path for path in paths if path.suffix == ".py"]
    tokens = code_lines = lines = wide = 0
    for path in python:
        text = path.read_text(encoding="utf-8")
        found = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type in COUNTED]
        tokens += len(found)
        code_lines += len({row for t in found for row in range(t.start[0], t.end[0] + 1)})
        lines += text.count("\n")
        wide += sum(len(line) > 100 for line in text.splitlines())
    modules = [path for path in python if path.name not in ("__init__.py", "__main__.py")]
    print(f"Python tokens              {tokens:>9,}   (to reach: 190,000)")
    print(f"modules                    {len(modules):>9,}   (135)")
    print(f"lines                      {lines:>9,}")
    print(f"tokens a code line         {tokens / code_lines:>9.1f}   (10.3)")
    print(f"lines over 100 columns     {wide / lines:>9.1%}   (8 %)")
    longest = max((len(path.read_text(encoding="utf-8").splitlines()), path) for path in python)
    print(f"longest file               {longest[0]:>9,}   (400) {longest[1]}")
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
    sys.exit(main())
