"""What training and decoding take: estimates before there is a model, words per second of trained ones.

Everything here rests on one stopwatch: forward and backward through a batch, as training does it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from docnmt.base.progress import Progress, spoken
from docnmt.base.report import Table, columns
from docnmt.config import ContextConfig, DecodingConfig, Recipe
from docnmt.data.batches import Examples, Stream
from docnmt.data.context import Context, Neighbours
from docnmt.data.packing import Batch, make_batch
from docnmt.data.prepare import Prepared
from docnmt.data.subwords import BOS, EOS, Subwords
from docnmt.decoding.translator import Translator, load
from docnmt.document import Document
from docnmt.experiments.runs import Run
from docnmt.model.base import TranslationModel
from docnmt.model_folder import choose_device, load_model, set_threads
from docnmt.recipes import NOTHING
from docnmt.systems import system_of
from docnmt.training.identity import context_of
from docnmt.training.loop import keep_freed_memory
from docnmt.training.two_step import settled


class Stopwatch:
    """Times a model as training has it: what is frozen, on which device, in which precision."""

    def __init__(self, model: TranslationModel, recipe: Recipe, frozen: bool):
        keep_freed_memory()
        self.device = choose_device(recipe.hardware.device)
        self.model = model.to(self.device).train()
        if frozen:
            for _, parameter in self.model.sentence_parameters():
                parameter.requires_grad_(False)
        self.autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=recipe.hardware.bf16)

    def seconds(self, batch: Batch, smoothing: float = 0.1) -> float:
        """Forward and backward."""
        started = time.perf_counter()
        with self.autocast:
            loss = self.model.loss(batch, smoothing)[0]
        loss.backward()
        if self.device.type == "cuda":  # runs asynchronously
            torch.cuda.synchronize()
        return time.perf_counter() - started


# ---- made-up sentences, in the place of data that may not be there yet ----


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

    def longer(self, factor: float) -> Shape:
        lengths = (max(2, round(factor * length)) for length in (self.source_length, self.target_length))
        return Shape(self.source_vocabulary, self.target_vocabulary, *lengths)

    def build(self, recipe: Recipe, context: ContextConfig) -> TranslationModel:
        system = system_of(recipe.model.kind, context.kind)
        return system.model(recipe.model, context, self.source_vocabulary, self.target_vocabulary)

    def sentences(self, recipe: Recipe, context: ContextConfig) -> Sentences:
        """With all the context that the system takes."""
        random = torch.Generator().manual_seed(1)

        def sentences(count: int, length: int, vocabulary: int) -> list[list[int]]:
            return torch.randint(4, vocabulary, (count, length - 1), generator=random).tolist()

        (source,) = sentences(1, self.source_length, self.source_vocabulary)
        (target,) = sentences(1, self.target_length, self.target_vocabulary)
        if not context.active:
            return Sentences(source, target, None)
        neighbours = Neighbours(
            sentences(context.previous, self.source_length, self.source_vocabulary),
            sentences(context.following, self.source_length, self.source_vocabulary),
            sentences(context.previous, self.target_length, self.target_vocabulary),
        )
        rule = system_of(recipe.model.kind, context.kind).rule(context)(context.spec, context.max_tokens, BOS, EOS)
        return Sentences(rule.source(source, neighbours), rule.target(target, neighbours), rule.context(neighbours))


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

    def in_batch(self, tokens: int) -> int:
        return max(1, tokens // self.tokens)

    def batch(self, device: torch.device, tokens: int) -> Batch:
        count = self.in_batch(tokens)
        contexts = None if self.context is None else [self.context] * count
        return make_batch([[*self.source, EOS]] * count, contexts, [self.target] * count, BOS, EOS, device)


# ---- how long a run will take on this machine ----

# Batches of short, usual and long sentences are timed, and the rest is multiplication. The fastest and the slowest make
# the range that is shown: a single batch on a busy machine would be off by any factor.
#
# The batches are as large as the recipe's, or as can be timed quickly. Part of their time does not grow with them, that
# of a recurrent network above all: it goes through a few sentences as slowly as through many.

LENGTHS = (0.5, 1.0, 2.0)  # of the usual length
LEAST = 1_000  # tokens in a batch, where the recipe's is not smaller
LONG_ENOUGH = 0.5  # seconds for a batch: no larger one is tried
ENOUGH = 1.0  # seconds of timing, after which no further round is made
ROUNDS = 3
# Made-up sentences are all alike: they need no padding, and no document begins among them, so that none lacks context.
# Real batches were up to 1.3 times as slow or as quick, whatever the system (on the demo's corpus).
MARGIN = 1.4


@dataclass(frozen=True)
class Range:
    """Seconds, from the fewest to the most."""

    low: float
    high: float

    def __mul__(self, factor: float) -> Range:
        return Range(factor * self.low, factor * self.high)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        low, high = spoken(self.low), spoken(self.high)
        return low if low == high else f"{low} to {high}"


class Estimates:
    """Of runs, measured once for those that cost the same; None where memory is too small to time enough batches."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self._known: dict[object, Range | None] = {}

    def seconds(self, run: Run, updates: int) -> Range | None:
        recipe, step = run.recipe, getattr(run.recipe, run.step)
        read = filling = context_of(recipe, run.step)
        if run.step == "document":  # where the contexts that are read are not those that fill the batches
            if recipe.document.batches_for >= 0:
                filling = replace(filling, previous=recipe.document.batches_for)
            if recipe.document.context_from == "none":
                read = replace(read, previous=0, following=0)
        alike = recipe.model, read, recipe.hardware, run.frozen, step.batch_tokens  # nothing else makes a difference
        if alike not in self._known:
            self._known[alike] = self._sentence_seconds(recipe, read, run.frozen, step.batch_tokens)
        sentences = step.batch_tokens * step.accumulation / self.shape.sentences(recipe, filling).tokens
        known = self._known[alike]
        return known and known * sentences * updates

    def _sentence_seconds(self, recipe: Recipe, context: ContextConfig, frozen: bool, most: int) -> Range | None:
        """A sentence of the usual length, at the rates that batches of at most so many tokens have."""
        stopwatch = Stopwatch(self.shape.build(recipe, context), recipe, frozen)

        def seconds(sentences: Sentences, tokens: int) -> float:
            return stopwatch.seconds(sentences.batch(stopwatch.device, tokens))

        usual = self.shape.sentences(recipe, context)
        samples = [self.shape.longer(length).sentences(recipe, context) for length in LENGTHS]
        rates: list[float] = []
        with suppress(torch.OutOfMemoryError):
            tokens = min(LEAST, most)
            seconds(usual, tokens)  # warms up
            while tokens < most and seconds(usual, tokens) < LONG_ENOUGH:
                tokens = min(2 * tokens, most)
            started = time.perf_counter()
            for _ in range(ROUNDS):
                rates += [seconds(sample, tokens) / (sample.in_batch(tokens) * sample.tokens) for sample in samples]
                if time.perf_counter() - started > ENOUGH:
                    break
        if len(rates) < len(samples):
            return None
        return Range(min(rates) / MARGIN, MARGIN * max(rates)) * usual.tokens


# ---- `docnmt train --dry-run`: what an update of each step takes, in seconds and in memory ----

# Two updates, one with half of the recipe's batch and one with all of it, show how memory grows with the batch; being
# the first they are slow, so it is three more, of short, usual and long sentences, that tell the time. All are made in
# a process of their own, so that its peak is theirs alone.

GIGABYTE = 10**9
SMALL_MACHINE = 8 * GIGABYTE


@dataclass(frozen=True)
class Cost:
    trained: int  # parameters
    frozen: int
    seconds: Range  # an update
    memory: int  # bytes, at the peak
    more: float  # bytes for each further token in a batch

    def fitting(self, tokens: int) -> int:
        """The batch that a small machine has room for."""
        return max(0, int(tokens + (SMALL_MACHINE - self.memory) / max(self.more, 1)) // 500 * 500)


def cost_table(recipe: Recipe, steps: tuple[str, ...]) -> Table:
    """Trains nothing and writes nothing."""
    recipe = settled(recipe, steps)
    heads = ("step", "trained", "frozen", "batch", "per update", "updates", "all", "memory", "8 GB hold")
    table = Table("What training takes", columns(*heads))
    for step in steps:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            cost = process.submit(cost_of, recipe, step).result()
        config = getattr(recipe, step)
        table.add(
            step,
            f"{cost.trained / 1e6:.1f} M",
            f"{cost.frozen / 1e6:.1f} M",
            f"{config.batch_tokens:,}",
            f"{cost.seconds.low:.1f} to {cost.seconds.high:.1f} s",
            f"{config.updates:,}",
            str(cost.seconds * config.updates),
            f"{cost.memory / GIGABYTE:.1f} GB",
            f"{cost.fitting(config.batch_tokens):,}",
        )
        table.figures.append({"step": step, **asdict(cost)})
    device, threads = choose_device(recipe.hardware.device), recipe.hardware.threads or torch.get_num_threads()
    table.notes += [
        f"Measured just now on {device}, threads: {threads}: the fastest and the slowest of updates with made-up "
        "sentences of about 14, 28 and 56 pieces. Validation takes extra time.",
        "Batches are in tokens (batch_tokens). A machine with 8 GB has room for about the last column, if nothing else "
        "runs there; a smaller batch with more accumulation makes the same update.",
    ]
    return table


def cost_of(recipe: Recipe, step: str) -> Cost:
    set_threads(recipe.hardware.threads)
    config, context, shape = getattr(recipe, step), context_of(recipe, step), Shape.expected(recipe)
    given = (recipe.subwords.source_model, recipe.subwords.target_model)
    if all(given):  # of the model that step 2 starts from
        source, target = (len(Subwords.load(model)) for model in given)
        shape = replace(shape, source_vocabulary=source, target_vocabulary=target)
    frozen = step == "document" and recipe.document.freeze and recipe.document.start_from != NOTHING
    stopwatch = Stopwatch(shape.build(recipe, context), recipe, frozen)
    trained = [parameter for parameter in stopwatch.model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-9, fused=True)

    def update(length: float, tokens: int) -> float:
        sentences = shape.longer(length).sentences(recipe, context)
        started = time.perf_counter()
        for _ in range(config.accumulation):
            stopwatch.seconds(sentences.batch(stopwatch.device, tokens), config.smoothing)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started

    peaks = []
    for tokens in (config.batch_tokens // 2, config.batch_tokens):
        update(1.0, tokens)
        peaks.append(_peak(stopwatch.device))
    seconds = [update(length, config.batch_tokens) for length in LENGTHS]
    more = 2 * (peaks[1] - peaks[0]) / config.batch_tokens
    count = sum(parameter.numel() for parameter in trained)
    frozen_count = sum(parameter.numel() for parameter in stopwatch.model.parameters()) - count
    return Cost(count, frozen_count, Range(min(seconds), max(seconds)), _peak(stopwatch.device), more)


def _peak(device: torch.device) -> int:
    """Bytes that this process has held at most; on a GPU, there."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated(device)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else 1024 * held


# ---- words a second of trained models, in training and in decoding, measured in turns ----

SPEED_ROUNDS = 5
BATCHES = 3  # of training, a round
SENTENCES = 100  # translated a round


@dataclass(frozen=True)
class Speed:
    """Words of the target language a second; the median of the rounds."""

    training: float
    decoding: float


def measure(
    runs: dict[str, tuple[Run, Path]], prepared: Prepared, test: list[Document], progress: Progress
) -> dict[str, Speed]:
    """Of runs and their models, by what a table calls them."""
    recipe = next(iter(runs.values()))[0].recipe  # they differ in the model alone
    trainings = {name: _Training(run, path, prepared) for name, (run, path) in runs.items()}
    translators = {name: load(path, recipe.hardware.device) for name, (_, path) in runs.items()}
    sizes = itertools.accumulate(map(len, test))
    sample = test[: sum(1 for _ in itertools.takewhile(lambda size: size < SENTENCES, sizes)) + 1]  # whole documents
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for repeat in progress.track(range(SPEED_ROUNDS + 1), "measure speed", total=SPEED_ROUNDS + 1, unit="rounds"):
        for name in runs:
            rate = trainings[name].words_a_second(), _decoding(translators[name], sample, recipe.decoding)
            if repeat:  # the first round warms up
                rates[name].append(rate)
    return {name: Speed(*(statistics.median(r) for r in zip(*found, strict=True))) for name, found in rates.items()}


class _Training:
    """Updates of a model's own step on the documents, its optimiser aside."""

    def __init__(self, run: Run, path: Path, prepared: Prepared):
        loaded = load_model(path, choose_device(run.recipe.hardware.device))
        self.stopwatch = Stopwatch(loaded.model, run.recipe, run.frozen)
        rule = loaded.card.rule(loaded.source, None, loaded.target) if run.step == "document" else None
        self.examples = Examples([prepared.documents], loaded.source, loaded.target, rule)
        stream = Stream(self.examples, getattr(run.recipe, run.step).batch_tokens, run.recipe.seed)
        self.batches = itertools.cycle(stream.epoch(0)[: BATCHES * (SPEED_ROUNDS + 1)])
        store = prepared.dev if len(prepared.dev) else prepared.documents
        pieces = [store.sentence("target", i).tolist() for i in range(min(len(store), 1000))]
        words = sum(len(text.split()) for text in loaded.target.decode(pieces))
        self.words_a_token = words / sum(len(row) + 1 for row in pieces)

    def words_a_second(self) -> float:
        tokens, started = 0, time.perf_counter()
        for rows in itertools.islice(self.batches, BATCHES):
            tokens += int(self.examples.own_lengths[rows].sum())
            self.stopwatch.seconds(self.examples.batch(rows.tolist(), self.stopwatch.device))
            self.stopwatch.model.zero_grad()
        return tokens * self.words_a_token / (time.perf_counter() - started)


@torch.inference_mode()
def _decoding(translator: Translator, sample: list[Document], config: DecodingConfig) -> float:
    started = time.perf_counter()
    translated = translator.translate_documents(
        sample, beam=config.beam, length_penalty=config.length_penalty, batch_tokens=config.batch_tokens
    )
    words = sum(len(sentence.text.split()) for document in translated for sentence in document.sentences)
    return words / (time.perf_counter() - started)


def setting(recipe: Recipe) -> str:
    threads = torch.get_num_threads()
    device = f"{choose_device(recipe.hardware.device)} ({threads} thread{'s' * (threads > 1)})"
    return (
        f"{device}, median of {SPEED_ROUNDS} interleaved rounds, beam {recipe.decoding.beam}, training without the "
        "optimiser's step."
    )
