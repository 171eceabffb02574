"""Batches decoded side by side, a thread each.

A thread a core, each with its own batch, is much faster than all cores on one batch: a step's products are too small to
be shared out. They are threads, not processes, because they read the same weights, and torch holds no lock while it
computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

B = TypeVar("B")


def in_parallel(batches: Sequence[B], decode: Callable[[B], None]) -> None:
    """Decodes all batches, as many at a time as torch has threads. The largest should come first."""
    workers = min(torch.get_num_threads(), len(batches))
    with _one_thread_each():  # also where there is but one batch: a sentence alone takes twice as long on two threads
        if workers < 2:
            for batch in batches:
                decode(batch)
            return
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(decode, batches):
                pass


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
