"""Metrics of single words: F1 of a class such as his, her and its, and whether terms are translated consistently."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from docnmt.base import __version__
from docnmt.base.errors import DocnmtError
from docnmt.corpus.align_scores import WordAligner
from docnmt.evaluation.metrics import Floats, Mean, Metric
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.probe_words import any_of, plain
from docnmt.evaluation.scores import Measured
from docnmt.text.scripts import unspaced


class WordClassF1(Metric):
    """A word of the class is a match if the reference of its sentence has it, too, as often as both
    have it; neither place nor case counts. Of several references the one with most matches counts."""

    def __init__(self, words: Sequence[str]):
        self.words = tuple(plain(word) for word in words)
        self.name = f"F1 of {'/'.join(words)}"

    @property
    def signature(self) -> str:
        return f"word-F1|words:{','.join(self.words)}|case:lc|match:in-the-sentence|docnmt:{__version__}"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        """Matches, words of the translation, words of the reference."""
        rows = []
        for number, hypothesis in enumerate(hypotheses):
            said = self._counts(hypothesis)
            wanted = [self._counts(reference[number]) for reference in references]
            matches = [(said & counts).total() for counts in wanted]
            best = int(np.argmax(matches))
            rows.append((matches[best], said.total(), wanted[best].total()))
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def score(self, totals: Floats) -> float:
        matches, said, wanted = totals
        return float(200 * matches / (said + wanted)) if said + wanted else 100.0  # nothing to say, and nothing said

    def _counts(self, text: str) -> Counter[str]:
        return Counter(any_of(self.words).findall(plain(text)))


# ---- consistency of terms ----
#
# LTCR, the lexical translation consistency ratio (Lyu et al. 2021, "Encouraging Lexical Translation
# Consistency for Document-Level Neural Machine Translation"): of all pairs of occurrences of a
# source word in a document, the share whose translations are the same word. Word alignment finds
# what translates an occurrence, here by two word tables learnt from the test set itself.

SHORTEST = 4  # letters of a term
COMMON = 0.02  # of the sentences: a word that more of them have is no term
_WORD = re.compile(r"[^\W\d_]+")
LTCR = Mean(
    "LTCR",
    f"LTCR|terms:{SHORTEST}-letters,under-{100 * COMMON:g}%-of-sentences|align:model1-both-directions|case:lc"
    f"|docnmt:{__version__}",
    scale=100,
    segment="document",
    of_nothing=100.0,  # no term occurs twice
)


def measure_consistency(outputs: Sequence[Output], references: References) -> list[Measured]:
    """Of each system, with the same word tables for all, learnt from all outputs and references together."""
    if references.sources is None:
        raise DocnmtError(
            "--terms needs the source sentences, but the references have none\n"
            "  Give references in a format that holds both sides, such as TSV."
        )
    sources = [_words(text) for text in references.sources]
    if 2 * sum(any(map(unspaced, text)) for text in references.sources) > len(sources):
        raise DocnmtError(
            "--terms needs a source with spaces between words\n"
            "  Leave --terms out, or give a source that is split into words."
        )
    texts = [*(output.sentences for output in outputs), *references.texts]
    targets = [[_words(sentence) for sentence in text] for text in texts]
    aligner = WordAligner([pair for text in targets for pair in zip(sources, text, strict=True)])
    often = Counter(word for words in sources for word in set(words))
    most = max(1, COMMON * len(sources))
    terms = {word for word, count in often.items() if len(word) >= SHORTEST and 1 < count <= most}
    result = []
    for text in targets[: len(outputs)]:
        said: list[dict[str, list[str]]] = [{} for _ in references.ids]
        for document, source, target in zip(references.documents.tolist(), sources, text, strict=True):
            links = [] if terms.isdisjoint(source) else aligner.links(source, target)
            for s, t in links:
                if source[s] in terms:
                    said[document].setdefault(source[s], []).append(target[t])
        rows = np.array([same_pairs(words.values()) for words in said], dtype=np.float64)
        result.append(Measured(LTCR, rows, np.arange(len(references.ids))))
    return result


def same_pairs(translations: Iterable[Sequence[str]]) -> tuple[int, int]:
    """Over the occurrences of each term: pairs with the same translation, and all pairs."""
    same = every = 0
    for words in translations:
        every += len(words) * (len(words) - 1) // 2
        same += sum(count * (count - 1) // 2 for count in Counter(words).values())
    return same, every


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
