"""How long a run will take on this machine: a small batch is timed, and the rest is multiplication."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from docnmt.config import CORPUS_PATHS, ContextConfig, Recipe
from docnmt.data.batches import make_batch
from docnmt.data.context import Context, Neighbours
from docnmt.data.packing import Batch
from docnmt.data.prepare import Prepared
from docnmt.data.subwords import BOS, EOS
from docnmt.experiments.runs import Run
from docnmt.model.base import TranslationModel
from docnmt.model_folder import choose_device
from docnmt.systems import system_of

SAMPLE_TOKENS = 1_000


@dataclass(frozen=True)
class Shape:
    """What the time of an update depends on beside the recipe."""

    source_vocabulary: int
    target_vocabulary: int
    source_length: int  # pieces in a sentence, on average
    target_length: int

    @classmethod
    def of(cls, prepared: Prepared) -> Shape:
        cards = [store.card for store in (prepared.documents, prepared.sentences)]
        sentences = sum(card["sentences"] - card.get("gaps", 0) for card in cards)
        lengths = [sum(card[f"{side}_tokens"] for card in cards) // sentences + 1 for side in ("source", "target")]
        return cls(len(prepared.source), len(prepared.target), lengths[0], lengths[1])

    @classmethod
    def expected(cls, recipe: Recipe) -> Shape:
        """Before anything is prepared; the lengths are those of the paper's Chinese-English corpus, in words."""
        return cls(recipe.subwords.vocabulary, recipe.subwords.vocabulary, 27, 30)


@dataclass(frozen=True)
class Sentences:
    """A few, all the same one."""

    source: Sequence[int]
    target: Sequence[int]
    context: Context | None

    @property
    def tokens(self) -> int:
        """Of one of them, end marks included."""
        return len(self.source) + len(self.target) + 2 + len(self.context or ())

    @property
    def count(self) -> int:
        return max(1, SAMPLE_TOKENS // self.tokens)

    def batch(self, device: torch.device) -> Batch:
        contexts = None if self.context is None else [self.context] * self.count
        sources, targets = [[*self.source, EOS]] * self.count, [self.target] * self.count
        return make_batch(sources, contexts, targets, BOS, EOS, device)


class Stopwatch:
    """Seconds an update, measured once for runs that cost the same."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self._known: dict[Recipe, float] = {}

    def seconds(self, run: Run, updates: int) -> float:
        return updates * self._update(run)

    def _update(self, run: Run) -> float:
        recipe = run.recipe
        step = recipe.document if run.step == "document" else recipe.sentence
        read = filling = recipe.context if run.step == "document" else ContextConfig(kind="none")
        if run.step == "document":  # where the contexts that are read are not those that fill the batches
            if recipe.document.batches_for >= 0:
                filling = replace(filling, previous=recipe.document.batches_for)
            if recipe.document.context_from == "none":
                read = replace(read, previous=0, following=0)
        frozen = run.start is not None and recipe.document.freeze
        # All that makes no difference to the time is made the same.
        alike = replace(Recipe(), model=recipe.model, context=read, hardware=recipe.hardware, seed=int(frozen))
        if alike not in self._known:
            self._known[alike] = self._sentence_seconds(recipe, read, frozen)
        sentences = step.batch_tokens * step.accumulation / self._sentences(recipe, filling).tokens
        return self._known[alike] * sentences

    def _sentence_seconds(self, recipe: Recipe, context: ContextConfig, frozen: bool) -> float:
        device = choose_device(recipe.hardware.device)
        model = build(recipe, context, self.shape).to(device)
        if frozen:
            for _, parameter in model.sentence_parameters():
                parameter.requires_grad_(False)
        sentences = self._sentences(recipe, context)
        batch = sentences.batch(device)
        autocast = torch.autocast(device.type, torch.bfloat16, enabled=recipe.hardware.bf16)
        for _ in range(2):  # the first one warms up
            started = time.perf_counter()
            with autocast:
                loss = model.loss(batch, 0.1)[0]
            loss.backward()
            if device.type == "cuda":
                torch.cuda.synchronize()
        return (time.perf_counter() - started) / sentences.count

    def _sentences(self, recipe: Recipe, context: ContextConfig) -> Sentences:
        """Of the usual length, with all the context that the system takes."""
        shape, random = self.shape, torch.Generator().manual_seed(1)

        def sentences(count: int, length: int, vocabulary: int) -> list[list[int]]:
            return torch.randint(4, vocabulary, (count, length - 1), generator=random).tolist()

        (source,) = sentences(1, shape.source_length, shape.source_vocabulary)
        (target,) = sentences(1, shape.target_length, shape.target_vocabulary)
        around = None
        if context.active:
            neighbours = Neighbours(
                sentences(context.previous, shape.source_length, shape.source_vocabulary),
                sentences(context.following, shape.source_length, shape.source_vocabulary),
                sentences(context.previous, shape.target_length, shape.target_vocabulary),
            )
            rule = system_of(recipe.model.kind, context.kind).rule(context)(context.spec, context.max_tokens, BOS, EOS)
            around = rule.context(neighbours)
            source, target = [*rule.source(source, neighbours)], [*rule.target(target, neighbours)]
        return Sentences(source, target, around)


def build(recipe: Recipe, context: ContextConfig, shape: Shape) -> TranslationModel:
    system = system_of(recipe.model.kind, context.kind)
    return system.model(recipe.model, context, shape.source_vocabulary, shape.target_vocabulary)


def spoken(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.1f} days"


def missing_files(recipe: Recipe) -> list[tuple[str, str]]:
    """(role, path) of every data file that the recipe names and that is not there."""
    return [
        (role, path)
        for role in ("documents", "sentences", "dev", "test")
        for files in getattr(recipe.data, role)
        for path in (getattr(files, name) for name in CORPUS_PATHS)
        if path and not Path(path).exists()
    ]
