"""What a step of decoding computes, in C: optional, built on first use where there is a compiler."""

from docnmt.decoding.accelerator.calls import LANES, Accelerator, Keys, accelerator
from docnmt.decoding.accelerator.structures import Packed

__all__ = ["LANES", "Accelerator", "Keys", "Packed", "accelerator"]
