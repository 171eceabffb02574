"""A file in another language: its segments into sentences, these through a machine, and back into the file.

Nothing here knows of models: what translates and aligns is handed in (`Machine`; decoding/files.py has the one that is
used).
"""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from docnmt.base.errors import DocnmtError
from docnmt.documents.marks import Links, place
from docnmt.documents.placeholders import Bare, counts, find, in_order, put_back, take_out, without
from docnmt.documents.segment import FileText, Mark, Room, Segment, read_document
from docnmt.text.languages import UNSPACED, primary
from docnmt.text.sentences import split

LARGEST = 256 << 20  # bytes
BLOCK = 256  # sentences translated at a time: what is lost at most when a long file is stopped


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    marks: tuple[Mark, ...] = ()
    gap: str = ""  # the space before it, in its segment
    between: tuple[Mark, ...] = ()  # marks that stand alone inside that space, counted from its begin
    translate: bool = True


@dataclass(frozen=True, slots=True)
class Translated:
    text: str
    marks: tuple[Mark, ...] = ()


class Machine(Protocol):
    def translate(
        self, name: str, sentences: Sequence[str], block: range, wanted: Mapping[int, str]
    ) -> Mapping[int, str]:
        """Sentences of a block of the document `name`, given as they are to be read; the others are context only."""
        ...

    def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """The words that belong together, for each sentence and its translation."""
        ...


class Sentences:
    """Sentences that are translated with their placeholders kept and their marks at the right words."""

    def __init__(self, name: str, sentences: Sequence[Sentence]):
        self.name, self.sentences = name, sentences
        self.texts = [sentence.text for sentence in sentences]

    def __len__(self) -> int:
        return len(self.sentences)

    def translate(self, machine: Machine, block: range) -> list[Translated]:
        """The sentences of a block, in the context of all."""
        wanted = {n: self.texts[n] for n in block if self.sentences[n].translate}
        found = self._through(machine, block, wanted)
        spoilt = {n for n, text in found.items() if counts(text) != counts(self.texts[n])}
        found = {n: text if n in spoilt else in_order(text, self.texts[n]) for n, text in found.items()}
        bare = {n: take_out(self.texts[n], find(self.texts[n]), self.sentences[n].marks) for n in spoilt}
        again = self._through(machine, block, {n: bare[n].text for n in spoilt})
        found |= {n: without(text).strip() for n, text in again.items()}
        return self.marked(machine, block, found, bare)

    def _through(self, machine: Machine, block: range, wanted: Mapping[int, str]) -> dict[int, str]:
        return dict(machine.translate(self.name, self.texts, block, wanted)) if wanted else {}

    def marked(
        self, machine: Machine, block: range, texts: Mapping[int, str], bare: Mapping[int, Bare]
    ) -> list[Translated]:
        """Translations of sentences of a block with the marks at their words; `bare` are those sentences that were
        translated without their placeholders, which are put back. The others stay as they are."""
        pairs: dict[int, tuple[str, str]] = {}
        for n, text in texts.items():
            if text and (n in bare or self.sentences[n].marks):
                pairs[n] = (bare[n].text if n in bare else self.texts[n], text)
        links = dict(zip(pairs, machine.align(list(pairs.values())), strict=True)) if pairs else {}

        done = []
        for n in block:
            sentence, text = self.sentences[n], texts.get(n, "")
            if not text:  # nothing to translate, or no words for it: better the sentence as it is than none
                done.append(Translated(sentence.text, sentence.marks))
                continue
            if n in bare:
                placed = place(bare[n].text, text, bare[n].marks, links[n])
                text, marks = put_back(text, placed, bare[n])
            else:
                marks = place(sentence.text, text, sentence.marks, links.get(n, ()))
            done.append(Translated(text, tuple(mark for _, mark in marks)))
        return done


class FileSentences(Sentences):
    """A file that was read, as sentences."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]):
        self.languages = languages
        self.file: FileText = _read(data, name, languages)
        found: list[Sentence] = []
        # Of each segment its number of sentences; and the space after them, where there is some.
        self._counts, self._rests = array("q"), dict[int, str]()
        segments = self.file.segments
        room = Room(sum(len(segment.text) for segment in segments), name)
        for number, segment in enumerate(segments):
            sentences, rest = sentences_of(segment, languages[0])
            room.take(max(0, len(sentences) - 1))  # the first was counted with its segment
            found += sentences
            self._counts.append(len(sentences))
            if rest:
                self._rests[number] = rest
        super().__init__(name, found)

    @property
    def segments(self) -> Iterator[tuple[Segment, int, str]]:
        """Each with its number of sentences, and the space after them."""
        for number, (segment, count) in enumerate(zip(self.file.segments, self._counts, strict=True)):
            yield segment, count, self._rests.get(number, "")

    def blocks(self) -> Iterator[range]:
        """A file without sentences has a block, too: there is something to write."""
        for start in range(0, max(1, len(self)), BLOCK):
            yield range(start, min(start + BLOCK, len(self)))

    def translated(self, machine: Machine, tick: Callable[[int], object] = lambda count: None) -> bytes:
        """All of the file in one go."""

        def sentences() -> Iterator[Translated]:
            for block in self.blocks():
                yield from self.translate(machine, block)
                tick(len(block))

        return self.write(sentences())

    def write(self, translations: Iterator[Translated]) -> bytes:
        """The file with the translations of all its sentences."""
        segments, source = [], iter(self.sentences)
        for segment, count, rest in self.segments:
            pieces = [(next(source), next(translations)) for _ in range(count)]
            segments.append(joined(segment, pieces, rest, self.languages))
        return self.file.write(segments)


def _read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    try:
        return read_document(data, name, languages)
    except (DocnmtError, OSError):
        raise
    except Exception as error:  # a file can be broken in ways that nobody thought of
        raise DocnmtError(
            f"{name}: cannot be read ({type(error).__name__}: {error})\n"
            "  It may be damaged: see if the program it comes from opens it, and save it anew."
        ) from error


def sentences_of(segment: Segment, language: str) -> tuple[list[Sentence], str]:
    """The sentences of a segment with their marks, and the space after the last one."""
    spans = find(segment.text)
    places: list[tuple[int, int]] = []
    at = 0
    for piece in split(segment.text, language, spans):
        content = piece.strip()
        if content:
            start = at + len(piece) - len(piece.lstrip())
            places.append((start, start + len(content)))
        at += len(piece)
    if not places:
        return [], segment.text
    sentences, end = [], 0
    own, between = _between(segment.marks, places)
    for (start, stop), marks, before in zip(places, _shared_out(own, places), between, strict=True):
        text = segment.text[start:stop]
        kept = tuple(replace(mark, at=min(max(mark.at - start, 0), stop - start)) for mark in marks)
        translate = segment.translate and any(map(str.isalpha, without(text)))
        sentences.append(Sentence(text, kept, segment.text[end:start], before, translate))
        end = stop
    return sentences, segment.text[end:]


def _between(marks: Sequence[Mark], places: Sequence[tuple[int, int]]) -> tuple[list[Mark], list[tuple[Mark, ...]]]:
    """The marks that belong to a sentence; and for each sentence those that stand alone in the space before it, with
    space on both sides. One after a mark that opens there is inside of what that opens."""
    own: list[Mark] = []
    found: list[list[Mark]] = [[] for _ in places]
    n, opened = 0, False
    for mark in marks:
        while n + 1 < len(places) and places[n + 1][0] <= mark.at:
            n, opened = n + 1, False
        in_space = n + 1 < len(places) and places[n][1] < mark.at
        if in_space and not mark.pair and not opened:
            found[n + 1].append(replace(mark, at=mark.at - places[n][1]))
        else:
            own.append(mark)
            opened = opened or (in_space and bool(mark.pair) and not mark.closing)
    return own, [tuple(each) for each in found]


def _shared_out(marks: Sequence[Mark], places: Sequence[tuple[int, int]]) -> list[list[Mark]]:
    """The marks of each sentence. Between two, what opens goes to the second, what closes to the first, what stands
    alone to the one it touches. Never does a pair close before it opens."""
    shares: list[list[Mark]] = [[] for _ in places]
    opened: dict[int, int] = {}
    n = last = 0
    for mark in marks:
        while n + 1 < len(places) and places[n + 1][0] <= mark.at:
            n += 1
        # Here the mark is inside sentence n, or behind it and before the next.
        at = n
        begins, ends = mark.at <= places[n][0], mark.at >= places[n][1]
        opens = mark.pair and not mark.closing
        if ends and opens and n + 1 < len(places):
            at = n + 1
        elif begins and mark.pair and mark.closing and n > 0 and opened.get(mark.pair, n) < n:
            at = n - 1
        if opens:
            opened[mark.pair] = at
        elif mark.pair:
            at = max(at, opened.get(mark.pair, 0))
        else:
            at = max(at, last)  # behind a mark that opens the next sentence it belongs there, too
        shares[at].append(mark)
        last = at
    return shares


def joined(
    segment: Segment, pieces: Sequence[tuple[Sentence, Translated]], rest: str, languages: tuple[str, str]
) -> Segment:
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
    whole = "".join([*text, rest])
    # Marks may stand in the space between sentences: of an unchanged text they stay where they are.
    return segment if whole == segment.text or not pieces else Segment(whole, tuple(marks), segment.translate)


def _gap(gap: str, languages: tuple[str, str]) -> str:
    source, target = (primary(language) in UNSPACED for language in languages)
    if source and not target:
        return gap or " "
    if target and not source:
        return "" if gap.isspace() and gap.strip(" \u00a0\u202f") == "" else gap
    return gap


def read_bytes(path: str | Path) -> bytes:
    """All of a file, if it is one and has a size that can be worked with."""
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise DocnmtError(f"{path}: is a folder, not a file\n  Name the files inside it.")
        if not stat.S_ISREG(found.st_mode):
            raise DocnmtError(f"{path}: is no regular file\n  Copy what it gives into a file.")
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1) if found.st_size <= LARGEST else b""
    except FileNotFoundError:
        raise DocnmtError(f"{path}: no such file\n  Check the path; it is taken from the current folder.") from None
    except OSError as error:
        raise DocnmtError(f"{path}: {error.strerror}\n  Check the path and its permissions.") from None
    if found.st_size > LARGEST or len(data) > LARGEST:
        raise DocnmtError(f"{path}: has more than {LARGEST >> 20} MB\n  Split it into smaller files.")
    return data
