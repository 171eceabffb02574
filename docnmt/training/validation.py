"""Validation: how well the model does on the dev documents, with their context and without."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch

from docnmt.data.batches import Examples, in_order
from docnmt.data.context import ContextRule
from docnmt.data.packing import own_parts
from docnmt.data.store import TokenStore
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT
from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.test_sets import TestSet, shuffled
from docnmt.model_folder import LoadedModel
from docnmt.training.parallel import Group


@dataclass(frozen=True)
class Validation:
    """Loss is in nats per target piece, without smoothing and without the context's own. BLEU is the paper's measure,
    as it is reported: multi-bleu on all references."""

    loss: float
    bleu: float | None
    loss_without_context: float | None
    bleu_without_context: float | None
    signature: str

    def as_dict(self) -> dict[str, Any]:
        table: dict[str, Any] = {"loss": self.loss, "bleu": self.bleu}
        if self.loss_without_context is not None:
            table["loss_without_context"] = self.loss_without_context
            table["loss_gain"] = self.loss_without_context - self.loss
            table["bleu_without_context"] = self.bleu_without_context
            if self.bleu is not None and self.bleu_without_context is not None:
                table["bleu_gain"] = self.bleu - self.bleu_without_context
        return {**table, "signature": self.signature}

    def __str__(self) -> str:
        text = f"dev loss {self.loss:.4f}"
        if self.loss_without_context is not None:
            text += f" (no context {self.loss_without_context:.4f})"
        if self.bleu is not None:
            text += f", BLEU {self.bleu:.2f}"
            if self.bleu_without_context is not None:
                text += f" (no context {self.bleu_without_context:.2f})"
        return text


@dataclass
class Validator:
    loaded: LoadedModel
    dev: TokenStore
    test: TestSet
    rule: ContextRule | None  # as in training
    foreign: int | None = None
    _: KW_ONLY
    decode: bool
    beam: int
    batch_tokens: int
    group: Group
    tokenized: bool = False  # the dev documents are, and keep their tokens

    def validate(self) -> Validation:
        model = self.loaded.model
        model.eval()
        try:
            active = self.rule is not None
            empty = None if self.rule is None else replace(self.rule, spec=NO_CONTEXT)
            bleu, signature = self._bleu(self.rule, self.foreign) if self.decode else (None, "")
            return Validation(
                loss=self._loss(self.rule, self.foreign),
                bleu=bleu,
                loss_without_context=self._loss(empty) if active else None,
                bleu_without_context=self._bleu(empty)[0] if active and self.decode else None,
                signature=signature,
            )
        finally:
            model.train()

    @torch.inference_mode()
    def _loss(self, rule: ContextRule | None, foreign: int | None = None) -> float:
        model = self.loaded.model
        examples = Examples([self.dev], self.loaded.source, self.loaded.target, rule, foreign)
        device = next(model.parameters()).device
        total = torch.zeros((), dtype=torch.float64, device=device)
        for rows in self.group.share(list(in_order(examples, self.batch_tokens))):
            batch = examples.batch(rows, device)
            own = own_parts(model.loss(batch)[1], batch, examples.own_lengths[rows].tolist())
            total -= torch.cat(own).double().sum()
        return float(self.group.sum(total)) / int(examples.own_lengths.sum())

    def _bleu(self, rule: ContextRule | None, foreign: int | None = None) -> tuple[float, str]:
        translator = Translator(self.loaded)
        sources = self.test.sources
        others = None if foreign is None else self.group.share(shuffled(sources, foreign))
        mine = self.group.share(sources)
        spec = None if rule is None else rule.spec
        translated = translator.translate_documents(mine, context_from=others, beam=self.beam, context=spec)
        shares = self.group.gather([[s.text for s in document.sentences] for document in translated])
        outputs: list[list[str]] = [[] for _ in sources]
        for rank, share in enumerate(shares):
            outputs[rank :: self.group.size] = share
        metric = make_metric("multi-bleu", language=self.loaded.card.target_language, tokenized=self.tokenized)
        texts = [sentence for document in outputs for sentence in document]
        return metric.score(metric.statistics(texts, self.test.references).sum(axis=0)), metric.signature
