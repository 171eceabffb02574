"""The paper's system (Zhang et al., 2018): docnmt/model tells it, section by section; here it gets its name."""

from __future__ import annotations

from docnmt.config import ContextConfig
from docnmt.data.context import ContextRule, HistoryRule
from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.interface import System


def rule(context: ContextConfig) -> type[ContextRule]:
    return HistoryRule if context.representation == "encoder" else ContextRule


SYSTEM = System(DocumentTransformer, rule)
