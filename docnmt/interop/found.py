"""A model of another program: what its reader finds, and what each parameter is called here and there.

Marian's matrices are [inputs, outputs] and its vectors [1, n]; ours are [outputs, inputs] and [n],
as torch's and transformers'. Here queries, keys and values of one input are one matrix, there
three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import read_json
from docnmt.config import DecodingConfig, ModelConfig
from docnmt.data.subwords import NamedSubwords, Subwords, Vocabulary

MARIAN, HUGGING_FACE = "marian", "huggingface"  # whose arithmetic, and whose names (see `Names`)
EPSILON = 1e-6  # of Marian's layer norms
# What Marian cannot do otherwise.
MARIANS: dict[str, Any] = {"positions": "marian", "start": "zero", "norm_epsilon": EPSILON}
TRANSFORMERS: dict[str, Any] = {"positions": "vaswani", "start": "mark", "norm_epsilon": 1e-5}
LONGEST = 512  # pieces of a sentence; OPUS-MT trained on sentences up to 500


@dataclass(frozen=True)
class Found:
    """A model of another program, as one of ours."""

    file: Path  # of the weights
    weights: dict[str, Tensor]
    model: ModelConfig
    decoding: DecodingConfig
    source: Subwords
    target: Subwords
    languages: tuple[str, str] = ("", "")  # "" where the folder does not say


# ---- Files ----


def needed_file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise DocnmtError(f"{folder}: {name} is missing\n  Copy the whole folder again, including this file.")
    return folder / name


def read_table(path: Path) -> dict[str, Any]:
    """A JSON file of names and values; empty if there is no such file."""
    try:
        table = read_json(path) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise DocnmtError(f"{path}: not valid JSON ({error})\n  Copy the file again.") from None
    if not isinstance(table, dict):
        raise DocnmtError(f"{path}: not a JSON object\n  Copy the file again.")
    return table


def by_id(ids: Mapping[str, int], file: str) -> list[str]:
    """The pieces of a vocabulary in the order of their ids."""
    pieces = sorted(ids, key=ids.__getitem__)
    wrong = next((n for n, piece in enumerate(pieces) if ids[piece] != n), None)
    if wrong is not None:
        problem = f"the ids are not 0, 1, 2 and so on ({wrong} is missing or used twice)"
        raise BadInput("vocabulary", problem, "Copy the file again.", file=file)
    return pieces


def named_subwords(model: Path, pieces: list[str], punctuation: str, language: str = "") -> NamedSubwords:
    return NamedSubwords(model.read_bytes(), Vocabulary(tuple(pieces), punctuation, language), str(model))


def language_piece(pieces: Collection[str], target_language: str, where: str) -> str:
    """The piece that tells a model of several target languages to translate into this one; "" for a model of one."""
    known = sorted(piece for piece in pieces if piece.startswith(">>") and piece.endswith("<<"))
    if len(known) < 2:
        return "".join(known)
    if f">>{target_language}<<" in known:
        return f">>{target_language}<<"
    codes = ", ".join(piece[2:-2] for piece in known)
    raise DocnmtError(
        f"{where}: the model translates into several languages ({codes})\n"
        "  Choose one with --languages SOURCE-TARGET, the target by one of these codes."
    )


def refuse(where: str, strange: Collection[str]) -> NoReturn:
    raise DocnmtError(
        f"{where}: this kind of model cannot be imported ({'; '.join(strange)})\n"
        "  Supported are transformers with self-attention in the decoder, norms after each sub-layer (postprocess "
        "dan),\n  two-layer feed-forward networks of one width, relu, swish or gelu, and sinusoidal positions."
    )


# ---- Parameters ----


@dataclass(frozen=True)
class Names:
    """One of our parameters and the ones, elsewhere, that it is made of, one below the other."""

    ours: str
    marian: tuple[str, ...]
    huggingface: tuple[str, ...]
    rows: bool = False  # [words, width] in Marian, too

    def transposed(self, program: str) -> bool:
        return not self.rows if program == MARIAN else self.ours == "softmax.bias"


def names_of(model: ModelConfig) -> Iterator[Names]:
    """All parameters of a sentence model."""
    if model.tie == "all":
        yield Names("source_embedding.weight", ("Wemb",), ("model.shared.weight",), rows=True)
    else:
        for ours, side in (("source", "encoder"), ("target", "decoder")):
            theirs = (f"{side}_Wemb",), (f"model.{side}.embed_tokens.weight",)
            yield Names(f"{ours}_embedding.weight", *theirs, rows=True)
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for n in range(layers):
            yield from _layer(side, n)
    if model.tie == "none":
        yield Names("softmax.weight", ("decoder_ff_logit_out_Wt",), ("lm_head.weight",), rows=True)
    if model.output_bias:
        yield Names("softmax.bias", ("decoder_ff_logit_out_b",), ("final_logits_bias",))


def _layer(side: str, n: int) -> Iterator[Names]:
    ours, marian, theirs = f"{side}.{n}", f"{side}_l{n + 1}", f"model.{side}.layers.{n}"
    attentions = [("attention", "self", "self_attn", {"query_key_value": "qkv", "output": "o"})]
    if side == "decoder":
        parts = {"query": "q", "key_value": "kv", "output": "o"}
        attentions.append(("source_attention", "context", "encoder_attn", parts))
    for name, marians, huggingfaces, matrices in attentions:
        for matrix, letters in matrices.items():
            projections = ["out_proj" if letter == "o" else f"{letter}_proj" for letter in letters]
            for mark, kind in (("W", "weight"), ("b", "bias")):
                yield Names(
                    f"{ours}.{name}.{matrix}.{kind}",
                    tuple(f"{marian}_{marians}_{mark}{letter}" for letter in letters),
                    tuple(f"{theirs}.{huggingfaces}.{projection}.{kind}" for projection in projections),
                )
        yield from _norm(f"{ours}.after_{name}", f"{marian}_{marians}_Wo", f"{theirs}.{huggingfaces}_layer_norm")
    for number, name in (("1", "inner"), ("2", "outer")):
        for letter, kind in (("W", "weight"), ("b", "bias")):
            there = (f"{marian}_ffn_{letter}{number}",), (f"{theirs}.fc{number}.{kind}",)
            yield Names(f"{ours}.feed_forward.{name}.{kind}", *there)
    yield from _norm(f"{ours}.after_feed_forward", f"{marian}_ffn_ffn", f"{theirs}.final_layer_norm")


def _norm(ours: str, marian: str, theirs: str) -> Iterator[Names]:
    yield Names(f"{ours}.norm.weight", (f"{marian}_ln_scale",), (f"{theirs}.weight",))
    yield Names(f"{ours}.norm.bias", (f"{marian}_ln_bias",), (f"{theirs}.bias",))


def from_theirs(
    program: str, model: ModelConfig, tensors: Mapping[str, Tensor], file: Path, known: Collection[str] = ()
) -> dict[str, Tensor]:
    """Our parameters; `known`: names of theirs that are not needed."""
    found, strange = {}, set(tensors).difference(known)
    for names in names_of(model):
        parts = []
        for name in getattr(names, program):
            if name not in tensors:
                raise DocnmtError(f"{file}: the parameter {name} is missing\n  Copy the model again.")
            part = tensors[name]
            if names.transposed(program):
                part = part.flatten() if part.shape[0] == 1 else part.t()
            parts.append(part)
            strange.discard(name)
        found[names.ours] = torch.cat(parts).float()
    if strange:
        refuse(str(file), [f"it has a parameter {min(strange)}"])
    return found


def to_theirs(program: str, model: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for names in names_of(model):
        theirs = getattr(names, program)
        for name, part in zip(theirs, weights[names.ours].chunk(len(theirs)), strict=True):
            if names.transposed(program):
                part = part.t() if part.ndim == 2 else part[None]
            found[name] = part.contiguous()
    return found
