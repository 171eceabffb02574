"""Marian's own layout, as OPUS-MT releases it.

NAME.npz                  the parameters, and the model's settings in special:model.yml
decoder.yml               which model, which vocabularies, beam and normalisation
NAME.vocab.yml            `piece: id` on each line; or .vocab, a piece on each line; or .spm
source.spm, target.spm    where the vocabulary is not .spm
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.config import DecodingConfig, ModelConfig
from docnmt.data.subwords import NamedSubwords, Subwords
from docnmt.interop.found import (
    LAYOUTS,
    LONGEST,
    MARIAN,
    MARIANS,
    Found,
    by_id,
    from_theirs,
    language_piece,
    named_subwords,
    needed_file,
    refuse,
    to_theirs,
)
from docnmt.model_folder import LoadedModel

SETTINGS = "special:model.yml"
_LAYOUT = LAYOUTS[MARIAN]


def is_marian_folder(folder: Path) -> bool:
    return any(folder.glob("*.npz"))


def read_marian_folder(folder: Path, target_language: str) -> Found:
    path = folder / "decoder.yml"
    decoder = read_settings(path.read_text(encoding="utf-8"), str(path)) if path.exists() else {}
    file = _model_file(folder, decoder)
    tensors, settings = read_npz(file)
    model = model_of(settings, tensors, str(file))
    if "decoder_ff_logit_out_W" in tensors:  # as older versions wrote it
        tensors["decoder_ff_logit_out_Wt"] = tensors.pop("decoder_ff_logit_out_W").t()
    weights = from_theirs(MARIAN, model, tensors, file)
    source, target = _subwords(folder, _vocabularies(folder, decoder), target_language)
    return Found(file, weights, model, _decoding(decoder), source, target)


def read_npz(file: Path) -> tuple[dict[str, Tensor], dict[str, Value]]:
    """Parameters and settings."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DocnmtError(f"{file}: damaged, or not a Marian file ({error})\n  Copy it again.") from None
    if SETTINGS not in found:
        raise DocnmtError(f"{file}: has no settings ({SETTINGS})\n  Give a model that Marian wrote.")
    # Marian ends the text with one zero or more.
    text = found.pop(SETTINGS).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")
    return {name: torch.from_numpy(array) for name, array in found.items()}, read_settings(text, f"{file}, {SETTINGS}")


def _model_file(folder: Path, decoder: Mapping[str, Value]) -> Path:
    named = decoder.get("models", [])
    if isinstance(named, str) or len(named) > 1:
        raise DocnmtError(f"{folder}: decoder.yml must name one model, not {named}\n  Ensembles are not supported.")
    if named:
        return needed_file(folder, Path(named[0]).name)
    files = sorted(folder.glob("*.npz"))
    if len(files) > 1:
        raise DocnmtError(f"{folder}: has {len(files)} models and no decoder.yml\n  Keep only one .npz in the folder.")
    return files[0]


def _vocabularies(folder: Path, decoder: Mapping[str, Value]) -> list[Path]:
    """Of source and target."""
    named = decoder.get("vocabs", [])
    if not named:
        joint = sorted([*folder.glob("*.vocab.yml"), *folder.glob("vocab.spm")])
        sides = [*folder.glob("*.src.vocab*"), *folder.glob("*.trg.vocab*")]
        named = [path.name for path in (sides if len(sides) == 2 else joint * 2)]
    if len(named) != 2:
        raise DocnmtError(
            f"{folder}: has no vocabularies for source and target\n"
            "  Put the files .vocab.yml, .vocab or .spm there, and name them as `vocabs` in decoder.yml."
        )
    return [needed_file(folder, Path(name).name) for name in named]


def _subwords(folder: Path, vocabularies: list[Path], target_language: str) -> list[Subwords]:
    found: list[Subwords] = []
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        if vocabulary.suffix == ".spm":
            found.append(Subwords(vocabulary.read_bytes(), str(vocabulary)))
            continue
        if not (folder / f"{side}.spm").exists() and (folder / f"{side}.bpe").exists():
            raise DocnmtError(f"{folder}: has {side}.bpe, subwords of subword-nmt\n  Only SentencePiece is supported.")
        pieces = _pieces(vocabulary)
        language = language_piece(pieces, target_language, str(vocabulary)) if side == "source" else ""
        found.append(named_subwords(needed_file(folder, f"{side}.spm"), pieces, "opus-mt", language))
    return found


def _pieces(vocabulary: Path) -> list[str]:
    try:
        text = vocabulary.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DocnmtError(f"{vocabulary}: not valid UTF-8 ({error})\n  Copy the file again.") from None
    if vocabulary.suffix in (".yml", ".yaml"):
        return read_vocabulary(text, str(vocabulary))
    return text.removesuffix("\n").split("\n")


def _decoding(decoder: Mapping[str, Value]) -> DecodingConfig:
    beam, alpha, penalty = (decoder.get(key, "") for key in ("beam-size", "normalize", "word-penalty"))
    if penalty not in ("", "0"):
        raise DocnmtError(f"decoder.yml: a word-penalty ({penalty}) is not supported\n  Set it to 0.")
    try:
        return DecodingConfig(beam=int(str(beam) or 6), length_penalty=float(str(alpha) or 1.0))
    except ValueError:
        raise DocnmtError(
            f"decoder.yml: beam-size {beam} or normalize {alpha} is not a number\n  Write numbers."
        ) from None


def write_marian_folder(folder: Path, loaded: LoadedModel, model: ModelConfig, weights: Mapping[str, Tensor]) -> None:
    arrays = {name: tensor.numpy() for name, tensor in to_theirs(MARIAN, model, weights).items()}
    settings = settings_of(model, len(loaded.source), len(loaded.target)).encode() + b"\0"
    arrays[SETTINGS] = np.frombuffer(settings, np.int8)
    # np.savez would write sizes of 64 bits, which Marian does not read.
    with zipfile.ZipFile(folder / "model.npz", "w", zipfile.ZIP_STORED) as archive:
        for name, array in sorted(arrays.items()):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0))
            archive.writestr(f"{name}.npy", content.getvalue())
    sides = {"source": loaded.source, "target": loaded.target}
    vocabularies = [_write_vocabulary(folder, side, subwords) for side, subwords in sides.items()]
    decoding = loaded.card.decoding
    decoder = {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": vocabularies,
        "beam-size": decoding.beam,
        "normalize": f"{decoding.length_penalty:g}",
        "word-penalty": 0,
        "mini-batch": 1,
        "maxi-batch": 1,
        "maxi-batch-sort": "src",
    }
    text = "".join(f"{_setting(key, value)}\n" for key, value in decoder.items())
    (folder / "decoder.yml").write_text(text, encoding="utf-8")


def _write_vocabulary(folder: Path, side: str, subwords: Subwords) -> str:
    """Beside its SentencePiece model; returns the name for decoder.yml."""
    (folder / f"{side}.spm").write_bytes(subwords.model)
    if not isinstance(subwords, NamedSubwords):
        return f"{side}.spm"
    name = f"{side}.vocab.yml"
    lines = (f"{json.dumps(piece, ensure_ascii=False)}: {i}\n" for i, piece in enumerate(subwords.all_pieces()))
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return name


# ---- The YAML that Marian writes: one level of keys, each with a text or a list of texts ----

# Read without types on purpose: a vocabulary has pieces such as `no`, `on` and `1`, which YAML
# takes for other things.

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_PAIR = re.compile(r"([\w.-]+)\s*:(?:\s+(.*))?")

Value = str | list[str]


def read_settings(text: str, file: str) -> dict[str, Value]:
    """`key: value`, or `key:` and lines `- value` below it."""
    found: dict[str, Value] = {}
    key = ""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if key and (content.startswith("- ") or content == "[]"):
            items = found[key] if isinstance(found[key], list) else []
            found[key] = [*items, *([] if content == "[]" else [_text(content[2:])])]
            continue
        pair = _PAIR.fullmatch(content)
        if pair is None or line[:1].isspace():
            raise _bad(file, number, f"{content[:40]!r} is not a setting")
        key = pair[1]
        value = (pair[2] or "").strip()
        if value.startswith("[") and value.endswith("]"):
            found[key] = [_text(item) for item in value[1:-1].split(",") if item.strip()]
        else:
            found[key] = _text(value)
    return found


def read_vocabulary(text: str, file: str) -> list[str]:
    """`piece: id` a line, or `? piece` and `: id` below it -> the pieces in the order of their ids."""
    ids: dict[str, int] = {}
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if line.startswith("? "):
            before = line[2:]
            continue
        line, before = before + line, ""
        key, separator, value = line.rpartition(":")
        if not separator or not value.strip().isdecimal():
            raise _bad(file, number, f"{line[:40]!r} is not a piece with its id")
        piece = _text(key)
        if piece in ids:
            raise _bad(file, number, f"the piece {piece!r} occurs twice")
        ids[piece] = int(value)
    return by_id(ids, file)


def _bad(file: str, line: int, problem: str) -> BadInput:
    return BadInput("YAML", problem, "Copy the file again.", file=file, line=line)


def _text(scalar: str) -> str:
    """What a scalar stands for, quoted or not."""
    scalar = scalar.strip(" \t")
    if len(scalar) > 1 and scalar[0] == scalar[-1] == '"':
        return _ESCAPE.sub(_unescaped, scalar[1:-1])
    if len(scalar) > 1 and scalar[0] == scalar[-1] == "'":
        return scalar[1:-1].replace("''", "'")
    return scalar


def _unescaped(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) > 1 else _LAYOUT["escapes"].get(found, found)


# ---- Marian's settings of a model as ours ----


def model_of(settings: Mapping[str, Value], parameters: Collection[str], where: str) -> ModelConfig:
    """`parameters`: the names of those that the model has."""

    def text(key: str) -> str:
        value = settings.get(key)
        if not isinstance(value, str):
            raise DocnmtError(f"{where}: the setting {key} is missing\n  Give a model that Marian wrote.")
        return value

    def number(key: str) -> int:
        if not text(key).isdecimal():
            raise DocnmtError(f"{where}: {key} is {text(key)!r}, not a number\n  Copy the model again.")
        return int(text(key))

    supported = _LAYOUT["supported"].items()
    strange = [f"{key}: {settings[key]}" for key, known in supported if settings.get(key, known[0]) not in known]
    if "Wpos" in parameters:  # without it the flag for trained positions does nothing
        strange.append("trained position embeddings (Wpos)")
    if len(settings.get("dim-vocabs", [])) != 2:
        strange.append(f"{len(settings.get('dim-vocabs', []))} vocabularies")
    filters = {text("transformer-dim-ffn")}
    if settings.get("transformer-decoder-dim-ffn", "0") not in ("0", []):
        filters.add(text("transformer-decoder-dim-ffn"))
    if len(filters) > 1:
        strange.append(f"feed-forward networks {' and '.join(sorted(filters))} wide")
    flags = ("tied-embeddings-all", "tied-embeddings-src", "tied-embeddings", "output-omit-bias")
    all_tied, both_sides, output, without_bias = (settings.get(key) == "true" for key in flags)
    if both_sides and not output and not all_tied:
        strange.append("tied-embeddings-src without tied-embeddings")
    if strange:
        refuse(where, strange)
    sizes: dict[str, Any] = {ours: number(theirs) for ours, theirs in _LAYOUT["sizes"].items()}
    return ModelConfig(
        **sizes,
        tie="all" if all_tied or both_sides else "target" if output else "none",
        max_length=LONGEST,
        activation=text("transformer-ffn-activation"),
        output_bias=not without_bias,
        search="marian",
        forbidden=("<unk>",),  # Marian writes it only if it is asked to
        **MARIANS,
    )


def settings_of(model: ModelConfig, source_words: int, target_words: int) -> str:
    """What Marian has to know of a model of ours, as the YAML in its file."""
    settings = _LAYOUT["written"] | {theirs: getattr(model, ours) for ours, theirs in _LAYOUT["sizes"].items()}
    settings |= {
        "dim-vocabs": [source_words, target_words],
        "output-omit-bias": not model.output_bias,
        "tied-embeddings": model.tie == "target",
        "tied-embeddings-all": model.tie == "all",
        "transformer-ffn-activation": model.activation,
    }
    return "\n".join(sorted(_setting(key, value) for key, value in settings.items()))


def _setting(key: str, value: object) -> str:
    if isinstance(value, list):
        items = [f"\n  - {item}" for item in value] or ["\n  []"]
        return f"{key}:{''.join(items)}"
    return f"{key}: {str(value).lower()}"
