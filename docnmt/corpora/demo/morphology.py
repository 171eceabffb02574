"""Word forms: French conjugation, agreement, elision and contraction, and the little that English needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

PAST, PRESENT, FUTURE = "past", "present", "future"
TENSES = (PAST, PRESENT, FUTURE)

# The persons that occur, in the order in which every table of forms below is written.
JE, NOUS, IL, ILS = range(4)

_PRESENT_ER = ("e", "ons", "e", "ent")
_IMPERFECT = ("ais", "ions", "ait", "aient")
_FUTURE = ("ai", "ons", "a", "ont")
_AVOIR = ("ai", "avons", "a", "ont")
_ETRE = ("suis", "sommes", "est", "sont")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase (or pronoun) in both languages, with what its verb and adjectives must agree with."""

    fr: str
    en: str
    gender: str = "m"
    person: int = IL
    # English may differ in number: "les vacances" but "the holiday".
    en_plural: bool | None = None

    @property
    def plural(self) -> bool:
        return self.person in (NOUS, ILS)

    @property
    def english_plural(self) -> bool:
        return self.plural if self.en_plural is None else self.en_plural


@dataclass(frozen=True, slots=True)
class Adjective:
    """French forms in the order masculine, feminine, masculine plural, feminine plural; one English form."""

    forms: tuple[str, str, str, str]
    en: str

    def french(self, noun: Phrase) -> str:
        return self.forms[(noun.gender == "f") + 2 * noun.plural]


def adjective(masculine: str, en: str, feminine: str = "") -> Adjective:
    """An adjective with regular plurals, and a regular feminine unless one is given."""
    if not feminine:
        feminine = masculine if masculine.endswith("e") else masculine + "e"
    plural = masculine if masculine[-1] in "sx" else masculine + "s"
    return Adjective((masculine, feminine, plural, feminine + "s"), en)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb pair. The French past is the passé composé, or the imparfait for verbs of state."""

    infinitive: str
    present: tuple[str, ...]
    past: tuple[str, ...]
    future: tuple[str, ...]
    agreeing_participle: str  # for verbs with être: agrees with the subject; empty otherwise
    en: str
    en_past: str
    en_ing: str  # empty for verbs of state, which have no progressive

    def french(self, subject: Phrase, tense: str) -> str:
        if tense == PRESENT:
            return self.present[subject.person]
        if tense == FUTURE:
            return self.future[subject.person]
        form = self.past[subject.person]
        if not self.agreeing_participle:
            return form
        ending = ("e" if subject.gender == "f" else "") + ("s" if subject.plural else "")
        return f"{form} {self.agreeing_participle}{ending}"

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
    english: str,
    *,
    present: str = "",
    participle: str = "",
    future: str = "",
    state: bool = False,
    with_etre: bool = False,
) -> Verb:
    """A verb from its principal parts; what is left out follows the regular verbs in -er.

    `english` is "base past" or "base past ing". `future` is the stem. `state` verbs put their past in the imparfait.
    """
    stem = infinitive[:-2]
    # "manger": the g stays soft in "mangeons".
    regular = tuple(stem + ("e" if stem[-1] == "g" and e[0] == "o" else "") + e for e in _PRESENT_ER)
    forms = tuple(present.split()) or regular
    future_stem = future or (infinitive if infinitive.endswith("r") else infinitive[:-1])
    if state:
        imperfect_stem = "ét" if infinitive == "être" else forms[NOUS].removesuffix("ons")
        past = tuple(imperfect_stem + e for e in _IMPERFECT)
    elif with_etre:
        past = _ETRE
    else:
        past = tuple(f"{auxiliary} {participle or stem + 'é'}" for auxiliary in _AVOIR)
    base, en_past, *ing = english.split()
    return Verb(
        infinitive,
        forms,
        past,
        tuple(future_stem + e for e in _FUTURE),
        (participle or stem + "é") if with_etre else "",
        base,
        en_past,
        ing[0] if ing else "",
    )


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


# The lexicon has no word with an aspirated h, so every h elides.
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
