"""One sentence pair or one document a line: TSV, `|||` between columns, JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from docnmt.base.lines import SENTENCES_PER_LINE, Flaw, InputFile, find_flaw
from docnmt.corpus.rows import Reading, Row, documents_from_rows
from docnmt.document import GAP, ParallelDocument

BARS = "|||"


def read_tsv(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """`doc_id <TAB> source <TAB> target`; a gap has nothing on both sides. Empty lines are passed over."""
    return documents_from_rows(_rows(file, reading, "\t"), file.name, reading)


def read_bars(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """`doc_id ||| source ||| target`."""
    return documents_from_rows(_rows(file, reading, BARS), file.name, reading)


def _rows(file: InputFile, reading: Reading, separator: str) -> Iterator[Row]:
    name, source_only = file.name, reading.source_only
    # Around ||| there are spaces that belong to neither side; a tab stands alone, so spaces beside it are text.
    spaced = separator == BARS
    target = ""
    for number, line in enumerate(file.lines(reading.limit), 1):
        if isinstance(line, Flaw):
            document = line.text.partition(separator)[0].strip()
            reading.flaw(line, file=name, document=document, line=number)
            if reading.leaves_gaps and document and separator in line.text:
                yield number, document, GAP, GAP
            continue
        columns = line.split(separator)
        if spaced:
            columns = [column.strip() for column in columns]
        if len(columns) == 3:
            document, source, target = columns
        elif source_only and len(columns) == 2:
            document, source = columns
        elif not line.strip():
            continue
        else:
            wanted = "2 or 3" if source_only else "3"
            problem = f"{len(columns)} columns where there should be {wanted}"
            document = columns[0] if columns[1:] else ""
            reading.bad("bad columns", problem, file=name, document=document, line=number)
            if reading.leaves_gaps and document.strip():
                yield number, document, GAP, GAP
            continue
        if not document.strip():
            reading.bad("unknown document", "no document id", file=name, line=number)
        elif source_only:
            yield number, document, source.strip() and source, ""  # an empty sentence has an empty translation
        elif source.strip() and target.strip():
            yield number, document, source, target
        elif not source.strip() and not target.strip():
            yield number, document, GAP, GAP
        else:
            empty = 3 if source.strip() else 2
            reading.bad("empty side", f"nothing in column {empty}", file=name, document=document, line=number)
            if reading.leaves_gaps:
                yield number, document, GAP, GAP


def read_jsonl(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """A document a line (lists of sentences) or a sentence pair a line (strings under one document id).

    A gap is null, or an empty sentence, on both sides.
    """
    return documents_from_rows(_json_rows(file, reading), file.name, reading)


def _json_rows(file: InputFile, reading: Reading) -> Iterator[Row]:
    previous = ""
    for number, line in enumerate(file.lines(reading.limit * SENTENCES_PER_LINE), 1):
        if isinstance(line, Flaw):
            reading.flaw(line, file=file.name, line=number)
            continue
        if not line.strip():
            continue
        record = _record(line)
        if isinstance(record, str):
            reading.bad("bad JSON", record, file=file.name, line=number)
            continue
        document = _document_id(record)
        if not document:
            reading.bad("unknown document", "no document id", file=file.name, line=number)
            continue
        whole = isinstance(record.get("source"), list)
        if whole and document == previous:
            problem = "this document stands on the line before, too"
            reading.bad("repeated document", problem, file=file.name, document=document, line=number)
            continue
        previous = document
        sides = _sides(record, reading.source_only)
        if isinstance(sides, str):
            reading.bad("bad JSON", sides, file=file.name, document=document, line=number)
        else:
            yield from _good_pairs(sides, document, number, file.name, reading)


def _record(line: str) -> dict[str, object] | str:
    """The object on a line, or what is wrong with it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return record if isinstance(record, dict) else "a JSON value that is not an object"


def _document_id(record: dict[str, object]) -> str:
    # `id` comes last: beside a document id it names the sentence.
    for key in ("document", "doc_id", "id"):
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            name = str(value)
            return name if name.strip() and not find_flaw(name, 1_000) else ""
    return ""


def _sides(record: dict[str, object], source_only: bool) -> tuple[list[str], list[str]] | str:
    source, target = _sentences(record.get("source")), _sentences(record.get("target"))
    if source is None or (target is None and not source_only):
        return f"no {'source' if source is None else 'target'}: it must be a string or a list of strings"
    return source, ([""] * len(source) if source_only or target is None else target)


def _sentences(value: object) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(sentence is None or isinstance(sentence, str) for sentence in value):
        return [sentence or GAP for sentence in value]
    return None


def _good_pairs(
    sides: tuple[list[str], list[str]], document: str, number: int, name: str, reading: Reading
) -> Iterator[Row]:
    sources, targets = sides
    if len(sources) != len(targets):
        problem = f"{len(sources):,} source sentences but {len(targets):,} target sentences"
        reading.bad("unequal sides", problem, file=name, document=document, line=number)
        return
    for position, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        if flaw := find_flaw(source, reading.limit) or find_flaw(target, reading.limit):
            reading.flaw(flaw, file=name, document=document, line=number)
        elif not reading.source_only and bool(source.strip()) != bool(target.strip()):
            problem = f"sentence {position} is empty on one side"
            reading.bad("empty side", problem, file=name, document=document, line=number)
        else:
            yield number, document, source.strip() and source, target.strip() and target
            continue
        if reading.leaves_gaps:
            yield number, document, GAP, GAP
