"""The accelerator: built where it can be, gone without where it cannot."""

from __future__ import annotations

import pytest
import torch

from docnmt.decoding.accelerator import LANES, accelerator, build

needs_accelerator = pytest.mark.skipif(accelerator() is None, reason="no C compiler for the accelerator")


@pytest.fixture
def afresh(monkeypatch, tmp_path):
    """As if nothing had been built yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_without_a_compiler_there_is_none(afresh, monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    assert build.built() is None


def test_a_compiler_that_fails_is_as_good_as_none(afresh, monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: "/bin/false")
    assert build.built() is None


def test_a_cache_that_cannot_be_written_is_no_error(afresh, monkeypatch):
    (afresh / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(afresh / "file"))
    assert build.built() is None


@needs_accelerator
def test_it_is_built_once(afresh, monkeypatch):
    assert build.built() is not None
    (built,) = (afresh / "docnmt").iterdir()
    monkeypatch.setattr(build.subprocess, "run", None)  # would raise
    assert build.built() is not None and list((afresh / "docnmt").iterdir()) == [built]


@needs_accelerator
@pytest.mark.parametrize("size", [LANES, 24, 32, 64])
def test_attention_is_that_of_torch(size):
    generator = torch.Generator().manual_seed(size)
    sentences, beam, heads, room = 5, 3, 2, 21
    query = torch.randn(sentences * beam, 3 * heads * size, generator=generator)[:, : heads * size]  # of wider rows
    keys, values = torch.randn(2, 7, heads, room, size, generator=generator)
    slots = torch.tensor([6, 0, 3, 1, 5], dtype=torch.int32)
    counts = torch.tensor([21, 1, 8, 9, 16], dtype=torch.int32)
    places = torch.stack([torch.randperm(room, generator=generator) for _ in query]).int()
    for seen in (None, places):
        found = accelerator().attend(query, keys, values, slots, counts, seen)
        for row in range(len(query)):
            slot, count = slots[row // beam], counts[row // beam]
            at = torch.arange(count) if seen is None else seen[row, :count].long()
            key, value = (m[slot, :, at] for m in (keys, values))
            q = query[row].view(heads, 1, size)
            expected = torch.nn.functional.scaled_dot_product_attention(q, key, value, scale=1.0)
            assert torch.allclose(found[row], expected.flatten(), atol=1e-5)
