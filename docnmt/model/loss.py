"""Softmax, label smoothing and cross-entropy in one piece.

The logits of a batch are its largest tensor by far. Here they exist for a slice of tokens at a time, and their
derivative, softmax - smoothed target, takes their place in memory at once: no log-softmax is kept for later.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SLICE = 4 * 1024 * 1024  # logits at a time: large enough for a fast product, small enough to stay near the cache


class SmoothedCrossEntropy(torch.autograd.Function):
    """(states [tokens, width], weight [vocabulary, width], targets [tokens], smoothing) -> loss, log-probabilities.

    loss is the smoothed cross-entropy summed over tokens; log-probabilities [tokens] are the targets' own, for the
    record (no derivative).
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        need_states, need_weight = ctx.needs_input_grad[:2]
        vocabulary = weight.shape[0]
        uniform = smoothing / vocabulary
        weight_sum = weight.sum(0, dtype=torch.float32)  # [width]
        loss = states.new_zeros((), dtype=torch.float32)
        log_probabilities = states.new_empty(len(targets), dtype=torch.float32)
        states_gradient = torch.empty_like(states) if need_states else None
        # Summed over slices, so in full precision whatever the products are in.
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if need_weight else None
        step = max(1, (SLICE if states.device.type == "cpu" else 8 * SLICE) // vocabulary)
        for begin in range(0, len(targets), step):
            part = slice(begin, begin + step)
            h, y = states[part], targets[part, None]  # [n, width], [n, 1]
            logits = torch.mm(h, weight.t()).float()  # [n, vocabulary]
            right = logits.gather(1, y)  # [n, 1]
            torch.log_softmax(logits, dim=1, out=logits)
            log_p = logits.gather(1, y)  # [n, 1]
            log_probabilities[part] = log_p[:, 0]
            # sum_v log p_v = sum_v logit_v - V log Z, and sum_v logit_v = h . sum_v w_v
            log_z = right - log_p
            all_log_p = h.float() @ weight_sum - vocabulary * log_z[:, 0]  # [n]
            loss -= (1 - smoothing) * log_p.sum() + uniform * all_log_p.sum()
            if not (need_states or need_weight):
                continue
            slope = logits.exp_()  # becomes softmax - smoothed target, less the uniform part, which is added below
            slope.scatter_add_(1, y, torch.full_like(log_p, smoothing - 1))
            slope = slope.to(h.dtype)
            if states_gradient is not None:
                torch.mm(slope, weight, out=states_gradient[part])
            if weight_gradient is not None:
                if h.dtype == torch.float32:
                    weight_gradient.addmm_(slope.t(), h)
                else:
                    weight_gradient += torch.mm(slope.t(), h)
        if states_gradient is not None:
            states_gradient -= uniform * weight_sum.to(states.dtype)
        if weight_gradient is not None:
            weight_gradient -= uniform * states.sum(0, dtype=torch.float32)
        ctx.save_for_backward(states_gradient, weight_gradient)
        ctx.mark_non_differentiable(log_probabilities)
        return loss, log_probabilities

    @staticmethod
    def backward(ctx: Any, loss_gradient: Tensor, _: Any) -> tuple[Tensor | None, Tensor | None, None, None]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return (
            None if states_gradient is None else states_gradient * loss_gradient,
            None if weight_gradient is None else weight_gradient * loss_gradient,
            None,
            None,
        )


def smoothed_cross_entropy(states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    if torch.is_autocast_enabled(states.device.type):
        dtype = torch.get_autocast_dtype(states.device.type)
        states, weight = states.to(dtype), weight.to(dtype)
    with torch.autocast(states.device.type, enabled=False):
        return SmoothedCrossEntropy.apply(states, weight, targets, smoothing)
