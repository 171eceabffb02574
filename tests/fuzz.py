"""Mutated files through every reader: a file is read or refused, in time and by its name, and what is read is written.

python -m tests.fuzz [--minutes 5] [--seed 1] [--only docx md]
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import read_corpus, read_source
from docnmt.documents.translate import FileSentences
from tests.heavy_files import HOSTILE, ORDINARY
from tests.office_files import zipped

LONGEST = 5.0  # seconds of the processor for a file of a few kilobytes
# What tells a kind of file its structure: put in, taken out, doubled.
WORDS = (
    "<", ">", "</", "/>", "<!--", "-->", "<![CDATA[", "&", "&amp;", "&#0;", '"', "'", "{", "}", "[", "](", "\\", "\n\n",
    "\r", "\t", "\0", "%s", "{0}", "*", "**", "`", "```", "|", "- ", "> ", "1. ", "#", "msgid", "msgstr", '"" ', "-->",
    "00:00:01,000", "\u2028", "\ud83d", "\ufeff", "é", "中。", ":", ",", "charset=idna", "encoding='utf-16'",
)  # fmt: skip
CORPORA = {
    "tsv": "d1\tUn mot.\tA word.\nd1\tDeux mots.\tTwo words.\nd2\tUn autre.\tAnother.\n",
    "jsonl": '{"id": "d1", "source": ["Un mot."], "target": ["A word."]}\n' * 2,
    "bars": "d1 ||| Un mot. ||| A word.\n" * 3,
    "tmx": '<tmx version="1.4"><header srclang="fr"/><body><tu><tuv xml:lang="fr"><seg>Un</seg></tuv>'
    '<tuv xml:lang="en"><seg>One</seg></tuv></tu></body></tmx>',
    "po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Un mot"\nmsgstr "A word"\n',
    "text": "Un mot.\nDeux.\n\nTrois.\n",
    "sgml": '<srcset setid="a" srclang="fr"><doc docid="d"><seg id="1">Un mot.</seg></doc></srcset>\n',
}  # fmt: skip


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


def read_as_corpus(kind: str, folder: Path, data: bytes) -> None:
    path = folder / f"corpus.{kind}"
    path.write_bytes(data)
    for documents in (read_corpus(CorpusFiles(path=str(path))), read_source(str(path))):
        try:
            for _ in documents:
                pass
        except DocnmtError as error:
            assert str(path) in str(error) or "\n  " in str(error), error


Target = tuple[list[bytes], Callable[[bytes], None]]


def targets(folder: Path) -> dict[str, Target]:
    """By name: files to begin with, and what is done with what comes of them."""
    found: dict[str, Target] = {}
    for kind, ordinary in ORDINARY.items():
        seeds = [ordinary(2_000), *(make(300) for make in HOSTILE[kind].values())]
        found[kind] = seeds, partial(read_and_write, kind)
    for kind, text in CORPORA.items():
        found[f"{kind} corpus"] = [text.encode()], partial(read_as_corpus, kind, folder)
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
