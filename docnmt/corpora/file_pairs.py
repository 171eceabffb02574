"""The same file in two languages (two subtitles, two pages, two manuals) as a parallel document.

Subtitles are aligned by their timings. In all else the two have to have the same segments in the same order, as a
translation made in a copy of the file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from docnmt.base.errors import BadInput
from docnmt.base.lines import InputFile
from docnmt.corpora.assembly import Reading, Row, documents_from_rows
from docnmt.corpora.cue_pairs import timed_pairs
from docnmt.corpora.sentence_pairs import Pair, good_rows, sentence_pairs
from docnmt.document import GAP, ParallelDocument
from docnmt.documents.segment import FileText, Segment, kind_of, read_document
from docnmt.documents.subtitles import Subtitles

# Plain text is read line by line, and catalogues and memories hold both sides in one file.
_NOT_PAIRED = frozenset(("text", "po", "xliff", "tmx"))
_PLACE = "\ue000"  # a character for private use: what stands in a segment's place
# What a segment is, told by the last of these before it (in Markdown, in its line); packed files show nothing.
_NATURES = {
    "markdown": re.compile(r"^[ \t]*(#{1,6}|[-*+>|]|[0-9]{1,9}[.)])(?=[ \t\ue000])"),
    "html": re.compile(r"<(h[1-6]|p|li|t[dh]|d[td]|title|caption|figcaption|blockquote|option|div|body)\b"),
}
_LIST = re.compile(r"[-*+]|[0-9]+[.)]")
_NUMBER = re.compile(r"\d+")
_REMEDY = "Mend one of the two there, so that both have the same paragraphs, or leave the pair out."


def paired_kind(file: str) -> str:
    """The kind of a file of which a translation can be laid beside it; "" for the others."""
    kind = kind_of(file.removesuffix(".gz"))
    return "" if kind in _NOT_PAIRED else kind


def read_file_pair(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    for document in documents_from_rows(_rows(source, target, reading), source.name, reading):
        if document.filled:
            yield document


def _rows(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    texts = [
        read_document(file.content(), file.name.removesuffix(".gz"), (language, ""))
        for file, language in zip((source, target), reading.languages, strict=True)
    ]
    left, right = texts
    if isinstance(left, Subtitles) and isinstance(right, Subtitles):
        pairs = timed_pairs(left, right, source, target, reading)
    else:
        pairs = _segment_pairs(left, right, source, target, reading)
    for pair in pairs:
        yield from good_rows([pair], None, source.stem, source.name, reading)


def _segment_pairs(
    left: FileText, right: FileText, source: InputFile, target: InputFile, reading: Reading
) -> Iterator[Pair]:
    natures = _natures(left, paired_kind(source.name)), _natures(right, paired_kind(target.name))
    if len(left.segments) != len(right.segments) or (all(natures) and natures[0] != natures[1]):
        reading.on_bad(_parted(left.segments, right.segments, natures, source, target))
        return
    for one, other in zip(left.segments, right.segments, strict=True):
        if one.translate and other.translate:
            yield from sentence_pairs(one.text, other.text, reading.languages)
        else:
            yield GAP, GAP


def _natures(text: FileText, kind: str) -> list[str]:
    pattern = _NATURES.get(kind)
    if pattern is None:
        return []
    # The file with nothing in its segments shows what is around them.
    hollow = [
        Segment(_PLACE, tuple(replace(mark, at=1) for mark in segment.marks), segment.translate)
        for segment in text.segments
    ]
    around = text.write(hollow).decode("utf-8", "replace").split(_PLACE)[:-1]
    if kind == "markdown":
        around = [before.rpartition("\n")[2] + _PLACE for before in around]
    found = [pattern.findall(before) for before in around]
    natures = [names[-1] if names else "" for names in found]
    return ["list" if _LIST.fullmatch(name) else name for name in natures] if len(natures) == len(hollow) else []


def _parted(
    left: Sequence[Segment],
    right: Sequence[Segment],
    natures: tuple[list[str], list[str]],
    source: InputFile,
    target: InputFile,
) -> BadInput:
    """Names the first place at which the two files are not alike."""

    def alike(at: int) -> bool:
        one, other = left[at].text, right[at].text
        same_numbers = sorted(_NUMBER.findall(one)) == sorted(_NUMBER.findall(other))
        shorter, longer = sorted((len(one), len(other)))
        same_nature = not all(natures) or natures[0][at] == natures[1][at]
        return same_nature and (equal or (same_numbers and longer <= 4 * shorter + 20))

    equal = len(left) == len(right)  # then it is their nature alone that differs
    both = min(len(left), len(right))
    at = next((i for i in range(both) if not alike(i)), both)
    here = [f"{text[at].text[:60]!r}" if at < len(text) else "the end" for text in (left, right)]
    counts = f"{len(left):,} segments, {'as many' if equal else f'but {len(right):,}'} in {target.name}"
    problem = f"{counts}; they part at or before segment {at + 1:,}: {here[0]} and {here[1]}"
    return BadInput("unequal sides", problem, _REMEDY, file=source.name)
