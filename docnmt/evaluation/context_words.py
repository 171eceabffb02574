"""Accuracy on words that only context can decide, and on all other words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from docnmt.corpora.demo.items import ContextWord

Words = Mapping[tuple[str, int], Sequence[ContextWord]]


@dataclass
class Tally:
    right: int = 0
    total: int = 0

    def add(self, right: int, total: int = 1) -> None:
        self.right += right
        self.total += total

    @property
    def percent(self) -> float:
        return 100 * self.right / self.total if self.total else float("nan")


@dataclass
class ContextWordAccuracy:
    words: Tally = field(default_factory=Tally)  # context-dependent ones
    other_words: Tally = field(default_factory=Tally)
    by_kind: dict[tuple[str, int], Tally] = field(default_factory=dict)  # (phenomenon, distance)
    chance: float = 0.0  # percent, for guessing among the words that fit without context

    def of(self, phenomenon: str) -> Tally:
        tallies = [tally for (name, _), tally in self.by_kind.items() if name == phenomenon]
        return Tally(sum(t.right for t in tallies), sum(t.total for t in tallies))

    def at(self, distance: int) -> Tally:
        tallies = [tally for (_, far), tally in self.by_kind.items() if far == distance]
        return Tally(sum(t.right for t in tallies), sum(t.total for t in tallies))


def is_right(word: ContextWord, translation: str) -> bool:
    """Whether a translation has the right word and none of those that would be wrong."""
    return _has(translation, word.right) and not any(_has(translation, wrong) for wrong in word.wrong)


def accuracy(words: Words, sentences: Iterable[tuple[str, int, str, str]]) -> ContextWordAccuracy:
    """Over sentences given as (document id, position, reference, translation)."""
    result = ContextWordAccuracy()
    chances = []
    for document, position, reference, translation in sentences:
        here = words.get((document, position), ())
        for word in here:
            right = is_right(word, translation)
            result.words.add(right)
            result.by_kind.setdefault((word.phenomenon, word.distance), Tally()).add(right)
            chances.append(1 / (1 + len(word.wrong)))
        others = Counter(_tokens(reference))
        for word in here:
            others -= Counter(_tokens(word.right))
        result.other_words.add((others & Counter(_tokens(translation))).total(), others.total())
    result.chance = 100 * sum(chances) / len(chances) if chances else float("nan")
    return result


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+(?:'\w+)?", text.lower())


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None
