"""What each parameter is called: here, in Marian, and in Hugging Face transformers.

Marian's matrices are [inputs, outputs] and its vectors [1, n]; ours are [outputs, inputs] and [n], as torch's and
transformers'. Here queries, keys and values of one input are one matrix, there three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import ModelConfig


@dataclass(frozen=True)
class Names:
    """One of our parameters and the ones, elsewhere, that it is made of, one below the other."""

    ours: str
    marian: tuple[str, ...]
    huggingface: tuple[str, ...]
    rows: bool = False  # [words, width] in Marian, too


def names_of(model: ModelConfig) -> list[Names]:
    """All parameters of a sentence model."""
    one = model.tie == "all"
    source = ("Wemb",) if one else ("encoder_Wemb",)
    shared = ("model.shared.weight",) if one else ("model.encoder.embed_tokens.weight",)
    found = [Names("source_embedding.weight", source, shared, rows=True)]
    if not one:
        theirs = ("model.decoder.embed_tokens.weight",)
        found.append(Names("target_embedding.weight", ("decoder_Wemb",), theirs, rows=True))
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for n in range(layers):
            found += _layer(side, n)
    if model.tie == "none":
        found.append(Names("softmax.weight", ("decoder_ff_logit_out_Wt",), ("lm_head.weight",), rows=True))
    if model.output_bias:
        found.append(Names("softmax.bias", ("decoder_ff_logit_out_b",), ("final_logits_bias",)))
    return found


def _layer(side: str, n: int) -> Iterator[Names]:
    ours, marian, theirs = f"{side}.{n}", f"{side}_l{n + 1}", f"model.{side}.layers.{n}"
    of_self = f"{marian}_self", f"{theirs}.self_attn"
    yield from _matrix(f"{ours}.attention.query_key_value", *of_self, "qkv")
    yield from _matrix(f"{ours}.attention.output", *of_self, "o")
    yield from _norm(f"{ours}.after_attention", f"{marian}_self_Wo", f"{theirs}.self_attn_layer_norm")
    if side == "decoder":
        of_source = f"{marian}_context", f"{theirs}.encoder_attn"
        yield from _matrix(f"{ours}.source_attention.query", *of_source, "q")
        yield from _matrix(f"{ours}.source_attention.key_value", *of_source, "kv")
        yield from _matrix(f"{ours}.source_attention.output", *of_source, "o")
        yield from _norm(f"{ours}.after_source_attention", f"{marian}_context_Wo", f"{theirs}.encoder_attn_layer_norm")
    for number, name in (("1", "inner"), ("2", "outer")):
        for letter, kind in (("W", "weight"), ("b", "bias")):
            there = (f"{marian}_ffn_{letter}{number}",), (f"{theirs}.fc{number}.{kind}",)
            yield Names(f"{ours}.feed_forward.{name}.{kind}", *there)
    yield from _norm(f"{ours}.after_feed_forward", f"{marian}_ffn_ffn", f"{theirs}.final_layer_norm")


def _matrix(ours: str, marian: str, theirs: str, letters: str) -> Iterator[Names]:
    for mark, kind in (("W", "weight"), ("b", "bias")):
        projections = ("out_proj" if letter == "o" else f"{letter}_proj" for letter in letters)
        yield Names(
            f"{ours}.{kind}",
            tuple(f"{marian}_{mark}{letter}" for letter in letters),
            tuple(f"{theirs}.{projection}.{kind}" for projection in projections),
        )


def _norm(ours: str, marian: str, theirs: str) -> Iterator[Names]:
    yield Names(f"{ours}.norm.weight", (f"{marian}_ln_scale",), (f"{theirs}.weight",))
    yield Names(f"{ours}.norm.bias", (f"{marian}_ln_bias",), (f"{theirs}.bias",))


# ---- Marian's tensors and ours ----


def from_marian(names: list[Names], tensors: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    found = {}
    for each in names:
        parts = [_needed(tensors, name, where) for name in each.marian]
        found[each.ours] = torch.cat([part if each.rows else _turned(part) for part in parts]).float()
    return found


def to_marian(names: list[Names], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for each in names:
        for name, part in zip(each.marian, weights[each.ours].chunk(len(each.marian)), strict=True):
            found[name] = part if each.rows else part.t() if part.ndim == 2 else part[None]
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _turned(tensor: Tensor) -> Tensor:
    """[inputs, outputs] -> [outputs, inputs]; [1, n] -> [n]"""
    return tensor.flatten() if tensor.shape[0] == 1 else tensor.t()


# ---- transformers' tensors and ours ----


def from_huggingface(names: list[Names], tensors: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    found = {}
    for each in names:
        parts = [_needed(tensors, name, where) for name in each.huggingface]
        whole = torch.cat(parts).float()
        found[each.ours] = whole[0] if each.ours == "softmax.bias" else whole
    return found


def to_huggingface(names: list[Names], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for each in names:
        parts = weights[each.ours].chunk(len(each.huggingface))
        found |= dict(zip(each.huggingface, parts, strict=True))
    if "final_logits_bias" in found:
        found["final_logits_bias"] = found["final_logits_bias"][None]
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _needed(tensors: Mapping[str, Tensor], name: str, where: str) -> Tensor:
    if name not in tensors:
        raise DocnmtError(f"{where}: the parameter {name} is missing\n  Copy the model again.")
    return tensors[name]
