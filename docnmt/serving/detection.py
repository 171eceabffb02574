"""Which of the served languages a text is in, told by the sub-words of their models.

A vocabulary holds the pieces of its language, the frequent ones first. A text in it has few pieces, and frequent ones;
another language's falls apart into letters and bytes. So a text is as likely as its pieces are by Zipf's law, and the
languages are compared by that. Nothing is known of languages that no model has, and two that share one vocabulary
cannot be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from docnmt.data.subwords import Subwords
from docnmt.serving.models import ModelInfo

LONGEST = 2_000  # characters that are looked at
_SURE = 20.0  # characters' worth of evidence: more of the same text is no more proof


def subwords_of(models: Iterable[ModelInfo]) -> dict[str, Subwords]:
    """Those of each language, from the first model that has it."""
    found: dict[str, Subwords] = {}
    for info in models:
        for language, side in ((info.source_language, "source"), (info.target_language, "target")):
            if language not in found:
                found[language] = Subwords.load(Path(info.folder) / f"{side}.spm")
    return found


class Detector:
    def __init__(self, subwords: Mapping[str, Subwords]):
        self._subwords = subwords
        self._worst = max(map(len, subwords.values()), default=1)

    def languages(self, text: str) -> list[tuple[str, float]]:
        """All languages with the probability of each, the likeliest first."""
        text = " ".join(text[:LONGEST].split())
        letters = sum(map(str.isalpha, text))
        if not letters or not self._subwords:
            even = 1 / max(1, len(self._subwords))
            return [(language, even) for language in self._subwords]
        means = {language: self._log_likelihood(text, each) / letters for language, each in self._subwords.items()}
        best = max(means.values())
        weights = {language: math.exp(min(letters, _SURE) * (mean - best)) for language, mean in means.items()}
        total = sum(weights.values())
        return sorted(((language, weight / total) for language, weight in weights.items()), key=lambda each: -each[1])

    def best_of(self, text: str, languages: Sequence[str]) -> tuple[str, float]:
        return next((each for each in self.languages(text) if each[0] in languages), (languages[0], 0.0))

    def _log_likelihood(self, text: str, subwords: Subwords) -> float:
        (ids,) = subwords.encode([text])
        spelt = (piece.startswith("<") for piece in subwords.pieces(ids))  # a byte or the unknown piece
        return -sum(math.log((self._worst if each else number) + 1) for number, each in zip(ids, spelt, strict=True))
