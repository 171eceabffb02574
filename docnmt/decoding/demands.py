"""What is asked of a translation, and how far a hypothesis is with it, piece by piece.

What counts is the text, not the pieces: a phrase is met however it is spelt, as whole words, and a text to begin with
may end inside a piece.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.decoding.glossary import Glossary
from docnmt.decoding.phrases import CLOSING, Form, Matched, Matcher, Phrase, Place, forms_of
from docnmt.decoding.spelling import Spelling
from docnmt.document import Document
from docnmt.text.scripts import unspaced


@dataclass(frozen=True)
class Demand:
    """What is asked of one sentence's translation."""

    phrases: tuple[Phrase, ...] = ()
    prefix: str = ""
    breaks: int = 0  # the sentence's own translation begins after so many begin marks (see ContextRule.own)

    def __bool__(self) -> bool:
        return bool(self.phrases or self.prefix)

    def shared(self, ends: Sequence[int]) -> list[Demand]:
        """One for each part of a sentence, told by the characters where they end: a phrase goes to the part where its
        source begins; where that is not known, phrases go to all parts in order."""
        parts: list[list[Phrase]] = [[] for _ in ends]
        for n, phrase in enumerate(self.phrases):
            place = n * len(ends) // len(self.phrases) if phrase.at is None else bisect_right(ends, phrase.at[0])
            parts[min(place, len(ends) - 1)].append(phrase)
        prefixes = [self.prefix, *[""] * (len(ends) - 1)]
        return [replace(self, phrases=tuple(part), prefix=p) for part, p in zip(parts, prefixes, strict=True)]


NOTHING_ASKED = Demand()


def demands_of(
    document: Document, prefixes: Sequence[str] | None, phrases: Sequence[Sequence[str]] | None
) -> list[Demand]:
    for given, name in ((prefixes, "prefixes"), (phrases, "phrases")):
        if given is not None and (len(given) != len(document) or isinstance(given, str)):
            raise DocnmtError(
                f"document {document.id}: {len(given)} {name} for {len(document)} sentences\n"
                "  Give a list with one entry for each sentence, an empty one where nothing is asked."
            )
    return [
        Demand(tuple(map(Phrase, phrases[i])) if phrases else (), prefixes[i] if prefixes else "")
        for i in range(len(document))
    ]


def with_terms(document: Document, demands: Sequence[Demand] | None, glossary: Glossary | None) -> Sequence[Demand]:
    """What is asked of a document's sentences (none at all: nothing), the glossary's terms among it."""
    if demands is None or len(demands) not in (0, len(document)):
        raise DocnmtError(
            f"document {document.id}: {len(demands or ())} demands for {len(document)} sentences\n  Give one for each."
        )
    demands = demands or [NOTHING_ASKED] * len(document)
    if glossary is None:
        return demands
    return [
        replace(demand, phrases=(*demand.phrases, *glossary.phrases(sentence)))
        for demand, sentence in zip(demands, document.sentences, strict=True)
    ]


class _Written(NamedTuple):
    """All that matters of what a hypothesis has written."""

    matched: Matched
    tail: bytes = b""  # bytes of a character that is not whole yet
    prefix: int = 0  # so many bytes of the prefix
    breaks: int = 0  # begin marks still to come


@dataclass(eq=False)
class Progress:
    """How far a hypothesis is."""

    written: _Written
    bank: int  # pieces of the phrases that it has written
    complete: bool  # it may end
    open: Sequence[int] | None  # the only pieces that may follow; None: any
    wanted: Sequence[int]  # pieces that would bring it on
    awaits_end: bool  # it has written a phrase that counts only if the word ends there
    after: dict[int, Progress] = field(default_factory=dict)  # as far as known


class Tracker:
    """What hypotheses of one sentence have done of its demand. Phrases that no pieces can write are passed over."""

    def __init__(
        self, demand: Demand, spelling: Spelling, bos: int, length: int | None = None, floor: float = -math.inf
    ):
        self.spelling, self.bos = spelling, bos
        self.length = length  # of the translation where nothing is asked, if known
        spelt = [_Phrase(phrase, spelling) for phrase in demand.phrases]
        # A hypothesis with a lower log-probability is given up: there is another way. It is the only one for phrases
        # that no pieces can write.
        self.floor = floor if floor == -math.inf or all(phrase.possible for phrase in spelt) else math.inf
        self.matcher = Matcher([phrase.forms for phrase in spelt if phrase.possible])
        self.phrases = [next(phrase for phrase in spelt if phrase.forms == forms) for forms in self.matcher.forms]
        self.pieces = sum(n * phrase.worth for n, phrase in zip(self.matcher.needed, self.phrases, strict=True))
        self.prefix = spelling.normalised(demand.prefix) if demand.prefix else b""
        self.ways = spelling.ways(self.prefix)
        self._known: dict[_Written, Progress] = {}
        self.start = self._progress(_Written(self.matcher.start, breaks=demand.breaks))

    def after(self, progress: Progress, piece: int) -> Progress:
        found = progress.after.get(piece)
        if found is None:
            found = progress.after[piece] = self._progress(self._write(progress.written, piece))
        return found

    def _write(self, written: _Written, piece: int) -> _Written:
        if written.breaks:
            return written._replace(breaks=written.breaks - (piece == self.bos))
        text = self.spelling.written[piece]
        characters, tail = _whole_characters(written.tail + text)
        matched = self.matcher.read(written.matched, characters)
        return _Written(matched, tail, min(len(self.prefix), written.prefix + len(text)))

    def _progress(self, written: _Written) -> Progress:
        if written not in self._known:
            free = not written.breaks and written.prefix == len(self.prefix)
            self._known[written] = Progress(
                written,
                max(self._bank(written, met, inside) for met, inside in written.matched.readings),
                free and not written.tail and self.matcher.complete(written.matched),
                None if free or written.breaks else self.ways[written.prefix],
                sorted({piece for piece in self._wanted(written) if piece is not None}) if free else (),
                free and not written.tail and self.matcher.awaits_end(written.matched),
            )
        return self._known[written]

    def _bank(self, written: _Written, met: Sequence[int], inside: Place | None) -> int:
        bank = sum(n * phrase.worth for n, phrase in zip(met, self.phrases, strict=True))
        if inside is not None:
            phrase, place = self._place(inside)
            return bank + phrase.written(inside.form, place, written.tail)
        # A space or a byte, written as a piece of its own, is the first piece of phrases that are spelt so.
        if written.matched.last != " " and not written.tail:
            return bank
        begun = (self.phrases[n].written(kind, 0, written.tail) for n, kind, _ in self._open(met, written))
        return bank + max(begun, default=0)

    def _wanted(self, written: _Written) -> Iterator[int | None]:
        for met, inside in written.matched.readings:
            if inside is not None:
                phrase, place = self._place(inside)
                yield phrase.spelt[inside.form].piece(place, written.tail)
                continue
            for number, kind, form in self._open(met, written):
                spelt = self.phrases[number].spelt[kind]
                yield from [spelt.piece(0, written.tail)] if written.tail else spelt.begin(form, written.matched)

    def _open(self, met: Sequence[int], written: _Written) -> Iterator[tuple[int, int, Form]]:
        """The phrases that may begin, with half a character if one is written."""
        for number, kind, form in self.matcher.open(met, written.matched):
            if not written.tail or written.matched.between_words or not form.begins_word:
                yield number, kind, form

    def _place(self, inside: Place) -> tuple[_Phrase, int]:
        phrase = self.phrases[inside.phrase]
        return phrase, len(phrase.forms[inside.form].text[: inside.written].encode())


class _Phrase:
    """The forms of a phrase, each with its spelling."""

    def __init__(self, phrase: Phrase, spelling: Spelling):
        self.forms = forms_of(phrase)
        self.spelt = [_Spelt(form, spelling) for form in self.forms]
        self.possible = any(spelt.stops for spelt in self.spelt)
        self.worth = next((len(spelt.stops) for spelt in self.spelt if spelt.stops), 0)

    def written(self, form: int, place: int = 0, tail: bytes = b"") -> int:
        """How many pieces the first so many bytes of it are, and those of half a character if it goes on with them."""
        spelt = self.spelt[form]
        if not spelt.text.startswith(tail, place):
            return 0
        place += len(tail)
        stops = self.worth if place == len(spelt.text) else sum(stop <= place for stop in spelt.stops)
        return min(stops, self.worth)


class _Spelt:
    """A form of a phrase in bytes, and the pieces to write it with, after a space and without one."""

    def __init__(self, form: Form, spelling: Spelling):
        self.spelling = spelling
        self.text = form.text.encode()
        after_space, bare = (spelling.split(before + self.text) for before in (b" ", b""))
        self.first_after_space, self.first = (pieces[0] if pieces else None for pieces in (after_space, bare))
        spaced = after_space is not None and not unspaced(form.text[0])
        pieces = (after_space if spaced else bare) or []
        # Where in the text each piece ends; a space that is a piece of its own ends before it, at 0.
        self.stops = [end - spaced for end in accumulate(len(spelling.written[piece]) for piece in pieces)]
        self.next = dict(zip(self.stops, pieces[1:], strict=False))

    def begin(self, form: Form, matched: Matched) -> Sequence[int | None]:
        """The piece to begin with after a text. A space comes first, unless there is one or none is needed."""
        if not matched.last:
            return [self.first_after_space if self.spelling.opening else self.first]
        first = form.text[0]
        if matched.last == " " or first in CLOSING or (matched.last == "(" and unspaced(first)):
            return [self.first]
        if matched.last == "(" or unspaced(first):
            return [self.first_after_space, self.first]
        return [self.first_after_space]

    def piece(self, place: int, tail: bytes) -> int | None:
        """The piece to go on with after so many bytes and those of half a character."""
        if not self.text.startswith(tail, place):
            return None
        place += len(tail)
        return self.next.get(place, self.spelling.longest_piece(self.text[place:]))


def _whole_characters(text: bytes) -> tuple[str, bytes]:
    """The characters of a text, and the bytes of one at its end that is not whole."""
    try:
        return text.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return text[: error.start].decode(), text[error.start :]
        return text.decode(errors="replace"), b""
