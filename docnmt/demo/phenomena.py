"""The phenomena: for each, a cue sentence and a sentence whose translation the cue decides.

The ambiguous sentence is made first, with the translation of every reading; only then is a reading picked, the one
that this French sentence has had least often, and a cue for it. So the sentence itself can tell nothing about it.
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from docnmt.demo import language
from docnmt.demo.language import (
    CLOSINGS,
    OPENINGS,
    PATTERNS,
    Clause,
    Noun,
    Pattern,
    Phrase,
    french_surface,
    sentence_case,
)

# ---- sentences: an opening, a clause and a closing ----

# A frame is such a combination with the clause's slots open. The splits share no frame, but every opening, clause and
# closing, and every pair of them, occurs in training: what a test sentence asks for is new, its parts are not.

SPLITS = ("train", "dev", "test")
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


def build(frame: Frame, clause: Clause) -> Sentence:
    """The sentence that a frame and a clause make."""
    fr_opening, en_opening = OPENINGS[frame.opening]
    fr_closing, en_closing = CLOSINGS[frame.tense][frame.closing]
    source = french_surface(f"{fr_opening} {clause.french()} {fr_closing}".strip())
    target = sentence_case(f"{en_opening} {clause.english()} {en_closing}".strip())
    return Sentence(source, target, frame.id)


# ---- cues, and the sentences that need them ----

_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """An ambiguous sentence, read in one way: the word for it and the sentence for it."""

    word: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Unit:
    """A cue, and the sentence that needs it."""

    cue: Sentence
    right: Reading
    wrong: tuple[Reading, ...]


class Author:
    """Writes the sentences of one split."""

    def __init__(self, split: str, rng: random.Random) -> None:
        self.split, self.rng = split, rng
        self._used: Counter[tuple[str, int]] = Counter()  # (French sentence or ambiguous word, reading)
        self.new_document()

    def new_document(self) -> None:
        self._mentioned: set[str] = set()
        self._term: tuple[Noun, int] | None = None  # and the side of the Atlantic that the document is set on

    def plain(self, *, nobody: bool) -> Sentence:
        """A sentence that needs no context; with `nobody`, one in which no single person or thing occurs."""
        subject = self.rng.choice(language.PLAIN_SUBJECTS if nobody else (*language.MEN, *language.WOMEN))
        if self.rng.random() < 0.4:
            return self._say(self.rng.choice(PATTERNS["passing_time"]), subject)
        if nobody or self.rng.random() < 0.5:
            thing = self._plural_things()
        else:
            thing = self.rng.choice(language.MASCULINE_THINGS + language.FEMININE_THINGS)
        return self._say(self.rng.choice(PATTERNS["dealing_with_things"]), subject, thing)

    # ---- the phenomena ----

    def sense(self) -> Unit:
        noun, domains = self.rng.choice([sense for sense in language.SENSES if sense[0].fr not in self._mentioned])
        self._mentioned.add(noun.fr)
        determiner = self.rng.choice(("le", "le", "ce"))
        readings = self._read_noun(noun, noun.phrases(determiner), noun.en)
        right = self._pick(noun.fr, readings)
        cue = self.rng.choice(language.DOMAIN_CUES[self.rng.choice(domains[right])])
        return _unit(self._say(cue, self._someone()), readings, right)

    def pronoun(self) -> Unit:
        form = self.rng.choice(tuple(language.PRONOUNS))
        pronouns, antecedents = zip(*language.PRONOUNS[form], strict=True)
        pattern = self.rng.choice(PATTERNS["of_person_or_thing"])
        frame = choose_frame(self.rng, self.split, pattern)
        readings = [Reading(p.en, build(frame, Clause(pattern, frame.tense, p))) for p in pronouns]
        right = self._pick(form, readings)
        return _unit(self._introduce(antecedents[right]), readings, right)

    def possessive(self) -> Unit:
        noun = self.rng.choice(language.POSSESSED)
        owners = [word for word, _ in language.POSSESSORS]
        readings = self._read_noun(noun, [noun.phrases(word)[0] for word in owners], owners)
        right = self._pick(noun.fr, readings)
        return _unit(self._introduce(language.POSSESSORS[right][1]), readings, right)

    def cohesion(self) -> Unit:
        """A document keeps to the term, and to the side of the Atlantic, that it first drew."""
        if self._term is None:
            term = self.rng.choice(language.BRITISH_AMERICAN)
            self._term = term, self._least_used([term.fr], len(term.en))
        term, right = self._term
        readings = self._read_noun(term, term.phrases("le"), term.en)
        self._note(term.fr, readings, right)
        place = self.rng.choice(language.PLACES[right])
        cue = self._say(self.rng.choice(PATTERNS["setting"]), self._someone(), place)
        return _unit(cue, readings, right)

    def emotion(self) -> Unit:
        adjectives = self.rng.choice(language.TONED)
        person = self._fresh(language.MEN + language.WOMEN)
        pattern = self.rng.choice(PATTERNS["character"])
        frame = choose_frame(self.rng, self.split, pattern)
        readings = [Reading(a.en, build(frame, Clause(pattern, frame.tense, person, adjective=a))) for a in adjectives]
        right = self._pick(adjectives[0].masculine, readings)
        return _unit(self._tone(person, kind=right == 0), readings, right)

    # ---- what they share ----

    def _say(self, pattern: Pattern, subject: Phrase, x: Phrase | None = None) -> Sentence:
        while True:
            frame = choose_frame(self.rng, self.split, pattern)
            sentence = build(frame, Clause(pattern, frame.tense, subject, x))
            # "We saw Paul." is no sentence to learn from; another frame makes it longer.
            if min(sentence.source.count(" "), sentence.target.count(" ")) >= _FEWEST_WORDS - 1:
                return sentence

    def _someone(self) -> Phrase:
        return self.rng.choice(language.PLAIN_SUBJECTS)

    def _plural_things(self) -> Phrase:
        noun = self.rng.choice(language.PLURAL_THINGS)
        fr_determiner, en_determiner = self.rng.choice(language.PLURAL_DETERMINERS)
        (bare,) = noun.phrases("le")
        fr, en = f"{fr_determiner} {noun.fr}", noun.en[0]
        if self.rng.random() < 0.5:
            colour = self.rng.choice(language.COLOURS)
            fr, en = f"{fr} {colour.french(bare)}", f"{colour.en} {en}"
        return Phrase(fr, f"{en_determiner} {en}", noun.gender, bare.person)

    def _read_noun(self, noun: Noun, phrases: Sequence[Phrase], translations: Sequence[str]) -> list[Reading]:
        """The same sentence about each of the phrases, which differ in English only."""
        of_anything = PATTERNS["of_anything"]
        pattern = self.rng.choice(PATTERNS["about_a_topic" if noun.topic else "about_a_thing"] + of_anything)
        frame = choose_frame(self.rng, self.split, pattern)
        if pattern in of_anything:
            clauses = [Clause(pattern, frame.tense, phrase) for phrase in phrases]
        else:
            subject = self._someone()
            clauses = [Clause(pattern, frame.tense, subject, phrase) for phrase in phrases]
        return [Reading(word, build(frame, clause)) for word, clause in zip(translations, clauses, strict=True)]

    def _introduce(self, candidates: Sequence[Phrase]) -> Sentence:
        """Bring one of the candidates into the story."""
        return self._say(self.rng.choice(PATTERNS["introducing"]), self._someone(), self._fresh(candidates))

    def _fresh(self, candidates: Sequence[Phrase]) -> Phrase:
        """One that this document has not yet made a point of: nobody is admired here and despised there."""
        phrase = self.rng.choice([c for c in candidates if c.fr not in self._mentioned])
        self._mentioned.add(phrase.fr)
        return phrase

    def _tone(self, person: Phrase, *, kind: bool) -> Sentence:
        """Show how people feel about a person."""
        anyone = language.EVERYONE if self.rng.random() < 0.4 else self.rng.choice(language.OTHER_PEOPLE)
        felt, done = ("liking", "being_kind") if kind else ("disliking", "being_unkind")
        deeds: list[tuple[Pattern, Phrase, Phrase | None]] = [(deed, anyone, person) for deed in PATTERNS[felt]]
        deeds += [(deed, person, None) for deed in PATTERNS[done]]
        if not kind:
            deeds += [(deed, language.NO_ONE, person) for deed in PATTERNS["trusting"]]
        return self._say(*self.rng.choice(deeds))

    def _pick(self, item: str, readings: Sequence[Reading]) -> int:
        right = self._least_used([readings[0].sentence.source, item], len(readings))
        self._note(item, readings, right)
        return right

    def _note(self, item: str, readings: Sequence[Reading], right: int) -> None:
        self._used[readings[0].sentence.source, right] += 1
        self._used[item, right] += 1

    def _least_used(self, keys: Sequence[str], readings: int) -> int:
        """The reading used least often by the first key; ties go to the next key, and in the end to chance."""
        return min(range(readings), key=lambda r: (*(self._used[key, r] for key in keys), self.rng.random()))


def _unit(cue: Sentence, readings: Sequence[Reading], right: int) -> Unit:
    standing = [Reading(_as_it_stands(r.word, r.sentence.target), r.sentence) for r in readings]
    return Unit(cue, standing[right], tuple(r for i, r in enumerate(standing) if i != right))


def _as_it_stands(word: str, target: str) -> str:
    """The word with the capital it has if it begins the sentence."""
    return word if re.search(rf"\b{word}\b", target) else word[0].upper() + word[1:]
