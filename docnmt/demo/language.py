"""The language of the demo corpus: French conjugation, agreement, elision and contraction, the little that English
needs, and the words.

A clause is a pattern (a verb and what stands after it) whose open slots are filled with phrases.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

PAST, PRESENT, FUTURE = "past", "present", "future"
TENSES = (PAST, PRESENT, FUTURE)

# The persons that occur, in the order of every list of forms.
JE, NOUS, IL, ILS = range(4)

_AVOIR = ("ai", "avons", "a", "ont")
_ETRE = ("suis", "sommes", "est", "sont")
_IMPERFECT = ("ais", "ions", "ait", "aient")
_FUTURE = ("ai", "ons", "a", "ont")
# Regular verbs, by the end of their infinitive: the endings of the present, and of the participle.
_REGULAR = {
    "er": (("e", "ons", "e", "ent"), "é"),
    "re": (("s", "ons", "", "ent"), "u"),
    "ir": (("is", "issons", "it", "issent"), "i"),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase (or pronoun) in both languages, with what its verb and adjectives must agree with."""

    fr: str
    en: str
    gender: str = "m"
    person: int = IL
    en_plural: bool | None = None  # where English differs in number: "les vacances" but "the holiday"

    @property
    def plural(self) -> bool:
        return self.person in (NOUS, ILS)

    @property
    def english_plural(self) -> bool:
        return self.plural if self.en_plural is None else self.en_plural


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun without its determiner. More than one English word: the translation depends on context."""

    fr: str
    en: tuple[str, ...]
    gender: str
    plural: bool
    en_plural: bool
    topic: bool  # can be talked about but not, say, looked for: "the weather"

    def phrases(self, determiner: str) -> tuple[Phrase, ...]:
        """One phrase for each English word, the French the same in all; `determiner` is a key of _DETERMINERS."""
        forms, singular, plural = _DETERMINERS[determiner]
        fr = f"{forms[2 if self.plural else self.gender == 'f']} {self.fr}"
        en, person = plural if self.en_plural else singular, ILS if self.plural else IL
        return tuple(Phrase(fr, f"{en} {word}", self.gender, person, self.en_plural) for word in self.en)


_SON = ("son", "sa", "ses")
_DETERMINERS = {  # French masculine, feminine, plural; English singular, plural
    "le": (("le", "la", "les"), "the", "the"),
    "ce": (("ce", "cette", "ces"), "this", "these"),
    "his": (_SON, "his", "his"),
    "her": (_SON, "her", "her"),
    "its": (_SON, "its", "its"),
}


@dataclass(frozen=True, slots=True)
class Adjective:
    masculine: str
    en: str
    feminine: str = ""  # where it is irregular

    def french(self, noun: Phrase) -> str:
        form = self.masculine
        if noun.gender == "f":
            form = self.feminine or form.removesuffix("e") + "e"
        return form + "s" if noun.plural and form[-1] not in "sx" else form


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb pair. The French past is the passé composé, or the imparfait for verbs of state."""

    infinitive: str
    forms: Mapping[str, Sequence[str]]  # tense -> one for each person
    agrees: bool  # the participle, with the subject: verbs with être
    en: str
    en_past: str
    en_ing: str  # empty for verbs that have no progressive ("I prefer", not "I am preferring")

    def french(self, subject: Phrase, tense: str) -> str:
        form = self.forms[tense][subject.person]
        if self.agrees and tense == PAST:
            form += "e" * (subject.gender == "f") + "s" * subject.plural
        return form

    def english(self, subject: Phrase, tense: str) -> str:
        if tense == FUTURE:
            return f"will {self.en}"
        if self.en == "be":
            return _be(subject, tense)
        if tense == PAST:
            return self.en_past
        if self.en_ing:
            return f"{_be(subject, PRESENT)} {self.en_ing}"
        singular_third = subject.person in (IL, ILS) and not subject.english_plural
        return _third_person(self.en) if singular_third else self.en


def verb(
    infinitive: str,
    en: str,
    present: str = "",
    participle: str = "",
    future: str = "",
    state: bool = False,
    with_etre: bool = False,
) -> Verb:
    """A verb from its principal parts, of which those left out are regular.

    `en` is "base past" or "base past ing", `future` the stem. `state` verbs put their past in the imparfait.
    """
    stem, (endings, participle_ending) = infinitive[:-2], _REGULAR[infinitive[-2:]]
    # "manger": the g stays soft in "mangeons".
    regular = [stem + "e" * (stem[-1] == "g" and ending[:1] == "o") + ending for ending in endings]
    forms = present.split() or regular
    future_stem = future or infinitive.removesuffix("e")
    if state:
        imperfect_stem = "ét" if infinitive == "être" else forms[NOUS].removesuffix("ons")
        past = [imperfect_stem + ending for ending in _IMPERFECT]
    else:
        participle = participle or stem + participle_ending
        past = [f"{auxiliary} {participle}" for auxiliary in (_ETRE if with_etre else _AVOIR)]
    by_tense = {PAST: past, PRESENT: forms, FUTURE: [future_stem + ending for ending in _FUTURE]}
    base, en_past, *ing = en.split()
    return Verb(infinitive, by_tense, with_etre, base, en_past, "".join(ing))


def _be(subject: Phrase, tense: str) -> str:
    plural = subject.english_plural
    if tense == PAST:
        return "were" if plural else "was"
    return "am" if subject.person == JE else "are" if plural else "is"


def _third_person(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A clause with its slots open: {x} is a noun phrase, {a} an adjective, fixed or open."""

    verb: Verb
    fr: str
    en: str
    tenses: tuple[str, ...]
    adjective: Adjective | None = None

    @property
    def name(self) -> str:
        fixed = self.fr if self.adjective is None else self.fr.replace("{a}", self.adjective.masculine)
        return f"{self.verb.infinitive} {fixed}"


@dataclass(frozen=True, slots=True)
class Clause:
    """A pattern with its slots filled."""

    pattern: Pattern
    tense: str
    subject: Phrase
    x: Phrase | None = None
    adjective: Adjective | None = None

    def french(self) -> str:
        quality = self.adjective or self.pattern.adjective
        # "je trouve Marie fière": an adjective goes with the object if there is one.
        described = self.x or self.subject
        after = self.pattern.fr.format(x=self.x.fr if self.x else "", a=quality.french(described) if quality else "")
        return f"{self.subject.fr} {self.pattern.verb.french(self.subject, self.tense)} {after}"

    def english(self) -> str:
        quality = self.adjective or self.pattern.adjective
        after = self.pattern.en.format(x=self.x.en if self.x else "", a=quality.en if quality else "")
        return f"{self.subject.en} {self.pattern.verb.english(self.subject, self.tense)} {after}"


# No word of the corpus has an aspirated h, so every h elides.
_VOWEL = "(?=[aeiouâàéèêëîïôûœhAEIOUÉH])"
_ELISION = re.compile(rf"\b(je|le|la|de|que|ne) {_VOWEL}")
_BEFORE_VOWEL = re.compile(rf"\b(ce|ma|sa) {_VOWEL}")
_BEFORE_VOWEL_FORMS = {"ce": "cet", "ma": "mon", "sa": "son"}
# Elision comes first: "de le avocat" is "de l'avocat", never "du avocat".
_CONTRACTION = re.compile(r"\b(de|à) (les?)\b(?!')")
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


@lru_cache(maxsize=64)  # the readings of an ambiguous sentence share their French, one right after the other
def french_surface(words: str) -> str:
    """Words in their full forms to running French: "je ai parlé de le vol" to "J'ai parlé du vol."."""
    words = _BEFORE_VOWEL.sub(lambda m: _BEFORE_VOWEL_FORMS[m[1]] + " ", words)
    words = _ELISION.sub(lambda m: m[1][:-1] + "'", words)
    words = _CONTRACTION.sub(lambda m: _CONTRACTED[m[1], m[2]], words)
    return sentence_case(words)


def sentence_case(words: str) -> str:
    return words[0].upper() + words[1:] + "."


# ---- the words, from words.toml: people, things, clause patterns, and what needs context ----

_WORDS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _phrases(table: str, gender: str) -> tuple[Phrase, ...]:
    return tuple(Phrase(fr, en, gender) for fr, en in _WORDS[table].items())


def _noun(fr: str, traits: str, *en: str) -> Noun:
    gender, *others = traits.split()
    plural = "plural" in others
    en_plural = "english-plural" in others or (plural and "english-singular" not in others)
    return Noun(fr, en, gender, plural, en_plural, "topic" in others)


def _nouns(table: str) -> tuple[Noun, ...]:
    return tuple(_noun(fr, *row) for fr, row in _WORDS[table].items())


# None of these subjects can be what il, elle, son, sa or ses refers to, so they may stand near any of those.
OTHER_PEOPLE = (
    Phrase("mes amis", "my friends", person=ILS),
    Phrase("mes cousins", "my cousins", person=ILS),
    Phrase("les enfants", "the children", person=ILS),
)
PLAIN_SUBJECTS = (Phrase("je", "I", person=JE), Phrase("nous", "we", person=NOUS), *OTHER_PEOPLE)
EVERYONE = Phrase("tout le monde", "everyone")
# The second half of the negation rides on the subject: "personne n'a fait confiance à Paul".
NO_ONE = Phrase("personne ne", "no one")

MEN, WOMEN = _phrases("men", "m"), _phrases("women", "f")
MASCULINE_THINGS, FEMININE_THINGS = _phrases("masculine_things", "m"), _phrases("feminine_things", "f")
ORGANISATIONS = _phrases("masculine_organisations", "m") + _phrases("feminine_organisations", "f")
PLURAL_THINGS, PLURAL_DETERMINERS = _nouns("plural_things"), tuple(_WORDS["plural_determiners"].items())
COLOURS = tuple(Adjective(fr, *row) for fr, row in _WORDS["colours"].items())

# ---- what the five phenomena are about ----

# sense: each noun, and for each English word the domains in which it is the right one
SENSES: tuple[tuple[Noun, tuple[tuple[str, ...], ...]], ...] = tuple(
    (_noun(fr, traits, *readings), tuple(map(tuple, readings.values())))
    for fr, (traits, readings) in _WORDS["senses"].items()
)
# pronoun: French form -> the pronoun of each reading, with its antecedents
PRONOUNS: dict[str, tuple[tuple[Phrase, tuple[Phrase, ...]], ...]] = {
    "il": ((Phrase("il", "he"), MEN), (Phrase("il", "it"), MASCULINE_THINGS)),
    "elle": ((Phrase("elle", "she", "f"), WOMEN), (Phrase("elle", "it", "f"), FEMININE_THINGS)),
}
# possessive: what is owned, and by whom
POSSESSED = _nouns("possessed")
POSSESSORS = (("his", MEN), ("her", WOMEN), ("its", ORGANISATIONS))
# cohesion: the British word and the American word; the places decide
BRITISH_AMERICAN = _nouns("british_american")
PLACES = (_phrases("british_places", "f"), _phrases("american_places", "f"))
# emotion: the word of a kind speaker, the word of a hostile one
TONED = tuple(
    (Adjective(fr, kind, *feminine), Adjective(fr, hostile, *feminine))
    for fr, (kind, hostile, *feminine) in _WORDS["toned"].items()
)

# ---- clauses, and what stands around them ----

_VERBS = {
    infinitive: verb(infinitive, **({"en": parts} if isinstance(parts, str) else parts))
    for infinitive, parts in _WORDS["verbs"].items()
}


def _pattern(tenses: str, infinitive: str, fr: str, en: str, adjective: str = "") -> Pattern:
    fixed = Adjective(adjective, *_WORDS["adjectives"][adjective]) if adjective else None
    return Pattern(_VERBS[infinitive], fr, en, TENSES if tenses == "any" else tuple(tenses.split()), fixed)


PATTERNS = {name: tuple(_pattern(*row) for row in rows) for name, rows in _WORDS["patterns"].items()}
PATTERNS["about_a_thing"] = PATTERNS["about_a_topic"] + PATTERNS["about_a_thing"]
DOMAIN_CUES = {domain: tuple(_pattern(PAST, *row) for row in rows) for domain, rows in _WORDS["cues"].items()}

OPENINGS = tuple(_WORDS["openings"].items())
CLOSINGS = {tense: tuple(closings.items()) for tense, closings in _WORDS["closings"].items()}
