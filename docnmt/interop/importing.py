"""`docnmt import`: a model of Marian, in its own layout or Hugging Face's, becomes a model folder."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.interop.found import HUGGING_FACE, MARIAN, Found
from docnmt.interop.huggingface import download, is_hub_name, is_huggingface_folder, read_huggingface_folder
from docnmt.interop.marian_folder import is_own_folder, read_own_folder
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import ModelCard, save_model

_PAIR = re.compile(r"(?:^|.*[^a-zA-Z])([a-z]{2,3})-([a-z]{2,3})")


def import_model(source: str, out: str | Path, kind: str = MARIAN, languages: tuple[str, str] = ("", "")) -> ModelCard:
    """`kind`: whose arithmetic the model is to follow, Marian's or that of Hugging Face transformers."""
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DocnmtError(f"{out}: is there already\n  Give a folder that is not, or remove it.")
    with _as_folder(source) as folder:
        found = _read(folder, source, kind, languages)
    _check_shapes(found, source)
    languages = _languages(found, source, languages)
    card = ModelCard(found.model, ContextConfig(kind="none"), found.decoding, *languages)
    notes = {"imported_from": source, "arithmetic": kind}
    save_model(out, found.weights, card, found.source, found.target, notes)
    return card


def _read(folder: Path, source: str, kind: str, languages: tuple[str, str]) -> Found:
    if is_own_folder(folder):
        if kind == HUGGING_FACE:
            raise DocnmtError(
                f"{source}: is in Marian's own layout, which transformers does not read\n  Leave out --as huggingface."
            )
        return read_own_folder(folder, languages[1])
    if is_huggingface_folder(folder):
        return read_huggingface_folder(folder, kind, languages[1])
    raise DocnmtError(
        f"{source}: is no model of Marian (it has neither a .npz nor config.json with weights)\n"
        "  Give a folder or .zip as OPUS-MT releases them, a folder in Hugging Face's layout, or a name on its hub."
    )


def _check_shapes(found: Found, source: str) -> None:
    """The settings and the weights may come from two models."""
    with torch.device("meta"):
        made = DocumentTransformer(found.model, ContextConfig(kind="none"), len(found.source), len(found.target))
    for name, parameter in made.named_parameters():
        if found.weights[name].shape != parameter.shape:
            shapes = tuple(found.weights[name].shape), tuple(parameter.shape)
            raise DocnmtError(
                f"{source}: {name} has the shape {shapes[0]}, by the settings {shapes[1]}\n"
                "  Give the settings and the weights of one model."
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
        raise DocnmtError(
            f"{source}: there is no such folder or file\n  Check the path, or write OWNER/NAME of the hub."
        )


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
