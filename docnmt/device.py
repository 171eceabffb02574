"""Which device to compute on."""

from __future__ import annotations

import os

import torch

from docnmt.base.errors import DocnmtError


def choose_device(name: str) -> torch.device:
    """`auto` is a GPU where there is one; under torchrun each process has its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise DocnmtError(f"device {name}: {reason}\n  Use cpu, cuda or auto.") from None


def set_threads(count: int) -> None:
    """As many as a recipe says; 0 leaves it to torch."""
    if count:
        torch.set_num_threads(count)
