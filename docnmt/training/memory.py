"""Keeping memory between updates."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # from malloc.h


def keep_freed_memory() -> None:
    """Asks the C library to keep what is freed instead of handing it back to the system.

    A training step frees and takes large tensors all the time; each fresh one from the system costs a page fault and a
    clearing for every 4 KB of it. Does nothing where the C library is not glibc.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    except (OSError, AttributeError):
        pass
