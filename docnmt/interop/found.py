"""A model of another program: what its reader finds, and what each parameter is called here and there.

Marian's matrices are [inputs, outputs] and its vectors [1, n]; ours are [outputs, inputs] and [n],
as torch's and transformers'. Here queries, keys and values of one input are one matrix, there
three.
"""

from __future__ import annotations

import tomllib
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

MARIAN, HUGGING_FACE = "marian", "huggingface"  # whose arithmetic, and whose names
LAYOUTS: dict[str, dict[str, Any]] = {
    program: tomllib.loads(Path(__file__).with_name(f"{program}.toml").read_text(encoding="utf-8"))
    for program in (MARIAN, HUGGING_FACE)
}
MARIANS, TRANSFORMERS = LAYOUTS[MARIAN]["arithmetic"], LAYOUTS[HUGGING_FACE]["arithmetic"]
WORDS = ("source_embedding.weight", "target_embedding.weight", "softmax.weight", "softmax.bias")  # a row for each
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


def names_of(program: str, model: ModelConfig) -> Iterator[tuple[str, list[str]]]:
    """All parameters of a sentence model: ours, and theirs that it is made of, one below the other."""
    names = LAYOUTS[program]["names"]
    yield from names["shared" if model.tie == "all" else "separate"].items()
    layer = dict(names["layer"])
    prefix = layer.pop("prefix")
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for n in range(layers):
            there = prefix.format(side=side, index=n, number=n + 1)
            for ours, theirs in layer.items():
                if side == "decoder" or "source_attention" not in ours:
                    yield f"{side}.{n}.{ours}", [there + name for name in theirs]
    if model.tie == "none":
        yield from names["softmax"].items()
    if model.output_bias:
        yield from names["bias"].items()


def _transposed(program: str, ours: str) -> bool:
    """Whether it lies the other way round there."""
    return ours == "softmax.bias" or (program == MARIAN and ours not in WORDS)


def from_theirs(
    program: str, model: ModelConfig, tensors: Mapping[str, Tensor], file: Path, known: Collection[str] = ()
) -> dict[str, Tensor]:
    """Our parameters; `known`: names of theirs that are not needed."""
    found, strange = {}, set(tensors).difference(known)
    for ours, theirs in names_of(program, model):
        parts = []
        for name in theirs:
            if name not in tensors:
                raise DocnmtError(f"{file}: the parameter {name} is missing\n  Copy the model again.")
            part = tensors[name]
            if _transposed(program, ours):
                part = part.flatten() if part.shape[0] == 1 else part.t()
            parts.append(part)
            strange.discard(name)
        found[ours] = torch.cat(parts).float()
    if strange:
        refuse(str(file), [f"it has a parameter {min(strange)}"])
    return found


def to_theirs(program: str, model: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for ours, theirs in names_of(program, model):
        for name, part in zip(theirs, weights[ours].chunk(len(theirs)), strict=True):
            if _transposed(program, ours):
                part = part.t() if part.ndim == 2 else part[None]
            found[name] = part.contiguous()
    return found
