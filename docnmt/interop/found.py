"""What the readers of other programs' folders find."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import DecodingConfig, ModelConfig
from docnmt.data.subwords import NamedSubwords, Subwords, Vocabulary

MARIAN, HUGGING_FACE = "marian", "huggingface"  # whose arithmetic


@dataclass(frozen=True)
class Found:
    """A model of another program, as one of ours."""

    weights: dict[str, Tensor]
    model: ModelConfig
    decoding: DecodingConfig
    source: Subwords
    target: Subwords
    languages: tuple[str, str]  # "" where the folder does not tell


def needed_file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise DocnmtError(f"{folder}: lacks {name}\n  Copy the whole folder again, this file with it.")
    return folder / name


def read_json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DocnmtError(f"{path}: cannot be read as JSON ({error})\n  Copy the file again.") from None
    if not isinstance(table, dict):
        raise DocnmtError(f"{path}: is no table of names and values\n  Copy the file again.")
    return table


def named_subwords(model: Path, pieces: list[str], punctuation: str, language: str = "") -> NamedSubwords:
    return NamedSubwords(model.read_bytes(), Vocabulary(tuple(pieces), punctuation, language), str(model))


def check_sizes(where: str, rows: int, subwords: Subwords, side: str) -> None:
    if rows != len(subwords):
        raise DocnmtError(
            f"{where}: the model has {rows:,} {side} words, the vocabulary {len(subwords):,}\n"
            "  Give the vocabulary that the model was trained with."
        )


def language_piece(pieces: Collection[str], target_language: str, where: str) -> str:
    """What tells a model that knows several to translate into this one; "" for a model of one language."""
    known = sorted(piece for piece in pieces if piece.startswith(">>") and piece.endswith("<<"))
    if len(known) < 2:
        return "".join(known)
    if f">>{target_language}<<" in known:
        return f">>{target_language}<<"
    codes = ", ".join(piece[2:-2] for piece in known)
    raise DocnmtError(
        f"{where}: translates into several languages ({codes})\n"
        "  Choose one with --languages SOURCE-TARGET, the target by one of these codes."
    )
