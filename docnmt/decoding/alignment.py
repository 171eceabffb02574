"""Which words of a translation come from which words of its source, read off the decoder's attention.

One pass over sentence and translation as they are, as in scoring. What the decoder attends to while it writes a piece
tells where the piece comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from docnmt.data.context import Neighbours
from docnmt.decoding.units import SENTENCE_RULE, within_budget
from docnmt.text.scripts import in_word, unspaced

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator

Span = tuple[int, int]  # characters from the first up to the second
Links = list[tuple[Span, Span]]  # a word of the source and one of the translation, in the order of the source
Matrix = NDArray[np.float32]


def align(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Links]:
    """For each sentence and its translation the words that belong together.

    A word may have several links; a mark of punctuation may have none. Empty for a sentence beyond the model's length,
    and for systems whose attention cannot be told.
    """
    links: list[Links] = [[] for _ in pairs]
    encoded = [
        (translator.source.encode_with_spans(source), translator.target.encode_with_spans(target))
        for source, target in pairs
    ]
    lengths = [tuple(len(ids) for ids, _ in both) for both in encoded]
    longest = translator.card.model.max_length
    fit = [i for i, (source, target) in enumerate(lengths) if 0 < source <= longest and 0 < target <= longest]
    fit.sort(key=lambda i: lengths[i])
    for places in within_budget([(lengths[i][0] + 1, lengths[i][1] + 1) for i in fit], translator.options.batch_tokens):
        chosen = [fit[place] for place in places]
        sides = ((encoded[i][0][0], encoded[i][1][0]) for i in chosen)
        batch = translator.batch([translator.pair(*both, Neighbours(), SENTENCE_RULE) for both in sides])
        with torch.inference_mode():
            attention = translator.model.alignment(batch).float().cpu().numpy()
        for i, weights in zip(chosen, attention, strict=True):
            words = (_Side(text, spans) for text, (_, spans) in zip(pairs[i], encoded[i], strict=True))
            links[i] = _link(weights[: lengths[i][1], : lengths[i][0]], *words)
    return links


class _Side:
    """The words of a sentence and which pieces each has a part in."""

    def __init__(self, text: str, spans: Sequence[Span]):
        # A piece is where its first visible character is: a space may be a piece of its own, and of the pieces that
        # one character is normalised or spelt into only the last one has a place in the text.
        begins = [len(text) - len(text[begin:].lstrip()) for begin, _ in spans]
        ends = [max(begin + 1, end) for begin, (_, end) in zip(begins, spans, strict=True)]
        self.words = _words(text, {*begins, *ends})
        firsts, lasts = np.array(self.words, dtype=int).reshape(-1, 2).T[:, :, None]  # 2 x [words, 1]
        self.parts = ((np.array(begins) < lasts) & (firsts < np.array(ends))).astype(np.float32)  # [words, pieces]
        self.marks = np.array([not in_word(text[begin]) for begin, _ in self.words], dtype=bool)


def _words(text: str, cuts: set[int]) -> list[Span]:
    """Runs of letters and digits, and every other visible character by itself; scripts without spaces cut at `cuts`."""
    words: list[Span] = []
    for i, character in enumerate(text):
        goes_on = words and words[-1][1] == i and in_word(character) and in_word(text[i - 1])
        if goes_on and not (i in cuts and (unspaced(character) or unspaced(text[i - 1]))):
            words[-1] = (words[-1][0], i + 1)
        elif not character.isspace():
            words.append((i, i + 1))
    return words


def _link(weights: Matrix, source: _Side, target: _Side) -> Links:
    """Each word of the translation with the source word it comes from; then each source word that is left, marks apart,
    with its own strongest. Words go with words and marks with marks."""
    if not weights.size:
        return []
    # What the pieces of a word look at on average, and all that they see of the other word.
    counts = np.maximum(target.parts.sum(axis=1, keepdims=True), 1)  # normalising may leave no piece of a character
    seen = target.parts @ weights @ source.parts.T / counts  # [target words, source words]
    seen[target.marks[:, None] != source.marks] = 0
    seen /= np.maximum(seen.sum(axis=0), 1e-9)  # some words, the last mark before all, are looked at from everywhere
    linked = {(int(seen[t].argmax()), t) for t in range(len(seen)) if seen[t].any()}
    left = set(np.flatnonzero(~source.marks).tolist()) - {s for s, _ in linked}
    linked |= {(s, int(seen[:, s].argmax())) for s in left if seen[:, s].any()}
    return [(source.words[s], target.words[t]) for s, t in sorted(linked)]
