"""Translations a line: TSV, `|||` between columns, JSON lines.

Unlike a corpus to train on, a translation may be empty: a system may have said nothing, and that is to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from docnmt.corpora.files import MAX_CHARACTERS, SENTENCES_PER_LINE, Flaw, InputFile, find_flaw
from docnmt.errors import BadInput


@dataclass(frozen=True)
class Row:
    """A sentence of a file: where it stands, its source if the file has it, and its translation(s)."""

    document: str
    line: int | None
    source: str | None
    texts: tuple[str, ...]


def good_lines(file: InputFile, limit: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file.lines(limit), 1):
        if isinstance(line, Flaw):
            raise BadInput(line.kind, line.problem, line.remedy, file=file.name, line=number)
        yield number, line


def read_separated_rows(file: InputFile, separator: str) -> Iterator[Row]:
    """Document id, source and translation; or document id and translation."""
    seen: dict[str, int] = {}
    current = ""
    for number, line in good_lines(file, MAX_CHARACTERS):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split(separator)]
        if len(columns) not in (2, 3) or not columns[0]:
            problem = f"{len(columns)} columns where there should be 2 or 3" if columns[0] else "no document id"
            remedy = "Write document id, source and translation, or document id and translation."
            raise BadInput("bad columns", problem, remedy, file=file.name, line=number)
        if columns[0] != current:
            current = columns[0]
            _check_new(current, seen, file.name, number)
        yield Row(current, number, columns[1] if len(columns) == 3 else None, (columns[-1],))


def read_jsonl_rows(file: InputFile) -> Iterator[Row]:
    """A document a line (lists of sentences) or a sentence a line (strings under one document id)."""
    seen: dict[str, int] = {}
    current = ""
    for number, line in good_lines(file, MAX_CHARACTERS * SENTENCES_PER_LINE):
        if not line.strip():
            continue
        document, sources, targets = _record(line, file.name, number)
        if document != current or isinstance(targets, list):
            current = document
            _check_new(document, seen, file.name, number)
        texts = targets if isinstance(targets, list) else [targets]
        given = [None] * len(texts) if sources is None else sources if isinstance(sources, list) else [sources]
        if len(given) != len(texts):
            problem = f"{len(given):,} source sentences but {len(texts):,} translations"
            remedy = "Give each source sentence exactly one translation."
            raise BadInput("unequal sides", problem, remedy, file=file.name, document=document, line=number)
        for source, text in zip(given, texts, strict=True):
            if flaw := find_flaw(text, MAX_CHARACTERS):
                raise BadInput(flaw.kind, flaw.problem, flaw.remedy, file=file.name, document=document, line=number)
            yield Row(document, number, source, (text.strip() and text,))


_Texts = str | list[str]


def _record(line: str, file: str, number: int) -> tuple[str, _Texts | None, _Texts]:
    """Document id, source and translation of a JSON object."""
    remedy = 'Write one object a line: {"id": "...", "source": ["..."], "target": ["..."]}.'
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput("bad JSON", f"not JSON: {error}", remedy, file=file, line=number) from None
    # `id` comes last: beside a document id it names the sentence.
    names = [record.get(key) for key in ("document", "doc_id", "id")] if isinstance(record, dict) else []
    document = next((str(name) for name in names if isinstance(name, str | int)), "")
    if not document.strip():
        raise BadInput("unknown document", "no document id", remedy, file=file, line=number)
    source, target = (_text(record.get(side)) for side in ("source", "target"))
    if target is None:
        problem = "no target: it must be a string or a list of strings"
        raise BadInput("bad JSON", problem, remedy, file=file, document=document, line=number)
    return document, source, target


def _text(value: object) -> _Texts | None:
    """A string or a list of strings; null in a list is a gap."""
    if isinstance(value, list) and all(item is None or isinstance(item, str) for item in value):
        return [item or "" for item in value]
    return value if isinstance(value, str) else None


def _check_new(document: str, seen: dict[str, int], file: str, number: int) -> None:
    if document in seen:
        raise BadInput(
            "repeated document",
            f"this document was already read, from line {seen[document]}",
            "Sort the file so that a document's lines are together, or rename one of the two.",
            file=file,
            document=document,
            line=number,
        )
    seen[document] = number
