"""Kuang et al. (2017) on RNNsearch, the base it was made for: cache.py with s_t the state of the decoder's GRU."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.context import MemoryRule
from docnmt.data.packing import Packed
from docnmt.model.rnnsearch import Annotations, Recurrent, RNNsearch
from docnmt.systems.cache import CacheModel, learn
from docnmt.systems.interface import System
from docnmt.systems.rnnsearch import RecurrentState


class CacheRNNsearch(CacheModel, RNNsearch):
    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, context, source_vocabulary, target_vocabulary)
        self.add_cache(context, source_vocabulary, 4 * model.width)  # c_t is twice as wide as s_t

    def e(self, words: Tensor) -> Tensor:
        return self.target_embedding(words) * math.sqrt(self.model_config.width)

    def states(self, target_in: Packed, annotations: Annotations) -> tuple[Tensor, Tensor]:
        return self.beside(self.decode(target_in, annotations), target_in.tokens)

    def beside(self, decoded: Recurrent, previous: Tensor) -> tuple[Tensor, Tensor]:
        return self.read_out(decoded), torch.cat([decoded.states, decoded.attended, self.e(previous)], dim=-1)


class RecurrentCacheState(RecurrentState):
    model: CacheRNNsearch

    def logits(self, words: Tensor) -> Tensor:
        if self.annotations.remembered is None:
            return super().logits(words)
        cache = self.annotations.remembered.of(torch.arange(len(words), device=words.device) // self.beam)
        return self.model.log_p(*self.model.beside(self.advance(words), words), cache)


SYSTEM = System(CacheRNNsearch, rule=lambda _: MemoryRule, state=RecurrentCacheState, learn=learn)
