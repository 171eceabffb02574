"""Every system with a context, each by one line of settings as small as it can do with, and how the tests make one.

tests/unit/systems/test_every_system.py and tests/system/test_systems.py prove of each line what holds of all systems.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.context import ContextRule
from docnmt.data.packing import Batch, make_batch
from docnmt.model.base import TranslationModel
from docnmt.model_folder import LoadedModel, ModelCard
from docnmt.systems import system_of
from docnmt.systems.interface import System
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    fit,
    model_config,
    parallel_documents,
    random_sentences,
    shake,
    subwords,
)


def some_topics(model: Any) -> None:
    model.context_topics.evidence.normal_()
    model.context_topics.words.random_(3, TARGET_WORDS)


@dataclass(frozen=True)
class Case:
    context: Mapping[str, Any]  # of a recipe
    base: str = "transformer"  # model.kind
    freeze: bool = True  # False: it adds no parameters, so step 2 has to train the base
    learned: Callable[[Any], None] = lambda _: None  # what small models have in the place of the system's `learn`

    @property
    def system(self) -> System:
        return system_of(self.base, self.context["kind"])

    @property
    def config(self) -> ContextConfig:
        return ContextConfig(**self.context)

    @property
    def settings(self) -> list[str]:
        """For --set."""
        context = [f"context.{key}={json.dumps(value)}" for key, value in self.context.items()]
        return [f"model.kind={self.base}", *context, *([] if self.freeze else ["document.freeze=false"])]


_CACHE = {"previous": 4, "cache_words": 20}
_FEW_WORDS = {"stop_frequency": 0.9}  # of a small vocabulary every word is frequent
CASES: dict[str, Case] = {
    "attention": Case({"kind": "attention"}),
    "voita": Case({"kind": "voita", "previous": 1}),
    "han": Case({"kind": "han"}),
    "concat-2-to-1": Case({"kind": "concat", "previous": 1}, freeze=False),
    "concat-2-to-2": Case({"kind": "concat", "previous": 1, "translate_previous": True}, freeze=False),
    "concat-2+1": Case({"kind": "concat", "previous": 1, "mark": "prefix"}),
    "cache": Case({"kind": "cache", "topic_words": 30, **_CACHE, **_FEW_WORDS}, learned=some_topics),
    "continuous-cache": Case({"kind": "continuous-cache", **_CACHE}),
    "hierarchical": Case({"kind": "hierarchical", "previous": 3}, "rnnsearch"),
    "rnnsearch-cache": Case({"kind": "cache", "topic_words": 8, **_FEW_WORDS}, "rnnsearch", learned=some_topics),
}

# Other settings under which a system has other parts.
VARIANTS: dict[str, Case] = {
    "attention-encoder-states": Case({"kind": "attention", "representation": "encoder"}),
    "attention-encoder-states-in-encoder": Case(
        {"kind": "attention", "representation": "encoder", "integration": "encoder", "connection": "residual"}
    ),
    "attention-encoder-states-in-decoder": Case(
        {"kind": "attention", "representation": "encoder", "integration": "decoder", "previous": 1}
    ),
    "attention-encoder-states-start": Case({"kind": "attention", "representation": "encoder", "start": "sentence"}),
    "attention-embedding": Case({"kind": "attention", "representation": "embedding"}),
    "attention-lstm": Case({"kind": "attention", "representation": "lstm", "start": "sentence"}),
    "attention-open-gates": Case({"kind": "attention", "gate_opening": 0.9}),
    "han-encoder": Case({"kind": "han", "integration": "encoder"}),
    "han-decoder": Case({"kind": "han", "integration": "decoder"}),
    "han-start": Case({"kind": "han", "start": "sentence"}),
    "concat-3-to-1": Case({"kind": "concat", "previous": 2}, freeze=False),
    "concat-3-to-3": Case({"kind": "concat", "previous": 2, "translate_previous": True}, freeze=False),
    "concat-3+1": Case({"kind": "concat", "previous": 2, "mark": "prefix"}),
    "cache-without-topics": Case({"kind": "cache", "topic_words": 0}),
    "hierarchical-start": Case({"kind": "hierarchical", "previous": 3, "start": "sentence"}, "rnnsearch"),
}
ALL = CASES | VARIANTS


# ---- small random models ----


def make_system(case: Case, seed: int = 0, shaken: bool = True) -> TranslationModel:
    torch.manual_seed(seed)
    model = case.system.model(model_config(kind=case.base), case.config, SOURCE_WORDS, TARGET_WORDS)
    case.learned(model)
    return (shake(model, seed) if shaken else model).eval()


def base_of(case: Case, model: TranslationModel) -> TranslationModel:
    """The sentence-level base, built by itself, with theta_s of the given model."""
    sentence = ContextConfig(kind="none")
    base = system_of(case.base, "none").model(model.model_config, sentence, SOURCE_WORDS, TARGET_WORDS)
    assert base.load_weights({name: p.detach() for name, p in model.sentence_parameters()}) == []
    return base.eval()


Pairs = tuple[list[list[int]], list[list[int]]]  # a document's sentences and their translations, in ids


def some_document(sentences: int = 5, seed: int = 0) -> Pairs:
    return random_sentences(sentences, SOURCE_WORDS, seed), random_sentences(sentences, TARGET_WORDS, seed + 1)


def plain_batch(document: Pairs) -> Batch:
    """Each sentence alone, the context modules passed over."""
    return make_batch([[*source, EOS] for source in document[0]], None, document[1], BOS, EOS)


def document_batch(
    rule: ContextRule, document: Pairs, positions: Sequence[int] | None = None, written: Sequence | None = None
) -> Batch:
    """Sentences of a document as the system sees them; `written`: all that the decoder writes, as it is."""
    places = range(len(document[0])) if positions is None else positions
    around = [rule.around(document[0], i, document[1]) for i in places]
    own = [rule.target(document[1][i], near) for i, near in zip(places, around, strict=True)]
    return make_batch(
        [[*rule.source(document[0][i], near), rule.eos] for i, near in zip(places, around, strict=True)],
        [rule.context(near) for near in around],
        own if written is None else written,
        rule.target_bos,
        rule.target_eos,
    )


def rule_of(case: Case) -> ContextRule:
    config = case.config
    return case.system.rule(config)(config.spec, config.max_tokens, BOS, EOS)


def scores(model: TranslationModel, batch: Batch) -> list[torch.Tensor]:
    """Log-probabilities of each target's words."""
    with torch.no_grad():
        return list(model.loss(batch)[1].split(batch.target_in.segments.lengths.tolist()))


# ---- models that translate ----


@functools.cache
def briefly_trained(name: str) -> LoadedModel:
    """So that translations end and differ. Shared: do not change it."""
    case, source, target = ALL[name], subwords("source"), subwords("target")
    torch.manual_seed(3)
    config = model_config(
        kind=case.base, dropout=0.0, width=32, filter_width=48, encoder_layers=1, decoder_layers=1, max_length=40
    )
    model = case.system.model(config, case.config, len(source), len(target))
    card = ModelCard(config, case.config, DecodingConfig(beam=2), "fr", "en")
    rule = card.rule(source, None, target)

    def batch(seed: int) -> Batch:
        (document,) = parallel_documents([20], seed=seed)
        return document_batch(rule, (source.encode(document.source), target.encode(document.target)))

    return LoadedModel(fit(model, map(batch, range(100, 130)), 0.01), card, source, target)
