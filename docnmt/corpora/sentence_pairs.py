"""A text and its translation, sentence by sentence where both have as many."""

from __future__ import annotations

from collections.abc import Iterator

from docnmt.base.lines import find_flaw
from docnmt.corpora.assembly import Reading, Row
from docnmt.document import GAP
from docnmt.text.sentences import split

Pair = tuple[str, str]


def sentence_pairs(source: str, target: str, languages: tuple[str, str]) -> list[Pair]:
    """The pairs of sentences; the whole as one pair where the two sides are not divided alike."""
    sides = [
        [sentence for part in split(text, language) if (sentence := part.strip())]
        for text, language in zip((source, target), languages, strict=True)
    ]
    if len(sides[0]) != len(sides[1]):
        return [(source.strip(), target.strip())]
    return list(zip(*sides, strict=True))


def good_rows(pairs: list[Pair], line: int | None, document: str, file: str, reading: Reading) -> Iterator[Row]:
    """Rows of pairs that were read at one line, if there are lines; what is unfit as a sentence is reported."""
    for source, target in pairs:
        if flaw := find_flaw(source, reading.limit) or find_flaw(target, reading.limit):
            reading.flaw(flaw, file=file, document=document, line=line)
        elif source and target:
            yield line or 0, document, source, target
        else:
            yield line or 0, document, GAP, GAP
