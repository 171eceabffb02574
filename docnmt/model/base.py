"""What training, scoring and model folders ask of any translation model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import Batch, Contexts, Packed
from docnmt.model.context import is_document_parameter
from docnmt.model.loss import smoothed_cross_entropy


class TranslationModel(nn.Module):
    """theta = theta_s + theta_d, told apart by name; `forward` gives the states that `softmax` turns into words."""

    source_embedding: Any  # each base has its own kind; both have a weight, as `softmax` has
    target_embedding: Any
    softmax: nn.Linear  # W_o

    def __init__(self, model: ModelConfig, context: ContextConfig):
        super().__init__()
        self.model_config, self.context_config = model, context

    def encode(self, source: Packed, context: Contexts | None = None) -> Any:
        """What the decoder needs of the source and its context; without a context, of the sentence-level base."""
        raise NotImplementedError

    def tie_weights(self) -> None:
        """One table where the recipe wants one."""
        if self.model_config.tie == "all":
            self.target_embedding = self.source_embedding
        if self.model_config.tie != "none":
            self.softmax.weight = self.target_embedding.weight

    def loss(self, batch: Batch, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """The smoothed cross-entropy summed over tokens, and each target token's log-probability."""
        return smoothed_cross_entropy(self(batch), self.softmax.weight, batch.target_out, smoothing)

    # ---- theta = theta_s + theta_d ----

    def sentence_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_s"""
        return ((n, p) for n, p in self.named_parameters() if not is_document_parameter(n))

    def document_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """theta_d"""
        return ((n, p) for n, p in self.named_parameters() if is_document_parameter(n))

    @torch.no_grad()
    def load_weights(self, weights: dict[str, Tensor]) -> list[str]:
        """Takes over every weight that fits by name; returns the names of those the given weights do not have."""
        own = dict(self.named_parameters())
        for name, value in weights.items():
            if name not in own or own[name].shape != value.shape:
                raise DocnmtError(
                    f"the weights do not fit the model: {name} has shape {tuple(value.shape)}\n"
                    "  Use weights and settings of the same model."
                )
            own[name].copy_(value)
        return [name for name in own if name not in weights]
