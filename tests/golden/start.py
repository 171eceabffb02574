"""What a verb loads, and how long it takes to begin: `python -m tests.golden.start` prints today's figures."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.golden.documents import content
from tests.golden.doors import MODEL, done, environment, work_folder
from tests.golden.models import RECIPE

# Runs a command line, or a statement, and tells which modules of ours were loaded in the end.
PROBE = """
import json, runpy, sys
statement = sys.argv.pop(1)
try:
    if statement:
        exec(statement)
    else:
        runpy.run_module("docnmt", run_name="__main__")
except SystemExit:
    pass
ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == "docnmt" and name != "__main__"]
packages = sum(hasattr(module, "__path__") for module in ours)
print(json.dumps([len(ours) - packages, packages, "torch" in sys.modules]), file=sys.stderr)
"""


def loaded(*words: object, statement: str = "") -> tuple[int, int, bool]:
    """Modules of ours, packages of ours, and whether torch is there."""
    command = [sys.executable, "-c", PROBE, statement, *map(str, words)]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    modules, packages, torch = json.loads(said.stderr.splitlines()[-1])
    return modules, packages, torch


def seconds(*words: object, times: int = 7) -> float:
    """The quickest of some starts."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "docnmt", *map(str, words)], env=environment(), capture_output=True)
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    with work_folder():
        done("corpus", "demo", "corpus", "--documents", 80, "--seed", 5)
        Path("tiny.toml").write_text(RECIPE.replace("updates = 14", "updates = 2"), encoding="utf-8")
        Path("x.docx").write_bytes(content("report.docx"))
        rows = Path("corpus/test.tsv").read_text(encoding="utf-8").splitlines(True)[:8]
        Path("test.tsv").write_text("".join(rows), encoding="utf-8")
        verbs = {
            "--help": ["--help"],
            "train": ["train", "tiny.toml"],
            "translate x.docx": ["translate", MODEL, "x.docx", "-o", "y.docx"],
            "translate x.tsv": ["translate", MODEL, "test.tsv"],
            "score": ["score", MODEL, "test.tsv"],
            "quantize": ["quantize", MODEL, "-o", "int8"],
            "corpus inspect": ["corpus", "inspect", "test.tsv"],
            "corpus clean": ["corpus", "clean", "test.tsv", "-o", "clean.tsv"],
            "evaluate": ["evaluate", "test.tsv", "--reference", "test.tsv"],
            "compare": ["compare", "test.tsv", "test.tsv", "--reference", "test.tsv"],
            "contrast": ["contrast", MODEL, "corpus/contrastive.jsonl"],
            "context-gain": ["context-gain", MODEL, "test.tsv", "--no-translate"],
            "tables --dry-run": ["tables", "tiny.toml", "--dry-run", "--set", 'data.test="corpus/test.tsv"'],
        }
        print("modules  packages  torch  verb")
        print(
            "{:7}  {:8}  {!s:5}  docnmt.load".format(*loaded(statement=f"import docnmt; docnmt.load({str(MODEL)!r})"))
        )
        for name, words in verbs.items():
            print("{:7}  {:8}  {!s:5}  {}".format(*loaded(*words), name))
        print(f"docnmt --help: {seconds('--help'):.3f} s, the quickest of 7; python alone: {_python():.3f} s")


def _python() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], env=environment())
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
