"""Subtitles (.srt, .vtt): a sentence that runs over several cues is one segment; its translation is shared out again.

Timings, numbers, styles, notes and who speaks stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from docnmt.base.lines import decoded
from docnmt.files.cues import Utterance, read_cues, utterances
from docnmt.files.inline import with_marks
from docnmt.files.proportions import columns, cut, width
from docnmt.files.segments import Mark, Segment
from docnmt.text.sentences import split

LINE = 42  # columns: what is read at a glance
_LONGEST_RUN = 12  # cues
_PAUSE = 3.0  # seconds after which nobody waits for the rest of a sentence
# Where hardly a cue ends in a full stop the author left them out, and nothing tells whether a sentence goes on.
_FULL_STOPS = 0.1
_ENDS_FULL = re.compile(r"[.。…][\s\"'»”’)\]」]*\Z")
_WEB_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_TIMESTAMP = re.compile(r"<[\d:.]+>\Z")


@dataclass(frozen=True, slots=True)
class Run:
    """Utterances of consecutive cues that make up whole sentences."""

    parts: tuple[Utterance, ...]
    segment: Segment  # each mark's code begins with the number of its part


class Subtitles:
    def __init__(self, data: bytes, name: str, language: str):
        self._data = data
        self._text, self._encoding = decoded(data, name)
        self._web = self._text.startswith("WEBVTT")
        found = re.search(r"\r\n|\r|\n", self._text)
        self._newline = found[0] if found else "\n"
        self.cues = read_cues(self._text, name)
        self.runs = [_run(parts) for parts in self._joined(language)]
        self.segments: Sequence[Segment] = [run.segment for run in self.runs]

    def _joined(self, language: str) -> Iterator[list[Utterance]]:
        spoken = [utterances(self._text, number, cue) for number, cue in enumerate(self.cues)]
        lasting = [cue[-1].text for cue in spoken if cue]
        has_stops = sum(bool(_ENDS_FULL.search(text[-20:])) for text in lasting) >= _FULL_STOPS * len(lasting)
        run: list[Utterance] = []
        for cue in spoken:
            for utterance in cue:
                if not utterance.has_letters:
                    continue
                if run and not (has_stops and self._goes_on(run, utterance, language)):
                    yield run
                    run = []
                run.append(utterance)
        if run:
            yield run

    def _goes_on(self, run: list[Utterance], following: Utterance, language: str) -> bool:
        """Whether the sentence at the end of a run is not over with its cue."""
        last = run[-1]
        if following.cue != last.cue + 1 or len(run) == _LONGEST_RUN:
            return False
        if following.speaker or following.shown != last.shown or following.sung or last.sung:
            return False
        if self.cues[following.cue].start - self.cues[last.cue].end >= _PAUSE:
            return False
        before = last.text[-200:] + _space(last.text, following.text)
        end = 0
        # "Je voulais..." "...te parler."
        for sentence in split(before + following.text[:200].lstrip(".… "), language):
            end += len(sentence)
            if end == len(before):
                return False
        return True

    def write(self, translations: Sequence[Segment]) -> bytes:
        pieces: list[str] = []
        end = 0
        for run, new in zip(self.runs, translations, strict=True):
            if (new.text, new.marks) != (run.segment.text, run.segment.marks):
                for part, text in zip(run.parts, self._written(run, new), strict=True):
                    pieces += self._text[end : part.start], text
                    end = part.end
        if not pieces:
            return self._data
        return self._encoding.encoded("".join([*pieces, self._text[end:]]))

    def _written(self, run: Run, new: Segment) -> Iterator[str]:
        """What to write for each part."""
        text = re.sub(r"\s", " ", new.text)
        start = 0
        for number, piece in enumerate(cut(text, [columns(part.text) for part in run.parts])):
            line = piece.strip()
            first = start + len(piece) - len(piece.lstrip())
            own = (mark for mark in new.marks if mark.code.startswith(f"{number}:"))
            # A mark stays in its cue, wherever its words went.
            marks = [
                replace(mark, at=min(max(mark.at - first, 0), len(line)), code=mark.code.partition(":")[2])
                for mark in own
            ]
            yield self._lines(run.parts[number], line, marks)
            start += len(piece)

    def _lines(self, part: Utterance, text: str, marks: list[Mark]) -> str:
        limit = max(LINE, *map(columns, part.lines))
        characters = list(text)
        at = 0
        for line in cut(text, [1] * max(1, -(-columns(text) // limit)))[:-1]:
            at += len(line)
            if text[at - 1] == " ":
                characters[at - 1] = "\n"
            elif at < len(text):
                marks.append(Mark(at, self._newline))
        return with_marks("".join(characters), _in_time(marks), lambda words: self._spelt(words, part))

    def _spelt(self, text: str, part: Utterance) -> str:
        escapes = _WEB_ESCAPES if self._web else {}
        return text.translate({**escapes, **part.entities, ord("\n"): self._newline})


def _in_time(marks: list[Mark]) -> list[Mark]:
    """Times inside of a cue stay in their order, whatever became of the order of the words."""
    codes = iter(sorted(mark.code for mark in marks if _TIMESTAMP.match(mark.code)))
    in_order = sorted(marks, key=lambda mark: mark.at)
    return [replace(mark, code=next(codes)) if _TIMESTAMP.match(mark.code) else mark for mark in in_order]


def _run(parts: list[Utterance]) -> Run:
    text = ""
    marks: list[Mark] = []
    pairs = 0
    for number, part in enumerate(parts):
        text += _space(text, part.text)
        marks += [
            Mark(len(text) + mark.at, f"{number}:{mark.code}", mark.pair and mark.pair + pairs, mark.closing)
            for mark in part.marks
        ]
        pairs += max((mark.pair for mark in part.marks), default=0)
        text += part.text
    return Run(tuple(parts), Segment(text, tuple(marks)))


def _space(before: str, after: str) -> str:
    """What is between the words of two cues: nothing in Chinese."""
    return "" if not before or (width(before[-1]) == 2 and width(after[0]) == 2) else " "


def read(data: bytes, name: str, languages: tuple[str, str]) -> Subtitles:
    return Subtitles(data, name, languages[0])
