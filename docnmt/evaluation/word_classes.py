"""F1 of a class of words, such as his, her and its: do translations have them where the references have?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from docnmt.evaluation.metrics import Metric
from docnmt.evaluation.probe_words import any_of, plain
from docnmt.version import __version__


class WordClassF1(Metric):
    """Each word of a translated sentence that its reference has, too, as often as both have it, is a match. Its place
    in the sentence does not count, nor does case. Of several references the one with most matches counts."""

    higher_is_better = True

    def __init__(self, words: Sequence[str]):
        self.words = tuple(plain(word) for word in words)
        self.name = f"F1 of {'/'.join(words)}"
        self._pattern = any_of(self.words)

    @property
    def signature(self) -> str:
        return f"word-F1|words:{','.join(self.words)}|case:lc|match:in-the-sentence|docnmt:{__version__}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Matches, words of the translation, words of the reference."""
        rows = []
        for number, hypothesis in enumerate(hypotheses):
            said = self._counts(hypothesis)
            wanted = [self._counts(reference[number]) for reference in references]
            matches = [(said & counts).total() for counts in wanted]
            best = int(np.argmax(matches))
            rows.append((matches[best], said.total(), wanted[best].total()))
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def score(self, totals: NDArray[np.float64]) -> float:
        matches, said, wanted = totals
        return float(200 * matches / (said + wanted)) if said + wanted else 100.0  # nothing to say, and nothing said

    def _counts(self, text: str) -> Counter[str]:
        return Counter(self._pattern.findall(plain(text)) if self._pattern else ())
