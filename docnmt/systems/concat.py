"""Tiedemann and Scherrer (2017), "Neural Machine Translation with Extended Context".

The model is the sentence-level Transformer; only what it reads and writes changes:

    2+1         cc_w_1 ... cc_w_n x_k     ->  y_k                      every word w of x_{k-1} has a prefix
    2-to-1      x_{k-1} BREAK x_k         ->  y_k
    2+2         x_{k-1} BREAK x_k         ->  y_{k-1} BREAK y_k        what follows the break is the translation

The authors' are 2+1 and 2+2, called 2-to-2 below. With `context.previous` above 1 more sentences
come before, each with its break, or with all their words prefixed. The first sentence of a document
has nothing before it.

Ours: the break is the begin mark of either language, which is in every vocabulary and in no
sentence, so that a sentence model keeps its pieces. A word with its prefix is a word of its own:
its pieces have a second embedding, which begins as that of the same piece without the prefix. The
other kinds have no theta_d: step 2 trains the whole model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.context import Context, ContextRule, Ids, Ints, Neighbours, Sizes
from docnmt.data.packing import Packed
from docnmt.data.store import TokenStore
from docnmt.data.subwords import Subwords
from docnmt.model.layers import Dropout, Embedding
from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.interface import System


@dataclass(frozen=True)
class ToOne(ContextRule):
    """2-to-1: sentences before go into the source; if they are too long, their far end is cut off."""

    def __post_init__(self) -> None:
        if self.spec.following:
            raise DocnmtError("concat only uses sentences before the current one\n  Set the context's following to 0.")

    def context(self, around: Neighbours) -> Context | None:
        return None

    def source(self, sentence: Ids, around: Neighbours) -> Ids:
        return [*self._with_breaks(around.before, self.bos), *sentence]

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        return np.zeros_like(sizes.before), (sizes.before + sizes.count).clip(max=self.max_tokens), 0

    def _with_breaks(self, sentences: Sequence[Ids], mark: int) -> list[int]:
        """All in a row, a break after each; also after an empty one, so that `added` can tell the length."""
        row = [token for sentence in sentences for token in (*sentence, mark)]
        return row[max(0, len(row) - self.max_tokens) :]


@dataclass(frozen=True)
class ToTwo(ToOne):
    """2-to-2: their translations go into the target as well. The decoder writes them itself, so
    sentences need not be decoded in order."""

    sees_translations = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_bos == self.target_eos:
            raise DocnmtError(
                "context.translate_previous needs a begin-of-sentence token, which the target's subword model lacks\n"
                "  Set it to false, or let docnmt prepare train the subword model."
            )

    def target(self, sentence: Ids, around: Neighbours) -> Ids:
        return [*self._with_breaks(around.translations, self.target_bos), *sentence]

    def own(self, written: Ids, around: Neighbours) -> Ids:
        """What follows the last expected break, or the last of fewer; without any break, all of it."""
        expected = self._with_breaks(around.before, self.bos).count(self.bos)
        breaks = [place for place, token in enumerate(written) if token == self.target_bos][:expected]
        return written[breaks[-1] + 1 :] if breaks else written

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        context, source, _ = super().added(sizes)
        return context, source, (sizes.translated + sizes.count).clip(max=self.max_tokens)


# ---- 2+1: words before have a prefix ----


@dataclass(frozen=True)
class Prefixed(ToOne):
    """2+1: each word of the sentences before has a prefix; there is no break. A prefixed piece is
    ~id, a negative number, whatever the size of the vocabulary."""

    def source(self, sentence: Ids, around: Neighbours) -> Ids:
        row = [~token for before in around.before for token in before]
        return [*row[max(0, len(row) - self.max_tokens) :], *sentence]

    def added(self, sizes: Sizes) -> tuple[Ints, Ints | int, Ints | int]:
        return np.zeros_like(sizes.before), sizes.before.clip(max=self.max_tokens), 0


class PrefixTransformer(DocumentTransformer):
    """The Transformer with a second table of embeddings, for pieces with the prefix."""

    def add_context(self) -> None:
        vocabulary, width = self.source_embedding.weight.shape
        self.context_embedding = Embedding(vocabulary, width, self.model_config.positions)

    def embed(self, embedding: Embedding, packed: Packed, dropout: Dropout | None = None) -> Tensor:
        if embedding is not self.source_embedding:
            return super().embed(embedding, packed, dropout)
        prefixed = packed.tokens < 0  # maybe none; the second table still takes part so that it has a gradient
        pieces, segments = torch.where(prefixed, ~packed.tokens, packed.tokens), packed.segments
        tables = (table(pieces, segments.positions, segments.longest) for table in (self.context_embedding, embedding))
        return (dropout or self.dropout)(torch.where(prefixed[:, None], *tables))


@torch.no_grad()
def learn(model: DocumentTransformer, documents: TokenStore, target: Subwords) -> None:
    """At first a word with the prefix means the same as without."""
    if isinstance(model, PrefixTransformer):
        model.context_embedding.weight.copy_(model.source_embedding.weight)


def make_model(model: ModelConfig, context: ContextConfig, *vocabularies: int) -> DocumentTransformer:
    kind = PrefixTransformer if context.mark == "prefix" else DocumentTransformer
    return kind(model, context, *vocabularies)


def rule(context: ContextConfig) -> type[ToOne]:
    if context.mark == "break":
        return ToTwo if context.translate_previous else ToOne
    if context.translate_previous:
        raise DocnmtError(
            'context.mark = "prefix" marks only words of the source; context.translate_previous needs a break\n'
            '  Set context.mark = "break", or context.translate_previous = false.'
        )
    return Prefixed


SYSTEM = System(make_model, rule, learn=learn)
