"""The decoder's layers as one call of the accelerator: for int8, where the processor allows it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from docnmt.decoding.accelerator import Accelerator
from docnmt.decoding.accelerator import structures as c
from docnmt.decoding.engine.layers import Norm, PackedContextAttention, PackedDecoderLayer
from docnmt.decoding.engine.matrices import Int8Matrix, Matrix
from docnmt.decoding.engine.slots import Slotted, SlottedPool


class CompiledDecoder:
    def __init__(self, layers: Sequence[PackedDecoderLayer], accelerator: Accelerator):
        self.layers = layers  # which own what the structures point to
        self.accelerator = accelerator
        self.structures = (c.Layer * len(layers))(*map(_layer, layers))
        self.filter_width = self.structures[0].inner.outputs

    def __call__(self, t: Tensor, words: SlottedPool, source: Slotted, context: Slotted | None) -> Tensor:
        """t [rows, width], which it changes"""
        seen = None if context is None else context.held
        self.accelerator.decoder_step(
            self.structures, t, self.filter_width, words.held, words.filled - words.beam, source.held, seen
        )
        return t


def _layer(layer: PackedDecoderLayer) -> c.Layer:
    words, source, feed_forward = layer.attention, layer.source_attention, layer.feed_forward
    found = c.Layer(
        query_key_value=_matrix(words.query_key_value),
        words_output=_matrix(words.output),
        after_words=_norm(words.norm),
        source_query=_matrix(source.query),
        source_output=_matrix(source.output),
        after_source=_norm(source.norm),
        inner=_matrix(feed_forward.inner),
        outer=_matrix(feed_forward.outer),
        after_feed_forward=_norm(feed_forward.norm),
        context=c.NO_CONTEXT,
    )
    if layer.context is not None:
        _add_context(found, layer.context)
    return found


def _add_context(layer: c.Layer, context: PackedContextAttention) -> None:
    layer.context = c.GATED if context.gated else c.RESIDUAL
    layer.context_query, layer.context_output = _matrix(context.query), _matrix(context.output)
    if context.norm is not None:
        layer.after_context = _norm(context.norm)


def _matrix(matrix: Matrix) -> c.Matrix:
    assert isinstance(matrix, Int8Matrix)
    return matrix.packed.structure


def _norm(norm: Norm) -> c.Norm:
    return c.Norm(c.at(norm.weight), c.at(norm.bias), norm.eps)
