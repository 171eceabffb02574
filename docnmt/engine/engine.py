"""A trained model packed for inference. Beam search uses it as it uses the model itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt.data.packing import Contexts, History, Packed, Segments
from docnmt.engine import native as c
from docnmt.engine.layers import Norm, PackedContextAttention, PackedDecoderLayer, PackedEncoderLayer, keys_and_values
from docnmt.engine.matrices import IN_C, Int8Matrix, Listed, Matrix, Softmax
from docnmt.engine.memory import Attended, WordPool
from docnmt.engine.native import ACTIVATIONS, LANES, Accelerator, Keys, accelerator
from docnmt.engine.shortlist import Shortlist
from docnmt.model.context import ContextEncoder, EncodedSentences
from docnmt.model.layers import Embedding
from docnmt.model.transformer import DocumentTransformer

# ---- The decoder's layers as one call of the accelerator ----

# The decoder's layers as one call of the accelerator: for int8, where the processor allows it.


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
        activation=ACTIVATIONS[feed_forward.activation],
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


# ---- What the decoder attends to, where there is the accelerator: keys and values lie still ----

# Each sentence has a slot. When sentences leave or hypotheses change places, only small lists change: the slots of
# the sentences that are left, and for each hypothesis the places in its slot that its own words took.

STEPS = 16  # words of each hypothesis that there is room for at first


class Slotted(NamedTuple):
    """Keys and values of a source or of its context for all decoder layers."""

    keys: Tensor  # [layers, slots, heads, longest, size]
    values: Tensor
    slots: Tensor  # [sentences]
    counts: Tensor  # tokens of each, [sentences]
    accelerator: Accelerator

    @classmethod
    def of_projected(
        cls, projected: Tensor, segments: Segments, heads: int, width: int, accelerator: Accelerator
    ) -> Slotted:
        """[tokens, layers x 2 width]"""
        states = segments.pad(projected).unflatten(2, (-1, 2, heads, width // heads)).permute(2, 3, 0, 4, 1, 5)
        keys, values = states.unbind(1)
        slots = torch.arange(segments.count, dtype=torch.int32)
        return cls(keys.contiguous(), values.contiguous(), slots, segments.lengths.int(), accelerator)

    @property
    def sentences(self) -> int:
        return len(self.slots)

    @property
    def held(self) -> Keys:
        return Keys(self.keys, self.values, self.slots, self.counts)

    def of(self, sentences: Tensor) -> Slotted:
        return self._replace(slots=self.slots[sentences], counts=self.counts[sentences])

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """[sentences x n, width] -> [sentences x n, width]"""
        return self.accelerator.attend(query, self.keys[layer], self.values[layer], self.slots, self.counts)


class SlottedPool:
    """Keys and values of the words written so far."""

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, width: int, accelerator: Accelerator):
        self.beam, self.accelerator, self.filled = beam, accelerator, 0
        self.states = torch.empty(2, layers, sentences, heads, STEPS * beam, width // heads)
        self.slots = torch.arange(sentences, dtype=torch.int32)
        self.counts = torch.zeros(sentences, dtype=torch.int32)
        self.places = torch.empty(sentences * beam, STEPS, dtype=torch.int32)  # of each hypothesis, step by step
        self.own = torch.arange(beam, dtype=torch.int32)

    def make_room(self) -> None:
        """A place for the next word of each hypothesis."""
        if self.filled == self.states.shape[4]:
            self.states = F.pad(self.states, (0, 0, 0, self.filled))  # twice as much
            self.places = F.pad(self.places, (0, self.places.shape[1]))
        self.places[:, self.filled // self.beam].view(-1, self.beam).copy_(self.own + self.filled)
        self.counts += 1
        self.filled += self.beam

    @property
    def held(self) -> Keys:
        return Keys(self.states[0], self.states[1], self.slots, self.counts, self.places)

    def attend(self, layer: int, projected: Tensor) -> Tensor:
        """Query, key and value of each hypothesis' last word, [rows, 3 width] -> what it finds in its words, [rows,
        width]"""
        keys, values = self.states[0, layer], self.states[1, layer]
        self.accelerator.put(projected, keys, values, self.slots, self.filled - self.beam, self.beam)
        return self.accelerator.attend(projected, keys, values, self.slots, self.counts, self.places)

    def reorder(self, rows: Tensor) -> None:
        self.places = self.places[rows]

    def keep(self, sentences: Tensor) -> None:
        self.slots, self.counts = self.slots[sentences], self.counts[sentences]
        self.places = self.places.unflatten(0, (-1, self.beam))[sentences].flatten(0, 1)


class Memory(NamedTuple):
    source: Attended | Slotted
    context: Attended | Slotted | None
    softmax: Matrix | Listed


class Engine:
    """A model of the paper's kind: the Transformer, alone or with context."""

    ROWS = 128  # hypotheses of a batch: enough for fast products, few enough for what they need to stay in the cache

    @torch.inference_mode()
    def __init__(self, model: DocumentTransformer, int8: bool, shortlist: Shortlist | None = None):
        self.int8, self.shortlist = int8, shortlist
        self.width, self.heads = model.model_config.width, model.model_config.heads
        filter_width = model.model_config.filter_width
        self.accelerator = accelerator() if self.width // self.heads % LANES == 0 else None
        self.source_embedding, self.target_embedding = model.source_embedding, model.target_embedding
        self.encoder = [PackedEncoderLayer(layer, int8) for layer in model.encoder]
        self.decoder = [PackedDecoderLayer(layer, int8) for layer in model.decoder]
        self.source_memory = keys_and_values([layer.source_attention for layer in model.decoder], int8)
        self.compiled = None
        compiles = filter_width % LANES == 0 and model.model_config.activation in IN_C
        if int8 and compiles and self.accelerator is not None and self.accelerator.has_int8:
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
        """Of a batch, at most: few enough that every thread gets some of `count`."""
        return max(1, min(self.ROWS // beam, math.ceil(count / torch.get_num_threads())))

    @property
    def without_shortlist(self) -> Engine:
        other = copy(self)
        other.shortlist = None
        return other

    def encode(self, source: Packed, context: Contexts | None = None) -> Memory:
        """What the decoder attends to, and the words it may write."""
        to_context, to_decoder = None, None  # of the encoder's layers, and of the decoder's
        if self.context_encoder is not None and context is not None:
            c, context_segments = self._represent(context)
            projected = self.context_memory(c)
            split = 2 * self.width * self.context_layers_in_encoder
            if split:
                to_context = partial(self._to_context, source.segments, projected, context_segments)
            if split < projected.shape[1]:
                to_decoder = self._for_decoder(projected[:, split:], context_segments)
        segments = source.segments
        s = _embed(self.source_embedding, source)
        for n, layer in enumerate(self.encoder):
            s = layer(
                s,
                partial(self._among_words, segments=segments),
                to_context and partial(to_context, layer=n),
            )
        softmax: Matrix | Listed = self.softmax.whole
        if self.shortlist is not None:
            rows = source.tokens.split(segments.lengths.tolist())
            softmax = self.softmax.listed([torch.from_numpy(self.shortlist.candidates(row.numpy())) for row in rows])
        return Memory(self._for_decoder(self.source_memory(s), segments), to_decoder, softmax)

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

    def _read(self, layers: list[PackedEncoderLayer], words: Packed) -> Tensor:
        """What an encoder makes of words by themselves."""
        states = _embed(self.source_embedding, words)
        for layer in layers:
            states = layer(states, partial(self._among_words, segments=words.segments))
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
        """The words of each sentence to all that they see, [words, width]"""
        if self.accelerator is not None:
            return self.accelerator.attend_words(query, words.lengths, key, value, seen.lengths, self.heads)
        sides = ((query, words), (key, seen), (value, seen))
        q, k, v = (side.pad(part).unflatten(2, (self.heads, -1)).transpose(1, 2) for part, side in sides)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen.attention_mask, scale=1.0)
        return words.unpad(found.transpose(1, 2).flatten(2))

    def _for_decoder(self, projected: Tensor, segments: Segments) -> Attended | Slotted:
        """Keys and values of a memory for all decoder layers, side by side."""
        if self.accelerator is None:
            return Attended.of_projected(projected, segments, self.heads, self.width)
        return Slotted.of_projected(projected, segments, self.heads, self.width, self.accelerator)


class EngineState:
    """The decoder's hypotheses in flight, as beam search asks for them."""

    def __init__(self, engine: Engine, memory: Memory, beam: int):
        self.engine, self.memory, self.beam, self.step = engine, memory, beam, 0
        self.room: Tensor | None = None  # for the scores of all words
        layers, sentences = len(engine.decoder), memory.source.sentences
        self.pool: WordPool | SlottedPool
        if engine.accelerator is None:
            self.pool = WordPool(layers, sentences, beam, engine.heads, engine.width // engine.heads)
        else:
            self.pool = SlottedPool(layers, sentences, beam, engine.heads, engine.width, engine.accelerator)

    @property
    def words(self) -> Tensor | None:
        softmax = self.memory.softmax
        return softmax.words if isinstance(softmax, Listed) else None

    def logits(self, words: Tensor) -> Tensor:
        engine, (source, context, softmax) = self.engine, self.memory
        t = engine.target_embedding.at(words, self.step)
        self.pool.make_room()
        self.step += 1
        if engine.compiled is not None:
            assert isinstance(self.pool, SlottedPool) and isinstance(source, Slotted)
            assert not isinstance(context, Attended)
            t = engine.compiled(t, self.pool, source, context)
            if isinstance(softmax, Int8Matrix):
                # Many megabytes, which the system would hand out and take back at every step.
                self.room = t.new_empty(len(t), softmax.packed.outputs) if self.room is None else self.room[: len(t)]
                return softmax(t, self.room)
            return softmax(t)
        for n, layer in enumerate(engine.decoder):
            t = layer(
                t,
                partial(self.pool.attend, n),
                None if context is None else partial(context.attend, n),
                partial(source.attend, n),
            )
        return softmax(t)

    def reorder(self, rows: Tensor) -> None:
        self.pool.reorder(rows)

    def keep(self, sentences: Tensor) -> None:
        source, context, softmax = self.memory
        softmax = softmax.of(sentences) if isinstance(softmax, Listed) else softmax
        self.memory = Memory(source.of(sentences), None if context is None else context.of(sentences), softmax)
        self.pool.keep(sentences)


def _embed(embedding: Embedding, packed: Packed) -> Tensor:
    return embedding(packed.tokens, packed.segments.positions, packed.segments.longest)
