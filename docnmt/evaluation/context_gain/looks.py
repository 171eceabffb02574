"""What the words of one sentence looked at in its context, and how much of it the gates let in: for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from docnmt.data.packing import Batch
from docnmt.decoding.translator import Translator
from docnmt.document import trim_to_budget, visible_positions
from docnmt.evaluation.context_gain.gain import target_words
from docnmt.evaluation.context_gain.trace import Trace
from docnmt.text.words import Word, words


@dataclass(frozen=True)
class Looks:
    """Source and target words are the rows of what encoder and decoder did, the context's words the columns."""

    context: list[dict[str, Any]]  # the sentences: how far away, their words, whether some of them were cut off
    source: list[Word]
    target: list[Word]  # the end mark last
    attention: Mapping[str, NDArray]  # side -> [layers, rows, columns], mean over heads
    share: Mapping[str, NDArray]  # side -> [layers, rows], the gate's mean of 1 - lambda; [0] where there are none


@torch.inference_mode()
def looks(
    translator: Translator, sources: Sequence[str], position: int, pieces: Sequence[str], batch: Batch, trace: Trace
) -> Looks:
    """Of sentence `position` of a document; `pieces` are those of its translation, the end mark's last, `batch` has it
    alone, with its context."""
    ids = translator.source.encode(sources)
    context, columns = _context(ids, position, translator)
    rows = {"encoder": words(translator.source.pieces(ids[position])), "decoder": target_words(pieces)}
    translator.model(batch)
    attention, share = {}, {}
    for side, found in rows.items():
        sublayers = [trace[name] for name in trace if name.startswith(side)]
        attention[side] = np.array(
            [_by_word(layer.weights[0].mean(0).cpu().numpy(), found, columns) for layer in sublayers]
        )
        shares = [layer.context_share for layer in sublayers]
        share[side] = np.array([_by_word(s[:, None].cpu().numpy(), found)[:, 0] for s in shares if s is not None])
    return Looks(context, rows["encoder"], rows["decoder"], attention, share)


def _context(
    ids: Sequence[list[int]], position: int, translator: Translator
) -> tuple[list[dict[str, Any]], list[Word]]:
    """The context sentences for people, and their words as columns of the attention; the mark that the model sees after
    them, or in the place of a context that is empty, is the last."""
    rule = translator.card.rule(translator.source, None, translator.target)
    places = visible_positions(ids, position, rule.spec)
    before = [(place, i) for place in places if place < position for i in ids[place]]
    after = [(place, i) for place in places if place > position for i in ids[place]]
    kept_before, kept_after = trim_to_budget(len(before), len(after), rule.max_tokens - 1)
    kept = [*before[len(before) - kept_before :], *after[:kept_after]]
    shown: list[dict[str, Any]] = []
    columns: list[Word] = []
    for place in places:
        here = [i for at, i in kept if at == place]
        found = words(translator.source.pieces(here))
        shown.append({"at": place - position, "words": spaced(found), "cut": len(here) < len(ids[place])})
        start = columns[-1].end if columns else 0
        columns += [word._replace(begin=word.begin + start, end=word.end + start) for word in found]
    return shown, [*columns, Word("", len(kept), len(kept) + 1, True)]


def spaced(found: Sequence[Word]) -> list[str]:
    """A space before those that have one."""
    return [f" {word.text}" if word.spaced else word.text for word in found]


def _by_word(matrix: NDArray, rows: Sequence[Word], columns: Sequence[Word] = ()) -> NDArray:
    """[pieces, pieces] -> [words, words]: the mean over the pieces of a row, the sum over those of a column.

    Without columns they stay as they are.
    """
    found = np.array([matrix[word.begin : word.end].mean(axis=0) for word in rows]).reshape(len(rows), -1)
    return np.stack([found[:, c.begin : c.end].sum(axis=1) for c in columns], axis=1) if columns else found
