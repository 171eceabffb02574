"""The words of the demo corpus, from words.toml: people, things, clause patterns, and what needs context."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from docnmt.demo.language import ILS, JE, NOUS, PAST, TENSES, Adjective, Noun, Pattern, Phrase, verb

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
