"""The systems that a recipe can choose from, by `model.kind` and `context.kind`.

A system is one module with a `SYSTEM` in it (see interface.py) and one line here. Nothing is imported before a recipe
asks for it, so that reading a recipe stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docnmt.systems.interface import System

SYSTEMS: dict[tuple[str, str], str] = {
    ("transformer", "none"): "docnmt.systems.attention",  # Vaswani et al. (2017): the one below with its context off
    ("transformer", "attention"): "docnmt.systems.attention",  # Zhang et al. (2018), the paper
    ("transformer", "voita"): "docnmt.systems.voita",  # Voita et al. (2018)
}


def system_of(model_kind: str, context_kind: str) -> System:
    return import_module(SYSTEMS[model_kind, context_kind]).SYSTEM
