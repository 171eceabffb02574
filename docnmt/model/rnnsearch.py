"""RNNsearch (Bahdanau et al., 2015, "Neural Machine Translation by Jointly Learning to Align and Translate").

    h_j  = [forward h_j; backward h_j]                     annotations: a GRU in each direction over e(x_1) ... e(x_I)
    s_0  = tanh(W_s backward h_1)
    a_tj = softmax over j of v tanh(W_a s_t-1 + U_a h_j)   additive attention
    c_t  = sum over j of a_tj h_j
    s_t  = GRU(s_t-1, [e(y_t-1); c_t])
    t_t  = maxout(U_o s_t + V_o e(y_t-1) + C_o c_t)        the larger one of each two
    p(y_t | y_<t, x) = softmax(W_o t_t)

Embeddings, states and t_t have the recipe's width, annotations twice that; one layer each, no
heads. A GRU is torch's: the reset gate acts on U s, not on s, so that one product serves all gates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, Contexts, Packed
from docnmt.model.base import TranslationModel, hypotheses_of, select
from docnmt.model.layers import Dropout, init_recurrent, linear, run_recurrent


class Annotations(NamedTuple):
    """What the decoder needs of a source sentence, one row each."""

    states: Tensor  # h, [sentences, longest, 2 width]
    keys: Tensor  # U_a h, [sentences, longest, width]
    mask: Tensor  # [sentences, 1, longest], True where there is a token
    start: Tensor  # s_0, [sentences, width]
    remembered: Any = None  # what a system keeps of the sentences before


class Recurrent(NamedTuple):
    """The decoder at every position of the target."""

    words: Tensor  # e(y_t-1), [target tokens, width]
    states: Tensor  # s_t, [target tokens, width]
    attended: Tensor  # c_t, [target tokens, 2 width]


class RNNsearch(TranslationModel):
    def __init__(self, model: ModelConfig, context: ContextConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__(model, context)
        width = model.width
        self.source_embedding = nn.Embedding(source_vocabulary, width)
        self.target_embedding = nn.Embedding(target_vocabulary, width)
        self.dropout = Dropout(model.dropout)
        self.encoder = gru(width, width, bidirectional=True)
        self.start = linear(width, width)  # W_s
        self.query = matrix(width, width)  # W_a
        self.key = matrix(2 * width, width)  # U_a
        self.energy = nn.Parameter(torch.empty(width))  # v
        # The decoder's GRU, its three gates (reset, update, new state) side by side. What the words
        # give to them is computed for a whole sentence at once.
        self.word_gates = linear(width, 3 * width)
        self.source_gates = matrix(2 * width, 3 * width)
        self.state_gates = linear(width, 3 * width)
        self.readout = linear(4 * width, 2 * width)  # [U_o; V_o; C_o]
        self.softmax = nn.Linear(width, target_vocabulary, bias=False)  # W_o
        for part in self.state_gates.weight.data.split(width):
            nn.init.orthogonal_(part)
        for table in (self.source_embedding, self.target_embedding, self.softmax):
            nn.init.normal_(table.weight, std=width**-0.5)
        nn.init.uniform_(self.energy, -(width**-0.5), width**-0.5)
        self.tie_weights()
        self.add_context()

    def embed(self, embedding: nn.Embedding, tokens: Tensor) -> Tensor:
        return self.dropout(embedding(tokens) * math.sqrt(self.model_config.width))  # [tokens, width]

    # ---- encoder ----

    def encode(self, source: Packed, context: Contexts | None = None) -> Annotations:
        return self.annotate(source)

    def annotate(self, source: Packed, first: Tensor | None = None, start: Tensor | float = 0.0) -> Annotations:
        """`first`: states of both directions before the first word, [2, sentences, width], instead
        of zeros; `start` is added before the tanh of s_0."""
        h, _ = run_recurrent(self.encoder, self.embed(self.source_embedding, source.tokens), source.segments, first)
        s_0 = torch.tanh(self.start(h[:, 0].chunk(2, dim=-1)[1]) + start)
        h = self.dropout(h)
        return Annotations(h, self.key(h), source.segments.mask[:, None], s_0)

    # ---- decoder: rows are sentences, or several hypotheses of each sentence, side by side ----

    def attend(self, s: Tensor, annotations: Annotations) -> tuple[Tensor, Tensor]:
        """s_t-1, [rows, width] -> c_t, [rows, 2 width], and a_t, [rows, longest]"""
        query = self.query(s).unflatten(0, (len(annotations.start), -1))  # [sentences, rows a sentence, width]
        energies = _Energies.apply(query, annotations.keys, self.energy)  # [sentences, rows a sentence, longest]
        weights = energies.masked_fill(~annotations.mask, -torch.inf).softmax(dim=-1)
        return (weights @ annotations.states).flatten(0, 1), weights.flatten(0, 1)

    def read(self, words: Tensor) -> Tensor:
        """e(y_t-1), [words, width] -> what the word gives to all gates, for whole sentences at once"""
        return self.word_gates(words)

    def gates(self, s: Tensor, word: Tensor, c: Tensor, annotations: Annotations) -> Tensor:
        """What s_t's gates get beside the state: from the last word as `read`, and from the source, [rows, 3 width]"""
        return word + self.source_gates(c)

    def step(self, s: Tensor, word: Tensor, annotations: Annotations) -> tuple[Tensor, Tensor]:
        """s_t-1 and y_t-1 as `read` -> s_t and c_t"""
        c, _ = self.attend(s, annotations)
        return gru_step(s, self.gates(s, word, c, annotations), self.state_gates(s)), c

    def decode(self, target_in: Packed, annotations: Annotations) -> Recurrent:
        words, segments = self.embed(self.target_embedding, target_in.tokens), target_in.segments
        s, states, attended = annotations.start, [], []
        for word in segments.pad(self.read(words)).unbind(dim=1):
            s, c = self.step(s, word, annotations)
            states.append(s)
            attended.append(c)
        return Recurrent(words, *(segments.unpad(torch.stack(rows, dim=1)) for rows in (states, attended)))

    def read_out(self, decoded: Recurrent) -> Tensor:
        """t_t, [target tokens, width]"""
        each_two = self.readout(torch.cat([decoded.states, decoded.words, decoded.attended], dim=-1)).chunk(2, dim=-1)
        return self.dropout(torch.maximum(*each_two))

    def forward(self, batch: Batch) -> Tensor:
        """t_1 ... t_J of every sentence, [target tokens, width]"""
        return self.read_out(self.decode(batch.target_in, self.encode(batch.source, batch.context)))

    def alignment(self, batch: Batch) -> Tensor:
        """a_t, which the model learns to align with"""
        annotations = self.encode(batch.source, batch.context)
        states = batch.target_in.segments.pad(self.decode(batch.target_in, annotations).states)  # s_t; a_t needs s_t-1
        before = torch.cat([annotations.start[:, None], states[:, :-1]], dim=1)
        return torch.stack([self.attend(s, annotations)[1] for s in before.unbind(dim=1)], dim=1)


class RecurrentState:
    """RNNsearch's: s_t of every hypothesis."""

    words: Tensor | None = None

    def __init__(self, model: RNNsearch, annotations: Annotations, beam: int):
        self.model, self.annotations, self.beam = model, annotations, beam
        self.s = annotations.start.repeat_interleave(beam, dim=0)  # [rows, width]

    def logits(self, words: Tensor) -> Tensor:
        return self.model.logits(self.advance(words), words, self.annotations.remembered)

    def advance(self, words: Tensor) -> Recurrent:
        """The last word of each hypothesis, [rows] -> what `model.decode` has for the next one"""
        e = self.model.embed(self.model.target_embedding, words)
        self.s, c = self.model.step(self.s, self.model.read(e), self.annotations)
        return Recurrent(e, self.s, c)

    def reorder(self, rows: Tensor) -> None:
        self.s = self.s[rows]

    def keep(self, sentences: Tensor) -> None:
        self.reorder(hypotheses_of(sentences, self.beam))
        self.annotations = select(self.annotations, sentences)


class _Energies(torch.autograd.Function):
    """v tanh(query + key) for every query and key of a sentence.

    (query [sentences, n, width], key [sentences, longest, width], v [width]) -> [sentences, n,
    longest]. The tanh is by far the largest tensor of a step: it is computed again for the
    derivative and not kept for every target word.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, v)
        return torch.tanh(query[:, :, None] + key[:, None]) @ v

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, v = ctx.saved_tensors
        t = torch.tanh(query[:, :, None] + key[:, None])  # [sentences, n, longest, width]
        v_gradient = gradient.flatten() @ t.flatten(0, 2)
        slope = t.square_().neg_().add_(1).mul_(v).mul_(gradient[..., None])
        return slope.sum(dim=2), slope.sum(dim=1), v_gradient


def matrix(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(layer.weight)
    return layer


# ---- gated recurrent units ----


def gru(inputs: int, width: int, bidirectional: bool = False) -> nn.GRU:
    made = nn.GRU(inputs, width, batch_first=True, bidirectional=bidirectional)
    init_recurrent(made)
    return made


def gru_step(s: Tensor, of_input: Tensor, of_state: Tensor) -> Tensor:
    """r = sigmoid(W_r x + U_r s), z = sigmoid(W_z x + U_z s), n = tanh(W_n x + r U_n s), z s + (1 - z) n"""
    width = s.shape[1]
    r, z = torch.sigmoid(of_input[:, : 2 * width] + of_state[:, : 2 * width]).chunk(2, dim=1)
    n = torch.tanh(torch.addcmul(of_input[:, 2 * width :], r, of_state[:, 2 * width :]))
    return torch.lerp(n, s, z)
