"""The phenomena: for each, a cue sentence and a sentence whose translation the cue decides.

The ambiguous sentence is made first, with the translation of every reading; only then is a reading picked, the one
that this French sentence has had least often, and a cue for it. So the sentence itself can tell nothing about it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from docnmt.demo import lexicon, patterns
from docnmt.demo.language import Phrase
from docnmt.demo.patterns import Clause, Pattern
from docnmt.demo.sentences import Sentence, build, choose_frame

_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Setting:
    """A document's side of the Atlantic, and the term it keeps to."""

    term: lexicon.Noun
    reading: int


@dataclass(frozen=True, slots=True)
class Reading:
    """An ambiguous sentence, read in one way: the word for it and the sentence for it."""

    word: str
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Unit:
    """A cue, and the sentence that needs it."""

    phenomenon: str
    cue: Sentence
    right: Reading
    wrong: tuple[Reading, ...]


class Author:
    """Writes the sentences of one split."""

    def __init__(self, split: str, rng: random.Random) -> None:
        self.split, self.rng = split, rng
        self._mentioned: set[str] = set()
        self._used: Counter[tuple[str, int]] = Counter()  # (French sentence or ambiguous word, reading)

    def new_document(self) -> None:
        self._mentioned.clear()

    # --- sentences that need no context -----------------------------------------------------------------------------

    def plain(self, *, nobody: bool) -> Sentence:
        """An ordinary sentence; with `nobody`, one in which no single person or thing occurs."""
        subject = self.rng.choice(lexicon.PLAIN_SUBJECTS if nobody else (*lexicon.MEN, *lexicon.WOMEN))
        if self.rng.random() < 0.4:
            return self._say(self.rng.choice(patterns.PASSING_TIME), subject)
        if nobody or self.rng.random() < 0.5:
            thing = self._plural_things()
        else:
            thing = self.rng.choice(lexicon.MASCULINE_THINGS + lexicon.FEMININE_THINGS)
        return self._say(self.rng.choice(patterns.DEALING_WITH_THINGS), subject, thing)

    def _plural_things(self) -> Phrase:
        noun = self.rng.choice(lexicon.PLURAL_THINGS)
        fr_determiner, en_determiner = self.rng.choice(lexicon.PLURAL_DETERMINERS)
        bare = noun.phrases("le")[0]
        fr, en = f"{fr_determiner} {noun.fr}", noun.en[0]
        if self.rng.random() < 0.5:
            colour = self.rng.choice(lexicon.COLOURS)
            fr, en = f"{fr} {colour.french(bare)}", f"{colour.en} {en}"
        return Phrase(fr, f"{en_determiner} {en}", noun.gender, bare.person)

    def _say(self, pattern: Pattern, subject: Phrase, x: Phrase | None = None) -> Sentence:
        while True:
            frame = choose_frame(self.rng, self.split, pattern)
            sentence = build(frame, Clause(pattern, frame.tense, subject, x))
            # "We saw Paul." is no sentence to learn from; another frame makes it longer.
            if min(sentence.source.count(" "), sentence.target.count(" ")) >= _FEWEST_WORDS - 1:
                return sentence

    def _someone(self) -> Phrase:
        return self.rng.choice(lexicon.PLAIN_SUBJECTS)

    # --- the phenomena ------------------------------------------------------------------------------------------------

    def sense(self) -> Unit:
        noun, domains = self.rng.choice([sense for sense in lexicon.SENSES if sense[0].fr not in self._mentioned])
        self._mentioned.add(noun.fr)
        determiner = self.rng.choice(("le", "le", "ce"))
        readings = self._read_noun(noun, noun.phrases(determiner), noun.en)
        right = self._pick(noun.fr, readings)
        cue = self.rng.choice(patterns.DOMAIN_CUES[self.rng.choice(domains[right])])
        return _unit("sense", self._say(cue, self._someone()), readings, right)

    def pronoun(self) -> Unit:
        form = self.rng.choice(tuple(lexicon.PRONOUNS))
        pronouns = [pronoun for pronoun, _ in lexicon.PRONOUNS[form]]
        pattern = self.rng.choice(patterns.OF_PERSON_OR_THING)
        frame = choose_frame(self.rng, self.split, pattern)
        readings = [Reading(p.en, build(frame, Clause(pattern, frame.tense, p))) for p in pronouns]
        right = self._pick(form, readings)
        return _unit("pronoun", self._introduce(lexicon.PRONOUNS[form][right][1]), readings, right)

    def possessive(self) -> Unit:
        noun = self.rng.choice(lexicon.POSSESSED)
        owners = [word for word, _ in lexicon.POSSESSORS]
        readings = self._read_noun(noun, [noun.phrases(word)[0] for word in owners], owners)
        right = self._pick(noun.fr, readings)
        return _unit("possessive", self._introduce(lexicon.POSSESSORS[right][1]), readings, right)

    def cohesion(self, setting: Setting) -> Unit:
        readings = self._read_noun(setting.term, setting.term.phrases("le"), setting.term.en)
        self._note(setting.term.fr, readings, setting.reading)
        place = self.rng.choice(lexicon.PLACES[setting.reading])
        cue = self._say(self.rng.choice(patterns.SETTING), self._someone(), place)
        return _unit("cohesion", cue, readings, setting.reading)

    def new_setting(self) -> Setting:
        term = self.rng.choice(lexicon.BRITISH_AMERICAN)
        return Setting(term, self._least_used([term.fr], len(term.en)))

    def emotion(self) -> Unit:
        adjectives = self.rng.choice(lexicon.TONED)
        person = self._fresh(lexicon.MEN + lexicon.WOMEN)
        pattern = self.rng.choice(patterns.CHARACTER)
        frame = choose_frame(self.rng, self.split, pattern)
        readings = [Reading(a.en, build(frame, Clause(pattern, frame.tense, person, adjective=a))) for a in adjectives]
        right = self._pick(adjectives[0].forms[0], readings)
        return _unit("emotion", self._tone(person, kind=right == 0), readings, right)

    # --- what they share ----------------------------------------------------------------------------------------------

    def _read_noun(self, noun: lexicon.Noun, phrases: Sequence[Phrase], words: Sequence[str]) -> list[Reading]:
        """The same sentence about each of the phrases, which differ in English only."""
        objects = patterns.ABOUT_A_TOPIC if noun.topic else patterns.ABOUT_A_THING
        pattern = self.rng.choice(objects + patterns.OF_ANYTHING)
        frame = choose_frame(self.rng, self.split, pattern)
        if pattern in patterns.OF_ANYTHING:
            clauses = [Clause(pattern, frame.tense, phrase) for phrase in phrases]
        else:
            subject = self._someone()
            clauses = [Clause(pattern, frame.tense, subject, phrase) for phrase in phrases]
        return [Reading(word, build(frame, clause)) for word, clause in zip(words, clauses, strict=True)]

    def _introduce(self, candidates: Sequence[Phrase]) -> Sentence:
        """Bring one of the candidates into the story."""
        return self._say(self.rng.choice(patterns.INTRODUCING), self._someone(), self._fresh(candidates))

    def _fresh(self, candidates: Sequence[Phrase]) -> Phrase:
        """One that this document has not yet made a point of: nobody is admired here and despised there."""
        phrase = self.rng.choice([c for c in candidates if c.fr not in self._mentioned])
        self._mentioned.add(phrase.fr)
        return phrase

    def _tone(self, person: Phrase, *, kind: bool) -> Sentence:
        """Show how people feel about a person."""
        anyone = lexicon.EVERYONE if self.rng.random() < 0.4 else self.rng.choice(lexicon.OTHER_PEOPLE)
        if kind:
            deed = self.rng.choice((*patterns.LIKING, patterns.BEING_KIND))
        else:
            deed = self.rng.choice((*patterns.DISLIKING, *patterns.BEING_UNKIND, patterns.TRUSTING))
        if deed is patterns.TRUSTING:
            return self._say(deed, lexicon.NO_ONE, person)
        if deed is patterns.BEING_KIND or deed in patterns.BEING_UNKIND:
            return self._say(deed, person)
        return self._say(deed, anyone, person)

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


def _unit(phenomenon: str, cue: Sentence, readings: Sequence[Reading], right: int) -> Unit:
    standing = [Reading(_as_it_stands(r.word, r.sentence.target), r.sentence) for r in readings]
    return Unit(phenomenon, cue, standing[right], tuple(r for i, r in enumerate(standing) if i != right))


def _as_it_stands(word: str, target: str) -> str:
    """The word with the capital it has if it begins the sentence."""
    return word if re.search(rf"\b{word}\b", target) else word[0].upper() + word[1:]
