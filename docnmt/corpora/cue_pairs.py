"""Two subtitles of one film, aligned by when things are said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from docnmt.base.errors import BadInput
from docnmt.base.lines import InputFile
from docnmt.corpora.assembly import Reading
from docnmt.corpora.sentence_pairs import Pair, sentence_pairs
from docnmt.document import GAP
from docnmt.documents.subtitles import Subtitles

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
    if len(alone) > (1 - _ENOUGH) * len(left.runs):
        first = alone[0]
        problem = (
            f"{len(alone):,} of {len(left.runs):,} sentences have none in {target.name} at their time; "
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
        for run in subtitles.runs
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
