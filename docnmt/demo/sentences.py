"""Sentences: an opening, a clause and a closing; and which of these combinations belong to which split.

A frame is such a combination with the clause's slots open. The splits share no frame, but every opening, clause and
closing, and every pair of them, occurs in training: what a test sentence asks for is new, its parts are not.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from docnmt.demo.language import FUTURE, PAST, PRESENT, french_surface, sentence_case
from docnmt.demo.patterns import Clause, Pattern

SPLITS = ("train", "dev", "test")

_Adverbial = tuple[str, str]

OPENINGS: tuple[_Adverbial, ...] = (
    ("", ""),
    ("en fait,", "in fact,"),
    ("bien sûr,", "of course,"),
    ("pour être honnête,", "to be honest,"),
    ("comme tu le sais,", "as you know,"),
    ("je crois que", "I believe that"),
    ("tu sais que", "you know that"),
    ("je t'assure que", "I assure you that"),
)
CLOSINGS: dict[str, tuple[_Adverbial, ...]] = {
    PAST: (
        ("", ""),
        ("hier", "yesterday"),
        ("ce matin", "this morning"),
        ("hier soir", "last night"),
        ("la semaine dernière", "last week"),
        ("lundi dernier", "last Monday"),
        ("l'été dernier", "last summer"),
        ("ce jour-là", "that day"),
    ),
    PRESENT: (
        ("", ""),
        ("aujourd'hui", "today"),
        ("maintenant", "now"),
        ("en ce moment", "at the moment"),
        ("cette semaine", "this week"),
        ("ces jours-ci", "these days"),
        ("cet après-midi", "this afternoon"),
        ("ce soir", "tonight"),
    ),
    FUTURE: (
        ("", ""),
        ("demain", "tomorrow"),
        ("demain matin", "tomorrow morning"),
        ("ce soir", "tonight"),
        ("la semaine prochaine", "next week"),
        ("lundi prochain", "next Monday"),
        ("l'été prochain", "next summer"),
        ("bientôt", "soon"),
    ),
}
_CLASSES = 8  # as many as there are openings and as closings of a tense: the classes form a Latin square
_SPLIT_OF_CLASS = {0: "test", 1: "dev"}
# Most sentences are plain; the rest use each adverbial equally often.
_OPENING_WEIGHTS = (6, 1, 1, 1, 1, 1, 1, 1)
_CLOSING_WEIGHTS = (3, 1, 1, 1, 1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Frame:
    """A sentence pattern with its slots open."""

    opening: int
    pattern: Pattern
    tense: str
    closing: int

    @property
    def id(self) -> str:
        opening, closing = OPENINGS[self.opening][0], CLOSINGS[self.tense][self.closing][0]
        return f"{opening}|{self.pattern.name} [{self.tense}]|{closing}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, its translation, and the frame of both."""

    source: str
    target: str
    frame: str


def choose_frame(rng: random.Random, split: str, pattern: Pattern) -> Frame:
    """A tense, an opening and a closing for a pattern, out of the combinations that are `split`'s own."""
    tense = rng.choice(pattern.tenses)
    # crc32 and not hash(): the same in every process.
    shift = zlib.crc32(f"{pattern.name} {tense}".encode()) % _CLASSES
    combinations, weights = _combinations(split, shift)
    opening, closing = rng.choices(combinations, cum_weights=weights)[0]
    return Frame(opening, pattern, tense, closing)


def build(frame: Frame, clause: Clause) -> Sentence:
    """The sentence that a frame and a clause make."""
    fr_opening, en_opening = OPENINGS[frame.opening]
    fr_closing, en_closing = CLOSINGS[frame.tense][frame.closing]
    source = french_surface(f"{fr_opening} {clause.french()} {fr_closing}".strip())
    target = sentence_case(f"{en_opening} {clause.english()} {en_closing}".strip())
    return Sentence(source, target, frame.id)


@cache
def _combinations(split: str, shift: int) -> tuple[list[tuple[int, int]], list[int]]:
    """The (opening, closing) pairs of a split and their cumulative weights, for clauses with this shift.

    Opening + 3 x closing + shift, modulo 8, puts each opening and each closing of a clause once into each class
    (3 and 8 have no common factor), so no pair of parts is withheld from training.
    """
    pairs = [
        (opening, closing)
        for opening in range(_CLASSES)
        for closing in range(_CLASSES)
        if _SPLIT_OF_CLASS.get((opening + 3 * closing + shift) % _CLASSES, "train") == split
    ]
    return pairs, list(accumulate(_OPENING_WEIGHTS[o] * _CLOSING_WEIGHTS[c] for o, c in pairs))
