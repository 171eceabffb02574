"""A sentence model as a Marian of Hugging Face transformers. Of a document model it is the sentence model inside."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError
from docnmt.data.subwords import PAD
from docnmt.model.transformer import DecoderLayer, DocumentTransformer, EncoderLayer


@torch.no_grad()
def as_marian(model: DocumentTransformer, *, begin: int, end: int, pad: int = PAD) -> Any:
    """A MarianMTModel with the same weights, in eval mode; the marks are ids of both vocabularies."""
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        hint = f"Install it: {sys.executable} -m pip install transformers"
        raise DocnmtError(f"transformers is needed to make a Marian\n  {hint}") from None
    sizes = model.model_config
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=len(model.source_embedding.weight),
            decoder_vocab_size=len(model.softmax.weight),
            share_encoder_decoder_embeddings=sizes.tie == "all",
            tie_word_embeddings=sizes.tie != "none",
            d_model=sizes.width,
            encoder_layers=sizes.encoder_layers,
            decoder_layers=sizes.decoder_layers,
            encoder_attention_heads=sizes.heads,
            decoder_attention_heads=sizes.heads,
            encoder_ffn_dim=sizes.filter_width,
            decoder_ffn_dim=sizes.filter_width,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=sizes.max_length,
            pad_token_id=pad,
            bos_token_id=begin,
            eos_token_id=end,
            decoder_start_token_id=begin,
            forced_eos_token_id=None,
        )
    )
    encoder, decoder = marian.model.encoder, marian.model.decoder
    encoder.embed_tokens.weight.copy_(model.source_embedding.weight)
    decoder.embed_tokens.weight.copy_(model.target_embedding.weight)
    marian.lm_head.weight.copy_(model.softmax.weight)
    for ours, theirs in zip(model.encoder, encoder.layers, strict=True):
        _copy_layer(ours, theirs)
    for layer, its in zip(model.decoder, decoder.layers, strict=True):
        _copy_layer(layer, its)
        cross, marians = layer.source_attention, its.encoder_attn
        _copy(cross.query, marians.q_proj)
        _split(cross.key_value, marians.k_proj, marians.v_proj)
        _copy(cross.output, marians.out_proj)
        _copy(layer.after_source_attention.norm, its.encoder_attn_layer_norm)
    return marian.eval()


def _copy_layer(ours: EncoderLayer | DecoderLayer, theirs: Any) -> None:
    """What layers of both sides have."""
    its = theirs.self_attn
    _split(ours.attention.query_key_value, its.q_proj, its.k_proj, its.v_proj)
    _copy(ours.attention.output, its.out_proj)
    _copy(ours.after_attention.norm, theirs.self_attn_layer_norm)
    _copy(ours.feed_forward.inner, theirs.fc1)
    _copy(ours.feed_forward.outer, theirs.fc2)
    _copy(ours.after_feed_forward.norm, theirs.final_layer_norm)


def _copy(ours: nn.Linear | nn.LayerNorm, theirs: Any) -> None:
    _fill(theirs, ours.weight, ours.bias)


def _split(fused: nn.Linear, *parts: Any) -> None:
    for part, weight, bias in zip(parts, fused.weight.chunk(len(parts)), fused.bias.chunk(len(parts)), strict=True):
        _fill(part, weight, bias)


def _fill(theirs: Any, weight: Tensor, bias: Tensor) -> None:
    theirs.weight.copy_(weight)
    theirs.bias.copy_(bias)
