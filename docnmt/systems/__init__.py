"""The systems that a recipe can choose, by `model.kind` and `context.kind`: the paper's and those it is compared with.

A system is a module with a `SYSTEM` in it (see interface.py) and one line here; another name in the
module follows a colon. Nothing is imported before a recipe needs it, so that reading a recipe
stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from docnmt.base.errors import DocnmtError
from docnmt.config import one_of

if TYPE_CHECKING:
    from docnmt.systems.interface import System

SYSTEMS: dict[tuple[str, str], str] = {
    ("transformer", "none"): "docnmt.systems.interface:PAPER",  # Vaswani et al. (2017): the paper's, context off
    ("transformer", "attention"): "docnmt.systems.interface:PAPER",  # Zhang et al. (2018), the paper
    ("transformer", "concat"): "docnmt.systems.concat",  # Tiedemann and Scherrer (2017)
    ("transformer", "voita"): "docnmt.systems.voita",  # Voita et al. (2018)
    ("transformer", "cache"): "docnmt.systems.cache",  # Kuang et al. (2017)
    ("transformer", "continuous-cache"): "docnmt.systems.continuous_cache",  # Tu et al. (2018)
    ("transformer", "han"): "docnmt.systems.han",  # Miculicich et al. (2018)
    ("rnnsearch", "none"): "docnmt.systems.hierarchical:BASE",  # Bahdanau et al. (2015)
    ("rnnsearch", "hierarchical"): "docnmt.systems.hierarchical",  # Wang et al. (2017)
    ("rnnsearch", "cache"): "docnmt.systems.cache:ON_RNNSEARCH",  # Kuang et al. (2017)
}


def check_kinds(model_kind: str, context_kind: str) -> None:
    one_of("model.kind", model_kind, tuple(dict.fromkeys(model for model, _ in SYSTEMS)))
    one_of("context.kind", context_kind, tuple(dict.fromkeys(kind for _, kind in SYSTEMS)))
    if (model_kind, context_kind) not in SYSTEMS:
        known = ", ".join(kind for model, kind in SYSTEMS if model == model_kind)
        raise DocnmtError(f"context.kind {context_kind!r} is not available for {model_kind}\n  Use {known}.")


def system_of(model_kind: str, context_kind: str) -> System:
    check_kinds(model_kind, context_kind)
    module, _, name = SYSTEMS[model_kind, context_kind].partition(":")
    return getattr(import_module(module), name or "SYSTEM")
