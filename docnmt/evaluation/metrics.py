"""Measures of translations, each with the signature that is needed to get its numbers again.

A metric turns each segment into a row of statistics; the score of a corpus is a function of their column sums. So a
corpus is looked at once, and scores of documents, domains and resamples of it cost next to nothing.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.text.languages import primary

# Languages that are not split into words by spaces and punctuation alone: sacrebleu's tokenizers for them.
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}


class Metric(ABC):
    name: str
    higher_is_better: bool
    segment: str = "sentence"  # what a row of statistics stands for: a sentence or a document

    @property
    @abstractmethod
    def signature(self) -> str:
        """All that is needed to get the number again; known once something was measured, as it counts references."""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """A row for each segment; `references[r][segment]`."""

    @abstractmethod
    def score(self, totals: NDArray[np.float64]) -> float:
        """The score of a corpus, from the column sums of its statistics."""


class SacrebleuMetric(Metric):
    """A measure of sacrebleu's. Statistics and score are sacrebleu's own, and so is the signature."""

    def __init__(
        self,
        name: str,
        measure: Any,
        *,
        higher_is_better: bool = True,
        segment: str = "sentence",
        sign: Callable[[str], str] = str,  # sacrebleu's signature -> ours
    ):
        self.name, self.higher_is_better, self.segment = name, higher_is_better, segment
        self._measure, self._sign = measure, sign

    @property
    def signature(self) -> str:
        return self._sign(str(self._measure.get_signature()))

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        for number, reference in enumerate(references, 1):
            if len(reference) != len(hypotheses):  # sacrebleu would leave out what is over
                raise DocnmtError(
                    f"{len(hypotheses):,} translations but {len(reference):,} segments in reference {number}\n"
                    "  Give each translation its reference."
                )
        rows = self._measure._extract_corpus_statistics(hypotheses, references)
        return np.array(rows, dtype=np.float64)

    def score(self, totals: NDArray[np.float64]) -> float:
        return float(self._measure._compute_score_from_stats(totals.tolist()).score)


def _bleu(tokenizer: str, lowercase: bool, smoothing: str = "exp") -> Any:
    try:
        # `force` only turns off a warning that text looks tokenised.
        return sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenizer, smooth_method=smoothing, force=True)
    except (RuntimeError, ImportError):
        language = tokenizer.partition("-")[0]
        raise DocnmtError(
            f"BLEU of language {language} needs a tokenizer that is not installed ({tokenizer})\n"
            f"  Run: pip install 'sacrebleu[{language}]'"
        ) from None


def _make_bleu(language: str, lowercase: bool, tokenizer: str) -> Metric:
    return SacrebleuMetric("BLEU", _bleu(tokenizer, lowercase))


def _make_chrf(language: str, lowercase: bool, tokenizer: str) -> Metric:
    return SacrebleuMetric("chrF", sacrebleu.CHRF(lowercase=lowercase))


def _make_ter(language: str, lowercase: bool, tokenizer: str) -> Metric:
    """Without case, as it has always been computed. Text without spaces is counted by characters."""
    by_character = language in ("zh", "ja") and tokenizer != "none"
    measure = sacrebleu.TER(normalized=by_character, asian_support=by_character)
    return SacrebleuMetric("TER", measure, higher_is_better=False)


def _make_multi_bleu(language: str, lowercase: bool, tokenizer: str) -> Metric:
    """The paper's measure: BLEU as multi-bleu.perl -lc computes it.

    Lower case, no smoothing, of several references the length closest to the translation's, the shorter of two that
    are as close. The script takes tokens as they are given, so raw text is tokenised first, as for BLEU.
    """

    def sign(signature: str) -> str:
        known = dict(part.split(":", 1) for part in signature.split("|"))
        kept = (f"{key}:{known[key]}" for key in ("nrefs", "case", "tok", "smooth"))
        return "|".join(("multi-bleu", *kept, "length:closest", f"version:{known['version']}"))

    return SacrebleuMetric("multi-bleu", _bleu(tokenizer, lowercase=True, smoothing="none"), sign=sign)


def _make_document_bleu(language: str, lowercase: bool, tokenizer: str) -> Metric:
    """BLEU with a document for a segment: n-grams may span sentences, and match wherever the document has them."""
    return SacrebleuMetric(
        "document BLEU", _bleu(tokenizer, lowercase), segment="document", sign=lambda s: f"segment:document|{s}"
    )


_MAKERS: dict[str, Callable[[str, bool, str], Metric]] = {
    "bleu": _make_bleu,
    "chrf": _make_chrf,
    "ter": _make_ter,
    "multi-bleu": _make_multi_bleu,
    "document-bleu": _make_document_bleu,
}
METRICS: tuple[str, ...] = tuple(_MAKERS)


def make_metric(name: str, *, language: str = "", lowercase: bool = False, tokenized: bool = False) -> Metric:
    """The metric of a name. The language chooses the tokenizer; `tokenized` text keeps the tokens that it has."""
    make = _MAKERS.get(name.lower())
    if make is None:
        near = difflib.get_close_matches(name.lower(), METRICS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(METRICS)}."
        raise DocnmtError(f"unknown metric {name!r}\n  {hint}")
    tokenizer = "none" if tokenized else _TOKENIZERS.get(primary(language), "13a")
    return make(primary(language), lowercase, tokenizer)


def corpus_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]], documents: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The statistics of a corpus of sentences, and the document of each of their rows.

    `documents` has for each sentence the index of its document. Rows are sentences or, for metrics of documents,
    documents, whose sentences are joined by a space.
    """
    if metric.segment == "sentence":
        return metric.statistics(hypotheses, references), documents
    whole = [_joined(side, documents) for side in (hypotheses, *references)]
    return metric.statistics(whole[0], whole[1:]), np.unique(documents)


def _joined(sentences: Sequence[str], documents: NDArray[np.int64]) -> list[str]:
    texts: dict[int, list[str]] = {}
    for sentence, document in zip(sentences, documents.tolist(), strict=True):
        texts.setdefault(document, []).append(sentence)
    return [" ".join(texts[document]) for document in sorted(texts)]
