"""`docnmt import` and `docnmt export`: models of Marian and of Hugging Face transformers, in and out.

Of a document model only the sentence model inside is exported: neither program supports context.
Imported models are exported as they came; one that was trained here can be exported if it was
trained with Marian's arithmetic.
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from docnmt.base.errors import DocnmtError
from docnmt.base.files import folder_atomically
from docnmt.config import ContextConfig
from docnmt.data.subwords import NamedSubwords
from docnmt.interop.found import HUGGING_FACE, MARIAN, MARIANS, TRANSFORMERS, Found
from docnmt.interop.huggingface import (
    download,
    is_hub_name,
    is_huggingface_folder,
    read_huggingface_folder,
    write_huggingface_folder,
)
from docnmt.interop.marian import is_marian_folder, read_marian_folder, write_marian_folder
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, ModelCard, load_model, save_model, weights_of

_PAIR = re.compile(r"(?:^|.*[^a-zA-Z])([a-z]{2,3})-([a-z]{2,3})")


def import_model(source: str, out: str | Path, kind: str = MARIAN, languages: tuple[str, str] = ("", "")) -> ModelCard:
    """`kind`: whose arithmetic the model is to follow, Marian's or that of Hugging Face transformers."""
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DocnmtError(f"{out}: already exists\n  Choose a new folder, or remove this one.")
    with _as_folder(source) as folder:
        found = _read(folder, source, kind, languages)
    _check_shapes(found, source)
    languages = _languages(found, source, languages)
    card = ModelCard(found.model, ContextConfig(kind="none"), found.decoding, *languages)
    notes = {"imported_from": source, "arithmetic": kind}
    save_model(out, found.weights, card, found.source, found.target, notes)
    return card


def _read(folder: Path, source: str, kind: str, languages: tuple[str, str]) -> Found:
    if is_marian_folder(folder):
        if kind == HUGGING_FACE:
            raise DocnmtError(
                f"{source}: has Marian's own layout, which transformers does not read\n  Leave out --as huggingface."
            )
        return read_marian_folder(folder, languages[1])
    if is_huggingface_folder(folder):
        return read_huggingface_folder(folder, kind, languages[1])
    raise DocnmtError(
        f"{source}: not a Marian model (it has neither a .npz nor config.json with weights)\n"
        "  Give a folder or .zip as OPUS-MT releases them, a folder in Hugging Face's layout, or a name on its hub."
    )


def _check_shapes(found: Found, source: str) -> None:
    """The vocabularies, the settings and the weights may come from different models."""
    tables = found.weights["source_embedding.weight"], found.weights.get("target_embedding.weight")
    for side, table, subwords in zip(("source", "target"), tables, (found.source, found.target), strict=True):
        rows = len(tables[0] if table is None else table)
        if rows != len(subwords):
            raise DocnmtError(
                f"{found.file}: the model has {rows:,} {side} words, but the vocabulary has {len(subwords):,}\n"
                "  Give the vocabulary that the model was trained with."
            )
    with torch.device("meta"):
        made = DocumentTransformer(found.model, ContextConfig(kind="none"), len(found.source), len(found.target))
    for name, parameter in made.named_parameters():
        if found.weights[name].shape != parameter.shape:
            shapes = tuple(found.weights[name].shape), tuple(parameter.shape)
            raise DocnmtError(
                f"{source}: {name} has the shape {shapes[0]}, but the settings say {shapes[1]}\n"
                "  Give the settings and the weights of the same model."
            )


@contextmanager
def _as_folder(source: str) -> Iterator[Path]:
    path = Path(source)
    if path.is_dir():
        yield path
    elif path.is_file():
        with tempfile.TemporaryDirectory(prefix="docnmt-import-") as temporary:
            yield _unpacked(path, Path(temporary))
    elif is_hub_name(source) and not path.parent.exists():
        yield download(source)
    else:
        raise DocnmtError(f"{source}: no such folder or file\n  Check the path, or give OWNER/NAME on the hub.")


def _unpacked(path: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise DocnmtError(f"{path}: cannot be unpacked ({error})\n  Download the .zip again.") from None
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _languages(found: Found, source: str, given: tuple[str, str]) -> tuple[str, str]:
    """As given, or as the folder says, or as its name ends: opus-mt-fr-en."""
    if all(given):
        return given
    if all(found.languages):
        return found.languages
    named = _PAIR.fullmatch(Path(source).name.removesuffix(".zip"))
    if named is None:
        raise DocnmtError(f"{source}: does not say which languages it translates\n  Give --languages, such as fr-en.")
    return named[1], named[2]


def export(folder: str | Path, out: str | Path, to: str) -> None:
    """`to`: in Marian's own layout, or in that of Hugging Face."""
    out = Path(out)
    if out.exists():
        raise DocnmtError(f"{out}: already exists\n  Choose a new folder, or remove this one.")
    loaded = load_model(folder)
    _check_arithmetic(loaded, folder, to)
    model = replace(loaded.card.model, output_bias=True)
    weights = {"softmax.bias": torch.zeros(len(loaded.target))} | weights_of(loaded.model)
    write = write_marian_folder if to == MARIAN else write_huggingface_folder
    with folder_atomically(out) as temporary:
        write(temporary, loaded, model, weights)


def _check_arithmetic(loaded: LoadedModel, folder: str | Path, to: str) -> None:
    model = loaded.card.model
    if model.kind != "transformer" or loaded.card.context.kind == "concat":
        raise DocnmtError(
            f"{folder}: not a Transformer that reads single sentences\n  No other docnmt model can run in Marian."
        )

    def computes_as(settings: Mapping[str, Any]) -> bool:
        return all(getattr(model, key) == value for key, value in settings.items())

    theirs = to == HUGGING_FACE and computes_as(TRANSFORMERS) and isinstance(loaded.target, NamedSubwords)
    if not computes_as(MARIANS) and not theirs:
        wanted = ", ".join(f"model.{key} = {json.dumps(value)}" for key, value in MARIANS.items())
        raise DocnmtError(
            f"{folder}: this model uses features that Marian does not have\n"
            f"  For a model that can be exported, train with {wanted}."
        )
