"""Which French sentences the demo's language has, and what they can mean in it.

What is shown to newcomers (README, docstrings, the page) has to be said in these words: the demo's model knows no
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from docnmt.demo import language
from docnmt.demo.language import CLOSINGS, OPENINGS, PATTERNS, Adjective, Clause, Pattern, Phrase
from docnmt.demo.phenomena import Frame, build

PEOPLE = (*language.MEN, *language.WOMEN)
THINGS = (*language.MASCULINE_THINGS, *language.FEMININE_THINGS)


def meanings(french: str) -> set[str]:
    """Every translation that the grammar has for a sentence; none where it is not in the demo's language."""
    found = set()
    for pattern, subject, thing, quality in _clauses(french):
        for tense in pattern.tenses:
            if pattern.verb.french(subject, tense) not in french:
                continue
            clause = Clause(pattern, tense, subject, thing, quality)
            for opening, closing in product(range(len(OPENINGS)), range(len(CLOSINGS[tense]))):
                if french.endswith(f"{CLOSINGS[tense][closing][0]}."):
                    sentence = build(Frame(opening, pattern, tense, closing), clause)
                    if sentence.source == french:
                        found.add(sentence.target)
    return found


def _clauses(french: str) -> Iterator[tuple[Pattern, Phrase, Phrase | None, Adjective | None]]:
    """Those of the grammar that may be the sentence's."""

    def said(phrases: Sequence[Phrase]) -> list[Phrase]:
        return [phrase for phrase in phrases if phrase.fr.split()[-1] in french]

    plain, anybody = language.PLAIN_SUBJECTS, (*language.PLAIN_SUBJECTS, *PEOPLE)
    others = (*language.OTHER_PEOPLE, language.EVERYONE)
    nouns = [(n, d) for n, _ in language.SENSES for d in ("le", "ce")]
    nouns += [(n, d) for n in language.POSSESSED for d in ("his", "her", "its")]
    nouns += [(n, "le") for n in language.BRITISH_AMERICAN]
    yield from product(PATTERNS["passing_time"], anybody, (None,), (None,))
    yield from product(PATTERNS["dealing_with_things"], anybody, said((*THINGS, *_several_things())), (None,))
    for cues in language.DOMAIN_CUES.values():
        yield from product(cues, plain, (None,), (None,))
    for noun, determiner in nouns:
        about = PATTERNS["about_a_topic"] if noun.topic else PATTERNS["about_a_thing"]
        phrases = said(noun.phrases(determiner))
        yield from product(about, plain, phrases, (None,))
        yield from product(PATTERNS["of_anything"], phrases, (None,), (None,))
    pronouns = [pronoun for readings in language.PRONOUNS.values() for pronoun, _ in readings]
    yield from product(PATTERNS["of_person_or_thing"], pronouns, (None,), (None,))
    yield from product(PATTERNS["introducing"], plain, said((*PEOPLE, *THINGS, *language.ORGANISATIONS)), (None,))
    yield from product(PATTERNS["setting"], plain, said([p for side in language.PLACES for p in side]), (None,))
    yield from product(PATTERNS["character"], said(PEOPLE), (None,), [a for pair in language.TONED for a in pair])
    yield from product((*PATTERNS["liking"], *PATTERNS["disliking"]), others, said(PEOPLE), (None,))
    yield from product((*PATTERNS["being_kind"], *PATTERNS["being_unkind"]), said(PEOPLE), (None,), (None,))
    yield from product(PATTERNS["trusting"], (language.NO_ONE,), said(PEOPLE), (None,))


def _several_things() -> Iterator[Phrase]:
    for noun, (french, english) in product(language.PLURAL_THINGS, language.PLURAL_DETERMINERS):
        (bare,) = noun.phrases("le")
        for colour in (None, *language.COLOURS):
            fr = noun.fr if colour is None else f"{noun.fr} {colour.french(bare)}"
            en = noun.en[0] if colour is None else f"{colour.en} {noun.en[0]}"
            yield Phrase(f"{french} {fr}", f"{english} {en}", noun.gender, bare.person)
