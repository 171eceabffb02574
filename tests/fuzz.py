"""Mutated files through every reader: a file is read or refused, in time and by its name, and what is read is written.

python -m tests.fuzz [--minutes 5] [--seed 1] [--only docx md]
"""

from __future__ import annotations

import argparse
import io
import random
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import docnmt
from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import read_corpus, read_source
from docnmt.decoding.terms import Glossary
from docnmt.documents.translate import FileSentences
from docnmt.evaluation.contrastive_layouts import read_set
from docnmt.recipes import FOLDER as RECIPES
from docnmt.recipes import OWN, load_recipe
from tests.heavy_files import HOSTILE, ORDINARY
from tests.office_files import zipped

LONGEST = 5.0  # seconds of the processor for a file of a few kilobytes
GOLDEN = Path(__file__).parent / "golden"
# What tells a kind of file its structure: put in, taken out, doubled.
WORDS = (
    "<", ">", "</", "/>", "<!--", "-->", "<![CDATA[", "&", "&amp;", "&#0;", '"', "'", "{", "}", "[", "](", "\\", "\n\n",
    "\r", "\t", "\0", "%s", "{0}", "*", "**", "`", "```", "|", "- ", "> ", "1. ", "#", "msgid", "msgstr", '"" ', "-->",
    "00:00:01,000", "\u2028", "\ud83d", "\ufeff", "é", "中。", ":", ",", "charset=idna", "encoding='utf-16'",
)  # fmt: skip
# A corpus in every format, of the golden sets: both sides in one file, or a file for each; some formats have folders.
CORPORA: dict[str, tuple[str, ...]] = {
    "text": ("blank.fr", "blank.en"),
    "sentences": ("lines.fr", "lines.en"),
    "lines": ("whole.fr", "whole.en"),
    "nist-sgml": ("nist.fr", "nist.en"),
    "iwslt-xml": ("iwslt.fr", "iwslt.en"),
    "iwslt-tags": ("talks.fr", "talks.en"),
    "files": ("page.fr.html", "page.en.html"),
    "tsv": ("rows.tsv",),
    "bars": ("rows.bars",),
    "jsonl": ("documents.jsonl",),
    "wmt-xml": ("set.wmt",),
    "tmx": ("memory.tmx",),
    "xliff": ("units.xlf",),
    "po": ("shop.po",),
    "ldc": ("fr/nist.sgm", "en/nist.sgm"),
}
# A contrastive set in every layout.
SETS = {
    "docnmt": '{"document": "d", "phenomenon": "p", "source": ["Un.", "Deux."], "right": ["One.", "Two."], '
    '"wrong": [["One.", "Too."]], "distance": 1, "previous": ["Zéro."], "previous_target": ["Nought."]}\n',
    "contrapro": '[{"src segment": "It is old.", "ref segment": "Sie ist alt.", "src pronoun": "It", '
    '"ref pronoun": "sie", "ante distance": 1, "intrasegmental": false, "document id": "d", "segment id": 2, '
    '"errors": [{"contrastive": "Er ist alt.", "replacement": "er"}]}]',
    "bawden": '{"1": {"src": ["Un.", "Deux."], "trg": [{"type": "f.pl", "correct": ["One.", "Two."], '
    '"incorrect": ["One.", "Too."]}]}, "2": {"type": "t", "examples": [{"src": ["Un.", "Deux."], '
    '"trg": {"correct": ["One.", "Two."], "incorrect": ["One.", "Too."]}}]}}',
    "voita": '[{"src": "Un . _eos Deux .", "dst": ["One . _eos Two .", "One . _eos Too ."], "true_ind": 0, '
    '"ctx_dist": 1}]',
    "ctxpro": '[{"src segment": "It is old.", "ref segment": "Sie ist alt.", "ante distance": 1, "document id": "d", '
    '"segment id": 2, "rule": "GENDER", "expected": "Sie"}]',
}


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few changes; in an archive, mostly of a file that is in it."""
    if data.startswith(b"PK") and chance.random() < 0.8:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files: dict[str, bytes | str] = {name: archive.read(name) for name in archive.namelist()}
        name = chance.choice(sorted(files))
        content = files[name]
        assert isinstance(content, bytes)
        return zipped({**files, name: mutated(content, chance)})
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at, end = sorted(chance.randrange(len(found) + 1) for _ in range(2))
        end = min(end, at + chance.choice((1, 8, 200)))
        what = chance.randrange(5)
        if what == 0:
            found[at:end] = b""
        elif what == 1:
            found[at:at] = chance.choice(WORDS).encode("utf-8", "surrogatepass") * chance.choice((1, 1, 3, 300))
        elif what == 2:
            found[at:at] = found[at:end] * chance.choice((1, 20))
        elif what == 3:
            found[at : at + 1] = bytes((chance.randrange(256),))
        else:
            here = chance.randrange(len(found) + 1)
            found[here:here] = found[at:end]
    return bytes(found)


def read_and_write(kind: str, data: bytes) -> None:
    """What cannot be read is told by the file's name; of what can, an identity changes nothing, others are written."""
    name = f"a.{kind}"
    try:
        sentences = FileSentences(data, name, ("fr", "en"))
        file, segments = sentences.file, list(sentences.file.segments)
    except DocnmtError as error:
        assert str(error).startswith(name) and "\n  " in str(error), error
        return
    if kind != "xliff":
        assert sentences.recoded.written(file.write(segments)) == data
    try:
        file.write([replace(s, text=s.text.swapcase() or "x") if s.translate else s for s in segments])
    except DocnmtError as error:
        assert "bug in docnmt" not in str(error), error


def refused(read: Callable[[], object], *names: object) -> None:
    """What cannot be read is told by one of these names, with what to do about it."""
    try:
        read()
    except DocnmtError as error:
        assert any(str(name) in str(error) for name in names) and "\n  " in str(error), error


def read_as_corpus(files: tuple[str, ...], format: str, side: int, folder: Path, data: bytes) -> None:
    """With what is damaged on one side, and with that side alone; its format told by its content, or named."""
    paths = [folder / name for name in files]
    for path, name in zip(paths, files, strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if name == files[side] else _golden(name))
    where = [path if len(path.relative_to(folder).parts) == 1 else path.parent for path in paths]
    keys = ("source", "target") if len(where) == 2 else ("path",)
    for named in ("", format):
        corpus = CorpusFiles(**dict(zip(keys, map(str, where), strict=True)), format=named)
        refused(partial(_drained, partial(read_corpus, corpus, languages=("fr", "en"))), *where)
        if format != "ldc":
            refused(partial(_drained, partial(read_source, str(where[side]), format=named)), where[side])


def _drained(read: Callable[[], Iterable[object]]) -> None:
    for _ in read():
        pass


def _golden(name: str) -> bytes:
    return (GOLDEN / "sets" / Path(name).name.replace(".sgm", f".{Path(name).parent}")).read_bytes()


def read_model(name: str, folder: Path, data: bytes) -> None:
    """A model folder with one of its files damaged: it translates sentence by sentence, or is refused."""
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(GOLDEN / "model", model)
    (model / name).write_bytes(data)

    def translate() -> None:
        assert len(docnmt.load(model).translate(["Le chat dort.", "Il mange."], beam=1)) == 2

    with warnings.catch_warnings(action="ignore"):  # without the C extension, which is not what is tried here
        refused(translate, name, model, "this model")


def read_by(read: Callable[[str], object], name: str, folder: Path, data: bytes) -> None:
    path = folder / name
    path.write_bytes(data)
    refused(partial(read, str(path)), path)


Target = tuple[list[bytes], Callable[[bytes], None]]


def targets(folder: Path) -> dict[str, Target]:
    """By name: files to begin with, and what is done with what comes of them."""
    found: dict[str, Target] = {}
    for kind, ordinary in ORDINARY.items():
        seeds = [ordinary(2_000), *(make(300) for make in HOSTILE[kind].values())]
        found[kind] = seeds, partial(read_and_write, kind)
    for format, files in CORPORA.items():
        for side, name in enumerate(files):
            read = partial(read_as_corpus, files, format, side, folder)
            found[f"{format} corpus, {('source', 'target')[side]}"] = [_golden(name)], read
    for name in ("config.json", "source.spm", "target.spm", "weights.safetensors"):
        found[f"model, {name}"] = [(GOLDEN / "model" / name).read_bytes()], partial(read_model, name, folder)
    for layout, text in SETS.items():
        found[f"{layout} set"] = [text.encode()], partial(read_by, read_set, "set.json", folder)
    found["glossary"] = (
        ["chat\tcat\ncarte mère\tmotherboard\n".encode()],
        partial(read_by, Glossary.read, "terms.tsv", folder),
    )
    recipes = [(RECIPES / f"{name}.toml").read_bytes() for name in OWN]
    found["recipe"] = recipes, partial(read_by, load_recipe, "mine.toml", folder)
    return found


def attack(name: str, seeds: list[bytes], read: Callable[[bytes], None], chance: random.Random) -> None:
    data = mutated(chance.choice(seeds), chance)
    started = time.process_time()
    try:
        read(data)
        seconds = time.process_time() - started
        assert seconds < LONGEST, f"{seconds:.1f} s for {len(data):,} bytes"
    except Exception as error:
        error.add_note(f"{name}: {data!r}")
        raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        chosen = {k: v for k, v in targets(Path(folder)).items() if not options.only or k in options.only}
        counted, until = 0, time.monotonic() + 60 * options.minutes
        failed = 0
        while time.monotonic() < until and failed < 20:
            for name, (seeds, read) in chosen.items():
                counted += 1
                try:
                    attack(name, seeds, read, chance)
                except Exception as error:
                    failed += 1
                    at = error.__traceback__
                    while at and at.tb_next:
                        at = at.tb_next
                    place = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at else ""
                    print(f"{type(error).__name__}: {error} at {place}\n  {error.__notes__[-1][:600]}")
    print(f"{counted:,} files, {failed} failures")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
