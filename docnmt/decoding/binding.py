"""Translations that have a glossary's terms.

Most have them of themselves. The others are searched for again with constraints. But a phrase that a model finds very
improbable, most of all a name it has never seen, throws it off its course: what it writes around the phrase makes no
sense. Its own translation does, with the phrase in the place of its own words for the term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docnmt.data.context import ContextRule
from docnmt.decoding.alignment import Links, Span, align
from docnmt.decoding.beam import Hypothesis
from docnmt.decoding.constraints import Constraints, Tracker
from docnmt.decoding.phrases import Phrase, missing, with_capital
from docnmt.decoding.results import Options
from docnmt.decoding.units import Unit, batches
from docnmt.text.scripts import in_word

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator

# By so much a phrase may lower the log-probability of a translation. Of 6 to 12 this was best on a small French-English
# model with terms taken from references; invented names all lower it by more.
FOREIGN = 10.0


@dataclass(frozen=True)
class Binding:
    translator: Translator
    rule: ContextRule | None
    options: Options

    def bind(self, units: Sequence[Unit]) -> None:
        """Gives units new translations where theirs lack something."""
        lacking = [(unit, lacks) for unit in units if unit.phrases and (lacks := self._lacking(unit))]
        own = [unit.best[0] for unit, _ in lacking]
        floors = [self._floor(unit, lacks) for unit, lacks in lacking]
        self._search([unit for unit, _ in lacking], floors)
        lost = [(unit, best) for (unit, _), best in zip(lacking, own, strict=True) if not unit.best]
        self._put_in(lost)
        left = [unit for unit, _ in lost if not unit.best]
        self._search(left, [-math.inf] * len(left))

    def _lacking(self, unit: Unit) -> list[Phrase]:
        """What the worst of a unit's translations lacks."""
        texts = self.translator.target.decode([hypothesis.tokens for hypothesis in unit.best])
        return max((missing(unit.phrases, text) for text in texts), key=len)

    def _floor(self, unit: Unit, lacks: Sequence[Phrase]) -> float:
        """The lowest log-probability worth looking at: below, the phrases can be put in, but not in parts of sentences
        nor in several translations."""
        if not unit.sentence or self.options.nbest > 1:
            return -math.inf
        return unit.best[0].log_probability - FOREIGN * len(lacks)

    def _search(self, units: Sequence[Unit], floors: Sequence[float]) -> None:
        target = self.translator.target
        for unit, floor in zip(units, floors, strict=True):
            unit.tracker = Tracker(unit.phrases, self.translator.spelling, target.bos, unit.length, unit.breaks, floor)
        for batch in batches(units, self.options.beam, self.options.batch_tokens):
            trackers = [unit.tracker for unit in batch if unit.tracker is not None]
            constraints = Constraints(trackers, target.eos, self.options.beam, self.translator.forbidden)
            self.translator.search(batch, self.rule, self.options, constraints)
        for unit in units:
            unit.tracker = None  # it remembers much

    def _put_in(self, lost: Sequence[tuple[Unit, Hypothesis]]) -> None:
        """Puts their phrases into units' own translations, where they have a place."""
        target = self.translator.target
        texts = target.decode([own.tokens for _, own in lost])
        pairs = [(unit.sentence, text) for (unit, _), text in zip(lost, texts, strict=True)]
        for (unit, own), text, links in zip(lost, texts, align(self.translator, pairs), strict=True):
            changed = substitute(text, links, unit.phrases)
            if changed is not None:
                unit.best = [replace(own, tokens=tuple(target.encode([changed])[0]))]
                unit.text = changed  # the pieces may be a normalised form of it


def substitute(translation: str, links: Links, phrases: Sequence[Phrase]) -> str | None:
    """The translation with all of the phrases in it; None if the place of one of them is not known."""
    changes: list[tuple[Span, str]] = []
    for phrase in phrases:
        linked = sorted({to for of, to in links if _overlap(of, phrase.at)})
        begin, end = _longest_run([word for word in linked if in_word(translation[word[0]])], translation)
        if begin == end:
            continue
        first = not any(character.isalnum() for character in translation[:begin])
        text = with_capital(phrase.text) if first else phrase.text
        if translation[begin:end] != text and not any(_overlap((begin, end), place) for place, _ in changes):
            changes.append(((begin, end), text))
    for (begin, end), text in sorted(changes, reverse=True):
        translation = translation[:begin] + text + translation[end:]
    return None if missing(phrases, translation) else translation


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _longest_run(words: Sequence[Span], text: str) -> Span:
    """The longest row of these words with nothing but a space or a hyphen between them; an empty one for no words."""
    best = run = (0, 0)
    for begin, end in words:
        run = (run[0], end) if run[1] and text[run[1] : begin] in ("", " ", "-") else (begin, end)
        best = max(best, run, key=lambda span: span[1] - span[0])
    return best
