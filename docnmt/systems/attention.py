"""The paper's system (Zhang et al., 2018): docnmt/model tells it, section by section; here it gets its name."""

from __future__ import annotations

from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.interface import System

SYSTEM = System(DocumentTransformer)
