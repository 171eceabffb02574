"""Writing parallel documents: as a stream, and atomically, so that a file is there whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from docnmt.corpora.files import find_flaw
from docnmt.document import ParallelDocument
from docnmt.errors import BadInput, DocnmtError
from docnmt.files_on_disk import write_atomically


def write_tsv(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`doc_id <TAB> source <TAB> target`, one pair a line."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=False)
            pairs = zip(document.source, document.target, strict=True)
            file.write("".join(f"{document.id}\t{source}\t{target}\n" for source, target in pairs).encode())


def write_jsonl(path: str, documents: Iterable[ParallelDocument]) -> None:
    """`{"id": ..., "source": [...], "target": [...]}`, one document a line."""
    with _output(path) as file:
        for document in documents:
            _check(document, path, allow_tab=True)
            record = {"id": document.id, "source": document.source, "target": document.target}
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
            for file, sentences in ((source_file, document.source), (target_file, document.target)):
                file.write((gap + "".join(f"{sentence}\n" for sentence in sentences)).encode())
            gap = "\n"


def _check(document: ParallelDocument, path: str, *, allow_tab: bool) -> None:
    """Refuses what the readers would refuse, or take for something else."""
    for text in (document.id, *document.source, *document.target):
        flaw = find_flaw(text, len(text))
        if flaw:
            raise BadInput(flaw.kind, f"{flaw.problem} of {text[:60]!r}", flaw.remedy, file=path, document=document.id)
        if "\t" in text and not allow_tab:
            problem, remedy = f"a tab inside {text[:60]!r}", "Put a space in its place, or write JSON lines."
            raise BadInput("control character", problem, remedy, file=path, document=document.id)
        if not text.strip():
            problem, remedy = "an empty sentence or document id", "Leave the pair out, or give the document an id."
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
