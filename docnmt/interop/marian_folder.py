"""Marian's own layout, as OPUS-MT releases it.

NAME.npz            parameters, and the settings of the model in special:model.yml
decoder.yml         which model, which vocabularies, beam and normalisation
NAME.vocab.yml      `piece: id` a line; or .vocab, a piece a line; or .spm, numbered by SentencePiece itself
source.spm, target.spm   where the vocabulary is not .spm
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import DecodingConfig
from docnmt.data.subwords import Subwords
from docnmt.interop.found import Found, check_sizes, language_piece, named_subwords, needed_file
from docnmt.interop.names import from_marian, names_of
from docnmt.interop.settings import Value, model_of, read_settings, read_vocabulary, refuse

SETTINGS = "special:model.yml"


def is_own_folder(folder: Path) -> bool:
    return any(folder.glob("*.npz"))


def read_own_folder(folder: Path, target_language: str) -> Found:
    decoder = _decoder(folder)
    file = _model_file(folder, decoder)
    tensors, settings = read_npz(file)
    model = model_of(settings, tensors, str(file))
    if "decoder_ff_logit_out_W" in tensors:  # as older versions wrote it
        tensors["decoder_ff_logit_out_Wt"] = tensors.pop("decoder_ff_logit_out_W").t()
    names = names_of(model)
    strange = sorted(set(tensors) - {name for each in names for name in each.marian})
    if strange:
        refuse(str(file), [f"it has a parameter {strange[0]}"])
    weights = from_marian(names, tensors, str(file))
    source, target = _subwords(folder, _vocabularies(folder, decoder), target_language)
    check_sizes(str(file), len(weights["source_embedding.weight"]), source, "source")
    check_sizes(
        str(file), len(weights.get("target_embedding.weight", weights["source_embedding.weight"])), target, "target"
    )
    return Found(weights, model, _decoding(decoder), source, target, ("", ""))


def read_npz(file: Path) -> tuple[dict[str, Tensor], dict[str, Value]]:
    """Parameters and settings."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DocnmtError(f"{file}: damaged, or no file of Marian's ({error})\n  Copy it again.") from None
    if SETTINGS not in found:
        raise DocnmtError(f"{file}: has no settings ({SETTINGS})\n  Give a model that Marian wrote.")
    # Marian ends the text with one zero or more.
    text = found.pop(SETTINGS).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")
    return {name: torch.from_numpy(array) for name, array in found.items()}, read_settings(text, f"{file}, {SETTINGS}")


def _decoder(folder: Path) -> dict[str, Value]:
    path = folder / "decoder.yml"
    return read_settings(path.read_text(encoding="utf-8"), str(path)) if path.exists() else {}


def _model_file(folder: Path, decoder: dict[str, Value]) -> Path:
    named = decoder.get("models", [])
    if isinstance(named, str) or len(named) > 1:
        raise DocnmtError(
            f"{folder}: decoder.yml names not one model, but {named}\n  Name one: ensembles are not there."
        )
    if named:
        return needed_file(folder, Path(named[0]).name)
    files = sorted(folder.glob("*.npz"))
    if len(files) > 1:
        raise DocnmtError(f"{folder}: has {len(files)} models and no decoder.yml\n  Leave one .npz in the folder.")
    return files[0]


def _vocabularies(folder: Path, decoder: dict[str, Value]) -> list[Path]:
    """Of source and target."""
    named = decoder.get("vocabs", [])
    if not named:
        joint = sorted([*folder.glob("*.vocab.yml"), *folder.glob("vocab.spm")])
        sides = [*folder.glob("*.src.vocab*"), *folder.glob("*.trg.vocab*")]
        named = [path.name for path in (sides if len(sides) == 2 else joint * 2)]
    if len(named) != 2:
        raise DocnmtError(
            f"{folder}: has no vocabularies of source and target\n"
            "  Put the files .vocab.yml, .vocab or .spm there, and name them as `vocabs` in decoder.yml."
        )
    return [needed_file(folder, Path(name).name) for name in named]


def _subwords(folder: Path, vocabularies: list[Path], target_language: str) -> tuple[Subwords, Subwords]:
    found: list[Subwords] = []
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        if vocabulary.suffix == ".spm":
            found.append(Subwords(vocabulary.read_bytes(), str(vocabulary)))
            continue
        if not (folder / f"{side}.spm").exists() and (folder / f"{side}.bpe").exists():
            raise DocnmtError(f"{folder}: has {side}.bpe, sub-words of subword-nmt\n  Only SentencePiece is supported.")
        pieces = _pieces(vocabulary)
        language = language_piece(pieces, target_language, str(vocabulary)) if side == "source" else ""
        found.append(named_subwords(needed_file(folder, f"{side}.spm"), pieces, "opus-mt", language))
    return found[0], found[1]


def _pieces(vocabulary: Path) -> list[str]:
    try:
        text = vocabulary.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DocnmtError(f"{vocabulary}: is not UTF-8 ({error})\n  Copy the file again.") from None
    if vocabulary.suffix in (".yml", ".yaml"):
        return read_vocabulary(text, str(vocabulary))
    return text.removesuffix("\n").split("\n")


def _decoding(decoder: dict[str, Value]) -> DecodingConfig:
    beam, alpha, penalty = (decoder.get(key, "") for key in ("beam-size", "normalize", "word-penalty"))
    if penalty not in ("", "0"):
        raise DocnmtError(f"decoder.yml: word-penalty {penalty} is not there in docnmt\n  Set it to 0.")
    default = DecodingConfig(beam=6, length_penalty=1.0)
    try:
        return DecodingConfig(beam=int(str(beam) or 6), length_penalty=float(str(alpha) or default.length_penalty))
    except ValueError:
        raise DocnmtError(f"decoder.yml: beam-size {beam}, normalize {alpha}\n  Write numbers.") from None
