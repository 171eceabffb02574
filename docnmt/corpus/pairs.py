"""The same file in two languages (subtitles, web pages, manuals) as a parallel document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from docnmt.base.lines import InputFile
from docnmt.corpus.rows import Reading, Row, rows_at
from docnmt.document import GAP
from docnmt.documents.segment import FileText, Segment, kind_of, read_document
from docnmt.documents.subtitles import Subtitles
from docnmt.text.sentences import split

# ---- A text and its translation, sentence by sentence if both have the same number of sentences ----

Pair = tuple[str, str]


def sentence_pairs(source: str, target: str, languages: tuple[str, str]) -> list[Pair]:
    """The sentence pairs; the whole texts as one pair if they have different numbers of sentences."""
    sides = [
        [sentence for part in split(text, language) if (sentence := part.strip())]
        for text, language in zip((source, target), languages, strict=True)
    ]
    if len(sides[0]) != len(sides[1]):
        return [(source.strip(), target.strip())]
    return list(zip(*sides, strict=True))


# ---- Two subtitles of one film, aligned by their timings ----

# Two sentences belong together if they overlap for this share of the time of the shorter one.
_TOGETHER = 0.5
# If fewer than this share are paired, the timings are not of the same film.
_ENOUGH = 0.5
# Blocks with more sentences than this on a side, and another number on the other, are too uncertain to use.
_MOST = 4


@dataclass(frozen=True, slots=True)
class _Said:
    start: float
    end: float
    text: str
    line: int


_Block = tuple[list[_Said], list[_Said]]  # what is said on both sides during one period of time


def timed_pairs(
    left: Subtitles, right: Subtitles, source: InputFile, target: InputFile, reading: Reading
) -> Iterator[Pair]:
    """The pairs, in order; what is said on one side only, or cannot be separated, is a gap."""
    blocks = _blocks((_said(left), _said(right)))
    alone = [ours[0] for ours, theirs in blocks if ours and not theirs]
    if len(alone) > (1 - _ENOUGH) * len(left.segments):
        first = alone[0]
        problem = (
            f"{len(alone):,} of {len(left.segments):,} sentences have no counterpart in {target.name} at their time; "
            f"the first, at {_clock(first.start)}: {first.text[:60]!r}"
        )
        remedy = "Use subtitles of the same version of the film, or shift the timings of one of them."
        reading.bad("unequal sides", problem, file=source.name, line=first.line, remedy=remedy)
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


def _blocks(sides: _Block) -> list[_Block]:
    """Periods of time such that sentences belong together only within one of them."""
    waiting = tuple(side[::-1] for side in sides)  # the next of each side comes last
    blocks: list[_Block] = []
    while any(waiting):
        block: _Block = [], []
        side: int | None = min((k for k in (0, 1) if waiting[k]), key=lambda k: waiting[k][-1].start)
        while side is not None:
            block[side].append(waiting[side].pop())
            near = block[1][-_MOST:], block[0][-_MOST:]
            belongs = (waiting[k] and any(_together(waiting[k][-1], other) for other in near[k]) for k in (0, 1))
            side = next((k for k, found in enumerate(belongs) if found), None)
        blocks.append(block)
    return blocks


def _together(one: _Said, other: _Said) -> bool:
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared > _TOGETHER * min(one.end - one.start, other.end - other.start)


def _pairs(block: _Block, languages: tuple[str, str]) -> list[Pair]:
    source, target = ([said.text for said in side] for side in block)
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


# ---- Other kinds of file: the same segments in the same order, as in a translated copy of a file ----

_PLACE = "\ue000"  # a private-use character that replaces a segment
# What a segment is: the last of these before it (in Markdown, on its line). Archives such as .docx are not examined.
_NATURES = {
    "markdown": re.compile(r"^[ \t]*(#{1,6}|[-*+>|]|[0-9]{1,9}[.)])(?=[ \t\ue000])"),
    "html": re.compile(r"<(h[1-6]|p|li|t[dh]|d[td]|title|caption|figcaption|blockquote|option|div|body)\b"),
}
_LIST = re.compile(r"[-*+]|[0-9]+[.)]")
_NUMBER = re.compile(r"\d+")
_REMEDY = "Edit one of them at that place so that both have the same paragraphs, or leave the pair out."


def read_file_pair(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    left, right = (
        read_document(file.content(), file.name.removesuffix(".gz"), (language, ""))
        for file, language in zip((source, target), reading.languages, strict=True)
    )
    if isinstance(left, Subtitles) and isinstance(right, Subtitles):
        pairs = timed_pairs(left, right, source, target, reading)
    else:
        pairs = _segment_pairs(left, right, source, target, reading)
    for pair in pairs:
        yield from rows_at(0, source.stem, [pair if all(pair) else (GAP, GAP)], source.name, reading)


def _segment_pairs(
    left: FileText, right: FileText, source: InputFile, target: InputFile, reading: Reading
) -> Iterator[Pair]:
    natures = _natures(left, source.name), _natures(right, target.name)
    if len(left.segments) != len(right.segments) or (all(natures) and natures[0] != natures[1]):
        problem = _difference(left.segments, right.segments, natures, target.name)
        reading.bad("unequal sides", problem, file=source.name, remedy=_REMEDY)
        return
    for one, other in zip(left.segments, right.segments, strict=True):
        if one.translate and other.translate:
            yield from sentence_pairs(one.text, other.text, reading.languages)
        else:
            yield GAP, GAP


def _natures(text: FileText, name: str) -> list[str]:
    kind = kind_of(name.removesuffix(".gz"))
    pattern = _NATURES.get(kind)
    if pattern is None:
        return []
    # The file with its segments replaced shows what surrounds them.
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


def _difference(
    left: Sequence[Segment], right: Sequence[Segment], natures: tuple[list[str], list[str]], target: str
) -> str:
    """Describes the first place where the two files differ."""
    equal = len(left) == len(right)  # then only the natures differ

    def alike(at: int) -> bool:
        one, other = left[at].text, right[at].text
        same_numbers = sorted(_NUMBER.findall(one)) == sorted(_NUMBER.findall(other))
        shorter, longer = sorted((len(one), len(other)))
        same_nature = not all(natures) or natures[0][at] == natures[1][at]
        return same_nature and (equal or (same_numbers and longer <= 4 * shorter + 20))

    both = min(len(left), len(right))
    at = next((i for i in range(both) if not alike(i)), both)
    here = [f"{text[at].text[:60]!r}" if at < len(text) else "the end" for text in (left, right)]
    counts = f"{len(left):,} segments, {'the same number' if equal else f'but {len(right):,}'} in {target}"
    return f"{counts}; they differ at or before segment {at + 1:,}: {here[0]} and {here[1]}"
