"""What context did to the words of a sentence, shown when somebody clicks on a word. Runs where the model is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from docnmt.base.errors import DocnmtError
from docnmt.decoding.scoring import Links, Span, align
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT, ParallelDocument, context_positions
from docnmt.evaluation.context_gain import check_has_context, encode
from docnmt.evaluation.context_trace import attention_by_word, traced
from docnmt.evaluation.test_sets import NONE, TRUE, Contexts
from docnmt.text.scripts import Word


def explained(translator: Translator, source: Sequence[str], target: Sequence[str], position: int) -> bytes:
    """As JSON, written here: of long sentences there are megabytes."""
    return json.dumps(explain(translator, source, target, position), separators=(",", ":")).encode()


def explain(translator: Translator, source: Sequence[str], target: Sequence[str], position: int) -> dict[str, Any]:
    """Every word of a sentence of a document and of its translation: the translation's log-probabilities with the
    context and with none, what both attended to in the context, layer by layer, and how far the gates were open."""
    spec = translator.card.context.spec
    seen = sorted((position, *context_positions(position, len(source), spec)))
    document = ParallelDocument("page", tuple(source[i] for i in seen), tuple(target[i] for i in seen))
    own = document.filled.index(seen.index(position))  # gaps are not among the pairs
    source_text, target_text = source[position], target[position]
    spans = [translator.source.encode_with_spans(source_text), translator.target.encode_with_spans(target_text)]
    longest = translator.card.model.max_length
    if max(len(ids) for ids, _ in spans) > longest:
        raise DocnmtError(
            f"a sentence of more than {longest} pieces is translated in parts\n  Choose a shorter sentence."
        )
    check_has_context(translator, [ParallelDocument("page", ("", ""), ("", ""))])
    contexts = {TRUE: Contexts([document], [document], spec), NONE: Contexts([document], [document], NO_CONTEXT)}
    encoded = encode(translator, [document], contexts)
    scores: dict[str, Any] = {}
    for name, pairs in encoded.pairs.items():
        same = pairs[own] == encoded.pairs[TRUE][own] and TRUE in scores  # equal to the last bit
        scores[name] = scores[TRUE] if same else translator.log_probabilities([pairs[own]])[0].double().cpu().numpy()
    pieces = translator.target.pieces([*spans[1][0], translator.target.eos])
    with traced(translator.model) as trace:
        batch = encoded.batch([own])
        found = attention_by_word(translator, document.source, seen.index(position), pieces, batch, trace)
    return {
        "context": found.context,
        "source": _places(source_text, found.source, spans[0][1]),
        "target": _places(target_text, found.target[:-1], spans[1][1]),
        "log": {
            name: [round(float(values[word.begin : word.end].sum()), 4) for word in found.target[:-1]]
            for name, values in scores.items()
        },
        "attention": {side: np.round(weights, 3).tolist() for side, weights in found.attention.items()},
        "share": {side: np.round(shares, 3).tolist() for side, shares in found.share.items()},
    }


def aligned(translator: Translator, source: str, target: str) -> Links:
    """The word alignment of a sentence and its translation."""
    (links,) = align(translator, [(source, target)])
    ours, theirs = _units(source), _units(target)
    return [((ours[a], ours[b]), (theirs[c], theirs[d])) for (a, b), (c, d) in links]


def _places(text: str, words: Sequence[Word], spans: Sequence[Span]) -> list[Span]:
    """Where the words stand in the text, spaces before them left out."""
    at = _units(text)
    places = []
    for word in words:
        begin, end = spans[word.begin][0], max(span[1] for span in spans[word.begin : word.end])
        begin += len(text[begin:end]) - len(text[begin:end].lstrip())
        places.append((at[begin], at[end]))
    return places


def _units(text: str) -> list[int]:
    """The offset of each character, and of the end, as browsers count: characters beyond U+FFFF count twice."""
    at = [0]
    for character in text:
        at.append(at[-1] + (2 if ord(character) > 0xFFFF else 1))
    return at
