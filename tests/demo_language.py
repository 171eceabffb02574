"""Which French sentences the demo's language has, and what they can mean in it.

What is shown to newcomers (README, docstrings, the page) has to be said in these words: the demo's model knows no
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from docnmt.demo import lexicon, patterns
from docnmt.demo.language import Adjective, Phrase
from docnmt.demo.patterns import Clause, Pattern
from docnmt.demo.sentences import CLOSINGS, OPENINGS, Frame, build

PEOPLE = (*lexicon.MEN, *lexicon.WOMEN)
THINGS = (*lexicon.MASCULINE_THINGS, *lexicon.FEMININE_THINGS)


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

    plain, anybody = lexicon.PLAIN_SUBJECTS, (*lexicon.PLAIN_SUBJECTS, *PEOPLE)
    others = (*lexicon.OTHER_PEOPLE, lexicon.EVERYONE)
    nouns = [(n, d) for n, _ in lexicon.SENSES for d in ("le", "ce")]
    nouns += [(n, d) for n in lexicon.POSSESSED for d in ("his", "her", "its")]
    nouns += [(n, "le") for n in lexicon.BRITISH_AMERICAN]
    yield from product(patterns.PASSING_TIME, anybody, (None,), (None,))
    yield from product(patterns.DEALING_WITH_THINGS, anybody, said((*THINGS, *_several_things())), (None,))
    for cues in patterns.DOMAIN_CUES.values():
        yield from product(cues, plain, (None,), (None,))
    for noun, determiner in nouns:
        about = patterns.ABOUT_A_TOPIC if noun.topic else patterns.ABOUT_A_THING
        phrases = said(noun.phrases(determiner))
        yield from product(about, plain, phrases, (None,))
        yield from product(patterns.OF_ANYTHING, phrases, (None,), (None,))
    pronouns = [pronoun for readings in lexicon.PRONOUNS.values() for pronoun, _ in readings]
    yield from product(patterns.OF_PERSON_OR_THING, pronouns, (None,), (None,))
    yield from product(patterns.INTRODUCING, plain, said((*PEOPLE, *THINGS, *lexicon.ORGANISATIONS)), (None,))
    yield from product(patterns.SETTING, plain, said([p for side in lexicon.PLACES for p in side]), (None,))
    yield from product(patterns.CHARACTER, said(PEOPLE), (None,), [a for pair in lexicon.TONED for a in pair])
    yield from product((*patterns.LIKING, *patterns.DISLIKING), others, said(PEOPLE), (None,))
    yield from product((patterns.BEING_KIND, *patterns.BEING_UNKIND), said(PEOPLE), (None,), (None,))
    yield from product((patterns.TRUSTING,), (lexicon.NO_ONE,), said(PEOPLE), (None,))


def _several_things() -> Iterator[Phrase]:
    for noun, (french, english) in product(lexicon.PLURAL_THINGS, lexicon.PLURAL_DETERMINERS):
        (bare,) = noun.phrases("le")
        for colour in (None, *lexicon.COLOURS):
            fr = noun.fr if colour is None else f"{noun.fr} {colour.french(bare)}"
            en = noun.en[0] if colour is None else f"{colour.en} {noun.en[0]}"
            yield Phrase(f"{french} {fr}", f"{english} {en}", noun.gender, bare.person)
