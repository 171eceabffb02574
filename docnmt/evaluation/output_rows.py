"""Translations a line (TSV, `|||` between columns, JSON lines) and a message (gettext catalogues, XLIFF).

Unlike a corpus to train on, a translation may be empty: a system may have said nothing, and that is to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from docnmt.base.errors import BadInput
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.memories import messages, units
from docnmt.corpus.rows import Reading
from docnmt.documents.plural_forms import PluralForms
from docnmt.documents.po import decoded, header_fields, read_entries


@dataclass(frozen=True)
class Row:
    """A sentence of a file: where it stands, its source if the file has it, and its translation(s)."""

    document: str
    line: int | None
    source: str | None
    texts: tuple[str, ...]


def good_lines(file: InputFile, limit: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file.lines(limit), 1):
        yield number, _legible(line, file.name, number)


def read_separated_rows(file: InputFile, separator: str) -> Iterator[Row]:
    """Document id, source and translation; or document id and translation: as the first row has it, so all do. (In a
    row that lacks its last column the source would pass for the translation.)"""
    seen: dict[str, int] = {}
    current, allowed = "", [2, 3]
    for number, line in good_lines(file, MAX_CHARACTERS):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split(separator)]
        if len(columns) not in allowed or not columns[0]:
            wanted = " or ".join(map(str, allowed))
            problem = f"{len(columns)} columns where there should be {wanted}" if columns[0] else "no document id"
            remedy = "Write document id, source and translation, or document id and translation, in every row."
            raise BadInput("bad columns", problem, remedy, file=file.name, document=columns[0], line=number)
        allowed = [len(columns)]
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


# In files of messages a message is what is compared: they are translated, and cut into sentences, one by one. Of
# references the finished ones count; a translation is judged though it is marked as one that waits for review.


def read_po_rows(file: InputFile, *, finished: bool) -> Iterator[Row]:
    text, _ = decoded(file.content(), file.name)
    entries = read_entries(text, file.name)
    forms = PluralForms.parse(header_fields(entries).get("plural-forms", ""))
    for entry in entries:
        if entry.is_header:
            continue
        for source, target in messages(entry, forms):
            counts = entry.translated or not finished
            yield _message(f"{file.stem}:1", entry.line, source, target, file.name, counts)


def read_xliff_rows(file: InputFile, reading: Reading, *, finished: bool) -> Iterator[Row]:
    for place, unit in units(file, reading):
        source, target = (_legible(unit.sides.get(side, ""), file.name, unit.line) for side in ("source", "target"))
        counts = unit.translate and bool((unit.finished and target.strip()) or not finished)
        yield _message(place.document, unit.line, source, target, file.name, counts)


def _message(document: str, line: int, source: str, target: str, file: str, counts: bool) -> Row:
    """A message in one line; one that does not count leaves a gap."""
    sides = [" ".join(side.split()) if counts else "" for side in (source, target)]
    for side in sides:
        if flaw := find_flaw(side, MAX_CHARACTERS):
            raise BadInput(flaw.kind, flaw.problem, flaw.remedy, file=file, document=document, line=line)
    return Row(document, line, sides[0], (sides[1],))


def _legible(line: Line, file: str, number: int) -> str:
    if isinstance(line, Flaw):
        raise BadInput(line.kind, line.problem, line.remedy, file=file, line=number)
    return line


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
