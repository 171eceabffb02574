"""Inference on a CPU: the paper's model with packed weights, float32 or int8, one word at a time."""

from docnmt.engine.engine import Engine, EngineState

__all__ = ["Engine", "EngineState"]
