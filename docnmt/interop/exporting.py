"""`docnmt export`: a sentence model as Marian or as Hugging Face transformers would have it.

Of a document model it is the sentence model inside: neither knows a context. Models that were imported go out as they
came in; one that was trained here goes out if it was trained with Marian's arithmetic (MARIANS below).
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.base.files import folder_atomically, write_json
from docnmt.config import ModelConfig
from docnmt.data.subwords import END, PADDING, NamedSubwords, Subwords
from docnmt.interop.found import HUGGING_FACE, MARIAN
from docnmt.interop.marian_folder import SETTINGS
from docnmt.interop.names import names_of, to_huggingface, to_marian
from docnmt.interop.settings import EPSILON, settings_of
from docnmt.model_folder import LoadedModel, load_model, weights_of

MARIANS = {"positions": "marian", "start": "zero", "norm_epsilon": EPSILON}  # what Marian cannot do otherwise
TRANSFORMERS = {"positions": "vaswani", "start": "mark", "norm_epsilon": 1e-5}


def export(folder: str | Path, out: str | Path, to: str) -> None:
    """`to`: in Marian's own layout, or in that of Hugging Face."""
    out = Path(out)
    if out.exists():
        raise DocnmtError(f"{out}: is there already\n  Give a folder that is not, or remove it.")
    loaded = load_model(folder)
    _check(loaded, str(folder), to)
    model = replace(loaded.card.model, output_bias=True)
    weights = _sentence_weights(loaded)
    with folder_atomically(out) as temporary:
        if to == MARIAN:
            _write_marian(temporary, loaded, model, weights)
        else:
            _write_huggingface(temporary, loaded, model, weights)


def _check(loaded: LoadedModel, where: str, to: str) -> None:
    model = loaded.card.model
    if model.kind != "transformer" or loaded.card.context.kind == "concat":
        raise DocnmtError(
            f"{where}: is no Transformer that reads single sentences\n  Marian runs no other model of docnmt's."
        )
    theirs = to == HUGGING_FACE and _is(model, TRANSFORMERS) and isinstance(loaded.target, NamedSubwords)
    if not _is(model, MARIANS) and not theirs:
        wanted = ", ".join(f"model.{key} = {json.dumps(value)}" for key, value in MARIANS.items())
        raise DocnmtError(f"{where}: computes what Marian cannot\n  What can be exported is trained with {wanted}.")


def _is(model: ModelConfig, keys: Mapping[str, Any]) -> bool:
    return all(getattr(model, key) == value for key, value in keys.items())


def _sentence_weights(loaded: LoadedModel) -> dict[str, Tensor]:
    """All of theta_s, with a bias of zeros where the softmax has none."""
    nothing = {"softmax.bias": torch.zeros(len(loaded.target))}
    return nothing | {name: tensor.cpu() for name, tensor in weights_of(loaded.model).items()}


# ---- Marian's own layout ----


def _write_marian(folder: Path, loaded: LoadedModel, model: ModelConfig, weights: dict[str, Tensor]) -> None:
    arrays = {name: tensor.numpy() for name, tensor in to_marian(names_of(model), weights).items()}
    settings = settings_of(model, len(loaded.source), len(loaded.target)).encode() + b"\0"
    arrays[SETTINGS] = np.frombuffer(settings, np.int8)
    write_npz(folder / "model.npz", dict(sorted(arrays.items())))
    vocabularies = [_marian_vocabulary(folder, subwords, side) for side, subwords in _sides(loaded)]
    decoding = loaded.card.decoding
    lines = ["relative-paths: true", "models:", "  - model.npz", "vocabs:", *(f"  - {name}" for name in vocabularies)]
    lines += [f"beam-size: {decoding.beam}", f"normalize: {decoding.length_penalty:g}", "word-penalty: 0"]
    lines += ["mini-batch: 1", "maxi-batch: 1", "maxi-batch-sort: src"]
    (folder / "decoder.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_npz(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """As Marian reads and writes it: nothing compressed, no sizes of 64 bits."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0))
            archive.writestr(f"{name}.npy", content.getvalue())


def _marian_vocabulary(folder: Path, subwords: Subwords, side: str) -> str:
    """Writes it and its SentencePiece model; the name for decoder.yml."""
    (folder / f"{side}.spm").write_bytes(subwords.model)
    if not isinstance(subwords, NamedSubwords):
        return f"{side}.spm"
    name = f"{side}.vocab.yml"
    lines = (f"{json.dumps(piece, ensure_ascii=False)}: {i}\n" for i, piece in enumerate(subwords.all_pieces()))
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return name


# ---- Hugging Face's layout ----


def _write_huggingface(folder: Path, loaded: LoadedModel, model: ModelConfig, weights: dict[str, Tensor]) -> None:
    if _is(model, MARIANS):  # which has no <pad>: it becomes the last word, all zeros
        of_words = [n for n in weights if n.endswith("embedding.weight") or n in ("softmax.weight", "softmax.bias")]
        weights = weights | {n: torch.cat([weights[n], torch.zeros_like(weights[n][:1])]) for n in of_words}
    pieces = [_with_padding(subwords) for _, subwords in _sides(loaded)]
    if len(pieces[0]) != len(pieces[1]):
        raise DocnmtError(
            f"its vocabularies have {len(pieces[0]):,} and {len(pieces[1]):,} pieces\n"
            "  transformers needs two of one size; export it with --to marian."
        )
    save_file(to_huggingface(names_of(model), weights), folder / "model.safetensors", {"format": "pt"})
    end, pad = pieces[1].index(END), pieces[1].index(PADDING)
    write_json(folder / "config.json", _config(model, len(pieces[0]), end, pad))
    decoding = {"num_beams": loaded.card.decoding.beam, "length_penalty": loaded.card.decoding.length_penalty}
    marks: dict[str, Any] = {"bos_token_id": 0, "decoder_start_token_id": pad, "eos_token_id": end, "pad_token_id": pad}
    marks |= {"forced_eos_token_id": end, "bad_words_ids": [[pad]], "max_length": 512}
    write_json(folder / "generation_config.json", {**marks, **decoding})
    one = pieces[0] == pieces[1]
    languages = {"source_lang": loaded.card.source_language, "target_lang": loaded.card.target_language}
    names = {"tokenizer_class": "MarianTokenizer", "unk_token": "<unk>", "eos_token": END, "pad_token": PADDING}
    write_json(
        folder / "tokenizer_config.json", {**names, **languages, "separate_vocabs": not one, "model_max_length": 512}
    )
    for name, listed in list(zip(("vocab.json", "target_vocab.json"), pieces, strict=True))[: 1 if one else 2]:
        write_json(folder / name, {piece: i for i, piece in enumerate(listed)})
    for side, subwords in _sides(loaded):
        (folder / f"{side}.spm").write_bytes(subwords.model)


def _config(model: ModelConfig, vocabulary: int, end: int, pad: int) -> dict[str, Any]:
    sizes = {"layers": (model.encoder_layers, model.decoder_layers)}
    sizes |= {"ffn_dim": (model.filter_width,) * 2, "attention_heads": (model.heads,) * 2}
    sides = {f"{side}_{key}": pair[n] for key, pair in sizes.items() for n, side in enumerate(("encoder", "decoder"))}
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "d_model": model.width,
        **sides,
        "activation_function": model.activation,
        "dropout": model.dropout,
        "vocab_size": vocabulary,
        "decoder_vocab_size": vocabulary,
        "share_encoder_decoder_embeddings": model.tie == "all",
        "tie_word_embeddings": model.tie != "none",
        "max_position_embeddings": model.max_length,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_embedding": False,
        "is_encoder_decoder": True,
        "bos_token_id": 0,
        "eos_token_id": end,
        "forced_eos_token_id": end,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "torch_dtype": "float32",
    }


def _with_padding(subwords: Subwords) -> list[str]:
    pieces = subwords.all_pieces()
    return pieces if pieces[-1] == PADDING else [*pieces, PADDING]


def _sides(loaded: LoadedModel) -> tuple[tuple[str, Subwords], ...]:
    return ("source", loaded.source), ("target", loaded.target)
