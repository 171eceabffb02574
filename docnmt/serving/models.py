"""What is known of a model that is served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docnmt.document import NO_CONTEXT, ContextSpec

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator


@dataclass(frozen=True)
class ModelInfo:
    name: str
    folder: str
    source_language: str  # a code: "fr", "pt-BR"; "x-source" where the model does not say
    target_language: str
    uses_context: bool
    context: ContextSpec  # what a sentence sees of its document
    in_order: bool  # it needs its own translations of the sentences before: a document is translated in order
    most: int  # translations that a sentence can have


def info_of(name: str, folder: str, translator: Translator) -> ModelInfo:
    rule, beam = translator.rule(None), translator.options.beam
    return ModelInfo(
        name=name,
        folder=folder,
        source_language=code(translator.card.source_language) or "x-source",
        target_language=code(translator.card.target_language) or "x-target",
        uses_context=rule is not None,
        context=rule.spec if rule else NO_CONTEXT,
        in_order=rule is not None and rule.remembers,
        most=2 * beam if beam > 1 else 1,
    )


def code(language: str) -> str:
    """As APIs write it: pt-BR, not pt_BR."""
    return language.strip().replace("_", "-")


def named(folders: Sequence[str]) -> dict[str, str]:
    """Folders by names that tell them apart: the last part of a path that is not just `model`, and as many before it as
    it takes."""
    paths = {folder: [part for part in Path(folder).resolve().parts if part != "model"] for folder in folders}
    names = {folder: folder for folder in folders}
    for length in range(max(map(len, paths.values())), 0, -1):
        shorter = {"/".join(parts[-length:]): folder for folder, parts in paths.items()}
        if len(shorter) == len(paths):
            names = shorter
    return names
