"""A short attack on every reader; `make fuzz` is the long one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.corpus.read import FORMATS
from docnmt.evaluation.contrastive_layouts import LAYOUTS
from tests.fuzz import CORPORA, SETS, attack, targets


@pytest.mark.parametrize("name", sorted(targets(Path())))
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    seeds, read = targets(tmp_path)[name]
    chance = random.Random(20)
    for _ in range(40):
        attack(name, seeds, read, chance)


def test_every_format_and_layout_is_attacked() -> None:
    assert set(CORPORA) == set(FORMATS) and set(SETS) == set(LAYOUTS)


@pytest.mark.parametrize("name", sorted(targets(Path())))
def test_what_is_damaged_was_whole_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is refused anyway tries nothing."""
    refusals: list[str] = []

    def note(self: DocnmtError, *arguments: object) -> None:
        refusals.append(str(arguments))

    monkeypatch.setattr(DocnmtError, "__init__", note)
    seeds, read = targets(tmp_path)[name]
    read(seeds[0])
    assert all("has both sides" in each for each in refusals), refusals
