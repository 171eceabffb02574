"""What a system is; and the paper's own, which is in docnmt/model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.context import ContextRule, HistoryRule
from docnmt.data.subwords import Subwords
from docnmt.model.base import State, TranslationModel
from docnmt.model.transformer import DecoderState, DocumentTransformer

if TYPE_CHECKING:
    from docnmt.data.store import TokenStore


@dataclass(frozen=True)
class System:
    """A model made from a recipe's settings, what it sees of a document, and how it decodes word by word.

    The parameters that step 2 adds are under modules whose names start with "context"; the rest is
    the base. Without a context the model is its sentence-level base.
    """

    model: Callable[[ModelConfig, ContextConfig, int, int], TranslationModel]  # the last two: sizes of vocabularies
    rule: Callable[[ContextConfig], type[ContextRule]] = lambda _: ContextRule  # what it sees: `Batch.context`
    state: Callable[[Any, Any, int], State] = DecoderState  # of the model, what it encoded, and the beam
    # What the model learns from the training documents and the target's pieces before step 2; deterministic.
    learn: Callable[[Any, TokenStore, Subwords], None] | None = None


def _papers_rule(context: ContextConfig) -> type[ContextRule]:
    return HistoryRule if context.representation == "encoder" else ContextRule


PAPER = System(DocumentTransformer, _papers_rule)
