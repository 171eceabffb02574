"""Is a word of a document translated the same way each time? LTCR, the lexical translation consistency ratio.

Lyu et al. (2021), "Encouraging Lexical Translation Consistency for Document-Level Neural Machine Translation": of all
pairs of occurrences of a source word in a document, the share whose translations are the same word. What translates an
occurrence is found by word alignment, here by two word tables learnt from the test set itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.corpus.align_scores import WordAligner
from docnmt.evaluation.metrics import Metric
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.scores import Measured
from docnmt.text.scripts import UNSPACED
from docnmt.version import __version__

_WORD = re.compile(r"[^\W\d_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
SHORTEST = 4  # letters of a term
COMMON = 0.02  # of the sentences: a word in more of them is no term


class TermConsistency(Metric):
    """Statistics are, for each document, the pairs of occurrences with the same translation, and all pairs."""

    name, higher_is_better, segment = "LTCR", True, "document"

    @property
    def signature(self) -> str:
        return (
            f"LTCR|terms:{SHORTEST}-letters,under-{100 * COMMON:g}%-of-sentences|align:model1-both-directions|case:lc"
            f"|docnmt:{__version__}"
        )

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        raise NotImplementedError  # it takes the source, not the references

    def score(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1]) if totals[1] else 100.0  # nothing said twice


def measure_consistency(outputs: Sequence[Output], references: References) -> list[Measured]:
    """Of each system, with the same word tables for all: these are learnt from all outputs and references together."""
    if references.sources is None:
        raise DocnmtError(
            "the consistency of terms is that of source words, and the references have no source\n"
            "  Give references in a format that holds both sides, such as TSV."
        )
    sources = [_words(text) for text in references.sources]
    if sum(map(bool, map(_UNSPACED.search, references.sources))) * 2 > len(sources):
        raise DocnmtError(
            "the consistency of terms needs words with spaces between them, which the source has not\n"
            "  Leave out --terms, or give a source that is cut into words."
        )
    texts = [*(output.sentences for output in outputs), *references.texts]
    targets = [[_words(sentence) for sentence in text] for text in texts]
    aligner = WordAligner([pair for text in targets for pair in zip(sources, text, strict=True)])
    often = Counter(word for words in sources for word in set(words))
    most = max(1, COMMON * len(sources))
    terms = frozenset(word for word, count in often.items() if len(word) >= SHORTEST and 1 < count <= most)
    metric, result = TermConsistency(), []
    for text in targets[: len(outputs)]:
        said: list[dict[str, list[str]]] = [{} for _ in references.ids]
        for document, source, target in zip(references.documents.tolist(), sources, text, strict=True):
            for term, word in _translations(aligner, source, target, terms):
                said[document].setdefault(term, []).append(word)
        rows = np.array([same_pairs(words.values()) for words in said], dtype=np.float64)
        result.append(Measured(metric, rows, np.arange(len(references.ids))))
    return result


def same_pairs(translations: Iterable[Sequence[str]]) -> tuple[int, int]:
    """Over the occurrences of each term: pairs with the same translation, and all pairs."""
    same = every = 0
    for words in translations:
        every += len(words) * (len(words) - 1) // 2
        same += sum(count * (count - 1) // 2 for count in Counter(words).values())
    return same, every


def _translations(
    aligner: WordAligner, source: Sequence[str], target: Sequence[str], terms: frozenset[str]
) -> list[tuple[str, str]]:
    if terms.isdisjoint(source):
        return []
    return [(source[s], target[t]) for s, t in aligner.links(source, target) if source[s] in terms]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
