"""Tu et al. (2018), "Learning to Remember Translation History with a Continuous Cache", on the Transformer.

A slot i of the cache has a key c_i, a value s_i and a word y_i: s_i is the decoder's state at y_i,
c_i what it had found in the source. At step t of the current sentence

    w        = softmax over i of c_t . c_i
    m_t      = sum_i w_i s_i
    lambda   = sigmoid(U s_t + V c_t + W m_t + b)       for each position and dimension
    s~_t     = (1 - lambda) s_t + lambda m_t            goes into the softmax in place of s_t

After each sentence its words go into the cache: a word that has a slot is averaged into it, (old +
new) / 2; another takes a free slot, or that of the word written longest ago. Here the cache is
rebuilt from the translations before a sentence, by running the sentence-level base over them
without a gradient. Ours: s_t is the decoder's top state, c_t what its top layer found in the
source; a remembered s_i is moved towards the word that was written, which the state before it could
not know; the gate has a bias, so that with `context.start = "sentence"` it begins nearly closed,
and step 2 close to the base.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.data.context import MemoryRule
from docnmt.data.packing import Contexts, History, Packed, Segments
from docnmt.model.transformer import Decoded, DocumentTransformer, Memory
from docnmt.systems.interface import System

CLOSED = -4.0  # lambda is then 0.02


class Slots(NamedTuple):
    keys: Tensor  # c_i, [sentences, slots, width]
    values: Tensor  # s_i
    words: Tensor  # y_i, [sentences, slots], the latest first; -1: no slot


def fill_slots(words: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """What a cache of `limit` slots holds after these words, [sentences, length], each row in order, -1: no word.

    Returns the slots' words, [sentences, slots], the latest first, and the weight of each position
    in each slot, [sentences, slots, length]. Computed at once instead of word by word: a slot
    depends on its word's own positions, and on whether the word lost its slot between two of them.
    """
    length = words.shape[1]
    at = torch.arange(length, device=words.device)
    there = words >= 0
    same = (words[:, :, None] == words[:, None, :]) & there[:, :, None]  # [sentences, length, length]
    before = torch.where(same & (at < at[:, None]), at, -1).amax(2) if length else words  # the word's last position
    # A word lost its slot between two of its positions if as many other words came as there are
    # slots. Of each other word the first position after `before` counts: the one whose own `before`
    # is earlier.
    between = (at > before[:, :, None]) & (at < at[:, None]) & (before[:, None, :] < before[:, :, None])
    averaged = (before >= 0) & ((between & there[:, None, :]).sum(2) < limit)
    after = same & (at > at[:, None])
    later = after.sum(2)  # how often the word comes again
    lost = (after & ~averaged[:, None, :]).any(2)  # its slot went to another word afterwards
    halvings = later + averaged  # the first word in a slot is not halved when it comes in
    weight = torch.where(there & ~lost, 0.5**halvings, 0.0)
    last = there & (later == 0)
    slot = last.flip(1).cumsum(1).flip(1) - 1  # of a word's last position
    slots = torch.arange(min(limit, int(last.sum(1).max()) if length else 0), device=words.device)
    holds = last[:, None, :] & (slot[:, None, :] == slots[:, None])  # [sentences, slots, length], its last position
    tags = torch.where(holds, words[:, None, :], -1).amax(2) if length else words
    return tags, (tags[:, :, None] == words[:, None, :]) * (tags >= 0)[:, :, None] * weight[:, None, :]


class ContinuousCacheTransformer(DocumentTransformer):
    def add_context(self) -> None:
        width, start = self.model_config.width, self.context_config.start
        self.context_u, self.context_v, self.context_w = (nn.Linear(width, width, bias=False) for _ in range(3))
        for matrix in (self.context_u, self.context_v, self.context_w):
            nn.init.xavier_uniform_(matrix.weight)
        self.context_bias = nn.Parameter(torch.full((width,), CLOSED if start == "sentence" else 0.0))

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        memory = super().encode(source)
        if context is None:
            return memory
        assert isinstance(context, History)
        return memory._replace(remembered=self.slots(context))

    @torch.no_grad()
    def slots(self, history: History) -> Slots:
        assert history.target is not None
        words, places = history.remembered_words()
        tags, weights = fill_slots(words, self.context_config.cache_words)
        s, c = super().decode(history.target, super().encode(history.source))
        wrote = (places - 1).clamp(min=0)  # the position that wrote a word is the one before it
        values = self.having_written(words.clamp(min=0), s[wrote])
        keys, values = (torch.bmm(weights.to(x.dtype), x) for x in (c[wrote], values))
        return Slots(keys, values, tags)

    def having_written(self, words: Tensor, s: Tensor) -> Tensor:
        """States before a word, [..., width], moved by their own length towards that word's row of
        W_o: if the state gave two words even chances, it now tells which one was written."""
        return s + s.norm(dim=-1, keepdim=True) * F.normalize(self.softmax.weight[words], dim=-1).to(s.dtype)

    def recall(self, decoded: Decoded, segments: Segments, remembered: Slots) -> Decoded:
        """s~_t in place of s_t"""
        s, c = (segments.pad(x) for x in decoded)  # [sentences, positions, width]
        filled = (remembered.words >= 0)[:, None, :]  # [sentences, 1, slots]
        scores = torch.bmm(c, remembered.keys.transpose(1, 2)).float()
        w = scores.masked_fill(~filled, torch.finfo(scores.dtype).min).softmax(2)
        m = torch.bmm(w, remembered.values.to(w.dtype)).to(s.dtype)  # under autocast the products are narrower
        gate = torch.sigmoid(self.context_u(s) + self.context_v(c) + self.context_w(m) + self.context_bias).to(s.dtype)
        recalled = torch.where(filled.any(2, keepdim=True), torch.lerp(s, m, gate), s)
        return decoded._replace(states=segments.unpad(recalled))


SYSTEM = System(ContinuousCacheTransformer, rule=lambda _: MemoryRule)
