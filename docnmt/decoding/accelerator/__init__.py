"""What a step of decoding computes, in C: optional, built on first use where there is a compiler."""

from docnmt.decoding.accelerator.calls import LANES, Accelerator, Keys, accelerator

__all__ = ["LANES", "Accelerator", "Keys", "accelerator"]
