"""The sliced loss equals torch's own cross-entropy, in value and in derivative."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from docnmt.model import base as loss_module
from docnmt.model.base import smoothed_cross_entropy

# tokens, vocabulary, logits at a time: one slice, several even ones, several with a rest, one token at a time
SIZES = [(12, 31, 1 << 22), (12, 31, 31 * 4), (13, 31, 31 * 4), (7, 50, 50), (7, 50, 3), (1, 5, 1 << 22)]
SMOOTHINGS = [0.0, 0.1, 0.5]


def problem(tokens: int, vocabulary: int, width: int = 8, seed: int = 0):
    torch.manual_seed(seed)
    states = torch.randn(tokens, width, requires_grad=True)
    weight = torch.randn(vocabulary, width, requires_grad=True)
    return states, weight, torch.randint(vocabulary, (tokens,))


def expected(states, weight, targets, smoothing, counts=1.0):
    """By torch, in double: value, gradients, log-probabilities."""
    h, w = states.detach().double().requires_grad_(), weight.detach().double().requires_grad_()
    logits = h @ w.T
    loss = (F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="none") * counts).sum()
    loss.backward()
    log_p = logits.log_softmax(1).gather(1, targets[:, None])[:, 0].detach()
    return loss.item(), h.grad, w.grad, log_p


def close(found, wanted, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(found.double(), wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize(("tokens", "vocabulary", "at_a_time"), SIZES)
def test_value_and_gradients(monkeypatch, tokens, vocabulary, at_a_time, smoothing):
    monkeypatch.setattr(loss_module, "SLICE", at_a_time)
    states, weight, targets = problem(tokens, vocabulary)
    loss, log_p = smoothed_cross_entropy(states, weight, targets, smoothing)
    loss.backward()
    value, states_gradient, weight_gradient, log_probabilities = expected(states, weight, targets, smoothing)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    close(states.grad, states_gradient)
    close(weight.grad, weight_gradient)
    close(log_p, log_probabilities)
    assert log_p.shape == (tokens,) and not log_p.requires_grad


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize(("tokens", "vocabulary", "at_a_time"), SIZES)
def test_tokens_that_count_for_more_or_less(monkeypatch, tokens, vocabulary, at_a_time, smoothing):
    monkeypatch.setattr(loss_module, "SLICE", at_a_time)
    states, weight, targets = problem(tokens, vocabulary)
    counts = torch.rand(tokens) * 5
    loss, log_p = smoothed_cross_entropy(states, weight, targets, smoothing, counts)
    loss.backward()
    value, states_gradient, weight_gradient, log_probabilities = expected(states, weight, targets, smoothing, counts)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    close(states.grad, states_gradient, 1e-4)
    close(weight.grad, weight_gradient, 1e-4)
    close(log_p, log_probabilities)


def test_the_same_target_many_times():
    # The gradient of a weight row is the sum over all its tokens.
    states, weight, _ = problem(20, 9)
    targets = torch.full((20,), 4)
    loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
    loss.backward()
    close(weight.grad, expected(states, weight, targets, 0.1)[2])


def test_gradients_scale_with_what_comes_after():
    # Training divides the sum by the number of tokens.
    states, weight, targets = problem(12, 31)
    loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
    (loss / 12 * 3).backward()
    _, states_gradient, weight_gradient, _ = expected(states, weight, targets, 0.1)
    close(states.grad, states_gradient / 4)
    close(weight.grad, weight_gradient / 4)


def test_gradients_pass_on_to_a_weight_used_twice():
    # With tied weights the embedding has a gradient of its own; the two add.
    states, weight, targets = problem(6, 11)
    embedded = weight[torch.tensor([1, 2, 3, 4, 5, 5])]
    loss, _ = smoothed_cross_entropy(states + embedded, weight, targets, 0.1)
    loss.backward()
    w = weight.detach().double().requires_grad_()
    logits = (states.detach().double() + w[torch.tensor([1, 2, 3, 4, 5, 5])]) @ w.T
    F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum").backward()
    close(weight.grad, w.grad)


def test_a_frozen_weight_gets_no_gradient():
    states, weight, targets = problem(12, 31)
    weight.requires_grad_(False)
    loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
    loss.backward()
    assert weight.grad is None
    close(states.grad, expected(states, weight, targets, 0.1)[1])


def test_frozen_states_get_no_gradient():
    states, weight, targets = problem(12, 31)
    states.requires_grad_(False)
    loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
    loss.backward()
    assert states.grad is None
    close(weight.grad, expected(states, weight, targets, 0.1)[2])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(monkeypatch, mode):
    monkeypatch.setattr(loss_module, "SLICE", 31 * 5)
    states, weight, targets = problem(12, 31)
    with mode():
        loss, log_p = smoothed_cross_entropy(states, weight, targets, 0.1)
    value, _, _, log_probabilities = expected(states, weight, targets, 0.1)
    assert not loss.requires_grad
    assert loss.item() == pytest.approx(value, rel=1e-5)
    close(log_p, log_probabilities)


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_extreme_logits_stay_finite(size):
    states, weight, targets = problem(12, 31)
    large = (states.detach() * size).requires_grad_()
    loss, log_p = smoothed_cross_entropy(large, weight, targets, 0.1)
    loss.backward()
    value, states_gradient, _, log_probabilities = expected(large, weight, targets, 0.1)
    for tensor in (loss, log_p, large.grad, weight.grad):
        assert tensor.isfinite().all()
    assert loss.item() == pytest.approx(value, rel=1e-4)
    close(large.grad, states_gradient, 1e-3)
    torch.testing.assert_close(log_p.double(), log_probabilities, atol=1e-5 * size, rtol=1e-5)


def test_a_constant_shift_of_all_logits_changes_nothing():
    # The identity sum_v logit_v = h . sum_v w_v must not lose what matters beside a large common part.
    states, weight, targets = problem(12, 31)
    ones = torch.ones(12, 1)
    shift = torch.full((31, 1), 1000.0)
    loss, log_p = smoothed_cross_entropy(
        torch.cat([states.detach(), ones], 1), torch.cat([weight.detach(), shift], 1), targets, 0.1
    )
    value, _, _, log_probabilities = expected(states, weight, targets, 0.1)
    assert loss.item() == pytest.approx(value, rel=1e-3)
    close(log_p, log_probabilities, 1e-3)


def test_no_tokens():
    states, weight, _ = problem(1, 5)
    loss, log_p = smoothed_cross_entropy(states[:0], weight, torch.empty(0, dtype=torch.int64), 0.1)
    assert loss.item() == 0 and log_p.shape == (0,)


def test_bfloat16_autocast_is_near():
    states, weight, targets = problem(12, 31)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
    loss.backward()
    value, states_gradient, _, _ = expected(states, weight, targets, 0.1)
    assert loss.dtype == torch.float32 and states.grad.dtype == torch.float32
    assert loss.item() == pytest.approx(value, rel=0.02)
    close(states.grad, states_gradient, 0.05)


def test_bfloat16_does_not_lose_more_the_more_slices_there_are(monkeypatch):
    states, weight, targets = problem(512, 40, width=16)
    expected_gradient = torch.autograd.grad(smoothed_cross_entropy(states, weight, targets, 0.1)[0], weight)[0]

    def error(slices: int) -> float:
        monkeypatch.setattr(loss_module, "SLICE", 512 // slices * 40)
        with torch.autocast("cpu", torch.bfloat16):
            loss, _ = smoothed_cross_entropy(states, weight, targets, 0.1)
        gradient = torch.autograd.grad(loss, weight)[0]
        return float((gradient - expected_gradient).norm() / expected_gradient.norm())

    assert error(128) < 1.5 * error(1)
