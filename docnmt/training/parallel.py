"""Data parallelism under torchrun: each process computes a share of an update's batches, and gradients are summed.

The batches of an update are the same however many processes share them: P processes with accumulation A do what one
process does with accumulation P x A.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True)
class Group:
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, items: list) -> list:
        """This process's part of a list: every size-th item."""
        return items[self.rank :: self.size]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def sum(self, values: Tensor) -> Tensor:
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is set in any process."""
        return bool(self.sum(torch.tensor(float(flag), device=device)) > 0) if self.size > 1 else flag

    def gather(self, items: list[Any]) -> list[list[Any]]:
        """Every process's list, in the order of ranks."""
        if self.size == 1:
            return [items]
        gathered: list[Any] = [None] * self.size
        dist.all_gather_object(gathered, items)
        return gathered

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()


def join_group(device: torch.device) -> Group:
    """The group torchrun started this process in, or a group of one."""
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Group()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        # The others wait while the first one prepares the corpora, which may take hours.
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(days=1))
    return Group(dist.get_rank(), dist.get_world_size())


def leave_group() -> None:
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
