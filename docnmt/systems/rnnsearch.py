"""RNNsearch (Bahdanau et al., 2015): docnmt/model/rnnsearch.py tells it; here it decodes word by word."""

from __future__ import annotations

import torch
from torch import Tensor

from docnmt.model.rnnsearch import Annotations, Recurrent, RNNsearch
from docnmt.systems.interface import System


class RecurrentState:
    """s_t of every hypothesis; annotations and their keys are made once a sentence."""

    words: Tensor | None = None

    def __init__(self, model: RNNsearch, annotations: Annotations, beam: int):
        self.model, self.annotations, self.beam = model, annotations, beam
        self.s = annotations.start.repeat_interleave(beam, dim=0)  # [rows, width]

    def logits(self, words: Tensor) -> Tensor:
        return self.model.softmax(self.model.read_out(self.advance(words))).float()

    def advance(self, words: Tensor) -> Recurrent:
        """The last word of each hypothesis, [rows] -> the decoder one word on"""
        e = self.model.embed(self.model.target_embedding, words)
        self.s, c = self.model.step(self.s, self.model.read(e), self.annotations)
        return Recurrent(e, self.s, c)

    def reorder(self, rows: Tensor) -> None:
        self.s = self.s[rows]

    def keep(self, sentences: Tensor) -> None:
        rows = (sentences[:, None] * self.beam + torch.arange(self.beam, device=sentences.device)).flatten()
        self.reorder(rows)
        self.annotations = self.annotations.of(sentences)


SYSTEM = System(RNNsearch, state=RecurrentState)
