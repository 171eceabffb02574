"""What the verbs print and write: help, figures of evaluation, tables; and the words of all errors."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import docnmt
from tests.golden.doors import MODEL, command, done, work_folder
from tests.golden.models import RECIPE
from tests.golden.record import Exact, Found, golden

PACKAGE = Path(docnmt.__file__).parent


# ---- help ----

VERBS = ["demo", "prepare", "train", "corpus", "translate", "score", "serve", "evaluate", "compare", "context-gain"]
VERBS += ["contrast", "tables", "judge", "judgements", "quantize", "shortlist"]
JOBS = ["corpus demo", "corpus inspect", "corpus clean"]


@golden()
def help_texts() -> Found:
    """Words as they stand, lines as this version of Python lays them out; and what a wrong command line is told."""
    for verb in ["", *VERBS, *JOBS]:
        text = done(*verb.split(), "--help")
        yield verb or "docnmt", {"words": sorted(set(re.findall(r"\w[\w'-]+", text))), "text": Exact(text)}
    for words in ("", "nonsense", "train", "corpus", "translate", "evaluate x", "train a b c", "serve --port x"):
        said = command(*words.split())
        yield f"wrong/{words or 'nothing'}", [said.code, Exact(said.err)]


# ---- words of errors ----


@golden()
def error_texts() -> Found:
    """The literal parts of all messages in the source, wherever they stand: {} is what is filled in."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    classes = {"DocnmtError", "HTTPException", "ArgumentTypeError"}
    defined = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(4):  # classes of classes
        classes |= {node.name for node in defined if any(getattr(b, "id", "") in classes for b in node.bases)}
    groups = dict.fromkeys(classes | {"missing_extra", "bad"}, "errors")
    groups |= {"warn": "warnings", "say": "progress", "print": "progress"}
    found: dict[str, list[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        given = [*node.args, *(keyword.value for keyword in node.keywords)] if name in groups else []
        if parts := [text for value in given if (text := _literal(value)).strip("{} ")]:
            found.setdefault(groups[name], []).append(" | ".join(parts))
    yield from ((group, sorted(texts)) for group, texts in found.items())


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    return ""


# ---- evaluation ----


def _systems() -> None:
    """A reference, another one, and translations of two systems, of which one drops words."""
    done("corpus", "demo", "demo", "--documents", 300, "--seed", 5)
    rows = [line.split("\t") for line in Path("demo/test.tsv").read_text(encoding="utf-8").splitlines()[:36]]
    for row in rows:
        row[0] = ("news:", "talk:", "")[int(row[0][-1]) % 3] + row[0]
    said = {
        "ref": [row[2] for row in rows],
        "ref2": [" ".join(reversed(row[2].split())) for row in rows],
        "base": [" ".join(w for i, w in enumerate(row[2].split()) if (i + n) % 4) for n, row in enumerate(rows)],
        "good": [row[2].replace("the", "a") if n % 2 else row[2] for n, row in enumerate(rows)],
    }
    for name, side in said.items():
        lines = ("\t".join([*row[:2], text]) + "\n" for row, text in zip(rows, side, strict=True))
        Path(f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        Path(f"{name}.txt").write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
        items = [{"document": row[0], "source": row[1], "target": text} for row, text in zip(rows, side, strict=True)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def _figures(*words: object) -> Any:
    done(*words, "--json", "figures.json")
    return json.loads(Path("figures.json").read_text(encoding="utf-8"))


@golden()
def evaluation() -> Found:
    with work_folder():
        _systems()
        two = "--reference", "ref.tsv", "ref2.tsv"
        options = {
            "plain": [],
            "domains": ["--by-domain", "--by-document"],
            "own-domains": ["--domains", "all=news,talk", "--metric", "bleu"],
            "lowercase": ["--lowercase", "--resample", "sentences", "--metric", "bleu", "chrf"],
            "tokenized": ["--tokenized", "--metric", "bleu", "multi-bleu"],
            "chinese": ["--language", "zh", "--metric", "bleu", "chrf"],
        }
        for name, words in options.items():
            yield f"evaluate/{name}", _figures("evaluate", "base.tsv", "good.tsv", *two, *words)
        for kind in ("txt", "jsonl"):
            yield f"evaluate/{kind}", _figures("evaluate", f"base.{kind}", "--reference", "ref.tsv", "--metric", "bleu")
        yield "evaluate/printed", done("evaluate", "base.tsv", *two, "--markdown", "e.md", "--latex", "e.tex")
        yield "evaluate/markdown", Path("e.md").read_text(encoding="utf-8")
        yield "evaluate/latex", Path("e.tex").read_text(encoding="utf-8")
        words = ["base.tsv", "good.tsv", *two, "--metric", "bleu", "chrf", "document-bleu", "--by-domain"]
        yield "compare/figures", _figures("compare", *words, "--html", "c.html", "--latex", "c.tex")
        yield "compare/latex", Path("c.tex").read_text(encoding="utf-8")
        yield "compare/page", Path("c.html").read_text(encoding="utf-8")


@golden()
def evaluation_refused() -> Found:
    """References and translations that do not belong together."""
    with work_folder():
        _systems()
        lines = Path("base.tsv").read_text(encoding="utf-8").splitlines(True)
        first = lines[0].split("\t")
        broken = {
            "shorter": "".join(lines[:-1]),
            "other-document": "".join(["x" + lines[0], *lines[1:]]),
            "other-source": "".join(["\t".join([first[0], "Autre.", first[2]]), *lines[1:]]),
            "empty-target": "".join(["\t".join([*first[:2], "\n"]), *lines[1:]]),
            "spaces": "".join(["\t".join([*first[:2], f"  {first[2].strip()}  \n"]), *lines[1:]]),
            "nothing": "",
            "reversed": "".join(lines[::-1]),
        }
        for name, text in broken.items():
            Path("hyp.tsv").write_text(text, encoding="utf-8")
            said = command("evaluate", "hyp.tsv", "--reference", "ref.tsv", "--metric", "bleu", "--json", "f.json")
            found = json.loads(Path("f.json").read_text(encoding="utf-8")) if said.code == 0 else said.err
            yield name, [said.code, found]
        for name, words in {
            "one": "compare base.tsv --reference ref.tsv",
            "metric": "evaluate base.tsv --reference ref.tsv --metric meteor",
            "domain": "evaluate base.tsv --reference ref.tsv --domains x=nothing",
            "absent": "evaluate absent.tsv --reference ref.tsv",
        }.items():
            said = command(*words.split())
            yield name, [said.code, said.err]


# ---- what context does ----


@golden()
def context_verbs() -> Found:
    with work_folder():
        done("corpus", "demo", "demo", "--documents", 300, "--seed", 5)
        items = Path("demo/contrastive.jsonl").read_text(encoding="utf-8").splitlines(True)[:30]
        Path("set.jsonl").write_text("".join(items), encoding="utf-8")
        files = ["--items", "items.jsonl", "--latex", "t.tex", "--write", "again.jsonl"]
        yield "contrast/figures", _figures("contrast", MODEL, "set.jsonl", *files)
        yield "contrast/items", [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]
        yield "contrast/written", Path("again.jsonl").read_bytes()
        yield "contrast/latex", Path("t.tex").read_text(encoding="utf-8")
        rows = Path("demo/test.tsv").read_text(encoding="utf-8").splitlines(True)[:15]
        Path("gain.tsv").write_text("".join(rows), encoding="utf-8")
        more = ["--tokens", "tokens.jsonl", "--markdown", "g.md", "--html", "g.html", "--sentences", 5]
        figures = _figures("context-gain", MODEL, "gain.tsv", *more, "--domains", "zero=test-00000")
        yield "context-gain/figures", figures | {"model": "MODEL"}
        yield "context-gain/tokens", [json.loads(line) for line in Path("tokens.jsonl").read_text().splitlines()]
        yield "context-gain/markdown", Exact(Path("g.md").read_text(encoding="utf-8").replace(str(MODEL), "MODEL"))
        yield "context-gain/page", Exact(Path("g.html").read_text(encoding="utf-8").replace(str(MODEL), "MODEL"))


# ---- the paper's tables ----


@golden(slow=True)
def tables() -> Found:
    """All but the one that measures time, on a few updates."""
    with work_folder():
        done("corpus", "demo", "corpus", "--documents", 80, "--seed", 5)
        for name, lines in (("test.tsv", 12), ("dev.tsv", 12), ("contrastive.jsonl", 10)):
            path = Path("corpus", name)
            path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:lines]), encoding="utf-8")
        recipe = RECIPE.replace("updates = 14", "updates = 4").replace('dev = "', 'test = "corpus/test.tsv"\ndev = "')
        more = '[validation]\ndecode = false\n[evaluation]\ncontrastive = "corpus/contrastive.jsonl"\n'
        Path("tiny.toml").write_text(recipe + more, encoding="utf-8")
        names = ["context-length", "comparison", "two-step", "integration", "gating", "example"]
        chosen = [word for name in names for word in ("--only", name)]
        done("tables", "tiny.toml", *chosen, "--json", "t.json", "--latex", "t.tex", "--markdown", "t.md")
        for table in json.loads(Path("t.json").read_text(encoding="utf-8")):
            yield f"figures/{table['title']}", table
        yield "latex", Exact(Path("t.tex").read_text(encoding="utf-8"))
        yield "markdown", Exact(Path("t.md").read_text(encoding="utf-8"))
