"""What it costs to look at every byte again: a folder's hashes beside the loading of its weights.

    python benchmarks/hashes.py --megabytes 256

Processor time, not seconds on the clock: hashing is computing, the file is in memory after it was written.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from safetensors.torch import load_file

from docnmt.base.files import check_hashes, hashes
from docnmt.model_folder import save_weights


def seconds(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256, help="of weights (default 256)")
    parser.add_argument("--times", type=int, default=5, help="the median of so many (default 5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {f"layer.{n}": torch.randn(256, 1024) for n in range(options.megabytes)}
        writing = seconds(lambda: save_weights(folder / "weights.safetensors", rows), options.times)
        known = hashes(folder)
        hashing = seconds(lambda: check_hashes(folder, known), options.times)
        loading = seconds(lambda: [t.sum() for t in load_file(folder / "weights.safetensors").values()], options.times)
    size = options.megabytes * (1 << 20) / 1e6
    print(f"{size:.0f} MB: writing {writing:.2f} s, loading and one look at each number {loading:.2f} s")
    print(f"hashing {hashing:.2f} s, {size / hashing:,.0f} MB/s")


if __name__ == "__main__":
    main()
