"""Translates a file: its segments are split into sentences, translated by a machine, and put back.

Nothing here knows about models: a `Machine` that translates and aligns is passed in (the real one is in
decoding/excerpts.py).
"""

from __future__ import annotations

import os
import stat
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from docnmt.base.errors import DocnmtError
from docnmt.documents.encodings import recoded
from docnmt.documents.inline import has_letters
from docnmt.documents.marks import Links, project
from docnmt.documents.placeholders import counts, find, in_order, put_back, take_out, without
from docnmt.documents.segment import FileText, Mark, Room, Segment, Span, read_document
from docnmt.text.scripts import UNSPACED_LANGUAGES, primary
from docnmt.text.sentences import split

LARGEST = 256 << 20  # bytes
BLOCK = 256  # sentences translated at a time: the most that is lost when a long file is interrupted


class Sentence(NamedTuple):
    text: str
    marks: tuple[Mark, ...] = ()
    gap: str = ""  # the space before it, in its segment
    between: tuple[Mark, ...] = ()  # marks that stand alone in that space, counted from its start
    translate: bool = True


@dataclass(frozen=True, slots=True)
class Translated:
    text: str
    marks: tuple[Mark, ...] = ()
    unmet: tuple[tuple[str, str], ...] = ()  # glossary terms, and their translations that are missing here


Key = TypeVar("Key", bound=Hashable)  # identifies a sentence


class Machine(Protocol[Key]):
    """What translates. It knows the document around each sentence."""

    def translate(self, texts: Mapping[Key, str]) -> Mapping[Key, Sequence[str]]:
        """The translations of each, best first: at least one."""
        ...

    def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """For each sentence and its translation the words that belong together."""
        ...


def translate_sentences(sentences: Mapping[Key, Sentence], machine: Machine[Key]) -> dict[Key, list[Translated]]:
    """The translations of each sentence, best first, with its placeholders kept and its marks at the right words."""
    texts = {key: sentence.text for key, sentence in sentences.items() if sentence.translate}
    found = machine.translate(texts) if texts else {}
    spoilt = {key: {text for text in ranked if counts(text) != counts(texts[key])} for key, ranked in found.items()}
    bare = {key: take_out(texts[key], sentences[key].marks) for key in spoilt if spoilt[key]}
    again = machine.translate({key: bare[key].text for key in bare}) if bare else {}
    drafts: dict[tuple[Key, int], Draft] = {}
    for key, sentence in sentences.items():
        for rank, text in enumerate(found.get(key, [""])):
            if not text and key not in bare:
                drafts[key, rank] = Draft(sentence, "")
            elif text not in spoilt[key]:
                drafts[key, rank] = Draft(sentence, in_order(text, sentence.text))
            else:
                text = again[key][min(rank, len(again[key]) - 1)]
                drafts[key, rank] = Draft(sentence, without(text).strip(), bare[key])
    done: dict[Key, list[Translated]] = {key: [] for key in sentences}
    for (key, _), translated in place_marks(drafts, machine.align).items():
        done[key].append(translated)
    return done


class Draft(NamedTuple):
    """A sentence and its translation, without marks."""

    sentence: Sentence
    text: str  # empty: the sentence stays as it is
    bare: Segment | None = None  # what was translated, if the model did not keep the placeholders


def place_marks(
    drafts: Mapping[Key, Draft], align: Callable[[Sequence[tuple[str, str]]], Sequence[Links]]
) -> dict[Key, Translated]:
    """Puts the marks of each sentence at the words of its translation, and placeholders that were taken out."""
    pairs: dict[Key, tuple[str, str]] = {}
    for key, (sentence, text, bare) in drafts.items():
        if text and (bare or sentence.marks):
            pairs[key] = (bare.text if bare else sentence.text, text)
    links = dict(zip(pairs, align(list(pairs.values())), strict=True)) if pairs else {}
    done: dict[Key, Translated] = {}
    for key, (sentence, text, bare) in drafts.items():
        if not text:  # nothing to translate, or an empty translation: the sentence as it is is better than none
            done[key] = Translated(sentence.text, sentence.marks)
            continue
        if bare:
            text, marks = put_back(text, project(bare.text, text, bare.marks, links[key]), bare)
        else:
            marks = project(sentence.text, text, sentence.marks, links.get(key, ()))
        done[key] = Translated(text, tuple(marks))
    return done


class Sentences(Sequence[Sentence]):
    """The sentences of a file, each made when it is asked for: held as objects, they would take more memory than the
    file's text."""

    def __init__(self, segments: Sequence[Segment], language: str, name: str):
        self._segments = segments
        self._first = array("q", [0])  # for each segment, the number of its first sentence
        self._bounds = array("q")  # of each sentence, in the text of its segment
        self._latest = -1, list[Sentence]()  # a segment and its sentences
        room = Room(name)
        room.grow(sum(len(segment.text) for segment in segments))
        for segment in segments:
            found = _bounds(segment.text, language)
            room.take(max(0, len(found) - 1))  # the first was counted with its segment
            for bounds in found:
                self._bounds.extend(bounds)
            self._first.append(len(self))

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def __getitem__(self, number: int) -> Sentence:  # type: ignore[override]  # no slices
        number = range(len(self))[number]
        segment = bisect_right(self._first, number) - 1
        return self.in_segment(segment)[number - self._first[segment]]

    def in_segment(self, number: int) -> Sequence[Sentence]:
        if number != self._latest[0]:
            first, end = 2 * self._first[number], 2 * self._first[number + 1]
            bounds = [(self._bounds[at], self._bounds[at + 1]) for at in range(first, end, 2)]
            self._latest = number, _within(self._segments[number], bounds)
        return self._latest[1]


class FileSentences:
    """A file that was read, as sentences."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str], encoding: str = ""):
        """`encoding`: of a text file, if it is known."""
        self.name, self.languages = name, languages
        self.recoded = recoded(data, name, languages[0], encoding)
        self.encoding = self.recoded.encoding
        self.file: FileText = read_document(self.recoded.utf8, name, languages)
        self.sentences = Sentences(self.file.segments, languages[0], name)

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def texts(self) -> Iterator[str]:
        return (sentence.text for sentence in self.sentences)

    def blocks(self) -> Iterator[range]:
        for start in range(0, len(self), BLOCK):
            yield range(start, min(start + BLOCK, len(self)))

    def by_segment(self) -> Iterator[tuple[Segment, Sequence[Sentence]]]:
        return ((segment, self.sentences.in_segment(number)) for number, segment in enumerate(self.file.segments))

    def write(self, translations: Iterator[Translated]) -> bytes:
        """The file with the translations of all its sentences."""
        segments = [
            joined(segment, [(sentence, next(translations)) for sentence in sentences], self.languages)
            for segment, sentences in self.by_segment()
        ]
        return self.recoded.written(self.file.write(segments))


def has_words(text: str) -> bool:
    """Whether there is something to translate in it."""
    return has_letters(without(text))


def _bounds(text: str, language: str) -> list[Span]:
    """Where the sentences of a text begin and end."""
    bounds: list[Span] = []
    at = 0
    for piece in split(text, language, find(text)):
        if content := piece.strip():
            start = at + len(piece) - len(piece.lstrip())
            bounds.append((start, start + len(content)))
        at += len(piece)
    return bounds


def _within(segment: Segment, bounds: Sequence[Span]) -> list[Sentence]:
    sentences, end = [], 0
    for (start, stop), (own, between) in zip(bounds, _shared_out(segment.marks, bounds), strict=True):
        text = segment.text[start:stop]
        marks = tuple(replace(mark, at=min(max(mark.at - start, 0), stop - start)) for mark in own)
        translate = segment.translate and has_words(text)
        sentences.append(Sentence(text, marks, segment.text[end:start], tuple(between), translate))
        end = stop
    return sentences


def _shared_out(marks: Sequence[Mark], places: Sequence[Span]) -> Iterable[tuple[Sequence[Mark], Sequence[Mark]]]:
    """For each sentence its marks, and those that stand alone in the space before it.

    Between two sentences, what opens belongs to the second, what closes to the first, and what stands alone with space
    on both sides to neither, unless it is inside a pair that opens there. A pair never closes before it opens.
    """
    shares: list[list[Mark]] = [[] for _ in places]
    spaces: list[list[Mark]] = [[] for _ in places]
    opened: dict[int, int] = {}  # in which sentence each pair was opened
    n = last = 0
    opened_here = False
    for mark in marks if places else ():
        while n + 1 < len(places) and places[n + 1][0] <= mark.at:
            n, opened_here = n + 1, False
        # Here the mark is inside sentence n, or after it and before the next.
        start, end = places[n]
        has_next, opens = n + 1 < len(places), mark.pair and not mark.closing
        in_space = has_next and end < mark.at
        if in_space and not mark.pair and not opened_here:
            spaces[n + 1].append(replace(mark, at=mark.at - end))
            continue
        at = n
        if opens:
            opened_here = opened_here or in_space
            at = n + 1 if has_next and end <= mark.at else n
            opened[mark.pair] = at
        elif mark.pair:
            first = opened.get(mark.pair, n)
            at = max(n - 1 if mark.at <= start and first < n else n, opened.get(mark.pair, 0))
        else:
            at = max(at, last)  # after a mark that belongs to the next sentence it belongs there, too
        shares[at].append(mark)
        last = at
    return zip(shares, spaces, strict=True)


def joined(segment: Segment, pieces: Sequence[tuple[Sentence, Translated]], languages: tuple[str, str]) -> Segment:
    """The segment in the other language."""
    text: list[str] = []
    marks: list[Mark] = []
    length = 0
    unchanged = True
    for n, (sentence, translation) in enumerate(pieces):
        same = translation.text == sentence.text
        gap = sentence.gap if n == 0 or (unchanged and same) else _gap(sentence.gap, languages)
        marks += (replace(mark, at=length + min(mark.at, len(gap))) for mark in sentence.between)
        marks += (replace(mark, at=length + len(gap) + mark.at) for mark in translation.marks)
        text += (gap, translation.text)
        length += len(gap) + len(translation.text)
        unchanged = same
    whole = "".join(text) + segment.text[len(segment.text.rstrip()) :]
    # If the text is unchanged, so are the marks, even those in the space between sentences.
    return segment if whole == segment.text or not pieces else Segment(whole, tuple(marks), segment.translate)


def _gap(gap: str, languages: tuple[str, str]) -> str:
    source, target = (primary(language) in UNSPACED_LANGUAGES for language in languages)
    if source and not target:
        return gap or " "
    if target and not source:
        return "" if gap.isspace() and gap.strip(" \u00a0\u202f") == "" else gap
    return gap


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, if it is a regular one and not too large."""
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise DocnmtError(f"{path}: this is a folder, not a file\n  Give the files inside it.")
        if not stat.S_ISREG(found.st_mode):
            raise DocnmtError(f"{path}: not a regular file\n  Copy its content into one.")
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1) if found.st_size <= LARGEST else b""
    except FileNotFoundError:
        raise DocnmtError(f"{path}: no such file\n  Check the path; it is relative to the current folder.") from None
    except OSError as error:
        raise DocnmtError(f"{path}: {error.strerror}\n  Check the path and its permissions.") from None
    if found.st_size > LARGEST or len(data) > LARGEST:
        raise DocnmtError(f"{path}: larger than {LARGEST >> 20} MB\n  Split it into smaller files.")
    return data
