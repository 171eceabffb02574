"""Beam search, by default with the length penalty of Wu et al. (2016), as the paper decodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.data.packing import Contexts, Packed
from docnmt.decoding.constraints import Constraints
from docnmt.engine.native import accelerator
from docnmt.model.base import State
from docnmt.model.transformer import DecoderState

# ---- How hypotheses of different lengths are compared, and when a search ends ----

# A rule keeps one sentence's finished hypotheses, best first. Wu's is the paper's. Marian's and Hugging Face's are for
# imported models: with them decoding gives the same words as the program that the model comes from.

EXTRA_LENGTH = 50  # a translation may have this many more pieces than its source
LONGEST = 3  # Marian: a translation may be this many times as long as its source, both counted with end marks


@dataclass(frozen=True, order=True)
class Hypothesis:
    score: float  # log-probability / length penalty
    log_probability: float
    tokens: tuple[int, ...]  # without begin and end marks


def length_penalty(length: int, alpha: float) -> float:
    """Wu et al. (2016), equation 14."""
    return ((5 + length) / 6) ** alpha


@dataclass
class WuRule:
    """As the paper decodes: a beam keeps its width, and the search ends when no active hypothesis can be better.

    Each step looks at 2 * beam continuations, so that `beam` of them are left if the others end the sentence.
    """

    wanted: int
    limit: int
    alpha: float
    rewarded: int  # the length beyond which the penalty no longer changes
    finished: list[Hypothesis] = field(default_factory=list)

    narrows = False  # whether each finished hypothesis takes one place off the beam
    ends_in_beam = False  # whether an end mark counts only among the best `beam` candidates

    @staticmethod
    def pool(nbest: int, beam: int) -> int:
        """How many finished hypotheses to wait for."""
        return nbest

    @staticmethod
    def candidates(beam: int) -> int:
        return 2 * beam if beam > 1 else 1  # a beam of one is greedy: the end wins or it does not

    @staticmethod
    def longest(source: int, extra: int) -> int:
        """The most pieces a translation may have, given the length of its source; end marks are counted."""
        return source + extra

    def penalty(self, length: int) -> float:
        return length_penalty(min(length, self.rewarded), self.alpha)

    def finish(self, tokens: tuple[int, ...], log_probability: float, length: int) -> None:
        self.finished.append(Hypothesis(log_probability / self.penalty(length), log_probability, tokens))
        self.finished.sort(reverse=True)
        del self.finished[self.wanted :]

    def done(self, best_alive: float, length: int) -> bool:
        if length >= self.limit or best_alive == -math.inf:
            return True
        # An active hypothesis only loses probability; the longest one would gain most from the penalty.
        bound = best_alive / self.penalty(self.limit)
        return len(self.finished) == self.wanted and bound <= self.finished[-1].score

    def takes_unfinished(self) -> bool:
        """Whether hypotheses without an end mark count when the search is over."""
        return not self.finished


class MarianLengths(WuRule):
    """Marian's scores, divided by length ** alpha, in a beam that keeps its width, as constrained search requires."""

    @staticmethod
    def longest(source: int, extra: int) -> int:
        return LONGEST * source

    def penalty(self, length: int) -> float:
        return min(length, self.rewarded) ** self.alpha


class MarianRule(MarianLengths):
    """A finished hypothesis leaves the beam, which is then narrower by one. The search ends with the last one, or
    at three times the source's length, where all that are left count as finished."""

    narrows = True

    @staticmethod
    def candidates(beam: int) -> int:
        return beam

    def done(self, best_alive: float, length: int) -> bool:
        return length >= self.limit or best_alive == -math.inf

    def takes_unfinished(self) -> bool:
        return True


class HuggingFaceRule(MarianLengths):
    """transformers' `generate`: an end mark counts only among the best `beam` candidates, the search waits for `beam`
    finished hypotheses, and it ignores that active ones may gain by growing longer."""

    ends_in_beam = True

    @staticmethod
    def pool(nbest: int, beam: int) -> int:
        return max(nbest, beam)

    @staticmethod
    def longest(source: int, extra: int) -> int:
        return 511  # max_length of its Marian models, without the begin mark

    def done(self, best_alive: float, length: int) -> bool:
        bound = best_alive / self.penalty(length)
        full = len(self.finished) == self.wanted and bound <= self.finished[-1].score
        return full or length >= self.limit or best_alive == -math.inf


def rule_of(search: str, constrained: bool) -> type[WuRule]:
    """The rule that `model.search` names in a recipe."""
    rules = {"wu": WuRule, "marian": MarianLengths if constrained else MarianRule, "huggingface": HuggingFaceRule}
    return rules[search]


# ---- Beam search ----

LEAVE_AT = 8  # finished sentences stay in the batch until they are one in 8: removing them copies the others


class Model(Protocol):
    def encode(self, source: Packed, context: Contexts | None = None) -> Any:
        """What a decoder state starts from."""


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

    Finished sentences leave the batch. `forbidden` words keep their share of the probability but are never written.
    `constraints`, if given, choose the continuations and the width of the beam. `lengths` forces each translation to a
    length, without an end mark, to compare the speed of systems that write different translations.
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
    alive = torch.arange(len(results), device=device)  # the sentence of each group of the batch
    starts = beam * torch.arange(len(results), device=device)[:, None]  # each group's first row
    scores = torch.full((len(results), beam), -torch.inf, device=device)  # log-probabilities, [alive, beam]
    scores[:, 0] = 0.0  # all hypotheses of a sentence start the same: only one may count
    words = torch.full((len(results) * beam,), bos, device=device)  # [alive * beam]
    history = torch.empty((len(results), beam, 0), dtype=torch.int64, device=device)  # [alive, beam, step]
    room = torch.full((len(results), 1), beam, device=device)  # places left in a beam that narrows, [alive, 1]
    for length in range(1, max(limits, default=0) + 1):
        logits = state.logits(words)  # [alive * beam, words]
        if lengths is not None and state.words is None:
            logits[:, eos] = -torch.inf
        elif lengths is not None and state.words is not None:
            logits.unflatten(0, (-1, beam)).masked_fill_((state.words == eos)[:, None], -torch.inf)
        if constraints is None:
            # Some candidates may be forbidden: at most each forbidden word once per hypothesis.
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
            # The best `beam` candidates that continue: a stable sort puts those that end last and keeps the order.
            going = torch.sort(ends.to(torch.int8), dim=1, stable=True).indices
            best = best.masked_fill(ends, -torch.inf)
            best, origin, word = (part.gather(1, going) for part in (best, origin, word))
        scores, origin, word = best[:, :beam], origin[:, :beam], word[:, :beam]  # [alive, beam]
        rows = (origin + starts).flatten()
        state.reorder(rows)
        history = torch.cat([history.flatten(0, 1)[rows].view(*word.shape, -1), word[:, :, None]], dim=2)
        done = _mark_done(results, alive, scores, history, length)
        if any(done):
            scores[torch.tensor(done, device=device)] = -torch.inf  # they stay in the batch, but no longer count
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
    """Adds the hypotheses that ended at this step to the results of their sentences."""
    for group, candidate in (ends & best.isfinite()).nonzero().tolist():
        tokens = tuple(history[group, origin[group, candidate]].tolist())
        results[alive[group]].finish(tokens, best[group, candidate].item(), length)


def _without(
    forbidden: Sequence[int], best: Tensor, origin: Tensor, word: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first `count` candidates of each sentence that are not forbidden."""
    barred = torch.isin(word, torch.tensor(forbidden, device=word.device))
    others = torch.sort(barred.to(torch.int8), dim=1, stable=True).indices[:, :count]
    best = best.masked_fill(barred, -torch.inf)
    return best.gather(1, others), origin.gather(1, others), word.gather(1, others)


def _mark_done(results: Sequence[WuRule], alive: Tensor, scores: Tensor, history: Tensor, length: int) -> list[bool]:
    """Which sentences are done. At its length limit a sentence may take its hypotheses unfinished."""
    done = []
    for group, (sentence, best) in enumerate(zip(alive.tolist(), scores[:, 0].tolist(), strict=True)):
        result = results[sentence]
        done.append(result.done(best, length))
        if done[-1] and result.takes_unfinished():
            for tokens, log_probability in zip(history[group].tolist(), scores[group].tolist(), strict=True):
                if log_probability > -math.inf:
                    result.finish(tuple(tokens), log_probability, length)
    return done


# ---- The best continuations of hypotheses among all words of a large vocabulary ----

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
    """The best words are in the blocks with the best maxima: only these blocks are searched word by word."""
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
    return found, row.gather(1, block) % beam, word.clamp_(max=words - 1)  # beyond are the padding's, at -inf
