"""Document-level context: sections 2.2, 2.3 and 2.3.3 of the paper, in its order; transformer.py has 2.3.1 and 2.3.2.

The paper's symbols:
    X_c     embedded words of the context           C^(n)   annotation after layer n of the context encoder
    B^(n)   encoder state after self-attention      D^(n)   the same after context attention
    E^(n)   decoder state after self-attention      F^(n)   the same after context attention
    H       input of a sub-layer                    lambda  the gate, for each position and dimension
Every parameter made here belongs to theta_d (section 2.4), and its name says so: it is under a module whose name
starts with "context" (see `is_document_parameter`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError
from docnmt.data.packing import History, Segments
from docnmt.model.layers import (
    CrossAttention,
    Dropout,
    FeedForward,
    Residual,
    SelfAttention,
    init_recurrent,
    run_recurrent,
)


def is_document_parameter(name: str) -> bool:
    """Whether a parameter is in theta_d (trained in step 2) or in theta_s (trained in step 1, then frozen)."""
    return any(part.startswith("context") for part in name.split("."))


# ---- 2.2 Document-level context representation ----


class ContextEncoderLayer(nn.Module):
    def __init__(self, width: int, filter_width: int, heads: int, dropout: float):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.after_attention = Residual(width, dropout)
        self.feed_forward = FeedForward(width, filter_width)
        self.after_feed_forward = Residual(width, dropout)

    def forward(self, c: Tensor, segments: Segments) -> Tensor:
        a = self.after_attention(c, self.attention(c, segments))  # A^(n) = MultiHead(C^(n-1), C^(n-1), C^(n-1))
        return self.after_feed_forward(a, self.feed_forward(a))  # C^(n) = [FNN(A_1); ...; FNN(A_M)]


class ContextEncoder(nn.Module):
    """X_c -> C^(N_c), with C^(0) = X_c."""

    layers: list[ContextEncoderLayer]  # a module list, typed by what it holds

    def __init__(self, layers: int, width: int, filter_width: int, heads: int, dropout: float):
        super().__init__()
        made = (ContextEncoderLayer(width, filter_width, heads, dropout) for _ in range(layers))
        self.layers = nn.ModuleList(made)  # type: ignore[assignment]

    def forward(self, x_c: Tensor, segments: Segments) -> Tensor:
        for layer in self.layers:
            x_c = layer(x_c, segments)
        return x_c


class ContextEmbeddings(nn.Module):
    """C = the embeddings of the context's words, without positions:
    `context_representation=embedding` in the authors' released code."""

    def forward(self, words: Tensor, segments: Segments) -> Tensor:
        return words


class ContextLSTM(nn.Module):
    """C = the states of a bidirectional LSTM over these embeddings: `bilstm` in the released code.
    There each direction is as wide as the model; here half as wide, so that C has the model's
    width."""

    def __init__(self, width: int):
        super().__init__()
        if width % 2:
            raise DocnmtError(
                f"model.width {width} is odd: an LSTM needs half of it for each direction\n  Use an even width."
            )
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        init_recurrent(self.lstm)
        for name, bias in self.lstm.named_parameters():
            if name.startswith("bias_ih"):
                nn.init.ones_(bias.data.split(width // 2)[1])  # of the forget gate

    def forward(self, words: Tensor, segments: Segments) -> Tensor:
        return segments.unpad(run_recurrent(self.lstm, words, segments)[0])


class EncodedSentences(nn.Module):
    """Ours, instead of a context encoder: the source encoder's states of each sentence before,
    encoded alone, plus a learnt embedding of how far back it is."""

    def __init__(self, previous: int, width: int):
        super().__init__()
        self.distance = nn.Parameter(torch.empty(max(1, previous), width))  # of the nearest sentence first
        nn.init.normal_(self.distance, std=width**-0.5)

    def forward(self, states: Tensor, history: History) -> tuple[Tensor, Segments]:
        """S^(N_s) of all sentences before -> C, [context tokens, width], those of one sentence in one segment"""
        distances = history.distances.clamp(max=len(self.distance) - 1)  # farther than in training: like the farthest
        lengths = history.source.segments.lengths
        return states + self.distance[distances.repeat_interleave(lengths)], history.joined


# ---- 2.3 Document-level context integration ----


class ContextAttention(nn.Module):
    """The added sub-layer: D^(n) = MultiHead(B^(n), C^(N_c), C^(N_c)); in the decoder F^(n) from E^(n)."""

    def __init__(self, width: int, heads: int, connection: str, start: str, opening: float = 0.5, dropout: float = 0.0):
        super().__init__()
        self.attention = CrossAttention(width, heads)
        self.connection = Connection(connection, start, width, opening)
        self.dropout = Dropout(dropout if connection == "residual" else 0.0)  # none before a gate, as in released code
        if start == "sentence":
            # SubLayer(H) is zero at first, so the model starts as the sentence model. The output
            # matrix still has a gradient from the first update on; once it has moved, so has
            # everything before it.
            nn.init.zeros_(self.attention.output.weight)

    def forward(self, h: Tensor, segments: Segments, context: Tensor, context_segments: Segments) -> Tensor:
        sublayer = self.attention(h, segments, context, context_segments).to(h.dtype)
        return self.connection(h, self.dropout(sublayer))


# ---- 2.3.3 Context gating ----


class Gate(nn.Module):
    """lambda = sigmoid(W_i H + W_s SubLayer(H)), for each position and dimension.

    Without a bias, as in the paper, it starts half open. `opening`, the share 1 - lambda of the
    context that is let in at first, is set by a bias, which is then learnt.
    """

    def __init__(self, width: int, opening: float = 0.5):
        super().__init__()
        self.w_i = nn.Linear(width, width, bias=opening != 0.5)
        self.w_s = nn.Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.w_i.weight)
        nn.init.xavier_uniform_(self.w_s.weight)
        if opening != 0.5:
            nn.init.constant_(self.w_i.bias, math.log(1 / opening - 1))

    def forward(self, h: Tensor, sublayer: Tensor) -> Tensor:
        return torch.sigmoid(self.w_i(h) + self.w_s(sublayer)).to(h.dtype)  # under autocast the products are narrower


class Connection(nn.Module):
    """How SubLayer(H) joins H:

        gate, paper             lambda H + (1 - lambda) SubLayer(H), then LayerNorm
        residual, paper         H + SubLayer(H), then LayerNorm: the row "w/o" of the paper's gating table
        gate, sentence          H + (1 - lambda) SubLayer(H)
        residual, sentence      H + SubLayer(H)

    The last two are ours: the identity while SubLayer(H) = 0, as at the start of step 2.
    """

    def __init__(self, connection: str, start: str, width: int, opening: float = 0.5):
        super().__init__()
        self.gate = Gate(width, opening) if connection == "gate" else None
        self.norm = nn.LayerNorm(width) if start == "paper" else None

    def forward(self, h: Tensor, sublayer: Tensor) -> Tensor:
        if self.gate is None:
            joined = h + sublayer
        elif self.norm is None:
            joined = torch.addcmul(h, 1 - self.gate(h, sublayer), sublayer)
        else:
            joined = torch.lerp(sublayer, h, self.gate(h, sublayer))
        return joined if self.norm is None else self.norm(joined)
