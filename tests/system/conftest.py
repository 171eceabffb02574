"""A corpus and a recipe so small that a whole training takes a second, and ways to run the command line on them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from docnmt import cli
from docnmt.data.subwords import Subwords
from docnmt.demo import write_demo_corpus
from docnmt.model.context import is_document_parameter
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import load_card
from docnmt.training.loop import Trainer
from tests.builders import replace_weights
from tests.every_system import CASES

ROOT = Path(cli.__file__).parents[2]  # what holds the package, for processes of their own

WIDE = "1000"  # columns of the terminal, so that no message is broken


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole commands, with trainings, servers and browsers: all of this folder is for `make test-slow`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


RECIPE = """\
seed = 3
output = "run"

[data]
source_language = "fr"
target_language = "en"
documents = "corpus/train.tsv"
dev = "corpus/small-dev.tsv"

[subwords]
vocabulary = 400
{models}

[model]
width = 16
filter_width = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.1

[context]
previous = 2

[sentence]
updates = 14
batch_tokens = 2500
warmup = 6
log_every = 3
validate_every = 5
checkpoint_every = 4
average = 2

[document]
updates = 14
batch_tokens = 4000
warmup = 6
log_every = 3
validate_every = 5
checkpoint_every = 4
average = 2

[validation]
decode = false

[decoding]
beam = 2

[hardware]
device = "cpu"
threads = 1
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def message(self) -> str:
        """What was said on standard error, on one line."""
        return " ".join(self.err.split())


def command(*arguments: object, stdin: bytes = b"") -> Result:
    """The command line in this process."""
    # Files with a layout are written as bytes, all else as text: standard output takes both.
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True), io.StringIO()
    before = sys.stdin, warnings.showwarning, torch.get_num_threads(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDE
    torch.set_num_threads(1)  # models this small only wait for a second one
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))  # type: ignore[arg-type]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = cli.main([str(argument) for argument in arguments])
            except SystemExit as stopped:
                code = stopped.code if isinstance(stopped.code, int) else 1
    finally:
        sys.stdin, warnings.showwarning = before[:2]
        torch.set_num_threads(before[2])
        if before[3] is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before[3]
    written = out.buffer.getvalue()  # type: ignore[attr-defined]
    return Result(code, written.decode(), err.getvalue())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": WIDE}


def start_docnmt(*arguments: object) -> subprocess.Popen[str]:
    """The command line in a process of its own, under way."""
    command = [sys.executable, "-m", "docnmt", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def in_two_processes(*arguments: object) -> Result:
    """The command line under torchrun."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "docnmt"]
    done = subprocess.run(
        [*launcher, *map(str, arguments)], env=environment(), text=True, capture_output=True, timeout=240
    )
    return Result(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Tiny:
    """The recipe, and how to train it into a folder."""

    folder: Path
    recipe: Path

    def arguments(self, output: Path, *settings: str, step: str = "") -> list[str]:
        chosen = [f"output={json.dumps(str(output))}", *settings]
        return [
            "train",
            str(self.recipe),
            *(["--step", step] if step else []),
            *(part for setting in chosen for part in ("--set", setting)),
        ]

    def train(self, output: Path, *settings: str, step: str = "") -> Result:
        return command(*self.arguments(output, *settings, step=step))


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


@contextlib.contextmanager
def killed_at(update: int) -> Iterator[None]:
    """Training dies when it has made so many updates."""
    original = Trainer._update

    def dying(trainer: Trainer, state: object) -> object:
        if state.update == update:
            raise Killed
        return original(trainer, state)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Trainer, "_update", dying)
        yield


def weights(output: Path, step: str) -> dict[str, torch.Tensor]:
    return load_file(output / step / "model" / "weights.safetensors")


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def metrics(output: Path, step: str, kind: str = "") -> list[dict]:
    text = (output / step / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if not kind or line["kind"] == kind]


def outcome(output: Path, steps: tuple[str, ...] = ("sentence", "document")) -> dict[str, object]:
    """All that a run determines: model folders and records, as hashes and text."""
    found: dict[str, object] = {}
    for step in steps:
        for file in sorted((output / step / "model").iterdir()):
            found[f"{step}/{file.name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
        found[f"{step}/metrics.jsonl"] = (output / step / "metrics.jsonl").read_text(encoding="utf-8")
    return found


def leftovers(folder: Path) -> list[Path]:
    """Files and folders that only something half done has."""
    return [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix in (".part", ".old", ".tmp")]


def first_documents(path: Path, count: int) -> list[str]:
    lines, seen = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        name = line.partition("\t")[0]
        if name not in seen:
            seen.append(name)
        if len(seen) > count:
            break
        lines.append(line)
    return lines


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    folder = tmp_path_factory.mktemp("tiny")
    corpus = folder / "corpus"
    write_demo_corpus(corpus, 80, seed=5)
    small = first_documents(corpus / "dev.tsv", 3)
    (corpus / "small-dev.tsv").write_text("\n".join(small) + "\n", encoding="utf-8")
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE.format(models=""), encoding="utf-8")
    done = command("prepare", recipe)
    assert done.code == 0, done.err
    # The sub-words are made once; what every run encodes anew with them is little.
    for side in ("source", "target"):
        (made,) = (folder / "run" / "data").glob(f"{side}.*.spm")
        made.rename(folder / f"{side}.spm")
    models = 'source_model = "source.spm"\ntarget_model = "target.spm"'
    recipe.write_text(RECIPE.format(models=models), encoding="utf-8")
    return Tiny(folder, recipe)


@pytest.fixture(scope="session")
def finished(tiny: Tiny) -> Path:
    """Both steps trained without a break; not to be written to."""
    output = tiny.folder / "finished"
    done = tiny.train(output)
    assert done.code == 0, done.err
    return output


@pytest.fixture(scope="session")
def models(finished: Path) -> dict[str, Path]:
    """A sentence and a document model for translating, with the same theta_s: random ones.

    After a few updates every translation is the same or empty. These say something else for every sentence and every
    context, and soon come to an end.
    """
    made = finished / "document" / "model"
    card, source, target = load_card(made), Subwords.load(made / "source.spm"), Subwords.load(made / "target.spm")
    torch.manual_seed(1)
    network = DocumentTransformer(card.model, card.context, len(source), len(target))
    found = {name: value.detach() + 0.5 * torch.randn(value.shape) for name, value in network.named_parameters()}
    end = found["target_embedding.weight"][target.eos]
    found["decoder.0.after_feed_forward.norm.bias"] += 0.6 * end / end.norm()
    for number in range(len(target)):
        if target.pieces([number])[0].startswith("<0x"):  # bytes, of which most make no character
            found["target_embedding.weight"][number] = 0
    folders = {}
    for step in ("sentence", "document"):
        folders[step] = finished.parent / "random" / step
        shutil.copytree(finished / step / "model", folders[step])
        kept = found if step == "document" else {n: v for n, v in found.items() if not is_document_parameter(n)}
        replace_weights(folders[step], kept)
    return folders


@pytest.fixture(scope="session")
def model(models: dict[str, Path]) -> Path:
    """The document model."""
    return models["document"]


class Systems:
    """Every system of tests/every_system.py, trained once each, on a sentence model that its base has in common."""

    def __init__(self, tiny: Tiny, finished: Path):
        self.tiny, self.sentence_runs, self.runs = tiny, {"transformer": finished}, {}

    def base(self, kind: str) -> Path:
        """A run with its sentence step done; not to be written to."""
        if kind not in self.sentence_runs:
            output = self.sentence_runs[kind] = self.tiny.folder / f"base-{kind}"
            settings = (f"model.kind={kind}", "context.kind=none", "sentence.updates=8")
            done = self.tiny.train(output, *settings, step="sentence")
            assert done.code == 0, done.err
        return self.sentence_runs[kind]

    def train(self, name: str, output: Path, *settings: str) -> Result:
        """Step 2 of a system, of six updates if nothing else is set."""
        case = CASES[name]
        start = f"document.start_from={json.dumps(str(self.base(case.base) / 'sentence' / 'model'))}"
        few = ("document.updates=6", "document.checkpoint_every=3")
        done = self.tiny.train(output, *case.settings, start, *few, *settings, step="document")
        assert done.code == 0, done.err
        return done

    def trained(self, name: str) -> Path:
        """A run with the document step done; not to be written to."""
        if name not in self.runs:
            self.runs[name] = self.tiny.folder / f"system-{name}"
            self.train(name, self.runs[name])
        return self.runs[name]


@pytest.fixture(scope="session")
def systems(tiny: Tiny, finished: Path) -> Systems:
    return Systems(tiny, finished)
