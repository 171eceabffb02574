"""Is a revision slower than another? The same commands with both, by turns: processor seconds, and their ratio.

    python benchmarks/revisions.py OLD [NEW] [--rounds 10] [--only NAME ...] [--json FILE]

OLD and NEW are anything that git can name; without NEW it is the working tree. Both go through the public door alone,
`python -m docnmt`, on the embedded corpus, with the packages of the environment that this runs in. What is compared are
processor seconds, of a command with its threads and processes: they are about right on a machine that has other work,
too. A server is asked for the same texts, one after another, and stopped; what it took to start counts. The interval of
a ratio is that of its geometric mean over the rounds (Student's t).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import Request, urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from docnmt.base.files import write_json
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from tests.office_files import docx

ROOT = Path(__file__).resolve().parents[1]
RECIPE = """
output = "{output}"
[data]
source_language = "fr"
target_language = "en"
documents = "corpus/train.tsv"
dev = "corpus/dev.tsv"
[subwords]
vocabulary = 600
[model]
width = {width}
filter_width = {filter}
heads = 8
encoder_layers = {layers}
decoder_layers = {layers}
[sentence]
updates = {updates}
batch_tokens = 2000
warmup = 10
[document]
updates = {updates}
batch_tokens = 2000
warmup = 10
[validation]
decode = false
[hardware]
threads = 1
"""
# Width, filter, layers, updates: what an update takes is measured with the small one alone.
SIZES = {"small": (128, 512, 3, 20), "base": (512, 2048, 6, 1)}
# The demo, both models and its evaluation, with a start that both revisions know.
DEMO = ["context.start=sentence", "sentence.updates=20", "document.updates=20", "output=OUT", "hardware.threads=1"]
TEXTS = 100  # that a server is asked for
STUDENT = {3: 4.303, 5: 2.776, 10: 2.262, 20: 2.093}  # 97.5 % of Student's t by the number of rounds


def commands() -> dict[str, list[list[str]]]:
    """What is timed, as lists of words for `docnmt`; OUT stands for a folder that is new each time."""
    translate = {
        f"translate, {model}": [["translate", model, f"{size}.tsv", "-o", "OUT/x.tsv"]]
        for size in SIZES
        for model in (size, f"{size}-int8")
    }
    return {
        "docnmt --help": [["--help"]],
        "prepare": [["prepare", "train.toml", "--set", "output=OUT"]],
        "train, both steps": [["train", "train.toml", "--set", "output=OUT"]],
        **translate,
        "translate x.html": [["translate", "small", "x.html", "-o", "OUT/y.html"]],
        "translate x.docx": [["translate", "small", "x.docx", "-o", "OUT/y.docx"]],
        "contrast": [["contrast", "small", "corpus/contrastive.jsonl"]],
        "serve": [["serve", "small", "--port", "0", "--workers", "1"]],
        "demo": [["demo", *(word for value in DEMO for word in ("--set", value))]],
    }


class Revision:
    """A checkout with its C extension, and how long commands take with it."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        if (folder / "setup.py").exists():  # older ones compile when they are first used
            build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
            subprocess.run(build, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, words: list[str]) -> float:
        """Processor seconds of the command, in the current folder."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "docnmt", *words]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            if words[0] == "serve":
                for line in process.stdout:
                    if listening := re.search(rb"http://\S+:\d+", line):
                        ask(listening[0].decode())
                        process.send_signal(signal.SIGINT)
                        break
            said = process.stdout.read().decode()
        if process.returncode not in (0, -signal.SIGINT):
            raise SystemExit(f"{self.name}: docnmt {' '.join(words)} failed\n{said[-2000:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def time(self, lines: list[list[str]]) -> float:
        with tempfile.TemporaryDirectory(dir=".") as out:
            return sum(self.run([word.replace("OUT", out) for word in words]) for words in lines)


def ask(server: str) -> None:
    """Texts of three sentences each, one after another."""
    sources = [line.split("\t")[1] for line in Path("small.tsv").read_text(encoding="utf-8").splitlines()]
    for number in range(TEXTS):
        text = " ".join(sources[3 * number : 3 * number + 3])
        question = json.dumps({"q": text, "source": "fr", "target": "en"}).encode()
        with urlopen(Request(f"{server}/translate", question, {"Content-Type": "application/json"})) as answer:
            assert answer.status == 200


def checkout(name: str, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "checkout", "--quiet", name], cwd=folder, check=True)
    return folder


def make_material(old: Revision) -> None:
    """A corpus, and models of a few updates: what they say does not matter, both revisions say the same."""
    old.run(["corpus", "demo", "corpus", "--documents", "300", "--seed", "1"])
    test = Path("corpus/test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    for size, (width, filter_width, layers, updates) in SIZES.items():
        recipe = RECIPE.format(output=f"runs-{size}", width=width, filter=filter_width, layers=layers, updates=updates)
        Path(f"{size}.toml").write_text(recipe, encoding="utf-8")
        old.run(["train", f"{size}.toml"])
        shutil.move(f"runs-{size}/document/model", size)
        old.run(["quantize", size, "-o", f"{size}-int8"])
        Path(f"{size}.tsv").write_text("".join(test[: 400 if size == "small" else 60]), encoding="utf-8")
    Path("train.toml").write_text(Path("small.toml").read_text(encoding="utf-8"), encoding="utf-8")
    sources = [line.split("\t")[1] for line in test[:40]]
    Path("x.html").write_text("".join(f"<p>{source} <b>{source}</b></p>\n" for source in sources), encoding="utf-8")
    Path("x.docx").write_bytes(docx("".join(f"<w:p><w:r><w:t>{source}</w:t></w:r></w:p>" for source in sources)))


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The geometric mean and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.mean(logs)
    t = STUDENT.get(len(logs), 2.0)
    spread = t * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return math.exp(middle), math.exp(middle - spread), math.exp(middle + spread)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("old")
    options.add_argument("new", nargs="?", default="")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--only", nargs="+", choices=list(commands()), metavar="NAME")
    options.add_argument("--json", default="", metavar="FILE")
    chosen = options.parse_args()
    json_file = Path(chosen.json).resolve() if chosen.json else None
    with tempfile.TemporaryDirectory(prefix="revisions-") as folder:
        old = Revision(chosen.old, checkout(chosen.old, Path(folder) / "old"))
        new_folder = checkout(chosen.new, Path(folder) / "new") if chosen.new else ROOT
        new = Revision(chosen.new or "working tree", new_folder)
        os.chdir(folder)
        make_material(old)
        timed = {name: lines for name, lines in commands().items() if not chosen.only or name in chosen.only}
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in timed}
        with Progress().bar("measure", chosen.rounds * len(timed), "commands") as advance:
            for number in range(chosen.rounds):
                for name, lines in timed.items():
                    first, second = (old, new) if number % 2 else (new, old)
                    taken = {revision.name: revision.time(lines) for revision in (first, second)}
                    seconds[name].append((taken[old.name], taken[new.name]))
                    advance(1)
        os.chdir(ROOT)
    columns = [Column("command", text=True), *map(Column, (old.name, new.name, "new / old", "95 %"))]
    table = Table(f"Processor seconds, medians of {chosen.rounds} rounds", columns)
    figures = {}
    for name, pairs in seconds.items():
        ratio, low, high = interval([after / before for before, after in pairs])
        figures[name] = {"seconds": pairs, "ratio": ratio, "interval": [low, high]}
        before, after = (f"{statistics.median(values):.2f}" for values in zip(*pairs, strict=True))
        table.add(name, before, after, f"{ratio:.3f}", f"{low:.3f} … {high:.3f}")
    table.print(Console(highlight=False))
    if json_file:
        write_json(json_file, figures)


if __name__ == "__main__":
    main()
