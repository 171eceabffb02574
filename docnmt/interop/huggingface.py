"""The layout of Hugging Face transformers: config.json, weights, source.spm, target.spm, vocab.json and the rest.

It is the same model with one word more, `<pad>`, which begins a translation. transformers computes it a little
otherwise than Marian: other sinusoids, `<pad>` takes part in the softmax, another epsilon in the norms.
"""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import DecodingConfig, ModelConfig
from docnmt.data.subwords import PADDING, Subwords
from docnmt.interop.found import (
    HUGGING_FACE,
    Found,
    check_sizes,
    language_piece,
    named_subwords,
    needed_file,
    read_json,
)
from docnmt.interop.names import from_huggingface, names_of
from docnmt.interop.settings import EPSILON, FORBIDDEN, LONGEST, by_id, refuse

_SAFE, _TORCH = "model.safetensors", "pytorch_model.bin"
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")  # computed, not learnt
_SIDES, _SIZES = ("encoder", "decoder"), ("layers", "ffn_dim", "attention_heads")
FILES = ("*.json", _SAFE, "*.spm")  # what is needed of a model on the hub
FILES_OF_TORCH = ("*.json", _TORCH, "*.spm")


def is_huggingface_folder(folder: Path) -> bool:
    return (folder / "config.json").exists() and not (folder / "weights.safetensors").exists()


def read_huggingface_folder(folder: Path, kind: str, target_language: str) -> Found:
    config = read_json(needed_file(folder, "config.json"))
    tensors, file = _tensors(folder)
    model = _model(config, kind, str(folder / "config.json"))
    names = names_of(model)
    if model.tie == "all" and "model.shared.weight" not in tensors and "model.encoder.embed_tokens.weight" in tensors:
        tensors["model.shared.weight"] = tensors["model.encoder.embed_tokens.weight"]
    known = {name for each in names for name in each.huggingface} | set(_POSITIONS)
    known |= {"lm_head.weight", "model.shared.weight", *(f"model.{side}.embed_tokens.weight" for side in _SIDES)}
    strange = sorted(set(tensors) - known)
    if strange:
        refuse(str(file), [f"it has a parameter {strange[0]}"])
    weights = from_huggingface(names, tensors, str(file))
    source, target = _subwords(folder, kind, target_language or _languages(folder)[1])
    if kind != HUGGING_FACE:
        weights = _without_padding(weights, str(file))
    rows = weights["source_embedding.weight"]
    check_sizes(str(file), len(rows), source, "source")
    check_sizes(str(file), len(weights.get("target_embedding.weight", rows)), target, "target")
    return Found(weights, model, _decoding(folder, config), source, target, _languages(folder))


def _tensors(folder: Path) -> tuple[dict[str, Tensor], Path]:
    file = folder / (_SAFE if (folder / _SAFE).exists() else _TORCH)
    if not file.exists():
        raise DocnmtError(f"{folder}: has neither {_SAFE} nor {_TORCH}\n  Copy the whole folder again.")
    try:
        # weights_only: a file of torch is a pickle, and nothing in it is to be run
        found = load_file(file) if file.name == _SAFE else torch.load(file, "cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, SafetensorError, pickle.UnpicklingError) as error:
        first = str(error).split("\n")[0]
        raise DocnmtError(f"{file}: damaged, or more than weights ({first})\n  Copy the file again.") from None
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise DocnmtError(f"{file}: is no table of weights\n  Give a folder that transformers saved.")
    return dict(found), file


def _model(config: dict[str, Any], kind: str, where: str) -> ModelConfig:
    if config.get("model_type") != "marian":
        refuse(where, [f"model_type: {config.get('model_type')}"])
    missing = [key for key in _NEEDED if key not in config]
    if missing:
        raise DocnmtError(f"{where}: lacks {missing[0]}\n  Give the config.json that belongs to the weights.")
    strange = [f"{key}: {config[key]}" for key in _OFF if config.get(key)]
    strange += [f"{key}: {config[key]}" for key in _ON if not config.get(key, True)]
    pairs = (("ffn_dim", "feed-forward widths"), ("attention_heads", "numbers of heads"))
    strange += [f"two {what}" for key, what in pairs if config[f"encoder_{key}"] != config[f"decoder_{key}"]]
    activation = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}.get(config["activation_function"])
    shared, tied = config.get("share_encoder_decoder_embeddings", True), config.get("tie_word_embeddings", True)
    if activation is None:
        strange.append(f"activation_function: {config['activation_function']}")
    if shared and not tied:
        strange.append("tie_word_embeddings: False with one embedding for both sides")
    if strange:
        refuse(where, strange)
    assert activation is not None
    theirs = kind == HUGGING_FACE
    return ModelConfig(
        width=config["d_model"],
        filter_width=config["encoder_ffn_dim"],
        heads=config["encoder_attention_heads"],
        encoder_layers=config["encoder_layers"],
        decoder_layers=config["decoder_layers"],
        dropout=float(config.get("dropout", 0.1)),
        tie="all" if shared else "target" if tied else "none",
        max_length=LONGEST,
        activation=activation,
        positions="vaswani" if theirs else "marian",
        norm_epsilon=1e-5 if theirs else EPSILON,
        output_bias=True,
        start="mark" if theirs else "zero",
        search="huggingface" if theirs else "marian",
        forbidden=(PADDING,) if theirs else FORBIDDEN,
    )


_NEEDED = ("d_model", "activation_function", *(f"{side}_{key}" for side in _SIDES for key in _SIZES))
_OFF = ("normalize_before", "normalize_embedding", "add_final_layer_norm")
_ON = ("scale_embedding", "static_position_embeddings")


def _without_padding(weights: dict[str, Tensor], where: str) -> dict[str, Tensor]:
    """Marian's model has no `<pad>`, the last word; while the model is Marian's, it is all zeros."""
    of_words = [n for n in weights if n.endswith("embedding.weight") or n in ("softmax.weight", "softmax.bias")]
    if any(weights[name][-1].any() for name in of_words):
        raise DocnmtError(
            f"{where}: {PADDING} is not zero, so it was trained on by transformers and is no longer Marian's\n"
            "  Import it with --as huggingface."
        )
    return weights | {name: weights[name][:-1] for name in of_words}


def _subwords(folder: Path, kind: str, target_language: str) -> tuple[Subwords, Subwords]:
    found = []
    for side in ("source", "target"):
        own = side == "target" and (folder / "target_vocab.json").exists()
        path = needed_file(folder, "target_vocab.json" if own else "vocab.json")
        table = read_json(path)
        if not all(type(number) is int for number in table.values()):
            raise DocnmtError(f"{path}: has pieces whose ids are no numbers\n  Copy the file again.")
        pieces = by_id(table, str(path))
        if pieces[-1] != PADDING:
            raise DocnmtError(
                f"{path}: its last piece is {pieces[-1]}, not {PADDING}\n  Give the model's own vocabulary."
            )
        language = language_piece(pieces, target_language, str(path)) if side == "source" else ""
        if kind == HUGGING_FACE:
            found.append(named_subwords(needed_file(folder, f"{side}.spm"), pieces, "", language))
        else:
            found.append(
                named_subwords(needed_file(folder, f"{side}.spm"), pieces[:-1], _punctuation(folder), language)
            )
    return found[0], found[1]


def _punctuation(folder: Path) -> str:
    """OPUS-MT's models have two SentencePiece models; one for both sides was made by Marian from text as it is."""
    one = needed_file(folder, "source.spm").read_bytes() == needed_file(folder, "target.spm").read_bytes()
    return "" if one else "opus-mt"


def _decoding(folder: Path, config: dict[str, Any]) -> DecodingConfig:
    path = folder / "generation_config.json"
    generation = config | (read_json(path) if path.exists() else {})
    return DecodingConfig(
        beam=int(generation.get("num_beams") or 6), length_penalty=float(generation.get("length_penalty") or 1.0)
    )


def _languages(folder: Path) -> tuple[str, str]:
    path = folder / "tokenizer_config.json"
    table = read_json(path) if path.exists() else {}
    return str(table.get("source_lang") or ""), str(table.get("target_lang") or "")


# ---- A model by its name on the Hugging Face hub ----

_NAME = re.compile(r"[\w-]+/[\w.-]+")


def is_hub_name(source: str) -> bool:
    return _NAME.fullmatch(source) is not None


def download(name: str) -> Path:
    """The folder that the files lie in, in the cache of huggingface_hub."""
    by_hand = (
        "  Or download config.json, generation_config.json, tokenizer_config.json, vocab.json, source.spm,\n"
        f"  target.spm and model.safetensors or pytorch_model.bin from https://huggingface.co/{name}/tree/main\n"
        "  into a folder, and give that folder."
    )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise DocnmtError(
            f"{name}: huggingface_hub is needed to download it\n"
            f"  Install it: {sys.executable} -m pip install huggingface_hub\n{by_hand}"
        ) from None
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(FILES)))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=list(FILES_OF_TORCH)))
    except Exception as error:  # of many kinds: those of the network, of the hub, of the file system
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DocnmtError(
            f"{name}: cannot be downloaded ({reason})\n  Check the name and the network.\n{by_hand}"
        ) from None
    return folder
