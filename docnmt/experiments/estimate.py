"""How long trainings will take, what data there is, how large the models are: all before anything is trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docnmt.base.errors import SkipBad, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import spoken
from docnmt.base.report import Column, Table
from docnmt.config import ContextConfig, Recipe
from docnmt.corpus.read import detect_format, read_corpus, read_pairs
from docnmt.data.batches import make_batch
from docnmt.data.context import Context, Neighbours
from docnmt.data.packing import Batch
from docnmt.data.prepare import Prepared
from docnmt.data.subwords import BOS, EOS
from docnmt.experiments.runs import Run, Standing
from docnmt.model.base import TranslationModel
from docnmt.model_folder import choose_device
from docnmt.recipes import CORPUS_PATHS
from docnmt.systems import system_of

if TYPE_CHECKING:
    from docnmt.experiments.job import Job


# ---- How long a run will take on this machine ----

# Small batches are timed, of short, usual and long sentences, and the rest is multiplication. What the fastest and the
# slowest of them come to is told; one batch on a busy machine would be off by any factor.

SAMPLE_TOKENS = 1_000
LENGTHS = (0.5, 1.0, 2.0)  # of the usual length
ENOUGH = 1.0  # seconds of timing, after which no further round is made
ROUNDS = 3


@dataclass(frozen=True)
class Range:
    """Seconds, from the fastest batch to the slowest; None where fewer were timed than an estimate needs."""

    low: float
    high: float

    def __mul__(self, factor: float) -> Range:
        return Range(factor * self.low, factor * self.high)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        low, high = spoken(self.low), spoken(self.high)
        return low if low == high else f"{low} to {high}"


NOTHING_LEFT = Range(0.0, 0.0)


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

    def longer(self, factor: float) -> Shape:
        lengths = (max(2, round(factor * length)) for length in (self.source_length, self.target_length))
        return Shape(self.source_vocabulary, self.target_vocabulary, *lengths)

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

    def batch(self, device: torch.device, tokens: int = SAMPLE_TOKENS) -> Batch:
        count = max(1, tokens // self.tokens)
        contexts = None if self.context is None else [self.context] * count
        return make_batch([[*self.source, EOS]] * count, contexts, [self.target] * count, BOS, EOS, device)


class Stopwatch:
    """Seconds an update, measured once for runs that cost the same; None where that cannot be told."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self._known: dict[Recipe, Range | None] = {}

    def seconds(self, run: Run, updates: int) -> Range | None:
        update = self._update(run)
        return update and update * updates

    def _update(self, run: Run) -> Range | None:
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
        sentences = step.batch_tokens * step.accumulation / self.sentences(recipe, filling).tokens
        known = self._known[alike]
        return known and known * sentences

    def _sentence_seconds(self, recipe: Recipe, context: ContextConfig, frozen: bool) -> Range | None:
        """A sentence of the usual length, at the rates that batches of short, usual and long ones have."""
        device = choose_device(recipe.hardware.device)
        model = build(recipe, context, self.shape).to(device)
        if frozen:
            for _, parameter in model.sentence_parameters():
                parameter.requires_grad_(False)
        autocast = torch.autocast(device.type, torch.bfloat16, enabled=recipe.hardware.bf16)

        def seconds_a_token(sentences: Sentences) -> float:
            batch = sentences.batch(device)
            started = time.perf_counter()
            with autocast:
                loss = model.loss(batch, 0.1)[0]
            loss.backward()
            if device.type == "cuda":
                torch.cuda.synchronize()
            return (time.perf_counter() - started) / (sentences.tokens * sentences.count)

        usual = self.sentences(recipe, context)
        samples = [self.sentences(recipe, context, length) for length in LENGTHS]
        rates: list[float] = []
        with suppress(torch.OutOfMemoryError):
            seconds_a_token(usual)  # warms up
            started = time.perf_counter()
            for _ in range(ROUNDS):
                rates += [seconds_a_token(sample) for sample in samples]
                if time.perf_counter() - started > ENOUGH:
                    break
        return Range(min(rates), max(rates)) * usual.tokens if len(rates) >= len(LENGTHS) else None

    def sentences(self, recipe: Recipe, context: ContextConfig, length: float = 1.0) -> Sentences:
        """Of the usual length or a multiple of it, with all the context that the system takes."""
        shape, random = self.shape.longer(length), torch.Generator().manual_seed(1)

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


def missing_files(recipe: Recipe) -> list[tuple[str, str]]:
    """(role, path) of every data file that the recipe names and that is not there."""
    return [
        (role, path)
        for role in ("documents", "sentences", "dev", "test")
        for files in getattr(recipe.data, role)
        for path in (getattr(files, name) for name in CORPUS_PATHS)
        if path and not Path(path).exists()
    ]


# ---- The list of runs that comes before they start ----

# The list of runs that comes before they start: how far each is, and how long the rest will take.


def planned(standings: dict[Run, Standing], stopwatch: Stopwatch) -> Table:
    columns = (Column("run", text=True), Column("seed"), Column("step", text=True), Column("updates"), Column("done"))
    table = Table("Runs", (*columns, Column("time left")))
    left: list[Range | None] = []
    for run, standing in standings.items():
        done, time_left = "all", "-"
        if not standing.finished:
            left.append(stopwatch.seconds(run, max(0, run.updates - standing.update)))
            done, time_left = f"{standing.update:,}", str(left[-1] or "unknown")
        table.add(run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done, time_left)
    known = [each for each in left if each is not None]
    if left and len(known) == len(left):
        table.notes.append(
            f"{sum(known, NOTHING_LEFT)} of training to go, one run after another on this machine: by what batches of "
            "short, usual and long sentences took just now, the fastest and the slowest of them. Validation and "
            "translation come on top. A run that is stopped goes on where it was."
        )
    elif left:
        table.notes.append("Unknown: too few batches could be timed here to tell, for want of memory.")
    return table


# ---- A look at what `docnmt tables` would do ----

# A look at what `docnmt tables` would do: the models built, a sample of the data read, the time estimated.

SAMPLE = 3  # documents


def dry_run(job: Job) -> list[Table]:
    """Trains nothing and writes nothing; works before the data is there, too."""
    job.check()
    shape = Shape.expected(job.recipe)
    tables = []
    for make in (lambda: data_table(job.recipe), lambda: model_table(job.runs(), shape), lambda: _plan(job, shape)):
        tables.append(make())
        tables[-1].print(job.console)
        job.console.print()
    return tables


def _plan(job: Job, shape: Shape) -> Table:
    table = planned({run: Standing(0, False) for run in job.runs()}, Stopwatch(shape))
    table.notes.append(f"On this machine ({choose_device(job.recipe.hardware.device)}), if nothing is done yet.")
    return table


def data_table(recipe: Recipe) -> Table:
    columns = ("role", "file", "format", "sample")
    table = Table("Data", [Column(name, text=True) for name in columns])
    missing = {path for _, path in missing_files(recipe)}
    for role in ("documents", "sentences", "dev", "test"):
        if not getattr(recipe.data, role):
            table.add(role, "-", "", "optional" if role == "sentences" else f"not named: set data.{role}")
        for files in getattr(recipe.data, role):
            lacks = [path for path in (getattr(files, name) for name in CORPUS_PATHS) if path in missing]
            if lacks:
                table.add(role, str(files), files.format, f"not there: {', '.join(lacks)}")
            else:
                table.add(role, str(files), detect_format(files), _contents(files, role, recipe))
    if contrastive := recipe.evaluation.contrastive:
        table.add("contrastive", contrastive, "", "there" if Path(contrastive).exists() else "not there")
    return table


def _contents(files: CorpusFiles, role: str, recipe: Recipe) -> str:
    read = read_pairs if role == "sentences" else read_corpus
    languages = (recipe.data.source_language, recipe.data.target_language)
    on_bad = SkipBad() if recipe.data.skip_bad else raise_bad
    found = read(files, languages=languages, on_bad=on_bad, limit=recipe.data.max_characters)
    documents = list(islice(found, SAMPLE))
    first = documents[0]
    sizes = ", ".join(str(len(document)) for document in documents)
    return f"{len(documents)} read ({sizes} sentences); {first.id}: {first.source[0][:40]} | {first.target[0][:40]}"


def model_table(runs: list[Run], shape: Shape) -> Table:
    """The sizes of the models, from building them."""
    table = Table("Models", (Column("run", text=True), Column("parameters"), Column("trained")))
    for run in runs:
        context = run.recipe.context if run.step == "document" else ContextConfig(kind="none")
        with torch.device("meta"):  # its shape is all that is asked
            model = build(run.recipe, context, shape)
        total = sum(parameter.numel() for parameter in model.parameters())
        frozen = run.start is not None and run.recipe.document.freeze
        trained = sum(p.numel() for _, p in model.document_parameters()) if frozen else total
        table.add(run.name, f"{total:,}", f"{trained:,}")
    table.notes.append(f"With vocabularies of {shape.source_vocabulary:,} and {shape.target_vocabulary:,} pieces.")
    return table
