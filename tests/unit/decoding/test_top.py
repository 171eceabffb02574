"""The best continuations against a search through all of them."""

from __future__ import annotations

import pytest
import torch

from docnmt.decoding.beam import BLOCK, best_continuations, in_torch
from docnmt.engine.native import accelerator

needs_accelerator = pytest.mark.skipif(accelerator() is None, reason="the C extension is not built")
WAYS = [in_torch, pytest.param(best_continuations, marks=needs_accelerator)]


def random_logits(rows, words):
    return 3 * torch.randn(rows, words, generator=torch.Generator().manual_seed(words))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [2, 13, BLOCK, 20 * BLOCK, 20 * BLOCK + 1, 21 * BLOCK - 1])
@pytest.mark.parametrize(("beam", "count"), [(1, 1), (4, 8), (3, 20)])
def test_they_are_the_best_of_all(way, words, beam, count):
    count = min(count, beam * words)
    given, scores = random_logits(5 * beam, words), -torch.rand(5, beam, generator=torch.Generator().manual_seed(1))
    given[0, -1] = given[beam, 0] = 8.0  # at the borders
    given[2 * beam] = torch.linspace(4, 9, words)  # the best of all side by side
    totals, origin, word = way(given, scores, count)
    everything = (given.log_softmax(dim=1).view(5, beam, words) + scores[:, :, None]).flatten(1)
    expected = everything.topk(count, dim=1)
    assert torch.allclose(totals, expected.values, atol=1e-5)
    assert torch.equal(origin * words + word, expected.indices)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_ruled_out_is_not_continued_while_there_are_others(way):
    given, scores = random_logits(2, 5 * BLOCK), torch.tensor([[-torch.inf, -1.0]])
    given[:, 7] = -torch.inf
    given[:, 9] = 50.0
    totals, origin, word = way(given, scores, 4)
    assert origin.tolist() == [[1] * 4] and totals.isfinite().all() and word[0, 0] == 9 and 7 not in word


@pytest.mark.parametrize("way", WAYS)
def test_large_and_small_scores_keep_their_shares(way):
    given = torch.tensor([[1000.0, 999.0, -1000.0], [-1e4, -1e4, -1e4]])
    totals, _, _ = way(given, torch.zeros(2, 1), 2)
    share = torch.tensor([1.0, 1 / torch.e]) / (1 + 1 / torch.e)
    assert torch.allclose(totals[0], share.log(), atol=1e-4)
    assert torch.allclose(totals[1], torch.full((2,), 1 / 3).log(), atol=1e-3)
