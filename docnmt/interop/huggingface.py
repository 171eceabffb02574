"""The layout of Hugging Face transformers: config.json, weights, source.spm, target.spm, vocab.json and the rest.

It is the same model with one word more, `<pad>`, which begins a translation. transformers'
arithmetic differs a little from Marian's: other sinusoids, `<pad>` takes part in the softmax,
another epsilon in the norms.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_json
from docnmt.config import DecodingConfig, ModelConfig
from docnmt.data.subwords import END, PADDING, UNKNOWN, Subwords
from docnmt.interop.found import (
    HUGGING_FACE,
    LONGEST,
    MARIANS,
    TRANSFORMERS,
    WORDS,
    Found,
    by_id,
    from_theirs,
    language_piece,
    named_subwords,
    needed_file,
    read_table,
    refuse,
    to_theirs,
)
from docnmt.model_folder import LoadedModel

_SAFE, _TORCH = "model.safetensors", "pytorch_model.bin"
_SIDES = ("encoder", "decoder")
_SIZES = ("layers", "ffn_dim", "attention_heads")
# Parameters that are computed, or another name for one of ours.
_KNOWN = {f"model.{side}.{table}.weight" for side in _SIDES for table in ("embed_positions", "embed_tokens")}
_KNOWN |= {"lm_head.weight", "model.shared.weight"}


def is_huggingface_folder(folder: Path) -> bool:
    return (folder / "config.json").exists() and not (folder / "weights.safetensors").exists()


def read_huggingface_folder(folder: Path, kind: str, target_language: str) -> Found:
    config = read_table(needed_file(folder, "config.json"))
    tensors, file = _tensors(folder)
    model = _model(config, kind, str(folder / "config.json"))
    if model.tie == "all" and "model.encoder.embed_tokens.weight" in tensors:
        tensors.setdefault("model.shared.weight", tensors["model.encoder.embed_tokens.weight"])
    weights = from_theirs(HUGGING_FACE, model, tensors, file, _KNOWN)
    told = read_table(folder / "tokenizer_config.json")
    languages = str(told.get("source_lang") or ""), str(told.get("target_lang") or "")
    source, target = _subwords(folder, kind, target_language or languages[1])
    if kind != HUGGING_FACE:
        weights = _without_padding(weights, file)
    generation = config | read_table(folder / "generation_config.json")
    decoding = DecodingConfig(
        beam=int(generation.get("num_beams") or 6), length_penalty=float(generation.get("length_penalty") or 1.0)
    )
    return Found(file, weights, model, decoding, source, target, languages)


def _tensors(folder: Path) -> tuple[dict[str, Tensor], Path]:
    file = folder / (_SAFE if (folder / _SAFE).exists() else _TORCH)
    if not file.exists():
        raise DocnmtError(f"{folder}: has neither {_SAFE} nor {_TORCH}\n  Copy the whole folder again.")
    try:
        # weights_only: a torch file is a pickle, and nothing in it must be run
        found = load_file(file) if file.name == _SAFE else torch.load(file, "cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, SafetensorError, pickle.UnpicklingError) as error:
        first = str(error).split("\n")[0]
        raise DocnmtError(f"{file}: damaged, or contains more than weights ({first})\n  Copy the file again.") from None
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise DocnmtError(f"{file}: contains no model weights\n  Give a model folder saved by transformers.")
    return dict(found), file


def _model(config: dict[str, Any], kind: str, where: str) -> ModelConfig:
    if config.get("model_type") != "marian":
        refuse(where, [f"model_type: {config.get('model_type')}"])
    for key in ("d_model", "activation_function", *(f"{side}_{key}" for side in _SIDES for key in _SIZES)):
        if key not in config:
            raise DocnmtError(
                f"{where}: the setting {key} is missing\n  Give the config.json that belongs to the weights."
            )
    off = ("normalize_before", "normalize_embedding", "add_final_layer_norm")
    strange = [f"{key}: {config[key]}" for key in off if config.get(key)]
    on = ("scale_embedding", "static_position_embeddings")
    strange += [f"{key}: {config[key]}" for key in on if not config.get(key, True)]
    pairs = (("ffn_dim", "feed-forward widths"), ("attention_heads", "numbers of heads"))
    strange += [f"two {what}" for key, what in pairs if config[f"encoder_{key}"] != config[f"decoder_{key}"]]
    activation = "swish" if config["activation_function"] == "silu" else config["activation_function"]
    if activation not in ("relu", "swish", "gelu"):
        strange.append(f"activation_function: {activation}")
    shared, tied = config.get("share_encoder_decoder_embeddings", True), config.get("tie_word_embeddings", True)
    if shared and not tied:
        strange.append("tie_word_embeddings: False with one embedding for both sides")
    if strange:
        refuse(where, strange)
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
        output_bias=True,
        search=kind,
        forbidden=(PADDING,) if theirs else (UNKNOWN,),
        **(TRANSFORMERS if theirs else MARIANS),
    )


def _without_padding(weights: dict[str, Tensor], file: Path) -> dict[str, Tensor]:
    """Marian's model has no `<pad>`, the last word; as long as the model is Marian's, it is all zeros."""
    of_words = [name for name in WORDS if name in weights]
    if any(weights[name][-1].any() for name in of_words):
        raise DocnmtError(
            f"{file}: {PADDING} is not zero: transformers has trained the model further, so it is no longer Marian's\n"
            "  Import it with --as huggingface."
        )
    return weights | {name: weights[name][:-1] for name in of_words}


def _subwords(folder: Path, kind: str, target_language: str) -> list[Subwords]:
    models = [needed_file(folder, f"{side}.spm") for side in ("source", "target")]
    # OPUS-MT has a SentencePiece model for each side; one for both was made by Marian from text as it is.
    punctuation = "" if models[0].read_bytes() == models[1].read_bytes() else "opus-mt"
    found: list[Subwords] = []
    for side, model in zip(("source", "target"), models, strict=True):
        own = side == "target" and (folder / "target_vocab.json").exists()
        path = needed_file(folder, "target_vocab.json" if own else "vocab.json")
        table = read_table(path)
        if not all(type(number) is int for number in table.values()):
            raise DocnmtError(f"{path}: the ids of some pieces are not numbers\n  Copy the file again.")
        pieces = by_id(table, str(path))
        if pieces[-1] != PADDING:
            raise DocnmtError(
                f"{path}: its last piece is {pieces[-1]}, not {PADDING}\n  Give the model's own vocabulary."
            )
        language = language_piece(pieces, target_language, str(path)) if side == "source" else ""
        if kind == HUGGING_FACE:
            found.append(named_subwords(model, pieces, "", language))
        else:
            found.append(named_subwords(model, pieces[:-1], punctuation, language))
    return found


# ---- Writing ----


def write_huggingface_folder(
    folder: Path, loaded: LoadedModel, model: ModelConfig, weights: Mapping[str, Tensor]
) -> None:
    pieces = [subwords.all_pieces() for subwords in (loaded.source, loaded.target)]
    if pieces[1][-1] != PADDING:  # Marian has no <pad>: it becomes the last word, all zeros
        pieces = [[*listed, PADDING] for listed in pieces]
        of_words = [name for name in WORDS if name in weights]
        weights = {**weights} | {n: torch.cat([weights[n], torch.zeros_like(weights[n][:1])]) for n in of_words}
    if len(pieces[0]) != len(pieces[1]):
        raise DocnmtError(
            f"the source vocabulary has {len(pieces[0]):,} pieces, the target vocabulary {len(pieces[1]):,}\n"
            "  transformers needs both of the same size; export the model with --to marian."
        )
    save_file(to_theirs(HUGGING_FACE, model, weights), folder / _SAFE, {"format": "pt"})
    end, pad = pieces[1].index(END), pieces[1].index(PADDING)
    marks = {"bos_token_id": 0, "eos_token_id": end, "forced_eos_token_id": end}
    marks |= {"pad_token_id": pad, "decoder_start_token_id": pad}
    write_json(folder / "config.json", config_of(model, len(pieces[0]), len(pieces[1]), marks))
    decoding = {"num_beams": loaded.card.decoding.beam, "length_penalty": loaded.card.decoding.length_penalty}
    write_json(folder / "generation_config.json", {**marks, "bad_words_ids": [[pad]], "max_length": 512, **decoding})
    tokenizer: dict[str, Any] = {"tokenizer_class": "MarianTokenizer", "unk_token": UNKNOWN, "eos_token": END}
    tokenizer |= {"pad_token": PADDING, "model_max_length": 512, "separate_vocabs": pieces[0] != pieces[1]}
    tokenizer |= {"source_lang": loaded.card.source_language, "target_lang": loaded.card.target_language}
    write_json(folder / "tokenizer_config.json", tokenizer)
    for name, listed in zip(("vocab.json", "target_vocab.json"), pieces, strict=True):
        if name == "vocab.json" or pieces[0] != pieces[1]:
            write_json(folder / name, {piece: i for i, piece in enumerate(listed)})
    (folder / "source.spm").write_bytes(loaded.source.model)
    (folder / "target.spm").write_bytes(loaded.target.model)


def config_of(model: ModelConfig, source_words: int, target_words: int, marks: Mapping[str, Any]) -> dict[str, Any]:
    layers = {"encoder_layers": model.encoder_layers, "decoder_layers": model.decoder_layers}
    sizes = {"ffn_dim": model.filter_width, "attention_heads": model.heads}
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "d_model": model.width,
        **layers,
        **{f"{side}_{key}": size for key, size in sizes.items() for side in _SIDES},
        "activation_function": model.activation,
        "dropout": model.dropout,
        "vocab_size": source_words,
        "decoder_vocab_size": target_words,
        "share_encoder_decoder_embeddings": model.tie == "all",
        "tie_word_embeddings": model.tie != "none",
        "max_position_embeddings": model.max_length,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_embedding": False,
        "is_encoder_decoder": True,
        **marks,
        "torch_dtype": "float32",
    }


# ---- A model by its name on the Hugging Face hub ----

_NAME = re.compile(r"[\w-]+/[\w.-]+")


def is_hub_name(source: str) -> bool:
    return _NAME.fullmatch(source) is not None


def download(name: str) -> Path:
    """Returns the folder in the cache of huggingface_hub."""
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
        folder = Path(snapshot_download(name, allow_patterns=["*.json", _SAFE, "*.spm"]))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=["*.json", _TORCH, "*.spm"]))
    except Exception as error:  # of many kinds: those of the network, of the hub, of the file system
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DocnmtError(
            f"{name}: cannot be downloaded ({reason})\n  Check the name and the network.\n{by_hand}"
        ) from None
    return folder
