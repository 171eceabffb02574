"""What training, scoring and model folders need from any translation model, and its loss (section 2.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, Choice, Contexts, Packed
from docnmt.model.context import is_document_parameter
from docnmt.model.layers import Dropout

# ---- Softmax, label smoothing and cross-entropy in one piece ----

# The logits of a batch are by far its largest tensor. Here they exist for a slice of tokens at a
# time, and their derivative, softmax - smoothed target, overwrites them at once: no log-softmax is
# kept for the backward pass.

SLICE = 4 * 1024 * 1024  # logits at a time: large enough for a fast product, small enough for the cache


def slices(rows: int, columns: int, device: torch.device) -> Iterator[slice]:
    """All rows of a table with so many columns, some at a time."""
    step = max(1, (SLICE if device.type == "cpu" else 8 * SLICE) // columns)
    return (slice(begin, begin + step) for begin in range(0, rows, step))


class SmoothedCrossEntropy(torch.autograd.Function):
    """(states [tokens, width], weight [vocabulary, width], bias [vocabulary] or None, targets
    [tokens], smoothing, counts [tokens] or None) -> loss, log-probabilities.

    loss is the smoothed cross-entropy summed over tokens, each as many times as `counts` says (None:
    once); log-probabilities [tokens] are those of the targets, for reporting (no derivative).
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        counts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        need_states, need_weight, need_bias = ctx.needs_input_grad[:3]
        vocabulary = weight.shape[0]
        uniform = smoothing / vocabulary
        weight_sum = weight.sum(0, dtype=torch.float32)  # [width]
        bias_sum = 0.0 if bias is None else bias.sum(dtype=torch.float32)
        loss = states.new_zeros((), dtype=torch.float32)
        log_probabilities = states.new_empty(len(targets), dtype=torch.float32)
        states_gradient = torch.empty_like(states) if need_states else None
        # Sums over slices, so in full precision regardless of the products' type.
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if need_weight else None
        bias_gradient = torch.zeros_like(bias, dtype=torch.float32) if bias is not None and need_bias else None
        for part in slices(len(targets), vocabulary, states.device):
            h, y = states[part], targets[part, None]  # [n, width], [n, 1]
            logits = torch.mm(h, weight.t()).float()  # [n, vocabulary]
            if bias is not None:
                logits += bias
            right = logits.gather(1, y)  # [n, 1]
            torch.log_softmax(logits, dim=1, out=logits)
            log_p = logits.gather(1, y)  # [n, 1]
            log_probabilities[part] = log_p[:, 0]
            # sum_v log p_v = sum_v logit_v - V log Z, and sum_v logit_v = h . sum_v w_v + sum_v b_v
            log_z = right - log_p
            all_log_p = h.float() @ weight_sum + bias_sum - vocabulary * log_z[:, 0]  # [n]
            if counts is None:
                loss -= (1 - smoothing) * log_p.sum() + uniform * all_log_p.sum()
            else:
                loss -= counts[part] @ ((1 - smoothing) * log_p[:, 0] + uniform * all_log_p)
            if not (need_states or need_weight or need_bias):
                continue
            slope = logits.exp_()  # becomes softmax - smoothed target; its uniform part is subtracted at the end
            slope.scatter_add_(1, y, torch.full_like(log_p, smoothing - 1))
            if counts is not None:
                slope *= counts[part, None]
            if bias_gradient is not None:
                bias_gradient += slope.sum(0)
            slope = slope.to(h.dtype)
            if states_gradient is not None:
                torch.mm(slope, weight, out=states_gradient[part])
            if weight_gradient is not None:
                if h.dtype == torch.float32:
                    weight_gradient.addmm_(slope.t(), h)
                else:
                    weight_gradient += torch.mm(slope.t(), h)
        if states_gradient is not None:
            share = uniform if counts is None else uniform * counts[:, None].to(states.dtype)
            states_gradient -= share * weight_sum.to(states.dtype)
        if weight_gradient is not None:
            counted = states if counts is None else states * counts[:, None]
            weight_gradient -= uniform * counted.sum(0, dtype=torch.float32)
        if bias_gradient is not None:
            bias_gradient -= uniform * (len(targets) if counts is None else counts.sum())
        ctx.save_for_backward(states_gradient, weight_gradient, bias_gradient)
        ctx.mark_non_differentiable(log_probabilities)
        return loss, log_probabilities

    @staticmethod
    def backward(ctx: Any, loss_gradient: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        gradients = (None if part is None else part * loss_gradient for part in ctx.saved_tensors)
        return (*gradients, None, None, None)


def smoothed_cross_entropy(
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float,
    counts: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    if torch.is_autocast_enabled(states.device.type):
        dtype = torch.get_autocast_dtype(states.device.type)
        states, weight = states.to(dtype), weight.to(dtype)
    with torch.autocast(states.device.type, enabled=False):
        return SmoothedCrossEntropy.apply(states, weight, bias, targets, smoothing, counts)


def choice_loss(states: Tensor, weight: Tensor, choice: Choice, bias: Tensor | None = None) -> Tensor:
    """The cross-entropy of the right word within its class, times the choice's weight, summed over choices."""
    logits = torch.einsum("cd,cwd->cw", states[choice.rows].float(), weight[choice.words].float())
    if bias is not None:
        logits = logits + bias[choice.words]
    log_p = logits.masked_fill(~choice.there, -torch.inf).log_softmax(1)[:, 0]
    return -(choice.weights * log_p).sum()


# ---- What training, scoring and model folders need from any translation model ----


class TranslationModel(nn.Module):
    """theta = theta_s + theta_d, told apart by name. `forward` gives the states that `softmax` turns into logits."""

    source_embedding: Any  # a module with a `weight`; each base has its own kind
    target_embedding: Any
    softmax: nn.Linear  # W_o

    def __init__(self, model: ModelConfig, context: ContextConfig):
        super().__init__()
        self.model_config, self.context_config = model, context

    def encode(self, source: Packed, context: Contexts | None = None) -> Any:
        """What the decoder needs from the source and its context; without a context, as in the sentence-level base."""
        raise NotImplementedError

    def decode(self, target_in: Packed, memory: Any) -> Any:
        """The decoder's top layer at every position of the target; `memory`: what `encode` gave"""
        raise NotImplementedError

    def read_out(self, decoded: Any) -> Tensor:
        """What the softmax reads of it, [target tokens, width]"""
        return decoded.states

    def logits(self, decoded: Any, previous: Tensor, remembered: Any) -> Tensor:
        """Of the next word of each hypothesis, [rows, vocabulary]; for systems that need them,
        `previous` is the last word, [rows], and `remembered` what `encode` keeps of the sentences
        before"""
        return self.softmax(self.read_out(decoded)).float()

    def add_context(self) -> None:
        """For systems: the modules of theta_d, made when the base is."""

    def tie_weights(self) -> None:
        """As the recipe's model.tie says."""
        if self.model_config.tie == "all":
            self.target_embedding.weight = self.source_embedding.weight
        if self.model_config.tie != "none":
            self.softmax.weight = self.target_embedding.weight

    def loss(self, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """The smoothed cross-entropy summed over tokens, each as many times as it counts, plus that of
        choices; and the log-probability of each target token."""
        states, weight, bias = self(batch), self.softmax.weight, self.softmax.bias
        loss, log_p = smoothed_cross_entropy(states, weight, batch.target_out, smoothing, batch.counts, bias)
        return loss if batch.choice is None else loss + choice_loss(states, weight, batch.choice, bias), log_p

    def alignment(self, batch: Batch) -> Tensor:
        """How much each target piece attends to each source piece, [sentences, longest target,
        longest source], the end marks' last; beyond a sentence's own lengths values are meaningless.
        Empty if the model cannot tell."""
        return torch.zeros(len(batch.source.segments.lengths), 0, 0)

    # ---- theta = theta_s + theta_d ----

    def sentence_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_s"""
        return ((n, p) for n, p in self.named_parameters() if not is_document_parameter(n))

    def document_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_d"""
        return ((n, p) for n, p in self.named_parameters() if is_document_parameter(n))

    def set_sentence_dropout(self, rate: float) -> None:
        """Of the modules of theta_s; those of theta_d keep theirs."""
        for name, module in self.named_modules():
            if isinstance(module, Dropout) and not is_document_parameter(name):
                module.rate = rate

    @torch.no_grad()
    def load_weights(self, weights: dict[str, Tensor]) -> list[str]:
        """Copies the weights by name; returns the names of parameters that are not among them."""
        own = dict(self.named_parameters())
        for name, value in weights.items():
            if name not in own or own[name].shape != value.shape:
                raise DocnmtError(
                    f"the weights do not fit the model: the shape of {name} is {tuple(value.shape)}\n"
                    "  Use the weights and the settings of the same model."
                )
            own[name].copy_(value)
        return [name for name in own if name not in weights]


# ---- The decoder one word at a time, with what it needs of the words so far kept ----


class State(Protocol):
    """What beam search needs from a decoder: `sentences` x `beam` active hypotheses, row r of sentence r // beam."""

    @property
    def words(self) -> Tensor | None:
        """The words that have logits, [sentences, words]; None: the whole vocabulary."""

    def logits(self, words: Tensor) -> Tensor:
        """The last word of each hypothesis, [rows] -> logits of the next one, [rows, vocabulary],
        which the next call may overwrite"""

    def reorder(self, rows: Tensor) -> None:
        """Row r continues what was row rows[r]."""

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences stay in the batch; the others are finished."""


def select(rows: Any, sentences: Tensor) -> Any:
    """The rows of these sentences: of a tensor, of all tensors in a tuple, or as the object's own `of` has them."""
    if rows is None or isinstance(rows, Tensor):
        return None if rows is None else rows[sentences]
    if hasattr(rows, "of"):
        return rows.of(sentences)
    return type(rows)(*(select(part, sentences) for part in rows))


def hypotheses_of(sentences: Tensor, beam: int) -> Tensor:
    """All hypotheses of these sentences."""
    return (sentences[:, None] * beam + torch.arange(beam, device=sentences.device)).flatten()
