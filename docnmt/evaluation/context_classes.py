"""What context is worth to classes of words: to his, her and its beside all words, and to punctuation and end marks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from docnmt.evaluation.context_gain import END, ContextGain, Gain, MeanOfTokens, target_words
from docnmt.evaluation.controls import NONE
from docnmt.evaluation.probe_words import GENDER, presets
from docnmt.evaluation.significance import interval

WORDS, PUNCTUATION, ENDS = "all words", "punctuation", "end marks"
_PART = re.compile(r"[^\W_]+")  # of "he's", he and s

WordClasses = Mapping[str, Sequence[str]]


def classes_of(languages: tuple[str, str]) -> WordClasses:
    """Those that probes are made of, where there are any for a pair of languages."""
    tables = presets().get("-".join(languages), {}).values()
    return {"/".join(table["swap"]): table["swap"] for table in tables if table["swap"] != [GENDER]}


def by_word_class(gain: ContextGain, classes: WordClasses, over: str = NONE, *, seed: int = 1) -> dict[str, Gain]:
    """Nats a word, of each class that the corpus has; `tokens` of a gain counts words here. A word may be in several of
    the classes; punctuation and end marks are no words."""
    members = {name: frozenset(word.lower() for word in words) for name, words in classes.items()}
    names = (*classes, WORDS, PUNCTUATION, ENDS)
    rows = {name: np.zeros((len(gain.pieces), 2)) for name in names}
    for number, (pieces, gains) in enumerate(zip(gain.pieces, gain.gains(over), strict=True)):
        for word in target_words(pieces):
            parts = () if word.text == END else _PART.findall(word.text.lower())
            kinds = [name for name, known in members.items() if not known.isdisjoint(parts)]
            kinds.append(ENDS if word.text == END else WORDS if parts else PUNCTUATION)
            for kind in kinds:
                rows[kind][number] += float(gains[word.begin : word.end].sum()), 1
    return {name: _gain(gain, found, seed) for name, found in rows.items() if found[:, 1].any()}


def _gain(gain: ContextGain, rows: np.ndarray, seed: int) -> Gain:
    """Sentences that have none of the words add nothing, and their documents have nothing to draw."""
    inside = rows[:, 1] > 0
    total, count = rows.sum(axis=0)
    around = interval(MeanOfTokens(), rows[inside], gain.document[inside], seed=seed)
    return Gain(float(total / count), around, float(total), int(inside.sum()), int(count))


def class_json(found: Mapping[str, Gain]) -> dict[str, dict[str, Any]]:
    return {
        name: {"words": one.tokens, "mean": one.mean, "total": one.total, "low": low, "high": high}
        for name, one in found.items()
        for low, high in [(None, None) if np.isnan(one.interval.low) else (one.interval.low, one.interval.high)]
    }
