"""Writing parallel documents: as a stream, and atomically, so that a file is there whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_atomically
from docnmt.base.lines import find_flaw
from docnmt.document import ParallelDocument


def write_tsv(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`doc_id <TAB> source <TAB> target`, one pair a line; a gap has nothing on both sides."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=False)
            pairs = zip(document.source, document.target, strict=True)
            file.write("".join(f"{document.id}\t{source}\t{target}\n" for source, target in pairs).encode())


def write_jsonl(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`{"id": ..., "source": [...], "target": [...]}`, one document a line; a gap is null on both sides."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=True)
            sides = {"source": document.source, "target": document.target}
            record = {"id": document.id} | {name: [text or None for text in side] for name, side in sides.items()}
            file.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())


def write_text(source_path: str, target_path: str, documents: Iterable[ParallelDocument]) -> None:
    """Two parallel files with a blank line between documents. Document ids are not kept."""
    # Both files are put in place only after both are written.
    with _output(source_path) as source_file, _output(target_path) as target_file:
        gap = ""
        for document in documents:
            _check(document, source_path, allow_tab=True)
            if not document.source:
                continue
            if len(document.filled) < len(document):
                problem = "a gap, which plain text cannot have: a blank line ends a document"
                raise BadInput("gap", problem, "Write TSV or JSON lines.", file=source_path, document=document.id)
            for file, sentences in ((source_file, document.source), (target_file, document.target)):
                file.write((gap + "".join(f"{sentence}\n" for sentence in sentences)).encode())
            gap = "\n"


def writer_for(path: str) -> Callable[[str, Iterable[ParallelDocument]], None]:
    """The one that a file's name asks for."""
    plain = path.removesuffix(".gz")
    for ending, write in ((".tsv", write_tsv), (".jsonl", write_jsonl)):
        if plain.endswith(ending):
            return write
    raise DocnmtError(f"{path}: neither .tsv nor .jsonl\n  Name a file that ends in one of them (and .gz to pack it).")


def _check(document: ParallelDocument, path: str, *, allow_tab: bool) -> None:
    """Refuses what the readers would refuse, or take for something else."""
    for text in (document.id, *document.source, *document.target):
        flaw = find_flaw(text, len(text))
        if flaw:
            raise BadInput(flaw.kind, f"{flaw.problem} of {text[:60]!r}", flaw.remedy, file=path, document=document.id)
        if "\t" in text and not allow_tab:
            problem, remedy = f"a tab inside {text[:60]!r}", "Put a space in its place, or write JSON lines."
            raise BadInput("control character", problem, remedy, file=path, document=document.id)
    pairs = zip(document.source, document.target, strict=True)
    if not document.id.strip() or any(any(pair) and not all(map(str.strip, pair)) for pair in pairs):
        problem = "an empty sentence or document id"
        remedy = "Empty both sides for a gap, leave the pair out, or give the document an id."
        raise BadInput("empty side", problem, remedy, file=path, document=document.id)


@contextmanager
def _output(path: str) -> Iterator[IO[bytes]]:
    """A file to write to; packed where its name ends in .gz."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise DocnmtError(f"{path}: there is no folder {folder}\n  Make the folder first.")
    with write_atomically(path, binary=True) as file:
        if not path.endswith(".gz"):
            yield file
            return
        # No name and no time inside, so that the same documents give the same bytes.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            yield cast(IO[bytes], packed)
