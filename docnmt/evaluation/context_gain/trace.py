"""What a model's context sub-layers do: which context words they attend to, and how much of it their gates let in.

Taken by hooks beside the computation, which stays the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from docnmt.decoding.translator import Translator
from docnmt.document import ParallelDocument
from docnmt.evaluation.context_gain.gain import check_has_context, encode, own_contexts
from docnmt.evaluation.controls import TRUE
from docnmt.model.base import TranslationModel
from docnmt.model.context import ContextAttention, Gate
from docnmt.model.layers import attention_weights
from docnmt.model.transformer import DocumentTransformer


@dataclass
class Sublayer:
    """One context sub-layer in one pass of one batch."""

    weights: Tensor  # [segments, heads, longest, longest context]; beyond a segment's own length they mean nothing
    gate: Tensor | None = None  # lambda, the weight of H, [tokens, width]; None: a residual connection has no gate

    @property
    def context_share(self) -> Tensor | None:
        """The mean of 1 - lambda over dimensions: how much of the context was let in, [tokens]"""
        return None if self.gate is None else (1 - self.gate).mean(dim=-1)


Trace = dict[str, Sublayer]  # "encoder 1", "encoder 2" ... "decoder 1" ..., in the order of the computation


@contextmanager
def traced(model: TranslationModel) -> Iterator[Trace]:
    """What is yielded holds, after each pass through the model, what its context sub-layers did in that pass; nothing
    for systems that have none of the paper's."""
    trace: Trace = {}
    handles: list[RemovableHandle] = []
    sides = (("encoder", model.encoder), ("decoder", model.decoder)) if isinstance(model, DocumentTransformer) else ()
    for side, layers in sides:
        for number, layer in enumerate(layers, 1):
            if isinstance(layer.context, ContextAttention):
                handles += _watch(layer.context, f"{side} {number}", trace)
    try:
        yield trace
    finally:
        for handle in handles:
            handle.remove()


def _watch(sublayer: ContextAttention, name: str, trace: Trace) -> list[RemovableHandle]:
    def after_attention(attention: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        trace[name] = Sublayer(attention_weights(attention, *inputs))

    def after_gate(gate: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        trace[name].gate = output

    gates = [module for module in sublayer.connection.modules() if isinstance(module, Gate)]
    return [
        sublayer.attention.register_forward_hook(after_attention),
        *(gate.register_forward_hook(after_gate) for gate in gates),
    ]


@torch.inference_mode()
def gate_by_layer(translator: Translator, documents: Sequence[ParallelDocument], limit: int = 50) -> dict[str, float]:
    """The mean context share of each layer's gate, over the sentences that have a context of at most `limit`
    documents, taken at even distances. Empty for a model without gates."""
    check_has_context(translator, documents)
    sample = [documents[i] for i in np.unique(np.linspace(0, len(documents) - 1, limit).round().astype(int))]
    encoded = encode(translator, sample, own_contexts(translator, sample))
    nothing = [translator.source.bos]
    with_context = [i for i, pair in enumerate(encoded.pairs[TRUE]) if pair.context != nothing]
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    with traced(translator.model) as trace:
        for rows in encoded.batches(with_context):
            translator.model(encoded.batch(rows))
            for name, sublayer in trace.items():
                if sublayer.context_share is not None:
                    sums[name] = sums.get(name, 0.0) + float(sublayer.context_share.double().sum())
                    counts[name] = counts.get(name, 0) + len(sublayer.context_share)
    return {name: total / counts[name] for name, total in sums.items()}
