"""Translations that have what is asked of them.

Most have it of themselves. The others are searched for again with constraints; where a phrase is so improbable that it
throws the model off its course, it takes the place of the model's own words for its source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docnmt.data.context import ContextRule
from docnmt.decoding.alignment import align
from docnmt.decoding.beam import Hypothesis
from docnmt.decoding.constraints import Constraints
from docnmt.decoding.demands import Tracker
from docnmt.decoding.phrases import Phrase, missing
from docnmt.decoding.results import Options
from docnmt.decoding.substitution import substitute
from docnmt.decoding.units import Unit, batches

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
        """Gives units new translations where theirs, if they have any, lack something."""
        lacking = [(unit, lacks) for unit in units if unit.demand and (lacks := self._lacking(unit)) is not None]
        own = {id(unit): unit.best[0] for unit, _ in lacking if unit.best}
        floors = [self._floor(unit, lacks) for unit, lacks in lacking]
        self._search([unit for unit, _ in lacking], floors)
        lost = [unit for unit, _ in lacking if not unit.best]
        self._put_in(lost, [own[id(unit)] for unit in lost])
        left = [unit for unit in lost if not unit.best]
        self._search(left, [-math.inf] * len(left))

    def _lacking(self, unit: Unit) -> list[Phrase] | None:
        """What the worst of a unit's translations lacks; None where all have everything."""
        texts = self.translator.target.decode([hypothesis.tokens for hypothesis in unit.best or ()])
        lacks = max((missing(unit.demand.phrases, text) for text in texts), key=len, default=[])
        return lacks if lacks or not texts else None

    def _floor(self, unit: Unit, lacks: Sequence[Phrase]) -> float:
        """The lowest log-probability worth looking at: below, the phrases can be put in."""
        placed = unit.sentence and all(phrase.at is not None for phrase in lacks)
        if not unit.best or not placed or self.options.nbest > 1:
            return -math.inf
        return unit.best[0].log_probability - FOREIGN * len(lacks)

    def _search(self, units: Sequence[Unit], floors: Sequence[float]) -> None:
        target = self.translator.target
        for unit, floor in zip(units, floors, strict=True):
            unit.tracker = Tracker(unit.demand, self.translator.spelling, target.bos, unit.length, floor)
        for batch in batches(units, self.options.beam, self.options.batch_tokens):
            trackers = [unit.tracker for unit in batch if unit.tracker is not None]
            self.translator.search(batch, self.rule, self.options, Constraints(trackers, target.eos, self.options.beam))
        for unit in units:
            unit.tracker = None  # it remembers much

    def _put_in(self, units: Sequence[Unit], own: Sequence[Hypothesis]) -> None:
        target = self.translator.target
        texts = target.decode([hypothesis.tokens for hypothesis in own])
        pairs = [(unit.sentence, text) for unit, text in zip(units, texts, strict=True)]
        for unit, hypothesis, text, links in zip(units, own, texts, align(self.translator, pairs), strict=True):
            changed = substitute(text, links, unit.demand.phrases)
            if changed is not None:
                unit.best = [replace(hypothesis, tokens=tuple(target.encode([changed])[0]))]
                unit.text = changed  # the pieces may be a normalised form of it
