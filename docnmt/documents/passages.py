"""A paragraph of text and markup as a segment with marks, and its translation as text and markup again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

from docnmt.documents.inline import nested
from docnmt.documents.runs import is_word
from docnmt.documents.segment import Mark, Segment

_SPACES = re.compile("[ \t\r\n]+")
_LINE_END = re.compile(r"((?<![^\S\n])[^\S\n]*+\n\s*)")  # never begun amid spaces: long runs of them cost time


def has_letters(text: str) -> bool:
    return any(character.isalpha() for character in text)


class Role(Enum):
    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    ALONE = "alone"


@dataclass(slots=True, eq=False)
class Atom:
    """A piece of a paragraph's content: some text, or something that will be a mark."""

    role: Role
    start: int  # the bytes it stands in
    end: int
    text: str = ""  # of text; of a mark, what to write instead of its bytes
    gap: bool = False  # parts words as a space does: a line break, a tab
    # The first of two that belong together but need not be nested with others has a name, the second one a slash and
    # that name.
    link: str = ""


def with_breaks(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """The atoms with line ends in text, and the spaces around them, as marks."""
    for is_text, group in groupby(atoms, key=lambda atom: atom.role is Role.TEXT):
        if not is_text:
            yield from group
            continue
        pieces = list(group)
        start, end = pieces[0].start, pieces[-1].end
        for number, text in enumerate(_LINE_END.split("".join(piece.text for piece in pieces))):
            if number % 2:
                yield Atom(Role.ALONE, start, end, text, gap=True)
            elif text:
                yield Atom(Role.TEXT, start, end, text)


def partners(atoms: Sequence[Atom]) -> dict[int, int]:
    """For each atom that is one of a pair, by their numbers, the other one."""
    found: dict[int, int] = {}
    opened: list[int] = []
    linked: dict[str, int] = {}
    for number, atom in enumerate(atoms):
        if atom.role is Role.OPEN:
            opened.append(number)
        elif atom.role is Role.CLOSE and opened:
            found[number] = opened.pop()
        elif atom.link.startswith("/"):
            first = linked.pop(atom.link[1:], None)
            if first is not None:
                found[number] = first
        elif atom.link:
            linked[atom.link] = number
    return found | {first: second for second, first in found.items()}


def trim(atoms: Sequence[Atom]) -> tuple[int, int]:
    """The smallest part with all text in it and both halves of its pairs: other marks have no word to stay with."""
    filled = [number for number, atom in enumerate(atoms) if atom.role is Role.TEXT and atom.text.strip()]
    if not filled:
        return 0, 0
    start, end = filled[0], filled[-1] + 1
    pairs = partners(atoms)
    waiting = list(range(start, end))
    while waiting:
        other = pairs.get(waiting.pop(), start)
        if other < start:
            waiting += range(other, start)
            start = other
        elif other >= end:
            waiting += range(end, other + 1)
            end = other + 1
    return start, end


class Passage:
    """Atoms as a segment, and its translation as atoms."""

    def __init__(self, atoms: Sequence[Atom], collapse: bool = False, translate: bool = True):
        """`collapse` makes one space of many, also where bold begins or ends between them."""
        self.lead = ""
        self._atoms = atoms
        self._stands_for_space: set[str] = set()  # the marks for which the text has a space that was not there
        self._loose: set[int] = set()
        pairs = partners(atoms)
        marks: list[Mark] = []
        parts: list[str] = []
        length, last, gap, beside = 0, "", -1, False
        for number, atom in enumerate(atoms):
            if atom.role is not Role.TEXT:
                other = pairs.get(number)
                pair = 0 if other is None else min(number, other) + 1
                if pair and atom.link:
                    self._loose.add(pair)
                marks.append(Mark(length, str(number), pair, bool(pair) and number + 1 != pair))
                gap = number if atom.gap and gap < 0 else gap
                beside = beside and atom.role is not Role.ALONE
                continue
            text = _SPACES.sub(" ", atom.text) if collapse else atom.text
            if not length:
                self.lead += text[: len(text) - len(text.lstrip())]
                text = text.lstrip()
            elif collapse and beside and last == " ":
                text = text.lstrip(" ")
            if not text:
                continue
            if gap >= 0 and length and not last.isspace() and not text[0].isspace():
                self._stands_for_space.add(str(gap))
                text = " " + text
            parts.append(text)
            length, last, gap, beside = length + len(text), text[-1], -1, True
        whole = "".join(parts)
        text = whole.rstrip()
        self.trail = whole[len(text) :]
        held = tuple(replace(mark, at=min(mark.at, len(text))) for mark in marks)
        self.segment = Segment(text, held, translate)
        # The marks that touch no word, with their places: they may stand for a word, and touch none later.
        self._free = {m.code: m.at for m in held if not (m.pair or atoms[int(m.code)].gap or _touches(text, m.at))}

    def atoms(self, translation: Segment) -> Iterator[str | Atom]:
        """The translation's text and marks in the order in which to write them."""
        if Counter(_names(translation.marks)) != Counter(_names(self.segment.marks)):
            raise ValueError(f"a translation with other marks: {translation.marks} for {self.segment.marks}")
        text, here = self.lead + translation.text + self.trail, 0
        before = last = ""
        free_at = -1  # of the free mark after which no text was written yet
        for mark in _in_order(translation.marks, self._loose):
            at = mark.at + len(self.lead) if mark.at > 0 else 0
            at = max(at, here) if mark.at < len(translation.text) else len(text)
            before, here = before + text[here:at], at
            if mark.code in self._stands_for_space:
                if text.startswith(" ", here):
                    here += 1
                elif before.endswith(" "):
                    before = before[:-1]
            was_at = self._free.get(mark.code, -1)
            if free_at >= 0 and (is_word(before[:1]) or (not before and was_at not in (-1, free_at))):
                before = " " + before
            last = before[-1:] or last
            if was_at >= 0 and is_word(last):
                before, last = before + " ", " "
            if before:
                yield before
                free_at = -1
            atom = self._atoms[int(mark.code)]
            free_at, last = (-1, "") if atom.gap else (max(free_at, was_at), last)
            before = ""
            yield atom
        if rest := before + text[here:]:
            yield " " + rest if free_at >= 0 and is_word(rest[0]) else rest


def _touches(text: str, at: int) -> bool:
    return is_word(text[at - 1 : at]) or is_word(text[at : at + 1])


def _names(marks: Iterable[Mark]) -> Iterator[tuple[str, int, bool]]:
    return ((mark.code, mark.pair, mark.closing) for mark in marks)


def _in_order(marks: Sequence[Mark], loose: set[int]) -> list[Mark]:
    """The order in which to write marks, pairs opening before they close and, but for the loose ones, nested."""
    places: dict[int, list[int]] = {}
    ordered = _loosened(sorted(marks, key=lambda mark: mark.at), loose)
    for mark in ordered:
        places.setdefault(mark.pair, []).append(mark.at)
    arranged: list[Mark] = []
    for at, here in groupby(ordered, key=lambda mark: mark.at):
        # A pair that ends where another one begins ends first: the two touch, they do not overlap.
        group = list(here)
        beginning = next((i for i, mark in enumerate(group) if mark.pair and places[mark.pair][-1] > at), len(group))
        ending = {mark for mark in group[beginning:] if mark.pair and places[mark.pair][0] < at}
        arranged += group[:beginning]
        arranged += sorted(group[beginning:], key=lambda mark: mark not in ending)
    return nested(arranged)


def _loosened(marks: list[Mark], loose: set[int]) -> list[Mark]:
    """Loose pairs as single marks, the opening one first."""
    opening = {mark.pair: mark for mark in marks if not mark.closing}
    closing = {mark.pair: mark for mark in marks if mark.closing}
    begun: set[int] = set()
    result: list[Mark] = []
    for mark in marks:
        if mark.pair in loose:
            chosen = (closing if mark.pair in begun else opening)[mark.pair]
            begun.add(mark.pair)
            mark = replace(chosen, at=mark.at, pair=0)
        result.append(mark)
    return result
