"""One sentence pair or one document per line: TSV, `|||` between columns, JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from docnmt.base.lines import SENTENCES_PER_LINE, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import BARS, Reading, Row, Side, Want, rows_at, rows_of
from docnmt.document import GAP


def _read_columns(file: InputFile, reading: Reading, separator: str) -> Iterator[Row]:
    """Document id, source and target; a gap is empty on both sides. Empty lines are skipped.

    If only one side is needed, the other column may be missing: for translations in all rows or in none, as otherwise a
    source without its translation would be read as one.
    """
    # Spaces around ||| belong to neither side; spaces next to a tab are part of the text. For scoring they do not
    # matter.
    strip = separator == BARS or reading.for_scoring
    allowed = [3] if reading.want is Want.PAIRS else [2, 3]
    for number, line in enumerate(file.lines(reading.limit), 1):
        columns = (line.text if isinstance(line, Flaw) else line).split(separator)
        if strip:
            columns = [column.strip() for column in columns]
        document = columns[0] if len(columns) > 1 else ""
        if isinstance(line, Flaw):
            reading.flaw(line, file=file.name, document=document, line=number)
        elif len(columns) not in allowed:
            if not line.strip():
                continue
            problem = f"{len(columns)} columns, but there should be {' or '.join(map(str, allowed))}"
            reading.bad("bad columns", problem, file=file.name, document=document, line=number)
        elif not document.strip():
            reading.bad("unknown document", "no document id", file=file.name, line=number)
        else:
            if reading.want is Want.PAIRS:
                if columns[1].strip() and columns[2].strip():
                    yield Row(document, number, columns[1], (columns[2],))
                else:
                    pair = [column.strip() for column in columns[1:]]
                    yield from rows_at(number, document, [pair], file.name, reading)
            elif reading.want is Want.SOURCE:
                yield Row(document, number, columns[1].strip() and columns[1], ())
            else:
                allowed = [len(columns)]
                yield Row(document, number, columns[1] if len(columns) == 3 else None, (columns[-1],))
            continue
        if reading.leaves_gaps and document.strip():
            yield Row(document, number, GAP, (GAP,))


read_tsv = partial(_read_columns, separator="\t")
read_bars = partial(_read_columns, separator=BARS)


def read_jsonl(file: InputFile, reading: Reading) -> Iterator[Row]:
    """A document per line (lists of sentences) or a sentence pair per line (strings with a document id).

    A gap is null, or an empty sentence, on both sides.
    """
    previous, read_from = "", 0
    for number, line in enumerate(file.lines(reading.limit * SENTENCES_PER_LINE), 1):
        if isinstance(line, Flaw):
            reading.flaw(line, file=file.name, line=number)
            continue
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reading.bad("bad JSON", f"not valid JSON: {error}", file=file.name, line=number)
            continue
        if not isinstance(record, dict):
            reading.bad("bad JSON", "this line is not a JSON object", file=file.name, line=number)
            continue
        document = _document_id(record)
        if not document:
            reading.bad("unknown document", "no document id", file=file.name, line=number)
            continue
        if document == previous and any(isinstance(record.get(side), list) for side in ("source", "target")):
            problem = f"a document with this id was already read, from line {read_from}"
            reading.bad("repeated document", problem, file=file.name, document=document, line=number)
            continue
        previous, read_from = document, number
        sides = {name: _sentences(record.get(name), reading.limit) for name in ("source", "target")}
        optional = "target" if reading.want is Want.SOURCE else "source" if reading.for_scoring else ""
        missing = [name for name, lines in sides.items() if lines is None and name != optional]
        if missing:
            problem = f"{missing[0]} must be a string or a list of strings"
            reading.bad("bad JSON", problem, file=file.name, document=document, line=number)
            continue
        if reading.want is Want.SOURCE:
            sides["target"] = None
        source, target = (
            None if lines is None else Side(file.name, document, number, lines) for lines in sides.values()
        )
        given = [side.lines for side in (source, target) if side]
        gaps = {position for position, texts in enumerate(zip(*given, strict=False)) if not any(texts)}
        yield from rows_of(source, [target] if target else [], reading, gaps)


def _document_id(record: dict[str, object]) -> str:
    # `id` comes last: besides a document id it identifies the sentence.
    for key in ("document", "doc_id", "id"):
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            name = str(value)
            return name if name.strip() and not find_flaw(name, 1_000) else ""
    return ""


def _sentences(value: object, limit: int) -> list[Line] | None:
    """A string or a list of strings, in which null is a gap."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(text is None or isinstance(text, str) for text in texts):
        return None
    return [find_flaw(text, limit) or (text.strip() and text) if text else GAP for text in texts]
