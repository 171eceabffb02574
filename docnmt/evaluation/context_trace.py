"""What a model's context sub-layers do: which context words they attend to, and how much of it
their gates let in.

It is read by hooks, which leave the computation the same to the bit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from docnmt.data.context import Before, Neighbours
from docnmt.data.packing import Batch
from docnmt.decoding.translator import Translator
from docnmt.document import ParallelDocument, visible_positions
from docnmt.evaluation.context_gain import check_has_context, encode, target_words
from docnmt.evaluation.test_sets import TRUE
from docnmt.model.base import TranslationModel
from docnmt.model.context import ContextAttention, Gate
from docnmt.model.layers import attention_weights
from docnmt.model.transformer import DocumentTransformer
from docnmt.text.scripts import Word, words


@dataclass
class Sublayer:
    """One context sub-layer in one pass of one batch."""

    weights: Tensor  # [segments, heads, longest, longest context]; meaningless beyond a segment's own length
    gate: Tensor | None = None  # lambda, the weight of H, [tokens, width]; None for a residual connection

    @property
    def context_share(self) -> Tensor | None:
        """The mean of 1 - lambda over dimensions: how much of the context was let in, [tokens]"""
        return None if self.gate is None else (1 - self.gate).mean(dim=-1)


Trace = dict[str, Sublayer]  # "encoder 1", "encoder 2" ... "decoder 1" ..., in the order of the computation


@contextmanager
def traced(model: TranslationModel) -> Iterator[Trace]:
    """The trace holds, after each pass through the model, what its context sub-layers did in that
    pass. It stays empty for systems without the paper's context sub-layers."""
    trace: Trace = {}
    handles: list[RemovableHandle] = []
    sides = (("encoder", model.encoder), ("decoder", model.decoder)) if isinstance(model, DocumentTransformer) else ()
    for side, layers in sides:
        for number, layer in enumerate(layers, 1):
            if isinstance(layer.context, ContextAttention):
                handles += _watch(layer.context, f"{side} {number}", trace)
    try:
        yield trace
    finally:
        for handle in handles:
            handle.remove()


def _watch(sublayer: ContextAttention, name: str, trace: Trace) -> list[RemovableHandle]:
    def after_attention(attention: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        trace[name] = Sublayer(attention_weights(attention, *inputs))

    def after_gate(gate: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        trace[name].gate = output

    gates = [module for module in sublayer.connection.modules() if isinstance(module, Gate)]
    return [
        sublayer.attention.register_forward_hook(after_attention),
        *(gate.register_forward_hook(after_gate) for gate in gates),
    ]


@torch.inference_mode()
def gate_by_layer(translator: Translator, documents: Sequence[ParallelDocument], limit: int = 50) -> dict[str, float]:
    """The mean context share of each layer's gate, over the sentences that have a context of at
    most `limit` documents, taken at even distances. Empty for a model without gates."""
    check_has_context(translator, documents)
    sample = [documents[i] for i in np.unique(np.linspace(0, len(documents) - 1, limit).round().astype(int))]
    encoded = encode(translator, sample)
    # An empty context is a begin mark alone.
    with_context = [i for i, pair in enumerate(encoded.pairs[TRUE]) if len(pair.context or ()) != 1]
    sums: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    with traced(translator.model) as trace:
        for rows in encoded.batches(with_context):
            translator.model(encoded.batch(rows))
            for name, sublayer in trace.items():
                if sublayer.context_share is not None:
                    sums[name] += float(sublayer.context_share.double().sum())
                    counts[name] += len(sublayer.context_share)
    return {name: total / counts[name] for name, total in sums.items()}


# ---- word by word, for people ----


@dataclass(frozen=True)
class WordAttention:
    """Of one sentence. Its source and target words are the rows of what encoder and decoder did,
    the words of its context the columns."""

    context: list[dict[str, Any]]  # the sentences: how far away, their words, whether some of them were cut off
    source: list[Word]
    target: list[Word]  # the end mark last
    attention: Mapping[str, NDArray]  # side -> [layers, rows, columns], mean over heads
    share: Mapping[str, NDArray]  # side -> [layers, rows], the gate's mean of 1 - lambda; [0] without gates


@torch.inference_mode()
def attention_by_word(
    translator: Translator, sources: Sequence[str], position: int, pieces: Sequence[str], batch: Batch, trace: Trace
) -> WordAttention:
    """Of sentence `position` of a document; `pieces` are those of its translation, the end mark
    last, and `batch` holds this sentence alone, with its context."""
    ids = translator.source.encode(sources)
    context, columns, order = _context(ids, position, translator)
    rows = {"encoder": words(translator.source.pieces(ids[position])), "decoder": target_words(pieces)}
    translator.model(batch)
    attention, share = {}, {}
    for side, found in rows.items():
        sublayers = [trace[name] for name in trace if name.startswith(side)]
        attention[side] = np.array(
            [_by_word(layer.weights[0].mean(0).cpu().numpy()[:, order], found, columns) for layer in sublayers]
        )
        shares = [layer.context_share for layer in sublayers]
        share[side] = np.array([_by_word(s[:, None].cpu().numpy(), found)[:, 0] for s in shares if s is not None])
    return WordAttention(context, rows["encoder"], rows["decoder"], attention, share)


def _context(
    ids: Sequence[list[int]], position: int, translator: Translator
) -> tuple[list[dict[str, Any]], list[Word], list[int]]:
    """The context sentences as they are shown; their words as columns of the attention; where the
    pieces of these columns stand in what the model sees. The last column is for marks: the one
    after the context (or the ones after each sentence), which is all there is of an empty context."""
    rule = translator.card.rule(translator.source, None, translator.target)
    places = visible_positions(ids, position, rule.spec)
    # The rule gets a negative number of its own for each piece, so what it makes of them tells
    # which pieces it kept.
    numbers = count(-1, -1)
    numbered = {place: [next(numbers) for _ in ids[place]] for place in places}
    around = Neighbours(
        [numbered[place] for place in places if place < position],
        [numbered[place] for place in places if place > position],
    )
    context = rule.context(around)
    history = context.sources if isinstance(context, Before) else [rule.join(around.before, around.after)]
    seen = [number for sentence in history for number in sentence]
    shown: list[dict[str, Any]] = []
    columns: list[Word] = []
    pieces = 0
    for place in places:
        kept = [piece for piece, number in zip(ids[place], numbered[place], strict=True) if number in seen]
        found = words(translator.source.pieces(kept))
        shown.append({"at": place - position, "words": spaced(found), "cut": len(kept) < len(ids[place])})
        columns += [word._replace(begin=word.begin + pieces, end=word.end + pieces) for word in found]
        pieces += len(kept)
    order = sorted(range(len(seen)), key=lambda at: seen[at] >= 0)  # pieces as they come, then marks
    return shown, [*columns, Word("", pieces, len(seen), True)], order


def spaced(found: Sequence[Word]) -> list[str]:
    """Their texts, with a space before those that have one."""
    return [f" {word.text}" if word.spaced else word.text for word in found]


def _by_word(matrix: NDArray, rows: Sequence[Word], columns: Sequence[Word] = ()) -> NDArray:
    """[pieces, pieces] -> [words, words]: the mean over the pieces of a row, the sum over those of
    a column.

    Without columns they stay as they are.
    """
    found = np.array([matrix[word.begin : word.end].mean(axis=0) for word in rows]).reshape(len(rows), -1)
    return np.stack([found[:, c.begin : c.end].sum(axis=1) for c in columns], axis=1) if columns else found
