"""Subtitles (.srt, .vtt): a sentence over several cues is one segment, and its translation is divided among them."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.messages import plain, tag_pairs, with_marks
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Change, Mark, Place, Segment, SplicedFile
from docnmt.text.scripts import LETTER, columns, width
from docnmt.text.sentences import split

# ---- cues: when each is shown, what is said in it, and by whom ----

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?!\d)")
# A timing with a typo is still one: its line stays as it is, and a new cue follows.
_NEARLY_TIME = r"(?=(?:[ \t]?[:.,;]?[ \t]?\d){5})[\d:.,; \t]++"
_SLIP = re.compile(
    rf"[ \t]*(?:{_NEARLY_TIME}[-–—=]{{0,3}}>|\S{{0,16}}[ \t]*-{{1,2}}>{_NEARLY_TIME}"
    rf"|(?=[^-–—>]*:){_NEARLY_TIME}\D{{0,8}}[-–—>]\D{{0,8}}{_NEARLY_TIME}$)"
)
_START_ALONE = re.compile(rf"[ \t]*{_TIME}[ \t]*$")
# <i>, <v Anna>, <00:01.500>, and what some players take from another format: {\an8}, {y:i}
_CODE = r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}"
_SPEAKER = r"(?:[-‐–—](?!-)|(?:>|&gt;){2,3})"
_LEAD = re.compile(rf"(?:\s+|{_CODE}|{_SPEAKER}|[♪♫♬]+)*+")
_TAIL = re.compile(rf"\s+|{_CODE}|[♪♫♬]+")
_NEXT_SPEAKER = re.compile(r"(?<=[.!?…»\"”])[ \t]+(?=[-‐–—][ \t]?(?P<word>\w))")
_INSIDE = re.compile(rf"(?P<code>{_CODE}|[♪♫♬]+ *)|(?P<space>\s+)|(?P<entity>&(?:#?\w{{1,31}});)")
_STYLE = re.compile(r"</?[ibu]>", re.IGNORECASE)
_NO_ENTITIES: Mapping[int, str] = {}  # shared by all cues without any, to save memory


class Cue(NamedTuple):
    line: int  # of its timing
    start: float  # in seconds
    end: float
    text_start: int  # where its text stands in the file
    text_end: int


class Utterance(NamedTuple):
    """What one speaker says in one cue, without what is around it: tags, dashes, music signs."""

    cue: int
    start: int  # where it stands in the file
    end: int
    text: str
    marks: tuple[Mark, ...]
    entities: Mapping[int, str]  # how the characters that were entities are spelt
    speaker: bool  # a dash before it: somebody else speaks
    sung: bool
    shown: str  # the codes before it, styles aside: where it is shown, whose voice it is

    @property
    def has_letters(self) -> bool:
        return LETTER.search(self.text) is not None


class Cues(Sequence[Cue]):
    """The cues of a file, as numbers in arrays: as objects they would take more memory than all the rest."""

    def __init__(self) -> None:
        self._numbers = array("d")  # which hold the whole numbers up to 2 ** 53, too

    def append(self, cue: Cue) -> None:
        self._numbers.extend(cue)

    def __getitem__(self, at: int) -> Cue:  # type: ignore[override]  # no slices
        at = range(len(self))[at]
        line, start, end, text_start, text_end = self._numbers[5 * at : 5 * at + 5]
        return Cue(int(line), start, end, int(text_start), int(text_end))

    def __len__(self) -> int:
        return len(self._numbers) // 5


def read_cues(text: str, name: str) -> Cues:
    starts = array("q", (found.start() for found in _LINE.finditer(text)))  # strings would take more memory
    starts.append(len(text))

    def line(number: int) -> str:
        return text[starts[number] : starts[number + 1]].rstrip("\r\n")

    count = len(starts) - 1
    web = text.startswith("WEBVTT")
    timings = [n for n in range(count) if _begins_cue(line, n, web)]
    if not any(_TIMING.match(line(number)) for number in timings):
        first = next((number for number in range(count) if line(number).strip()), 0)
        raise DocnmtError(
            f"{name}, line {first + 1}: these are not subtitles: no line has a timing\n"
            "  Above its text, a cue needs a line such as 00:00:01,000 --> 00:00:02,500."
        )
    cues = Cues()
    for number, last in pairwise([*timings, count]):
        if last < count and line(last - 1).strip().isdecimal():
            last -= 1  # the number of the next cue
        first = number + 1
        if web:  # ends with the block; after it comes a note, or the name of the next cue
            last = next((at for at in range(first, last) if not line(at).strip()), last)
        while last > first and not line(last - 1).strip():
            last -= 1
        start = starts[first]
        end = starts[last - 1] + len(line(last - 1)) if last > first else start
        said = text[start:end]
        if said.count("<") + said.count("{") > 2 * MAX_IN_PARAGRAPH:  # before they are read
            where = f"{name}, line {number + 1}"
            raise DocnmtError(f"{where}: more than {MAX_IN_PARAGRAPH:,} tags in one cue\n  Split the cue.")
        timing = _TIMING.match(line(number))
        before = cues[-1].end if cues else 0.0
        times = (_seconds(timing, 1), _seconds(timing, 5)) if timing else (before, before)
        cues.append(Cue(number + 1, *times, start, end))
    return cues


def _begins_cue(line: Callable[[int], str], number: int, web: bool) -> bool:
    said = line(number)
    sure, likely = _TIMING.match(said) or _SLIP.match(said), _START_ALONE.match(said)
    return bool(sure and not web) or (bool(sure or likely) and _begins_block(line, number))


def _begins_block(line: Callable[[int], str], number: int) -> bool:
    """Whether a timing is the first line of its block, or the second, after a name; else it is part of a note."""
    if number == 0 or not line(number - 1).strip():
        return True
    return not line(number - 1).startswith("NOTE") and (number == 1 or not line(number - 2).strip())


def _seconds(timing: re.Match[str], first: int) -> float:
    hours, minutes, seconds, fraction = (timing[first + i] or "0" for i in range(4))
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def utterances(text: str, number: int, cue: Cue) -> Iterator[Utterance]:
    for start, end in pairwise(chain(_speakers(text, cue), (cue.text_end,))):
        yield _utterance(text, number, start, end)


def _speakers(text: str, cue: Cue) -> Iterator[int]:
    """Where each begins: with a dash, a name or a music sign at the beginning of a line."""
    first = True
    for found in re.compile(r"[^\r\n]+").finditer(text, cue.text_start, cue.text_end):
        lead = _LEAD.match(text, found.start(), found.end())
        signs = lead[0] if lead else ""
        dashes = re.search(_SPEAKER, re.sub(_CODE, "", signs)) is not None
        if first or dashes or "♪" in signs or "♫" in signs or "<v" in signs:
            yield found.start()
        first = False
        if dashes:  # "- Oui. - Non."
            for second in _NEXT_SPEAKER.finditer(text, found.start(), found.end()):
                if not second["word"].islower():
                    yield second.end()


def _utterance(text: str, cue: int, begin: int, end: int) -> Utterance:
    start, end = _core(text, begin, end)
    before = text[begin:start]
    signs = re.sub(_CODE, "", before)
    words, marks, entities = plain(text[start:end], _INSIDE)
    return Utterance(
        cue,
        start,
        end,
        words,
        marks,
        entities or _NO_ENTITIES,
        speaker=re.search(_SPEAKER, signs) is not None,
        sung=any(sign in signs for sign in "♪♫♬"),
        shown="".join(code for code in re.findall(_CODE, before) if not _STYLE.fullmatch(code)),
    )


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the text of an utterance begins and ends; tags that end in its middle are part of it."""
    tokens = list(re.compile(_CODE).finditer(text, start, end))
    lead = _LEAD.match(text, start, end)
    first = lead.end() if lead else start
    tail = reached = -1  # of the tokens in a row that were seen last
    for token in _TAIL.finditer(text, first, end):
        tail, reached = tail if token.start() == reached else token.start(), token.end()
    last = tail if reached == end else end
    pairs = [(tokens[a].start(), *tokens[b].span()) for a, b in tag_pairs(token[0] for token in tokens)]
    # From the outermost pair on: one that begins before the text and ends in it becomes part of it.
    for opening, closing, _ in sorted(pairs):
        if opening < first <= closing < last:
            first = opening
    for opening, closing, closed in sorted(pairs, key=lambda pair: pair[1]):
        if first <= opening < last <= closing:
            last = closed
    return min(first, last), last


# ---- sentences over several cues ----

LINE = 42  # columns, which can be read at a glance
_LONGEST_RUN = 12  # cues
_PAUSE = 3.0  # seconds after which a sentence does not continue
# If fewer cues end in a full stop, the author omits them, and nothing tells whether a sentence continues.
_FULL_STOPS = 0.1
_ENDS_FULL = re.compile(r"[.。…][\s\"'»”’)\]」]*\Z")
_WEB_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_TIMESTAMP = re.compile(r"<[\d:.]+>\Z")


class Run(NamedTuple):
    """Utterances of consecutive cues that make up whole sentences."""

    parts: tuple[Utterance, ...]
    segment: Segment  # each mark's code begins with the number of its part


class Subtitles(SplicedFile):
    def __init__(self, data: bytes, name: str, language: str):
        self._language = language
        self._text, encoding = decoded(data, name)
        self._web = self._text.startswith("WEBVTT")
        found = re.search(r"\r\n|\r|\n", self._text)
        self._newline = found[0] if found else "\n"
        self.cues = read_cues(self._text, name)
        lasting = [bool(_ENDS_FULL.search(self._tail(cue))) for cue in self.cues if cue.text_start < cue.text_end]
        self._has_stops = sum(lasting) >= _FULL_STOPS * len(lasting)
        super().__init__(data, self._text, name, self._run_places, encoding.encoded)

    def runs(self) -> Iterator[Run]:
        return map(_run, self._joined())

    def _tail(self, cue: Cue) -> str:
        """How the text of a cue ends, without codes."""
        raw = self._text[max(cue.text_start, cue.text_end - 200) : cue.text_end]
        return re.sub(rf"{_CODE}|[♪♫♬]+", "", raw).rstrip()[-20:]

    def _joined(self) -> Iterator[list[Utterance]]:
        run: list[Utterance] = []
        for number, cue in enumerate(self.cues):
            for utterance in utterances(self._text, number, cue):
                if not utterance.has_letters:
                    continue
                if run and not (self._has_stops and self._goes_on(run, utterance)):
                    yield run
                    run = []
                run.append(utterance)
        if run:
            yield run

    def _goes_on(self, run: list[Utterance], following: Utterance) -> bool:
        """Whether the last sentence of a run continues in the next cue."""
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
        for sentence in split(before + following.text[:200].lstrip(".… "), self._language):
            end += len(sentence)
            if end == len(before):
                return False
        return True

    def _run_places(self) -> Iterator[Place]:
        return (Place(run.parts[0].start, (run.segment,), partial(self._changes, run)) for run in self.runs())

    def _changes(self, run: Run, new: Segment) -> Iterator[Change]:
        if not new.reads_as(run.segment):
            for part, text in zip(run.parts, self._written(run, new), strict=True):
                yield Change(part.start, part.end, (text,))

    def _written(self, run: Run, new: Segment) -> Iterator[str]:
        """What to write for each part."""
        text = re.sub(r"\s", " ", new.text)
        start = 0
        for number, piece in enumerate(cut(text, [columns(part.text) for part in run.parts])):
            line = piece.strip()
            first = start + len(piece) - len(piece.lstrip())
            own = (mark for mark in new.marks if mark.code.startswith(f"{number}:"))
            # A mark stays in its cue, wherever its words go.
            marks = [
                replace(mark, at=min(max(mark.at - first, 0), len(line)), code=mark.code.partition(":")[2])
                for mark in own
            ]
            yield self._lines(run.parts[number], line, marks)
            start += len(piece)

    def _lines(self, part: Utterance, text: str, marks: list[Mark]) -> str:
        lines = re.split(r"[\r\n]+", self._text[part.start : part.end])
        limit = max(LINE, *(columns(line.strip()) for line in lines))
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
    """With the times inside a cue in order, even if the words are in another one."""
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
    """What goes between the words of two cues: nothing in Chinese."""
    return "" if not before or (width(before[-1]) == 2 and width(after[0]) == 2) else " "


def read(data: bytes, name: str, languages: tuple[str, str]) -> Subtitles:
    return Subtitles(data, name, languages[0])


# ---- cutting a text into parts of given widths ----

_NOT_FIRST = frozenset(",.;:!?…%)]}»”’，。、；：！？）】》」』ー々")
_NOT_LAST = frozenset("([{«“‘（【《「『")
# How far a cut may be moved to come after punctuation, as a fraction of a part's width.
_PULL = {mark: pull for marks, pull in ((".!?…。！？", 0.3), (",;:，；：、", 0.15)) for mark in marks}


def cut(text: str, shares: Sequence[int]) -> list[str]:
    """As many parts as there are shares, in proportion to them, cut between words; together they are the text.

    If there are fewer words than shares, the last parts are empty.
    """
    ends = [0, *accumulate(map(width, text))]
    places = [at for at in range(1, len(text)) if _may_cut(text, at)]
    total = sum(shares) or 1
    mean = ends[-1] / len(shares)
    cuts = [0]
    reached, first = 0, 0
    for number, share in enumerate(shares[:-1], 1):
        reached += share
        wanted = ends[-1] * reached / total
        last = len(places) - (len(shares) - 1 - number)  # leaves a place for each cut to come
        if first >= len(places):
            cuts.append(len(text))
            continue
        candidates = places[first : max(last, first + 1)]
        near = bisect_left(candidates, wanted, key=lambda at: ends[at])
        window = candidates[max(0, near - 40) : near + 40]
        best = min(window, key=lambda at: abs(ends[at] - wanted) - mean * _pull(text, at))
        cuts.append(best)
        first = bisect_left(places, best) + 1
    return [text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _may_cut(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if after == " " or after in _NOT_FIRST:
        return False
    if before == " ":
        return at < 2 or text[at - 2] not in _NOT_LAST
    return before not in _NOT_LAST and (width(before) == 2 or width(after) == 2)


def _pull(text: str, at: int) -> float:
    return _PULL.get(text[at - 2 if at > 1 and text[at - 1] == " " else at - 1], 0.0)
