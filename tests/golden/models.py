"""Models: a folder that was made once, a tiny two-step training, every system with few updates; words and scores."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

import docnmt
from tests.golden.doors import MODEL, command, done, environment, work_folder
from tests.golden.record import Exact, Found, golden

RECIPE = """\
seed = 3
output = "run"
[data]
source_language = "fr"
target_language = "en"
documents = "corpus/train.tsv"
dev = "corpus/dev.tsv"
[subwords]
vocabulary = 400
[model]
width = 16
filter_width = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
[context]
previous = 2
[sentence]
updates = 14
batch_tokens = 1500
warmup = 60
log_every = 1
validate_every = 7
checkpoint_every = 4
average = 2
[document]
updates = 14
batch_tokens = 1500
warmup = 60
log_every = 1
validate_every = 7
checkpoint_every = 4
average = 2
[decoding]
beam = 2
[hardware]
device = "cpu"
threads = 1
"""

_CACHE = ["previous=4", "cache_words=20"]
_FEW_WORDS = ["stop_frequency=0.9"]  # of a small vocabulary every word is frequent
_UNFROZEN = ["document.freeze=false"]
# the settings of [context], and others by their full names
SYSTEMS: dict[str, list[str]] = {
    "attention": ["kind=attention"],
    "attention-other": [
        "kind=attention",
        "previous=1",
        "following=1",
        "layers=2",
        "integration=decoder",
        "connection=residual",
        "start=sentence",
    ],
    "voita": ["kind=voita", "previous=1"],
    "han": ["kind=han", "start=sentence"],
    "han-encoder": ["kind=han", "integration=encoder"],
    "concat": ["kind=concat", "previous=1", *_UNFROZEN],
    "concat-both": ["kind=concat", "previous=1", "translate_previous=true", *_UNFROZEN],
    "cache": ["kind=cache", "topic_words=30", *_FEW_WORDS, *_CACHE],
    "continuous-cache": ["kind=continuous-cache", *_CACHE],
    "rnnsearch": ["kind=none", "model.kind=rnnsearch"],
    "hierarchical": ["kind=hierarchical", "previous=3", "model.kind=rnnsearch"],
    "rnnsearch-cache": ["kind=cache", "topic_words=8", *_FEW_WORDS, "model.kind=rnnsearch"],
}


def _set(settings: Sequence[str]) -> list[str]:
    named = (each if "." in each.partition("=")[0] else f"context.{each}" for each in settings)
    return [word for each in named for word in ("--set", each)]


def _workshop(recipe: str = RECIPE) -> None:
    done("corpus", "demo", "corpus", "--documents", 80, "--seed", 5)
    for part, lines in (("dev", 4), ("test", 12)):
        path = Path("corpus", f"{part}.tsv")
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:lines]), encoding="utf-8")
    Path("tiny.toml").write_text(recipe, encoding="utf-8")


def _trained(step: Path) -> Found:
    """A step as its records: all that is not time."""
    lines = (step / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    yield "metrics", [json.loads(line) for line in lines]
    tensors = load_file(step / "model" / "weights.safetensors")
    # Adam makes steps of full size out of gradients that are zero but for rounding, as those of keys' biases are.
    named = {
        name: [list(each.shape), *([float(each.double().norm())] if each.dim() > 1 else [])]
        for name, each in sorted(tensors.items())
    }
    yield "weights", named | {"order": list(tensors)}
    bits = hashlib.sha256(b"".join(name.encode() + tensors[name].numpy().tobytes() for name in sorted(tensors)))
    yield "weights-bits", Exact(bits.hexdigest())
    card = json.loads((step / "model" / "config.json").read_text(encoding="utf-8"))
    del card["docnmt"], card["files"]  # its version, and hashes of the bits above
    card["notes"] = {k: Exact(v) if "sha256" in k else v for k, v in card["notes"].items()}
    yield "card", card
    yield "files", sorted(path.name for path in (step / "model").iterdir())


# ---- training ----


def _both(folder: str, name: str) -> Found:
    for step in ("sentence", "document"):
        for kind, value in _trained(Path(folder, step)):
            yield f"{name}/{step}/{kind}", value


@golden()
def training() -> Found:
    """Both steps in one go, and the same stopped in the middle of each and started again."""
    with work_folder():
        _workshop()
        done("train", "tiny.toml")
        yield from _both("run", "whole")
        for side in ("source", "target"):
            (made,) = Path("run/data").glob(f"{side}.*.spm")
            yield f"subwords/{side}", Exact(hashlib.sha256(made.read_bytes()).hexdigest())
        shutil.copytree("run/data", "again/data")
        stops = ("sentence.updates=7", "document.updates=7")
        for step, stop in zip(("sentence", "document"), stops, strict=True):
            done("train", "tiny.toml", "--step", step, *_output("again", stop))
            done("train", "tiny.toml", "--step", step, *_output("again"))
        yield from _both("again", "stopped")


def _output(folder: str, *settings: str) -> list[str]:
    return ["--set", f'output="{folder}"', *_set(settings)]


# ---- what a model says ----


def _documents(count: int, sentences: int) -> list[docnmt.ParallelDocument]:
    rows = [line.split("\t") for line in Path("corpus/test.tsv").read_text(encoding="utf-8").splitlines()]
    names = list(dict.fromkeys(row[0] for row in rows))[:count]
    pairs = {name: [row[1:] for row in rows if row[0] == name][:sentences] for name in names}
    return [docnmt.ParallelDocument(n, *(tuple(p[i] for p in pairs[n]) for i in (0, 1))) for n in names]


def _foreign(documents: Sequence[docnmt.ParallelDocument]) -> list[docnmt.ParallelDocument]:
    """For each as many sentences of the others, in reverse."""
    made = []
    for document in documents:
        others = [pair for d in documents if d.id != document.id for pair in zip(d.source, d.target, strict=True)]
        chosen = (others[::-1] * len(document))[: len(document)]
        made.append(docnmt.ParallelDocument(document.id, *(tuple(pair[i] for pair in chosen) for i in (0, 1))))
    return made


ALL_WAYS: dict[str, dict[str, Any]] = {
    "own": {"nbest": 2, "beam": 2},
    "none": {"context": "none"},
    "off": {"context": "off"},
    "one": {"context": "previous=1"},
    "both-sides": {"context": "previous=1,following=1"},
    "greedy": {"beam": 1},
    "4-best": {"nbest": 4, "beam": 4, "length_penalty": 1.0},
    "small-batches": {"batch_tokens": 60},
}


def _says(folder: Path, size: tuple[int, int], ways: Sequence[str]) -> Found:
    """Translations and scores by the Python API, of so many documents and their first sentences; `foreign` is with
    contexts of other documents."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        translator, documents = docnmt.load(folder), _documents(*size)
        foreign = _foreign(documents)
        sources, others = ([docnmt.Document(d.id, d.source) for d in each] for each in (documents, foreign))
        for name in ways:
            wrong = {"context_from": others} if name == "foreign" else {}
            found = translator.translate_documents(sources, **ALL_WAYS.get(name, {}), **wrong)
            yield f"translate/{name}", [[d.id, list(s.texts), list(s.scores)] for d in found for s in d.sentences]
            if name in ("own", "none", "off", "foreign"):
                context = ALL_WAYS.get(name, {}).get("context")
                scored = translator.score(documents, context=context, **({"context_from": foreign} if wrong else {}))
                yield f"score/{name}", [[list(s.pieces), list(s.log_probabilities)] for d in scored for s in d]
    finally:
        torch.set_num_threads(before)


def _sentence_model() -> Path:
    """The sentence model inside of the document model: its weights without those of the context."""
    folder = Path("sentence-model")
    shutil.copytree(MODEL, folder)
    card = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    card["context"]["kind"] = "none"
    (folder / "config.json").write_text(json.dumps(card), encoding="utf-8")
    tensors = load_file(MODEL / "weights.safetensors")
    kept = {name: t for name, t in tensors.items() if not any(p.startswith("context") for p in name.split("."))}
    save_file(kept, folder / "weights.safetensors")
    return folder


@golden(cases=SYSTEMS)
def systems(name: str) -> Found:
    """Six updates of step 2 from the same sentence model; RNNsearch has a first step of its own."""
    with work_folder():
        _workshop(RECIPE.replace("updates = 14", "updates = 6") + "[validation]\ndecode = false\n")
        settings, start = SYSTEMS[name], _sentence_model()
        models = [f"subwords.{side}_model={json.dumps(str(MODEL / f'{side}.spm'))}" for side in ("source", "target")]
        if "model.kind=rnnsearch" in settings:
            base = ["context.kind=none", "model.kind=rnnsearch", "sentence.updates=12"]
            done("train", "tiny.toml", "--step", "sentence", *_set([*models, *base]))
            yield from ((f"base/{kind}", value) for kind, value in _trained(Path("run/sentence")))
            start = Path("run/sentence/model")
        folder = start
        if "kind=none" not in settings:
            chosen = [*settings, f'document.start_from="{start}"']
            done("train", "tiny.toml", "--step", "document", *_set([*models, *chosen]))
            yield from ((f"train/{kind}", value) for kind, value in _trained(Path("run/document")))
            folder = Path("run/document/model")
        yield from ((f"float32/{kind}", value) for kind, value in _says(folder, (2, 2), ("own", "none", "foreign")))
        said = command("quantize", folder, "-o", "int8", "--json", "sizes.json")
        assert said.code == 0, said.err
        yield "int8/sizes", Exact(Path("sizes.json").read_text(encoding="utf-8"))
        yield from ((f"int8/{kind}", value) for kind, value in _says(Path("int8"), (2, 2), ("own",)))


# ---- the model folder that was made once ----


@golden()
def model_folder() -> Found:
    with work_folder():
        _workshop()
        yield from _says(MODEL, (3, 5), [*ALL_WAYS, "foreign"])
        test = "corpus/test.tsv"
        yield "command/translate", done("translate", MODEL, test)
        done("score", MODEL, test, "--json", "scores.json")
        yield "command/score", json.loads(Path("scores.json").read_text(encoding="utf-8"))
        lines = [json.loads(line) for line in done("score", MODEL, test, "--tokens").splitlines()]
        yield "command/score-tokens", lines
        best = [line.split(" ||| ") for line in done("translate", MODEL, test, "--nbest", 3).splitlines()]
        yield "command/3-best", [[*line[:-1], float(line[-1])] for line in best]
        Path("terms.tsv").write_text(
            "lundi\tTuesday\ngrand-mère\taunt Agatha\nL'avocat\tThe lawyer\n", encoding="utf-8"
        )
        yield "glossary/translate", done("translate", MODEL, test, "--glossary", "terms.tsv", "--glossary-report", "r")
        yield "glossary/report", json.loads(Path("r").read_text(encoding="utf-8"))
        shutil.copytree(MODEL, "short")
        out = done("shortlist", "short", "corpus/train.tsv", "--dev", "corpus/dev.tsv", "--frequent", 20, "--json", "s")
        yield "shortlist/printed", out
        yield "shortlist/figures", json.loads(Path("s").read_text(encoding="utf-8"))
        yield "shortlist/translate", done("translate", "short", test)
        yield "shortlist/off", done("translate", "short", test, "--no-shortlist")
        (Path("short") / "weights.safetensors").write_bytes(b"")
        for name, words in {
            "broken": ["short", test],
            "absent": ["nothing", test],
            "beam": [MODEL, test, "--beam", 0],
            "context": [MODEL, test, "--context", "before"],
            "device": [MODEL, test, "--device", "abacus"],
        }.items():
            said = command("translate", *words)
            yield f"refused/{name}", [said.code, said.err.replace(str(MODEL), "MODEL")]


@golden(slow=True)
def without_extension() -> Found:
    """Where the C extension was not built: float32 and int8 by torch alone."""
    alone = (
        "import sys; sys.modules['docnmt.engine._accelerator'] = None; from docnmt.cli import main; sys.exit(main())"
    )
    with work_folder():
        _workshop()
        done("quantize", MODEL, "-o", "int8")
        for name in (MODEL, "int8"):
            words = [sys.executable, "-c", alone, "translate", str(name), "corpus/test.tsv", "--nbest", "2"]
            said = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
            best = [line.split(" ||| ") for line in said.stdout.splitlines()]
            yield Path(name).name, [[*line[:-1], float(line[-1])] for line in best]
            way = [re.sub(r"\S+ -m pip .*", "PIP", line) for line in said.stderr.splitlines()[:3]]  # where it lies
            yield f"{Path(name).name}-way", way
