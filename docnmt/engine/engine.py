"""A trained model packed for inference on a CPU. Beam search uses it like the model itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.data.packing import Contexts, History, Packed, Segments
from docnmt.engine import native
from docnmt.engine.kv_cache import MaskedMemory, MaskedWords, SlottedMemory, SlottedWords
from docnmt.engine.layers import (
    FastMatrix,
    Listed,
    Matrix,
    Norm,
    PackedContextAttention,
    PackedDecoderLayer,
    PackedEncoderLayer,
    Softmax,
    keys_and_values,
)
from docnmt.engine.native import (
    ACTIVATIONS,
    GATED,
    LANES,
    NO_CONTEXT,
    RESIDUAL,
    Accelerator,
    CLayer,
    CMatrix,
    CNorm,
    at,
)
from docnmt.engine.shortlist import Shortlist
from docnmt.model.context import ContextEncoder, EncodedSentences
from docnmt.model.transformer import DocumentTransformer


class CompiledDecoder:
    """All decoder layers as one call of the accelerator, if it has products for this processor."""

    def __init__(self, layers: Sequence[PackedDecoderLayer], accelerator: Accelerator):
        self.layers = layers  # they own what the structures point to
        self.accelerator = accelerator
        self.structures = (CLayer * len(layers))(*map(_layer, layers))
        self.filter_width = self.structures[0].inner.outputs

    def __call__(self, t: Tensor, words: SlottedWords, source: SlottedMemory, context: SlottedMemory | None) -> Tensor:
        """t [rows, width], which it changes"""
        seen = None if context is None else context.held
        self.accelerator.decoder_step(
            self.structures, t, self.filter_width, words.held, words.filled - words.beam, source.held, seen
        )
        return t


def _layer(layer: PackedDecoderLayer) -> CLayer:
    words, source, feed_forward = layer.attention, layer.source_attention, layer.feed_forward
    found = CLayer(
        query_key_value=_matrix(words.query),
        words_output=_matrix(words.output),
        after_words=_norm(words.norm),
        source_query=_matrix(source.query),
        source_output=_matrix(source.output),
        after_source=_norm(source.norm),
        inner=_matrix(feed_forward.inner),
        outer=_matrix(feed_forward.outer),
        after_feed_forward=_norm(feed_forward.norm),
        context=NO_CONTEXT,
        activation=ACTIVATIONS[feed_forward.activation],
    )
    if layer.context is not None:
        _add_context(found, layer.context)
    return found


def _add_context(layer: CLayer, context: PackedContextAttention) -> None:
    layer.context = GATED if context.gated else RESIDUAL
    layer.context_query, layer.context_output = _matrix(context.query), _matrix(context.output)
    if context.norm is not None:
        layer.after_context = _norm(context.norm)


def _matrix(matrix: Matrix) -> CMatrix:
    assert isinstance(matrix, FastMatrix)
    return matrix.packed.structure


def _norm(norm: Norm) -> CNorm:
    return CNorm(at(norm.weight), at(norm.bias), norm.eps)


class Encoded(NamedTuple):
    source: SlottedMemory | MaskedMemory
    context: SlottedMemory | MaskedMemory | None
    softmax: Matrix | Listed


class Engine:
    """For the Transformer, with or without the paper's context."""

    ROWS = 128  # hypotheses of a batch: enough for fast products, few enough to stay in the processor's cache

    @torch.inference_mode()
    def __init__(self, model: DocumentTransformer, int8: bool, shortlist: Shortlist | None = None):
        self.int8, self.shortlist = int8, shortlist
        self.width, self.heads = model.model_config.width, model.model_config.heads
        filter_width = model.model_config.filter_width
        self.accelerator = native.accelerator() if self.width // self.heads % LANES == 0 else None
        self.source_embedding, self.target_embedding = model.source_embedding, model.target_embedding
        self.encoder = [PackedEncoderLayer(layer, int8) for layer in model.encoder]
        self.decoder = [PackedDecoderLayer(layer, int8) for layer in model.decoder]
        self.source_memory = keys_and_values([layer.source_attention for layer in model.decoder], int8)
        self.compiled = None
        compiles = filter_width % LANES == 0 and model.model_config.activation in ACTIVATIONS
        if compiles and self.accelerator is not None and self.accelerator.has_products:
            self.compiled = CompiledDecoder(self.decoder, self.accelerator)
        self.softmax = Softmax(model.softmax.weight, model.softmax.bias, int8)
        self.context_encoder: list[PackedEncoderLayer] | nn.Module | None = model.context_encoder
        if isinstance(model.context_encoder, ContextEncoder):
            self.context_encoder = [PackedEncoderLayer(part, int8) for part in model.context_encoder.layers]
        if model.context_encoder is not None:
            in_encoder = [layer.context.attention for layer in model.encoder if layer.context is not None]
            in_decoder = [layer.context.attention for layer in model.decoder if layer.context is not None]
            self.context_memory = keys_and_values([*in_encoder, *in_decoder], int8)
            self.context_layers_in_encoder = len(in_encoder)

    def sentences(self, count: int, beam: int) -> int:
        """The largest number in a batch such that every thread gets some of `count`."""
        return max(1, min(self.ROWS // beam, math.ceil(count / torch.get_num_threads())))

    @property
    def without_shortlist(self) -> Engine:
        other = copy(self)
        other.shortlist = None
        return other

    def encode(self, source: Packed, context: Contexts | None = None) -> Encoded:
        """What the decoder attends to, and the words it may write."""
        attend_to_context = None  # for the encoder's layers
        context_memory = None  # for the decoder's
        if self.context_encoder is not None and context is not None:
            states, context_segments = self._represent(context)
            projected = self.context_memory(states)
            split = 2 * self.width * self.context_layers_in_encoder
            if split:
                attend_to_context = partial(self._to_context, source.segments, projected, context_segments)
            if split < projected.shape[1]:
                context_memory = self._for_decoder(projected[:, split:], context_segments)
        projected = self.source_memory(self._read(self.encoder, source, attend_to_context))
        softmax: Matrix | Listed = self.softmax.whole
        if self.shortlist is not None:
            rows = source.tokens.split(source.segments.lengths.tolist())
            softmax = self.softmax.listed([torch.from_numpy(self.shortlist.candidates(row.numpy())) for row in rows])
        return Encoded(self._for_decoder(projected, source.segments), context_memory, softmax)

    def _represent(self, context: Contexts) -> tuple[Tensor, Segments]:
        """C, [context tokens, width], one segment for each sentence of the batch"""
        if isinstance(self.context_encoder, EncodedSentences):
            assert isinstance(context, History)
            return self.context_encoder(self._read(self.encoder, context.source), context)
        assert self.context_encoder is not None and isinstance(context, Packed)
        if isinstance(self.context_encoder, list):
            return self._read(self.context_encoder, context), context.segments
        words = self.source_embedding.words(context.tokens)
        return self.context_encoder(words, context.segments), context.segments

    def _read(
        self, layers: list[PackedEncoderLayer], words: Packed, to_context: Callable[..., Tensor] | None = None
    ) -> Tensor:
        """The states of an encoder, [words, width]"""
        segments = words.segments
        states = self.source_embedding(words.tokens, segments.positions, segments.longest)
        for n, layer in enumerate(layers):
            to_words = partial(self._among_words, segments=segments)
            states = layer(states, to_words, to_context and partial(to_context, layer=n))
        return states

    def _among_words(self, projected: Tensor, segments: Segments) -> Tensor:
        """Self-attention in an encoder."""
        query, key, value = projected.chunk(3, dim=1)
        return self._attend(query, segments, key, value, segments)

    def _to_context(self, words: Segments, projected: Tensor, seen: Segments, query: Tensor, layer: int) -> Tensor:
        """Context attention in the encoder; projected: keys and values of all layers, side by side."""
        key, value = projected.split(self.width, dim=1)[2 * layer : 2 * layer + 2]
        return self._attend(query, words, key, value, seen)

    def _attend(self, query: Tensor, words: Segments, key: Tensor, value: Tensor, seen: Segments) -> Tensor:
        """Attention of each sentence's words to all that they see, [words, width]"""
        if self.accelerator is not None:
            return self.accelerator.attend_words(query, words.lengths, key, value, seen.lengths, self.heads)
        sides = ((query, words), (key, seen), (value, seen))
        q, k, v = (side.pad(part).unflatten(2, (self.heads, -1)).transpose(1, 2) for part, side in sides)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen.attention_mask, scale=1.0)
        return words.unpad(found.transpose(1, 2).flatten(2))

    def _for_decoder(self, projected: Tensor, segments: Segments) -> SlottedMemory | MaskedMemory:
        """Keys and values of a memory for all decoder layers, side by side."""
        size = self.width // self.heads
        if self.accelerator is None:
            return MaskedMemory.of_projected(projected, segments, self.heads, size)
        return SlottedMemory.of_projected(projected, segments, self.heads, size, self.accelerator)


class EngineState:
    """The decoder's active hypotheses, as beam search needs them."""

    def __init__(self, engine: Engine, memory: Encoded, beam: int):
        self.engine, self.memory, self.beam, self.step = engine, memory, beam, 0
        self.room: Tensor | None = None  # for the logits of all words
        sizes = len(engine.decoder), memory.source.sentences, beam, engine.heads, engine.width // engine.heads
        self.so_far: SlottedWords | MaskedWords
        if engine.accelerator is None:
            self.so_far = MaskedWords(*sizes)
        else:
            self.so_far = SlottedWords(*sizes, engine.accelerator)

    @property
    def words(self) -> Tensor | None:
        softmax = self.memory.softmax
        return softmax.words if isinstance(softmax, Listed) else None

    def logits(self, words: Tensor) -> Tensor:
        engine, (source, context, softmax) = self.engine, self.memory
        t = engine.target_embedding.at(words, self.step)
        self.so_far.make_room()
        self.step += 1
        if engine.compiled is not None:
            assert isinstance(self.so_far, SlottedWords) and isinstance(source, SlottedMemory)
            assert not isinstance(context, MaskedMemory)
            t = engine.compiled(t, self.so_far, source, context)
            if isinstance(softmax, FastMatrix):
                # Many megabytes, which would otherwise be allocated and freed at every step.
                self.room = t.new_empty(len(t), softmax.packed.outputs) if self.room is None else self.room[: len(t)]
                return softmax(t, self.room)
            return softmax(t)
        for n, layer in enumerate(engine.decoder):
            t = layer(
                t,
                partial(self.so_far.attend, n),
                None if context is None else partial(context.attend, n),
                partial(source.attend, n),
            )
        return softmax(t)

    def reorder(self, rows: Tensor) -> None:
        self.so_far.reorder(rows)

    def keep(self, sentences: Tensor) -> None:
        source, context, softmax = self.memory
        softmax = softmax.of(sentences) if isinstance(softmax, Listed) else softmax
        self.memory = Encoded(source.of(sentences), None if context is None else context.of(sentences), softmax)
        self.so_far.keep(sentences)
