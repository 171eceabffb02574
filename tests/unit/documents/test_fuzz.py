"""A short attack on every reader; `make fuzz` is the long one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz import attack, targets


@pytest.mark.parametrize("name", sorted(targets(Path())))
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    seeds, read = targets(tmp_path)[name]
    chance = random.Random(20)
    for _ in range(40):
        attack(name, seeds, read, chance)
