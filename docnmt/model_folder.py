"""A model is a folder: weights.safetensors, config.json, source.spm, target.spm. It knows its own settings.

Nothing in it is code: safetensors and JSON cannot run anything when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from docnmt.config import ContextConfig, DecodingConfig, ModelConfig, from_table
from docnmt.corpora.contexts import ContextRule
from docnmt.corpora.subwords import Subwords
from docnmt.document import ContextSpec
from docnmt.errors import DocnmtError
from docnmt.files_on_disk import folder_atomically, write_json
from docnmt.model.base import TranslationModel
from docnmt.systems import system_of
from docnmt.version import __version__

if TYPE_CHECKING:
    from docnmt.systems.interface import System


@dataclass(frozen=True)
class ModelCard:
    """All that is needed to build a model but its weights."""

    model: ModelConfig
    context: ContextConfig
    decoding: DecodingConfig
    source_language: str
    target_language: str

    @property
    def system(self) -> System:
        return system_of(self.model.kind, self.context.kind)

    def rule(self, source: Subwords, spec: ContextSpec | None = None, target: Subwords | None = None) -> ContextRule:
        """The target's sub-words matter to rules that change what is written."""
        marks = (source.bos, source.eos, *((target.bos, target.eos) if target else ()))
        return self.system.rule(self.context)(spec or self.context.spec, self.context.max_tokens, *marks)


@dataclass(frozen=True)
class LoadedModel:
    model: TranslationModel
    card: ModelCard
    source: Subwords
    target: Subwords


def weights_of(model: TranslationModel) -> dict[str, Tensor]:
    """Every parameter once: tied ones under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, path)


def save_model(
    folder: Path, weights: dict[str, Tensor], card: ModelCard, source: Subwords, target: Subwords, notes: dict
) -> None:
    try:
        with folder_atomically(folder) as temporary:
            save_weights(temporary / "weights.safetensors", weights)
            write_json(temporary / "config.json", {"docnmt": __version__, **asdict(card), "notes": notes})
            source.save(temporary / "source.spm")
            target.save(temporary / "target.spm")
    except (OSError, SafetensorError) as error:
        raise DocnmtError(f"{folder}: the model could not be saved ({error})\n  Make room and run again.") from None


def load_card(folder: str | Path) -> ModelCard:
    path = Path(folder) / "config.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DocnmtError(
            f"{folder}: not a model folder (it has no config.json)\n"
            "  Give the folder `model` that training wrote, for example runs/demo/document/model."
        ) from None
    except (OSError, ValueError) as error:
        raise DocnmtError(f"{path}: cannot be read ({error})\n  Copy the model folder again.") from None
    fields = ModelCard.__dataclass_fields__
    if not isinstance(table, dict) or not all(key in table for key in fields):
        raise DocnmtError(f"{path}: does not describe a model\n  Copy the model folder again.")
    return from_table(ModelCard, {key: table[key] for key in fields}, str(path))


def read_notes(folder: Path) -> dict[str, Any] | None:
    """What save_model was told beside the model itself; None where there is no model."""
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))["notes"]
    except (OSError, ValueError, KeyError):
        return None


def model_key(folder: str | Path) -> str:
    """A hash of a model's weights and settings."""
    digest = hashlib.sha256()
    for name in ("config.json", "weights.safetensors"):
        with open(Path(folder) / name, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def load_weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DocnmtError(f"{path}: damaged or missing ({error})\n  Copy the folder again.") from None


def load_model(folder: str | Path, device: torch.device | str = "cpu") -> LoadedModel:
    folder = Path(folder)
    card = load_card(folder)
    source, target = Subwords.load(folder / "source.spm"), Subwords.load(folder / "target.spm")
    with torch.device("meta"):  # no time spent on initial values that the file replaces
        model = card.system.model(card.model, card.context, len(source), len(target))
    model.to_empty(device=device)
    model.tie_weights()  # to_empty gives every name a tensor of its own
    weights = load_weights(folder / "weights.safetensors")
    try:
        missing = model.load_weights(weights)
    except DocnmtError as error:
        raise DocnmtError(f"{folder}: {error}") from None
    if missing:
        raise DocnmtError(f"{folder}: weights are missing, {missing[0]} first\n  Copy the model folder again.")
    return LoadedModel(model.eval(), card, source, target)
