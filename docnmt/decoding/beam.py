"""Beam search with the length penalty of Wu et al. (2016), as the paper decodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Contexts, Packed
from docnmt.decoding.constraints import Constraints
from docnmt.decoding.rules import EXTRA_LENGTH, Hypothesis, WuRule, length_penalty
from docnmt.engine.native import accelerator
from docnmt.model.states import DecoderState, State

# ---- The best continuations of hypotheses among all words of a large vocabulary ----

# The best continuations of hypotheses among all words of a large vocabulary, in few passes over it.

BLOCK = 64  # words


def best_continuations(logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """logits [sentences x beam, words] of the next word, scores [sentences, beam] of the hypotheses so far -> for each
    sentence, best first, the best log-probabilities, [sentences, count], the hypotheses they continue, and the words.
    """
    count = min(count, scores.shape[1] * logits.shape[1])
    plain = logits.device.type == "cpu" and logits.dtype == scores.dtype == torch.float32
    fast = accelerator() if plain else None
    return in_torch(logits, scores, count) if fast is None else fast.continuations(logits, scores, count)


def in_torch(logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best words lie in the blocks of words whose own best is best: all others are looked at once."""
    (sentences, beam), words = scores.shape, logits.shape[1]
    values = logits.log_softmax(dim=1)
    if words % BLOCK:
        values = F.pad(values, (0, -words % BLOCK), value=float("-inf"))
    blocks = values.unflatten(1, (-1, BLOCK))  # [rows, blocks, BLOCK]
    before = scores.flatten()[:, None]  # [rows, 1]
    best = (blocks.amax(dim=2) + before).view(sentences, -1)  # [sentences, beam x blocks]
    chosen = best.topk(min(count, best.shape[1]), dim=1).indices  # [sentences, blocks]
    chosen += chosen.new_tensor(range(sentences))[:, None] * best.shape[1]
    row = chosen // blocks.shape[1]
    totals = blocks.reshape(-1, BLOCK).index_select(0, chosen.flatten()).view(*chosen.shape, BLOCK)
    totals = (totals + before[row]).flatten(1)  # [sentences, blocks x BLOCK]
    found, places = totals.topk(count, dim=1)
    block = places // BLOCK
    word = chosen.gather(1, block) % blocks.shape[1] * BLOCK + places % BLOCK
    return found, row.gather(1, block) % beam, word.clamp_(max=words - 1)  # beyond lies what nothing comes of


# ---- Beam search, by default as the paper decodes: with the length penalty of Wu et al. (2016) ----

__all__ = ["Hypothesis", "beam_search", "length_penalty"]

LEAVE_AT = 8  # sentences that are done leave the batch once they are one in so many: to leave costs a copy of the rest


class Model(Protocol):
    def encode(self, source: Packed, context: Contexts | None = None) -> Any:
        """What a state starts from."""


Start = Callable[[Any, Any, int], State]  # model, what it encoded, beam


@torch.inference_mode()
def beam_search(
    model: Model,
    source: Packed,
    context: Contexts | None,
    *,
    bos: int,
    eos: int,
    beam: int = 4,
    alpha: float = 0.6,
    nbest: int = 1,
    extra_length: int = EXTRA_LENGTH,
    rule: type[WuRule] = WuRule,
    forbidden: Sequence[int] = (),
    start: Start = DecoderState,
    constraints: Constraints | None = None,
    lengths: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """For each source sentence its `nbest` best translations, best first.

    Sentences that are done leave the batch. `forbidden` words take probability, but none is written. `constraints`
    choose the continuations instead, from a beam that is theirs. `lengths` forces each translation to so many words,
    without an end: so systems are compared that would write different ones.
    """
    device = source.tokens.device
    beam = beam if constraints is None else constraints.widest
    state = start(model, model.encode(source, context), beam)
    limits = [rule.longest(length, extra_length) for length in source.segments.lengths.tolist()]
    if lengths is not None:
        limits = list(lengths)
    rewarded = limits
    if constraints is not None:
        limits, rewarded = constraints.begin(limits)
    results = [rule(rule.pool(nbest, beam), limit, alpha, most) for limit, most in zip(limits, rewarded, strict=True)]
    alive = torch.arange(len(results), device=device)  # which sentence each group of the batch is
    starts = beam * torch.arange(len(results), device=device)[:, None]  # each group's first row
    scores = torch.full((len(results), beam), -torch.inf, device=device)  # log-probabilities, [alive, beam]
    scores[:, 0] = 0.0  # all hypotheses of a sentence start the same: only one of them counts
    words = torch.full((len(results) * beam,), bos, device=device)  # [alive * beam]
    history = torch.empty((len(results), beam, 0), dtype=torch.int64, device=device)  # [alive, beam, step]
    room = torch.full((len(results), 1), beam, device=device)  # hypotheses that each may still go on with, [alive, 1]
    for length in range(1, max(limits, default=0) + 1):
        logits = state.logits(words)  # [alive * beam, words]
        if lengths is not None and state.words is None:
            logits[:, eos] = -torch.inf
        elif lengths is not None and state.words is not None:
            logits.unflatten(0, (-1, beam)).masked_fill_((state.words == eos)[:, None], -torch.inf)
        if constraints is None:
            # Beside the candidates, as many as can be forbidden: one of each forbidden word for each hypothesis.
            count = rule.candidates(beam)
            best, origin, word = best_continuations(logits, scores, count + beam * len(forbidden))
            word = word if state.words is None else state.words.gather(1, word)
            if forbidden:
                best, origin, word = _without(forbidden, best, origin, word, count)
            if rule.narrows:
                best = best.masked_fill(torch.arange(best.shape[1], device=device) >= room, -torch.inf)
        else:
            best, origin, word = constraints.best(logits, scores, alive, length)
        ends = word == eos
        if ends.any():
            if rule.ends_in_beam:
                best[:, beam:] = best[:, beam:].masked_fill(ends[:, beam:], -torch.inf)
            _collect(results, alive, history, best, origin, ends, length)
            if rule.narrows:
                room = room - (ends & best.isfinite()).sum(dim=1, keepdim=True)
            # The best `beam` candidates that go on: a stable sort puts those that end behind, order kept.
            going = torch.sort(ends.to(torch.int8), dim=1, stable=True).indices
            best = best.masked_fill(ends, -torch.inf)
            best, origin, word = (part.gather(1, going) for part in (best, origin, word))
        scores, origin, word = best[:, :beam], origin[:, :beam], word[:, :beam]  # [alive, beam]
        rows = (origin + starts).flatten()
        state.reorder(rows)
        history = torch.cat([history.flatten(0, 1)[rows].view(*word.shape, -1), word[:, :, None]], dim=2)
        done = _mark_done(results, alive, scores, history, length)
        if any(done):
            scores[torch.tensor(done, device=device)] = -torch.inf  # while they stay, nothing comes of them
        if sum(done) * LEAVE_AT >= len(done) or (constraints is not None and any(done)):
            kept = torch.tensor([i for i, d in enumerate(done) if not d], dtype=torch.int64, device=device)
            if not len(kept):
                break
            alive, scores, history, word = alive[kept], scores[kept], history[kept], word[kept]
            starts, room = starts[: len(kept)], room[kept]
            state.keep(kept)
        words = word.flatten()
    return [result.finished[:nbest] for result in results]


def _collect(
    results: list[WuRule], alive: Tensor, history: Tensor, best: Tensor, origin: Tensor, ends: Tensor, length: int
) -> None:
    """Takes the hypotheses that ended at this step into their sentences' results."""
    for group, candidate in (ends & best.isfinite()).nonzero().tolist():
        tokens = tuple(history[group, origin[group, candidate]].tolist())
        results[alive[group]].finish(tokens, best[group, candidate].item(), length)


def _without(
    forbidden: Sequence[int], best: Tensor, origin: Tensor, word: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first `count` candidates of each sentence that are none of the forbidden words."""
    barred = torch.isin(word, torch.tensor(forbidden, device=word.device))
    others = torch.sort(barred.to(torch.int8), dim=1, stable=True).indices[:, :count]
    best = best.masked_fill(barred, -torch.inf)
    return best.gather(1, others), origin.gather(1, others), word.gather(1, others)


def _mark_done(results: Sequence[WuRule], alive: Tensor, scores: Tensor, history: Tensor, length: int) -> list[bool]:
    """Which sentences are done; at its limit a sentence may take its hypotheses as they are."""
    done = []
    for group, (sentence, best) in enumerate(zip(alive.tolist(), scores[:, 0].tolist(), strict=True)):
        result = results[sentence]
        done.append(result.done(best, length))
        if done[-1] and result.takes_unfinished():
            for tokens, log_probability in zip(history[group].tolist(), scores[group].tolist(), strict=True):
                if log_probability > -math.inf:
                    result.finish(tuple(tokens), log_probability, length)
    return done
