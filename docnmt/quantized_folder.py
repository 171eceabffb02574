"""`docnmt quantize`: a model folder about a quarter as large, its matrices in int8, all else as it was."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.linalg import vector_norm

from docnmt.base.errors import DocnmtError
from docnmt.base.files import folder_atomically, write_json
from docnmt.base.report import Column, Table
from docnmt.engine.native import SCALE, dequantize, with_scales
from docnmt.model.base import TranslationModel
from docnmt.model_folder import is_int8, load_model, model_key, read_config, save_weights, weights_of
from docnmt.version import __version__

_WRITTEN = ("weights.safetensors", "config.json")  # all other files are copied
_HOLDERS = ("layers", "connection")  # parts of names that say nothing of what a matrix is for


@dataclass(frozen=True)
class Kind:
    """Matrices of one purpose, of all layers. Errors are relative: the length of the difference by that of what was."""

    name: str
    matrices: int
    bytes_before: int
    bytes_after: int
    error: float  # of all their rows together
    worst_row: float


@dataclass(frozen=True)
class Quantized:
    """What became of a model folder."""

    kinds: list[Kind]
    bytes_before: int  # of the whole folder
    bytes_after: int

    def table(self) -> Table:
        columns = [Column("kind of matrix", text=True), *map(Column, ("matrices", "before", "after"))]
        table = Table("int8 weights", [*columns, Column("error"), Column("worst row")])
        for kind in self.kinds:
            sizes = _megabytes(kind.bytes_before), _megabytes(kind.bytes_after)
            table.add(kind.name, str(kind.matrices), *sizes, f"{kind.error:.2%}", f"{kind.worst_row:.2%}")
        sizes = _megabytes(self.bytes_before), _megabytes(self.bytes_after)
        table.add("the whole folder", str(sum(kind.matrices for kind in self.kinds)), *sizes, "", "", rule=True)
        table.notes.append("sizes in MB; error: length of the difference by the length of what was")
        return table


def quantize_folder(folder: Path, out: Path) -> Quantized:
    """Writes the model folder anew with its matrices in int8."""
    if is_int8(folder):
        raise DocnmtError(f"{folder}: is int8 already\n  Give the model that it was quantized from.")
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    _check_output(folder, out, {path.name for path in files})
    model = load_model(folder).model
    weights = weights_of(model)
    matrices = _matrices(model)
    held = with_scales(weights, matrices)
    for name in matrices:
        if not held[name + SCALE].isfinite().all():
            raise DocnmtError(f"{folder}: {name} has values that are no numbers\n  Train the model again.")
    config = read_config(folder)
    config |= {"docnmt": __version__, "weights": "int8"}
    config["notes"] = config.get("notes", {}) | {"quantized_from": model_key(folder)}
    try:
        with folder_atomically(out) as temporary:
            save_weights(temporary / "weights.safetensors", held)
            write_json(temporary / "config.json", config)
            for path in files:
                if path.name not in _WRITTEN:
                    shutil.copyfile(path, temporary / path.name)
    except (OSError, SafetensorError) as error:
        raise DocnmtError(f"{out}: the model could not be saved ({error})\n  Make room and run again.") from None
    return Quantized(_kinds(weights, held, matrices), _bytes(files), _bytes(out.iterdir()))


def _check_output(folder: Path, out: Path, names: set[str]) -> None:
    """Nothing that somebody else made is lost; what was quantized before is replaced."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / "config.json").exists() or not is_int8(out):
        raise DocnmtError(f"{out}: is there already and is no int8 model\n  Give a folder that is not, or remove it.")
    strange = sorted({path.name for path in out.iterdir()} - names)
    if strange:
        raise DocnmtError(
            f"{out}: has {strange[0]}, which {folder} has not and which would be lost\n"
            "  Move it away, or give another folder."
        )


def _matrices(model: TranslationModel) -> list[str]:
    """All that is multiplied, and embeddings; not the statistics (topics) that training leaves alone and nothing is
    multiplied by."""
    return [name for name, parameter in model.named_parameters() if parameter.ndim == 2 and parameter.requires_grad]


def _kinds(weights: Mapping[str, Tensor], held: Mapping[str, Tensor], matrices: Iterable[str]) -> list[Kind]:
    by_kind = defaultdict(list)
    for name in matrices:
        by_kind[_kind(name)].append(name)
    kinds = []
    for kind, names in by_kind.items():
        after = sum(held[name].nbytes + held[name + SCALE].nbytes for name in names)
        length = torch.cat([vector_norm(weights[name], dim=1) for name in names])
        error = torch.cat([_errors(weights[name], held[name], held[name + SCALE]) for name in names])
        rows, whole = error / length.clamp(min=1e-30), vector_norm(error) / vector_norm(length).clamp(min=1e-30)
        before = sum(weights[name].nbytes for name in names)
        kinds.append(Kind(kind, len(names), before, after, whole.item(), rows.max().item()))
    return kinds


def _errors(matrix: Tensor, numbers: Tensor, scales: Tensor) -> Tensor:
    """[rows]"""
    return vector_norm(dequantize(numbers, scales).sub_(matrix), dim=1)


def _kind(name: str) -> str:
    """encoder.3.attention.output.weight -> encoder attention"""
    parts = [part for part in name.split(".")[:-1] if not part.isdecimal() and part not in _HOLDERS]
    return " ".join(parts[:-1] or parts).replace("_", " ")


def _bytes(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.2f}"
