"""Subtitles, cue by cue: when each is shown, and what is said in it by whom."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from docnmt.base.errors import DocnmtError
from docnmt.files.inline import paired
from docnmt.files.segments import Mark

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?!\d)")
# <i>, <v Anna>, <00:01.500>, and what some players take from another format: {\an8}, {y:i}
_CODE = r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}"
_SPEAKER = r"(?:[-‐–—](?!-)|(?:>|&gt;){2,3})"
_LEAD = re.compile(rf"(?:\s+|{_CODE}|{_SPEAKER}|[♪♫♬]+)*")
_TAIL = re.compile(rf"\s+|{_CODE}|[♪♫♬]+")
_NEXT_SPEAKER = re.compile(r"(?<=[.!?…»\"”])[ \t]+(?=[-‐–—][ \t]?(?P<word>\w))")
_INSIDE = re.compile(rf"(?P<code>{_CODE}|[♪♫♬]+ *)|(?P<space>\s+)|(?P<entity>&(?:#?\w{{1,31}});)")
_STYLE = re.compile(r"</?[ibu]>", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Cue:
    line: int  # of its timing
    start: float  # in seconds
    end: float
    text_start: int  # where its text stands in the file
    text_end: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one speaker says in one cue, without what stands around it: tags, dashes, music signs."""

    cue: int
    start: int  # where it stands in the file
    end: int
    text: str
    marks: tuple[Mark, ...]
    entities: dict[int, str]  # how the characters were spelt that stood as entities
    lines: tuple[str, ...]
    speaker: bool  # a dash before it: somebody else speaks
    sung: bool
    shown: str  # the codes before it, styles aside: where it is shown, whose voice it is

    @property
    def has_letters(self) -> bool:
        return _LETTER.search(self.text) is not None


def read_cues(text: str, name: str) -> list[Cue]:
    lines = [found.span() for found in _LINE.finditer(text)]
    contents = [text[start:end].rstrip("\r\n") for start, end in lines]
    web = text.startswith("WEBVTT")
    timings = [(number, found) for number, line in enumerate(contents) if (found := _TIMING.match(line))]
    if web:
        timings = [(number, found) for number, found in timings if _begins_block(contents, number)]
    if not timings:
        first = next((number for number, line in enumerate(contents, 1) if line.strip()), 1)
        raise DocnmtError(
            f"{name}, line {first}: no subtitles: not one line has a timing\n"
            "  A cue has a line such as 00:00:01,000 --> 00:00:02,500 above its text."
        )
    cues: list[Cue] = []
    following = [*(number for number, _ in timings[1:]), len(lines)]
    for (number, timing), last in zip(timings, following, strict=True):
        if last < len(lines) and contents[last - 1].strip().isdecimal():
            last -= 1  # the number of the next cue
        first = number + 1
        if web:  # ends with the block; what is after it is a note, or the next cue's name
            last = next((at for at in range(first, last) if not contents[at].strip()), last)
        while last > first and not contents[last - 1].strip():
            last -= 1
        start = lines[first][0] if first < len(lines) else len(text)
        end = lines[last - 1][0] + len(contents[last - 1]) if last > first else start
        cues.append(Cue(number + 1, _seconds(timing, 1), _seconds(timing, 5), start, end))
    return cues


def _begins_block(contents: list[str], number: int) -> bool:
    """Whether a timing is the first line of its block, or the second, after a name; else it is part of a note."""
    if number == 0 or not contents[number - 1].strip():
        return True
    return not contents[number - 1].startswith("NOTE") and (number == 1 or not contents[number - 2].strip())


def _seconds(timing: re.Match[str], first: int) -> float:
    hours, minutes, seconds, fraction = (timing[first + i] or "0" for i in range(4))
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def utterances(text: str, number: int, cue: Cue) -> list[Utterance]:
    return [_utterance(text, number, start, end) for start, end in _spoken(text, cue)]


def _spoken(text: str, cue: Cue) -> list[tuple[int, int]]:
    """Where each speaker begins and ends: with a dash, a name or a music sign at the beginning of a line."""
    starts: list[int] = []
    for found in re.compile(r"[^\r\n]+").finditer(text, cue.text_start, cue.text_end):
        lead = _LEAD.match(text, found.start(), found.end())
        signs = lead[0] if lead else ""
        dashes = re.search(_SPEAKER, re.sub(_CODE, "", signs)) is not None
        if not starts or dashes or "♪" in signs or "♫" in signs or "<v" in signs:
            starts.append(found.start())
        if dashes:  # "- Oui. - Non."
            for second in _NEXT_SPEAKER.finditer(text, found.start(), found.end()):
                if not second["word"].islower():
                    starts.append(second.end())
    return list(zip(starts, [*starts[1:], cue.text_end], strict=False))


def _utterance(text: str, cue: int, begin: int, end: int) -> Utterance:
    start, end = _core(text, begin, end)
    before = text[begin:start]
    signs = re.sub(_CODE, "", before)
    plain, marks, entities = _plain(text[start:end])
    return Utterance(
        cue,
        start,
        end,
        plain,
        marks,
        entities,
        lines=tuple(line.strip() for line in re.split(r"[\r\n]+", text[start:end])),
        speaker=re.search(_SPEAKER, signs) is not None,
        sung=any(sign in signs for sign in "♪♫♬"),
        shown="".join(code for code in re.findall(_CODE, before) if not _STYLE.fullmatch(code)),
    )


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the text of an utterance begins and ends; tags that end in its middle are part of it."""
    tokens = list(re.compile(_CODE).finditer(text, start, end))
    marks = paired(Mark(token.start(), token[0]) for token in tokens)
    lead = _LEAD.match(text, start, end)
    first = lead.end() if lead else start
    last = end
    # Each turn goes back over one token at the end.
    for token in reversed(list(_TAIL.finditer(text, first, end))):
        if token.end() == last:
            last = token.start()
    pairs: dict[int, list[int]] = {}
    for mark in marks:
        if mark.pair:
            pairs.setdefault(mark.pair, []).append(mark.at)
    ends = {token.start(): token.end() for token in tokens}
    # From the outermost pair on: one that begins before the text and ends inside of it is taken in whole.
    for opening, closing in sorted(pairs.values()):
        if opening < first <= closing < last:
            first = opening
    for opening, closing in sorted(pairs.values(), key=lambda pair: pair[1]):
        if first <= opening < last <= closing:
            last = ends[closing]
    return min(first, last), last


def _plain(raw: str) -> tuple[str, tuple[Mark, ...], dict[int, str]]:
    text = ""
    marks: list[Mark] = []
    entities: dict[int, str] = {}
    end = 0
    for found in _INSIDE.finditer(raw):
        text += raw[end : found.start()]
        end = found.end()
        if found["code"]:
            marks.append(Mark(len(text), found[0]))
        elif found["space"]:
            text += "" if text.endswith(" ") else " "
        else:
            character = html.unescape(found[0])
            text += character
            if len(character) == 1:
                entities[ord(character)] = found[0]
    return text + raw[end:], paired(marks), entities
