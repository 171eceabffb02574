"""A sentence model for CTranslate2. Of a document model it is the sentence model inside: CTranslate2 knows no context.

Greedy search, and beam search without a length penalty, give the same words there as here. With a penalty they may not:
CTranslate2 divides by a power of the length, docnmt as Wu et al. (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError, missing_extra
from docnmt.base.files import folder_atomically, write_atomically
from docnmt.data.subwords import Subwords
from docnmt.engine.shortlist import Shortlist
from docnmt.model.layers import CrossAttention, FeedForward, SelfAttention, sinusoids
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, load_model

QUANTIZATIONS = ("float32", "int8", "int8_float32", "int16")
VOCABULARY_MAP = "vmap.txt"  # what CTranslate2 looks for when it is asked to use_vmap
POSITIONS = 2048  # CTranslate2 keeps a table of them: longer sentences are cut there


def export(folder: str | Path, out: str | Path, quantization: str = "float32") -> None:
    """Writes the model folder as one of CTranslate2, the sub-word models beside it, and the shortlist if it has one."""
    if quantization not in QUANTIZATIONS:
        raise DocnmtError(f"quantization {quantization!r} is not known\n  Choose from {', '.join(QUANTIZATIONS)}.")
    if Path(out).exists():
        raise DocnmtError(f"{out}: is there already\n  Give a folder that is not, or remove it.")
    loaded = load_model(folder)
    if loaded.card.model.kind != "transformer" or loaded.card.context.kind == "concat":
        raise DocnmtError(
            f"{folder}: is no Transformer that reads single sentences\n  CTranslate2 runs no other model of docnmt's."
        )
    if loaded.card.model.start != "mark" or loaded.card.model.positions != "vaswani" or loaded.card.model.output_bias:
        raise DocnmtError(
            f"{folder}: is a model of Marian's kind\n"
            "  Write it with docnmt export --to marian, and convert that with CTranslate2's own ct2-marian-converter."
        )
    shortlist = Shortlist.read(Path(folder), loaded.source, loaded.target)
    spec = _specification(loaded)
    spec.validate()
    spec.optimize(quantization=quantization)
    with folder_atomically(out) as temporary:
        spec.save(str(temporary))
        loaded.source.save(temporary / "source.spm")
        loaded.target.save(temporary / "target.spm")
        if shortlist is not None:
            with write_atomically(temporary / VOCABULARY_MAP) as file:
                file.writelines(f"{line}\n" for line in vocabulary_map(shortlist, loaded.source, loaded.target))


def vocabulary_map(shortlist: Shortlist, source: Subwords, target: Subwords) -> Iterator[str]:
    """A line a source piece: the piece, a tab, the target pieces it adds. A line without a source piece has what every
    sentence may use. CTranslate2 adds the marks."""
    reads, writes = _pieces(source), np.array(_pieces(target))
    for piece, added in (("", shortlist.always), *zip(reads, shortlist.lexicon, strict=True)):
        if len(added):
            yield f"{piece}\t{' '.join(writes[np.unique(added)])}"


def _specification(loaded: LoadedModel) -> Any:
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError:
        raise missing_extra("CTranslate2 is needed to write its models", "bench") from None
    model, sizes = loaded.model, loaded.card.model
    assert isinstance(model, DocumentTransformer)
    spec = TransformerSpec.from_config((sizes.encoder_layers, sizes.decoder_layers), sizes.heads, pre_norm=False)
    positions = sinusoids(POSITIONS, sizes.width, model.softmax.weight.device)[:POSITIONS].numpy()
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = positions
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    spec.decoder.projection.weight = _array(model.softmax.weight)
    for into, encoder_layer in zip(spec.encoder.layer, model.encoder, strict=True):
        _self_attention(into.self_attention, encoder_layer.attention, encoder_layer.after_attention.norm)
        _feed_forward(into.ffn, encoder_layer.feed_forward, encoder_layer.after_feed_forward.norm)
    for into, layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _self_attention(into.self_attention, layer.attention, layer.after_attention.norm)
        _cross_attention(into.attention, layer.source_attention, layer.after_source_attention.norm)
        _feed_forward(into.ffn, layer.feed_forward, layer.after_feed_forward.norm)
    spec.register_source_vocabulary(_pieces(loaded.source))
    spec.register_target_vocabulary(_pieces(loaded.target))
    begin, end = loaded.target.pieces([loaded.target.bos, loaded.target.eos])
    spec.config.add_source_eos = True
    spec.config.bos_token = spec.config.decoder_start_token = begin
    spec.config.eos_token = end
    return spec


def _pieces(subwords: Subwords) -> list[str]:
    return subwords.pieces(range(len(subwords)))


def _array(tensor: Tensor) -> Any:
    return tensor.detach().numpy()


def _linear(into: Any, layer: nn.Linear) -> None:
    into.weight, into.bias = _array(layer.weight), _array(layer.bias)


def _norm(into: Any, norm: nn.LayerNorm) -> None:
    into.gamma, into.beta = _array(norm.weight), _array(norm.bias)


def _self_attention(into: Any, attention: SelfAttention, norm: nn.LayerNorm) -> None:
    _linear(into.linear[0], attention.query_key_value)
    _linear(into.linear[1], attention.output)
    _norm(into.layer_norm, norm)


def _cross_attention(into: Any, attention: CrossAttention, norm: nn.LayerNorm) -> None:
    _linear(into.linear[0], attention.query)
    _linear(into.linear[1], attention.key_value)
    _linear(into.linear[2], attention.output)
    _norm(into.layer_norm, norm)


def _feed_forward(into: Any, network: FeedForward, norm: nn.LayerNorm) -> None:
    _linear(into.linear_0, network.inner)
    _linear(into.linear_1, network.outer)
    _norm(into.layer_norm, norm)
