"""Wang et al. (2017), "Exploiting Cross-Sentence Context for Neural Machine Translation", on RNNsearch.

    S_k = last state of a GRU over the words of the k-th sentence before
    D   = last state of a GRU over S_1 ... S_K, the nearest sentence last

D is used in three places:

    h_0 = tanh(W_e D + b_e)                         the encoder's states before its first word, in each direction
    s_0 = tanh(W_s backward h_1 + W_d D)            the decoder's first state
    s_t = GRU(s_t-1, [e(y_t-1); c_t; z_t D])        an auxiliary context, let through by a gate
    z_t = sigmoid(U_z s_t-1 + W_z e(y_t-1) + C_z c_t + V_z D + b)

The paper's gate reads the state, the last word and the source; V_z D and b are from the authors'
released code. The base's matrices keep their shapes: the part of z_t D is added to the decoder's
three gates. Ours: the source embedding serves the context, too; h_0 is a map of D (the authors take
D itself); with `context.start = "sentence"` the maps of D begin as zeros, so that step 2 starts as
the base.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from docnmt.data.context import HistoryRule
from docnmt.data.packing import Contexts, History, Packed, Segments
from docnmt.model.layers import linear, run_recurrent
from docnmt.model.rnnsearch import Annotations, RecurrentState, RNNsearch, gru, matrix
from docnmt.systems.interface import System


class Summary(NamedTuple):
    """Of the sentences before each sentence of a batch."""

    d: Tensor  # D, [sentences, width]
    gate: Tensor  # V_z D, [sentences, width]


class HierarchicalRNNsearch(RNNsearch):
    def add_context(self) -> None:
        width = self.model_config.width
        self.context_words = gru(width, width)
        self.context_sentences = gru(width, width)
        self.context_encoder_start = linear(width, 2 * width)  # W_e, for both directions
        self.context_decoder_start = matrix(width, width)  # W_d
        self.context_gate = linear(3 * width, width)  # [U_z; C_z]
        self.context_gate_of_word = matrix(width, width)  # W_z
        self.context_gate_of_document = matrix(width, width)  # V_z
        self.context_gates = matrix(width, 3 * width)  # of z_t D
        if self.context_config.start == "sentence":
            for added in (self.context_encoder_start, self.context_decoder_start, self.context_gates):
                nn.init.zeros_(added.weight)

    def summarise(self, history: History) -> Tensor:
        """D, [sentences, width]"""
        words, segments = self.embed(self.source_embedding, history.source.tokens), history.source.segments
        _, sentences = run_recurrent(self.context_words, words, segments)  # S_k, [1, context sentences, width]
        _, document = run_recurrent(self.context_sentences, self.dropout(sentences[0]), Segments(history.counts))
        return self.dropout(document[0])

    def encode(self, source: Packed, context: Contexts | None = None) -> Annotations:
        if context is None:
            return super().encode(source)
        assert isinstance(context, History)
        d = self.summarise(context)
        first = torch.tanh(self.context_encoder_start(d)).unflatten(-1, (2, -1)).transpose(0, 1).contiguous()
        return self.annotate(source, first, self.context_decoder_start(d))._replace(
            remembered=Summary(d, self.context_gate_of_document(d))
        )

    def read(self, words: Tensor) -> Tensor:
        """To the decoder's three gates and to z_t, side by side"""
        return torch.cat([super().read(words), self.context_gate_of_word(words)], dim=-1)

    def gates(self, s: Tensor, word: Tensor, c: Tensor, annotations: Annotations) -> Tensor:
        to_gates, to_z = word.tensor_split([-s.shape[1]], dim=-1)
        gates = super().gates(s, to_gates, c, annotations)
        if annotations.remembered is None:
            return gates
        rows = len(s) // len(annotations.start)  # of each sentence
        d, of_d = (part.repeat_interleave(rows, dim=0) for part in annotations.remembered)  # [rows, width]
        z = torch.sigmoid(self.context_gate(torch.cat([s, c], dim=-1)) + to_z + of_d)
        return gates + self.context_gates(z * d)


BASE = System(RNNsearch, state=RecurrentState)  # without context
SYSTEM = System(HierarchicalRNNsearch, rule=lambda _: HistoryRule, state=RecurrentState)
