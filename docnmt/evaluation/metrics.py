"""Metrics of translations, each with the signature that is needed to reproduce its numbers.

A metric turns each segment into a row of statistics; the score of a corpus is a function of their
column sums. So a corpus is processed once, and scores of its documents, domains and resamples cost
next to nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError, nearest
from docnmt.text.scripts import primary

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

METRICS = ("bleu", "chrf", "ter", "multi-bleu", "document-bleu")
# sacrebleu's tokenizers for languages in which spaces and punctuation do not separate words.
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


class Metric(ABC):
    name: str
    higher_is_better = True
    segment = "sentence"  # what a row of statistics stands for: a sentence or a document

    @property
    @abstractmethod
    def signature(self) -> str:
        """All that is needed to reproduce the number. Complete only after `statistics`, which counts the references."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        """A row for each segment; `references[r][segment]`."""
        raise NotImplementedError(f"{self.name} needs more than translations and references")

    @abstractmethod
    def score(self, totals: Floats) -> float:
        """The score of a corpus, from the column sums of its statistics."""


class Mean(Metric):
    """A mean of what was counted elsewhere: statistics are sums, and the numbers to divide them by."""

    def __init__(
        self,
        name: str,
        signature: str = "",
        *,
        scale: float = 1,
        segment: str = "sentence",
        of_nothing: float = math.nan,  # the score where nothing was counted
    ):
        self.name, self._signature, self.segment = name, signature or name, segment
        self._scale, self._of_nothing = scale, of_nothing

    @property
    def signature(self) -> str:
        return self._signature

    def score(self, totals: Floats) -> float:
        total, count = totals
        return float(self._scale * total / count) if count else self._of_nothing


class SacrebleuMetric(Metric):
    """A metric of sacrebleu. Statistics, score and signature are sacrebleu's own."""

    def __init__(
        self,
        name: str,
        measure: Any,
        sign: Callable[[str], str] = str,  # sacrebleu's signature -> ours
        *,
        higher_is_better: bool = True,
        segment: str = "sentence",
    ):
        self.name, self.higher_is_better, self.segment = name, higher_is_better, segment
        self._measure, self._sign = measure, sign

    @property
    def signature(self) -> str:
        return self._sign(str(self._measure.get_signature()))

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        for number, reference in enumerate(references, 1):
            if len(reference) != len(hypotheses):  # sacrebleu would silently drop the surplus
                raise DocnmtError(
                    f"{len(hypotheses):,} translations, but reference {number} has {len(reference):,} segments\n"
                    "  Give exactly one reference segment for each translation."
                )
        rows = self._measure._extract_corpus_statistics(hypotheses, references)
        return np.array(rows, dtype=np.float64)

    def score(self, totals: Floats) -> float:
        return float(self._measure._compute_score_from_stats(totals.tolist()).score)


def make_metric(name: str, *, language: str = "", lowercase: bool = False, tokenized: bool = False) -> Metric:
    """The metric of a name. The language chooses the tokenizer; `tokenized` text keeps the tokens that it has."""
    language = primary(language)
    tokenizer = "none" if tokenized else _TOKENIZERS.get(language, "13a")
    match name.lower():
        case "bleu":
            return SacrebleuMetric("BLEU", _bleu(tokenizer, lowercase))
        case "chrf":
            return SacrebleuMetric("chrF", sacrebleu.CHRF(lowercase=lowercase))
        case "ter":
            # Case-insensitive, as is usual for TER. Text without spaces is counted by
            # characters.
            by_character = language in ("zh", "ja") and tokenizer != "none"
            ter = sacrebleu.TER(normalized=by_character, asian_support=by_character)
            return SacrebleuMetric("TER", ter, higher_is_better=False)
        case "multi-bleu":
            # The paper's measure, as multi-bleu.perl -lc computes it: lower case, no smoothing, of
            # several references the length closest to the translation's, and the shorter of two
            # equally close ones. The script takes tokens as they are given, so raw text is
            # tokenised first, as for BLEU.
            return SacrebleuMetric("multi-bleu", _bleu(tokenizer, lowercase=True, smoothing="none"), _as_multi_bleu)
        case "document-bleu":
            # A segment is a document: n-grams may span sentences, and match wherever the document
            # has them.
            bleu = _bleu(tokenizer, lowercase)
            return SacrebleuMetric("document BLEU", bleu, lambda s: f"segment:document|{s}", segment="document")
    raise DocnmtError(f"unknown metric {name!r}\n  {nearest(name.lower(), METRICS, 'Choose from')}")


def _bleu(tokenizer: str, lowercase: bool, smoothing: str = "exp") -> Any:
    try:
        # `force` only turns off a warning that text looks tokenised.
        return sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenizer, smooth_method=smoothing, force=True)
    except (RuntimeError, ImportError):
        language = tokenizer.partition("-")[0]
        raise DocnmtError(
            f"BLEU for the language {language} needs a tokenizer that is not installed ({tokenizer})\n"
            f"  Run: pip install 'sacrebleu[{language}]'"
        ) from None


def _as_multi_bleu(signature: str) -> str:
    known = dict(part.split(":", 1) for part in signature.split("|"))
    kept = (f"{key}:{known[key]}" for key in ("nrefs", "case", "tok", "smooth"))
    return "|".join(("multi-bleu", *kept, "length:closest", f"version:{known['version']}"))


def corpus_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], documents: Ints
) -> tuple[Floats, Ints]:
    """The statistics of a corpus of sentences, and the document of each of their rows.

    `documents` has for each sentence the index of its document. For a metric of documents a row is
    a document, whose sentences are joined by spaces.
    """
    if metric.segment == "sentence":
        return metric.statistics(hypotheses, references), documents
    numbers, places = np.unique(documents, return_inverse=True)
    sides = []
    for side in (hypotheses, *references):
        texts: list[list[str]] = [[] for _ in numbers]
        for sentence, place in zip(side, places.tolist(), strict=True):
            texts[place].append(sentence)
        sides.append([" ".join(text) for text in texts])
    return metric.statistics(sides[0], sides[1:]), numbers
