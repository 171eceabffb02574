"""How hypotheses of different lengths are compared, and when a search ends.

A rule keeps one sentence's finished hypotheses, best first. Wu's is the paper's; Marian's is for models that were made
by it: each finds the words that the other program would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

EXTRA_LENGTH = 50  # a translation has at most so many pieces more than its source
LONGEST = 3  # Marian's: times as long as the source, end marks counted on both sides


@dataclass(frozen=True, order=True)
class Hypothesis:
    score: float  # log-probability / length penalty
    log_probability: float
    tokens: tuple[int, ...]  # without begin and end marks


def length_penalty(length: int, alpha: float) -> float:
    """Of Wu et al. (2016)."""
    return ((5 + length) / 6) ** alpha


class WuRule:
    """As the paper decodes: a beam keeps its width, and the search ends when nothing in flight can be better.

    Each step looks at 2 * beam continuations, so that beam of them are left when the others end the sentence.
    """

    narrows = False  # whether a hypothesis that ends makes the beam narrower
    ends_in_beam = False  # whether an end counts among the first `beam` candidates alone

    def __init__(self, wanted: int, limit: int, alpha: float, rewarded: int):
        self.wanted, self.limit, self.alpha = wanted, limit, alpha
        self.rewarded = rewarded  # what is longer gains nothing more from it
        self.finished: list[Hypothesis] = []

    @staticmethod
    def pool(nbest: int, beam: int) -> int:
        """Finished hypotheses to wait for."""
        return nbest

    @staticmethod
    def candidates(beam: int) -> int:
        return 2 * beam if beam > 1 else 1  # a beam of one is greedy: the end wins or it does not

    @staticmethod
    def longest(source: int, extra: int) -> int:
        """Words of a translation, with its end mark, of so many of its source."""
        return source + extra

    def penalty(self, length: int) -> float:
        return length_penalty(min(length, self.rewarded), self.alpha)

    def finish(self, tokens: tuple[int, ...], log_probability: float, length: int) -> None:
        self.finished.append(Hypothesis(log_probability / self.penalty(length), log_probability, tokens))
        self.finished.sort(reverse=True)
        del self.finished[self.wanted :]

    def done(self, best_alive: float, length: int) -> bool:
        if length >= self.limit or best_alive == -math.inf:
            return True
        # A hypothesis in flight only loses probability; the longest one would gain most from the penalty.
        bound = best_alive / self.penalty(self.limit)
        return len(self.finished) == self.wanted and bound <= self.finished[-1].score

    def takes_unfinished(self) -> bool:
        """Whether hypotheses that have no end when the search is done count as they are."""
        return not self.finished


class MarianLengths(WuRule):
    """Scores are divided by length ** alpha. What is asked of a translation keeps the beam as wide as it is, so this is
    what is left of Marian's rule there."""

    @staticmethod
    def longest(source: int, extra: int) -> int:
        return LONGEST * source

    def penalty(self, length: int) -> float:
        return min(length, self.rewarded) ** self.alpha


class MarianRule(MarianLengths):
    """A finished hypothesis leaves the beam, which is narrower by one from then on; the search ends with the last one,
    or at three times the source's length, where all that are left end."""

    narrows = True

    @staticmethod
    def candidates(beam: int) -> int:
        return beam

    def done(self, best_alive: float, length: int) -> bool:
        return length >= self.limit or best_alive == -math.inf

    def takes_unfinished(self) -> bool:
        return True


class HuggingFaceRule(MarianLengths):
    """Of transformers' `generate`: an end counts among the best `beam` candidates alone, as many finished hypotheses
    are waited for, and the best in flight is not thought to gain by its length any more."""

    ends_in_beam = True

    @staticmethod
    def pool(nbest: int, beam: int) -> int:
        return max(nbest, beam)

    @staticmethod
    def longest(source: int, extra: int) -> int:
        return 511  # max_length of its Marian models, begin mark counted

    def done(self, best_alive: float, length: int) -> bool:
        bound = best_alive / self.penalty(length)
        full = len(self.finished) == self.wanted and bound <= self.finished[-1].score
        return full or length >= self.limit or best_alive == -math.inf


def rule_of(search: str, constrained: bool) -> type[WuRule]:
    """By `model.search`."""
    rules = {"wu": WuRule, "marian": MarianLengths if constrained else MarianRule, "huggingface": HuggingFaceRule}
    return rules[search]
