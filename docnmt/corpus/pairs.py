"""The same file in two languages (two subtitles, two pages, two manuals) as a parallel document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from docnmt.base.errors import BadInput
from docnmt.base.lines import InputFile, find_flaw
from docnmt.corpus.rows import Reading, Row, documents_from_rows
from docnmt.document import GAP, ParallelDocument
from docnmt.documents.segment import FileText, Segment, kind_of, read_document
from docnmt.documents.subtitles import Subtitles
from docnmt.text.sentences import split

# ---- A text and its translation, sentence by sentence where both have as many ----

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


# ---- Two subtitles of one film, aligned by when things are said ----

# Two sentences belong together if they are shown together for this share of the time of the shorter one.
_TOGETHER = 0.5
# With less than this share of them in pairs the timings are not those of one film.
_ENOUGH = 0.5
# More sentences than this on a side, divided in another way on the other one, tell nothing.
_MOST = 4


@dataclass(frozen=True, slots=True)
class _Said:
    start: float
    end: float
    text: str
    line: int


@dataclass(slots=True)
class _Block:
    """What is said on both sides in a stretch of time."""

    source: list[_Said] = field(default_factory=list)
    target: list[_Said] = field(default_factory=list)


def timed_pairs(
    left: Subtitles, right: Subtitles, source: InputFile, target: InputFile, reading: Reading
) -> Iterator[Pair]:
    """The pairs, in order; what is said on one side only, or cannot be told apart, is a gap."""
    blocks = _blocks(_said(left), _said(right))
    alone = [block.source[0] for block in blocks if block.source and not block.target]
    if len(alone) > (1 - _ENOUGH) * len(left.segments):
        first = alone[0]
        problem = (
            f"{len(alone):,} of {len(left.segments):,} sentences have none in {target.name} at their time; "
            f"the first, at {_clock(first.start)}: {first.text[:60]!r}"
        )
        remedy = "Take subtitles of the same version of the film, or shift the timings of one of them."
        reading.on_bad(BadInput("unequal sides", problem, remedy, file=source.name, line=first.line))
        return
    for block in blocks:
        yield from _pairs(block, reading.languages)


def _said(subtitles: Subtitles) -> list[_Said]:
    cues = subtitles.cues
    said = [
        _Said(cues[run.parts[0].cue].start, cues[run.parts[-1].cue].end, run.segment.text, cues[run.parts[0].cue].line)
        for run in subtitles.runs()
    ]
    return sorted(said, key=lambda one: one.start)


def _blocks(left: list[_Said], right: list[_Said]) -> list[_Block]:
    """Stretches of time between which nothing on one side belongs to something on the other."""
    blocks: list[_Block] = []
    i = j = 0
    while i < len(left) or j < len(right):
        block = _Block()
        if j == len(right) or (i < len(left) and left[i].start <= right[j].start):
            block.source.append(left[i])
            i += 1
        else:
            block.target.append(right[j])
            j += 1
        while True:
            if i < len(left) and any(_together(left[i], other) for other in block.target[-_MOST:]):
                block.source.append(left[i])
                i += 1
            elif j < len(right) and any(_together(other, right[j]) for other in block.source[-_MOST:]):
                block.target.append(right[j])
                j += 1
            else:
                break
        blocks.append(block)
    return blocks


def _together(one: _Said, other: _Said) -> bool:
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared > _TOGETHER * min(one.end - one.start, other.end - other.start)


def _pairs(block: _Block, languages: tuple[str, str]) -> list[Pair]:
    source, target = ([said.text for said in side] for side in (block.source, block.target))
    if len(source) == len(target):
        return [
            pair for one, other in zip(source, target, strict=True) for pair in sentence_pairs(one, other, languages)
        ]
    if not source or not target:
        return [(GAP, GAP)]
    pairs = sentence_pairs(" ".join(source), " ".join(target), languages)
    return pairs if len(pairs) > 1 or max(len(source), len(target)) <= _MOST else [(GAP, GAP)]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


# Subtitles are aligned by their timings. In all else the two have to have the same segments in the same order, as a
# translation made in a copy of the file has.

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
