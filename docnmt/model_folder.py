"""A model is a folder: weights.safetensors, config.json with its settings, source.spm, target.spm.

The weights are float32; in a folder that `docnmt quantize` wrote, matrices are int8, and
config.json says so. Nothing in a folder is code: loading safetensors and JSON runs nothing.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.linalg import vector_norm
from torch.overrides import TorchFunctionMode

from docnmt.base import __version__
from docnmt.base.errors import DocnmtError
from docnmt.base.files import check_hashes, file_hash, folder_atomically, hashes, read_json, regular_file, write_json
from docnmt.config import ContextConfig, DecodingConfig, ModelConfig, from_table
from docnmt.data.context import ContextRule
from docnmt.data.subwords import Subwords
from docnmt.document import ContextSpec
from docnmt.engine.native import SCALE, dequantize, take_scales, with_scales
from docnmt.model.base import TranslationModel
from docnmt.systems import check_kinds, system_of

if TYPE_CHECKING:
    from docnmt.systems.interface import System


# ---- Which device to compute on ----


def choose_device(name: str) -> torch.device:
    """`auto` is a GPU if there is one; under torchrun each process has its own GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise DocnmtError(f"device {name}: {reason}\n  Use cpu, cuda or auto.") from None


def set_threads(count: int) -> None:
    """0 leaves the number to torch."""
    if count:
        torch.set_num_threads(count)


# ---- Models on disk ----


@dataclass(frozen=True)
class ModelCard:
    """Everything needed to build a model, except its weights."""

    model: ModelConfig
    context: ContextConfig
    decoding: DecodingConfig
    source_language: str
    target_language: str

    @property
    def languages(self) -> tuple[str, str]:
        return self.source_language, self.target_language

    @property
    def system(self) -> System:
        return system_of(self.model.kind, self.context.kind)

    def rule(self, source: Subwords, spec: ContextSpec | None = None, target: Subwords | None = None) -> ContextRule:
        """The target's subwords matter to rules that change what the decoder writes."""
        marks = (source.bos, source.eos, *((target.bos, target.eos) if target else ()))
        return self.system.rule(self.context)(spec or self.context.spec, self.context.max_tokens, *marks)


@dataclass(frozen=True)
class LoadedModel:
    model: TranslationModel
    card: ModelCard
    source: Subwords
    target: Subwords
    int8: bool = False  # `docnmt quantize` wrote the folder; the model's weights are dequantized


def weights_of(model: TranslationModel) -> dict[str, Tensor]:
    """Every parameter once, tied ones under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    path.touch()
    mode = path.stat().st_mode  # as the umask says; safetensors makes the file readable only to its owner
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, path)
    path.chmod(mode)


def save_model(
    folder: Path, weights: dict[str, Tensor], card: ModelCard, source: Subwords, target: Subwords, notes: dict
) -> None:
    try:
        with folder_atomically(folder) as temporary:
            save_weights(temporary / "weights.safetensors", weights)
            source.save(temporary / "source.spm")
            target.save(temporary / "target.spm")
            config = {"docnmt": __version__, **asdict(card), "notes": notes, "files": hashes(temporary)}
            write_json(temporary / "config.json", config)
    except (OSError, SafetensorError) as error:
        raise DocnmtError(
            f"{folder}: the model could not be saved ({error})\n  Free some space and try again."
        ) from None


def read_config(folder: str | Path) -> dict[str, Any]:
    """All of config.json: the card, notes, and the type of the weights."""
    path = Path(folder) / "config.json"
    try:
        table = read_json(path)
    except FileNotFoundError:
        raise DocnmtError(
            f"{folder}: not a model folder (it has no config.json)\n"
            "  Give the `model` folder that training wrote, for example runs/demo/document/model."
        ) from None
    except (OSError, ValueError) as error:
        raise DocnmtError(f"{path}: cannot be read ({error})\n  Copy the model folder again.") from None
    if not isinstance(table, dict) or not all(key in table for key in ModelCard.__dataclass_fields__):
        raise DocnmtError(
            f"{path}: not a valid model description\n  The copy may be incomplete: copy the model folder again."
        )
    return table


def load_card(folder: str | Path) -> ModelCard:
    table = read_config(folder)
    fields = {key: table[key] for key in ModelCard.__dataclass_fields__}
    path = str(Path(folder) / "config.json")
    try:
        card = from_table(ModelCard, fields, path)
        check_kinds(card.model.kind, card.context.kind)
    except DocnmtError as error:
        raise error if path in str(error) else DocnmtError(f"{path}: {error}") from None
    return card


def is_int8(folder: str | Path) -> bool:
    """Whether `docnmt quantize` wrote this model folder; otherwise its weights are float32, as trained."""
    held = read_config(folder).get("weights", "float32")
    if held not in ("float32", "int8"):
        raise DocnmtError(
            f"{folder}: docnmt {__version__} does not know the weights' type {held}\n  Install a newer version."
        )
    return held == "int8"


def read_notes(folder: Path) -> dict[str, Any] | None:
    """The notes given to save_model; None if there is no model."""
    try:
        return read_json(folder / "config.json")["notes"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def model_key(folder: str | Path) -> str:
    """A hash of everything that determines a model's output: its settings, weights and shortlist."""
    digest = hashlib.sha256()
    for name in ("config.json", "weights.safetensors", "shortlist.safetensors"):
        if (Path(folder) / name).exists():
            digest.update(bytes.fromhex(file_hash(Path(folder) / name)))
    return digest.hexdigest()


def load_weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(regular_file(path))
    except (OSError, SafetensorError) as error:
        raise DocnmtError(f"{path}: damaged or missing ({error})\n  Copy the folder again.") from None


_HASHED = {"weights.safetensors", "source.spm", "target.spm"}


def check_files(folder: Path) -> None:
    """Refuses a model folder if a file differs from its hash in config.json."""
    config = read_config(folder)
    if "files" not in config:
        return  # removed on purpose
    known = config["files"]
    try:
        if not isinstance(known, dict) or not known.keys() >= _HASHED:
            raise OSError("config.json lacks hashes of the model's files")
        check_hashes(folder, known)
    except OSError as error:
        raise DocnmtError(
            f"{folder}: {error}\n"
            '  Copy the model folder again; if you changed it on purpose, remove "files" from its config.json.'
        ) from None


class _ForWeights(TorchFunctionMode):
    """Builds a model whose weights will be read from a file: refused if config.json makes it much larger
    than the file, and without the random numbers that the file replaces. The device "meta" would do
    as well, but makes torch import its compiler, which takes longer than everything else."""

    BESIDE = 1 << 24  # numbers that a model has besides its weights: tables of positions
    COPIES = 3  # of a table that in the end both embeddings and the softmax share

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        try:
            with safe_open(regular_file(path), "pt") as file:
                names = file.keys()
                held = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
                self.left = self.BESIDE + self.COPIES * held
                self.tensors_left = 1000 + self.COPIES * len(names)  # many tiny layers take long, too
        except (OSError, SafetensorError) as error:
            raise DocnmtError(f"{path}: damaged or missing ({error})\n  Copy the folder again.") from None

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.__name__ in ("empty", "zeros", "ones", "full", "arange"):
            sizes = args[0] if args and isinstance(args[0], tuple | list) else args
            self.left -= math.prod(size for size in sizes if isinstance(size, int))
            self.tensors_left -= 1
            if self.left < 0 or self.tensors_left < 0:
                raise DocnmtError(
                    f"{self.path.parent}: config.json describes a larger model than weights.safetensors holds\n"
                    "  Copy the model folder again."
                )
        if function.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):  # tensor methods, and those of nn.init
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> LoadedModel:
    folder = Path(folder)
    card, int8 = load_card(folder), is_int8(folder)
    check_files(folder)
    source, target = Subwords.load(folder / "source.spm"), Subwords.load(folder / "target.spm")
    with torch.device(device), _ForWeights(folder / "weights.safetensors"):
        model = card.system.model(card.model, card.context, len(source), len(target))
    weights = load_weights(folder / "weights.safetensors")
    try:
        scales = take_scales(weights)
        missing = model.load_weights(weights)
    except DocnmtError as error:
        raise DocnmtError(f"{folder}: {error}") from None
    _check_types(folder, weights, model, int8)
    _check_numbers(folder, weights | scales)
    if missing:
        raise DocnmtError(
            f"{folder}: weights.safetensors lacks weights, the first is {missing[0]}\n  Copy the model folder again."
        )
    if bool(scales) != int8:
        raise DocnmtError(
            f"{folder}: config.json and weights.safetensors belong to different models\n  Copy the model folder again."
        )
    with torch.no_grad():
        for name, scale in scales.items():
            model.get_parameter(name).mul_(scale[:, None].to(device))  # so far int8 numbers
    return LoadedModel(model.eval(), card, source, target, int8)


def _check_types(folder: Path, weights: Mapping[str, Tensor], model: TranslationModel, int8: bool) -> None:
    for name, tensor in weights.items():
        real = tensor.is_floating_point() or (int8 and tensor.dtype == torch.int8)
        if model.get_parameter(name).is_floating_point() != real:
            found = str(tensor.dtype).removeprefix("torch.")
            raise DocnmtError(f"{folder}: {name} has the wrong type, {found}\n  Copy the model folder again.")


def _check_numbers(folder: Path, weights: Mapping[str, Tensor]) -> None:
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise DocnmtError(
                f"{folder}: {name} has infinite or NaN values: its training diverged\n"
                "  Train it again with a lower learning rate or with clip = 1.0."
            )


# ---- `docnmt quantize`: a model folder a quarter of the size, its matrices in int8, all else unchanged ----

_WRITTEN = ("weights.safetensors", "config.json")  # all other files are copied
_HOLDERS = ("layers", "connection")  # parts of names that do not tell what a matrix is for


@dataclass(frozen=True)
class Kind:
    """The matrices of one purpose in all layers. Errors are relative to the norm of the original."""

    name: str
    matrices: int
    bytes_before: int
    bytes_after: int
    error: float  # of all their rows together
    worst_row: float


@dataclass(frozen=True)
class Quantized:
    """What `docnmt quantize` reports."""

    kinds: list[Kind]
    bytes_before: int  # of the whole folder
    bytes_after: int


def quantize_folder(folder: Path, out: Path) -> Quantized:
    """Writes a copy of the model folder with its matrices in int8."""
    if is_int8(folder):
        raise DocnmtError(f"{folder}: this model is already int8\n  Give the model that it was quantized from.")
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    _check_output(folder, out, {path.name for path in files})
    model = load_model(folder).model
    weights = weights_of(model)
    matrices = _matrices(model)
    held = with_scales(weights, matrices)
    config = read_config(folder)
    config |= {"docnmt": __version__, "weights": "int8"}
    config["notes"] = config.get("notes", {}) | {"quantized_from": model_key(folder)}
    try:
        with folder_atomically(out) as temporary:
            save_weights(temporary / "weights.safetensors", held)
            for path in files:
                if path.name not in _WRITTEN:
                    shutil.copyfile(path, temporary / path.name)
            known = hashes(temporary)
            known.pop("shortlist.safetensors", None)  # may be replaced; it has a hash of the subwords it is for
            write_json(temporary / "config.json", config | {"files": known})
    except (OSError, SafetensorError) as error:
        raise DocnmtError(f"{out}: the model could not be saved ({error})\n  Free some space and try again.") from None
    return Quantized(_kinds(weights, held, matrices), _bytes(files), _bytes(out.iterdir()))


def _check_output(folder: Path, out: Path, names: set[str]) -> None:
    """Only an int8 model may be replaced, and only if no other file is lost."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / "config.json").exists() or not is_int8(out):
        raise DocnmtError(f"{out}: already exists and is not an int8 model\n  Choose a new folder, or remove this one.")
    strange = sorted({path.name for path in out.iterdir()} - names)
    if strange:
        raise DocnmtError(
            f"{out}: contains {strange[0]}, which is not in {folder} and would be lost\n"
            "  Move it elsewhere, or choose another folder."
        )


def _matrices(model: TranslationModel) -> list[str]:
    """All matrices that are multiplied, and embeddings; not statistics such as topics, which are not trained."""
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
