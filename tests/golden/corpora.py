"""Corpora in every format, as rows; what is refused, in its own words; what cleaning takes out; the embedded corpus."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from tests.golden.doors import MODEL, command, done, work_folder
from tests.golden.record import HERE, Found, golden

SETS = HERE / "sets"
FILTERS = "garbage,markup,length,ratio,script,copy,numbers,repeated pair,repeated document"

# name: the arguments that name a corpus
CASES: dict[str, str] = {
    "tsv": "rows.tsv",
    "tsv-crlf-bom": "rows.crlf.tsv",
    "tsv-spaces": "spaces.tsv",
    "tsv-gzip": "rows.tsv.gz",
    "tsv-swap": "rows.tsv --swap",
    "bars": "rows.bars",
    "jsonl-documents": "documents.jsonl",
    "jsonl-sentences": "sentences.jsonl",
    "text": "blank.fr blank.en",
    "ids": "lines.fr lines.en --document-ids lines.ids",
    "starts": "lines.fr lines.en --document-starts lines.starts",
    "sentences": "lines.fr lines.en --format sentences",
    "lines": "whole.fr whole.en",
    "nist": "nist.fr nist.en",
    "iwslt": "iwslt.fr iwslt.en",
    "talks": "talks.fr talks.en",
    "wmt": "set.wmt",
    "tmx": "memory.tmx --languages fr-en",
    "tmx-reversed": "memory.tmx --languages en-fr",
    "tmx-region": "memory.tmx --languages fr_CA-en_US",
    "tmx-other": "memory.tmx --languages fr-de",
    "xliff": "units.xlf --languages fr-en",
    "po": "shop.po --languages fr-en",
    "po-reversed": "shop.po --languages en-fr",
    "po-other": "shop.po --languages fr-de",
    "subtitles": "film.fr.srt film.en.srt --languages fr-en",
    "html": "page.fr.html page.en.html --languages fr-en",
    "markdown": "page.fr.md page.en.md --languages fr-en",
    "unlike": "page.fr.md page.en.html",
    "parted": "page.fr.md blank.en",
    "named-wrongly": "rows.tsv --format jsonl",
    "unknown": "rows.tsv --format csv",
    "absent": "absent.tsv",
    "three": "rows.tsv rows.tsv rows.tsv",
}
SOURCES_ALONE = ["rows.tsv", "rows.bars", "documents.jsonl", "sentences.jsonl", "blank.fr", "whole.fr"]
SOURCES_ALONE += ["nist.fr", "iwslt.fr", "talks.fr", "set.wmt", "shop.po"]


def _sets(folder: Path) -> None:
    shutil.copytree(SETS, folder, dirs_exist_ok=True)
    (folder / "rows.tsv.gz").write_bytes(gzip.compress((folder / "rows.tsv").read_bytes()))


def _rows(words: Sequence[str]) -> Any:
    """The corpus as JSON lines, or why it is none."""
    two = len([*takewhile(lambda word: not word.startswith("--"), words)]) > 1
    said = command("corpus", "clean", *words, *["--sides"] * two, "-o", "rows.jsonl", "--without", FILTERS)
    return [said.code, said.err] if said.code else Path("rows.jsonl").read_bytes()


def _inspected(words: Sequence[str]) -> Any:
    said = command("corpus", "inspect", *words, "--json", "figures.json")
    return [said.code, said.err] if said.code else json.loads(Path("figures.json").read_text(encoding="utf-8"))


@golden()
def corpora() -> Found:
    with work_folder() as folder:
        _sets(folder)
        for name, arguments in CASES.items():
            yield f"{name}/rows", _rows(arguments.split())
            yield f"{name}/inspect", _inspected(arguments.split())
        yield "printed", done("corpus", "inspect", "rows.tsv", "--context", "previous=1,following=1")


@golden()
def corpora_translated() -> Found:
    """The readers of the source side alone, and what is written for each format."""
    with work_folder() as folder:
        _sets(folder)
        for name in SOURCES_ALONE:
            for form in ("", "text"):
                said = command("translate", MODEL, name, "-o", "out", *["--format", form] * bool(form), "--beam", 1)
                yield f"{name}-{form or 'told'}", [said.code, Path("out").read_text() if said.code == 0 else said.err]
                Path("out").unlink(missing_ok=True)
        text = (folder / "blank.fr").read_text(encoding="utf-8")
        yield "stdin", done("translate", MODEL, stdin=text)
        yield "stdin-tsv", done("translate", MODEL, "-", "--format", "tsv", stdin=Path("rows.tsv").read_text())


@golden()
def corpora_refused() -> Found:
    with work_folder() as folder:
        bad = json.loads((SETS / "bad.json").read_text(encoding="utf-8"))
        cases = {name: {"t": text.encode("latin-1")} for name, text in bad.items()}
        pairs = json.loads((SETS / "bad-pairs.json").read_text(encoding="utf-8"))
        cases |= {f"pair-{name}": {"s.fr": s.encode(), "t.en": t.encode()} for name, (s, t) in pairs.items()}
        for name, files in cases.items():
            for file, content in files.items():
                (folder / file).write_bytes(content)
            arguments = [*files, "--languages", "fr-en"]
            yield f"{name}/refused", _inspected(arguments)
            yield f"{name}/skipped", _inspected([*arguments, "--skip-bad"])
            yield f"{name}/rows", _rows(arguments)


@golden()
def corpora_cleaned() -> Found:
    with work_folder() as folder:
        _sets(folder)
        for languages in ("", "fr-en", "zh-en"):
            told = ["--languages", languages] * bool(languages)
            said = done("corpus", "clean", "dirty.tsv", "-o", "clean.tsv", "--report", "report.json", *told)
            yield f"{languages or 'any'}/clean.tsv", Path("clean.tsv").read_bytes()
            yield f"{languages or 'any'}/report", json.loads(Path("report.json").read_text(encoding="utf-8"))
            yield f"{languages or 'any'}/printed", said
        done("corpus", "clean", "dirty.tsv", "-o", "c.jsonl", "--max-words", 4, "--max-ratio", 2, "--report", "r.md")
        yield "strict/c.jsonl", Path("c.jsonl").read_bytes()
        yield "strict/report.md", Path("r.md").read_bytes()


@golden()
def corpus_demo() -> Found:
    with work_folder():
        yield "printed", done("corpus", "demo", "demo", "--documents", 300, "--seed", 5)
        for path in sorted(Path("demo").iterdir()):
            yield path.name, path.read_bytes()
