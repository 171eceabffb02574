"""How long things take: words a second, estimates of what is still to be trained, the list of runs."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docnmt.base.errors import SkipBad, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress, spoken
from docnmt.base.report import Column, Table
from docnmt.config import ContextConfig, DecodingConfig, Recipe
from docnmt.corpus.read import detect_format, read_corpus, read_pairs
from docnmt.data.batches import Examples, Stream, make_batch
from docnmt.data.context import Context, Neighbours
from docnmt.data.packing import Batch
from docnmt.data.prepare import Prepared
from docnmt.data.subwords import BOS, EOS
from docnmt.decoding.translator import Translator, load
from docnmt.document import Document
from docnmt.experiments import paper
from docnmt.experiments.runs import Run, Standing
from docnmt.model.base import TranslationModel
from docnmt.model_folder import LoadedModel, choose_device, load_model
from docnmt.recipes import CORPUS_PATHS
from docnmt.systems import system_of

if TYPE_CHECKING:
    from docnmt.experiments.job import Job


# ---- Words a second, training and decoding: all models in one go, by turns ----

ROUNDS = 5
BATCHES = 3  # of training, a round
SENTENCES = 100  # translated a round


@dataclass(frozen=True)
class Speed:
    """Words of the target language a second; the median of the rounds."""

    training: float
    decoding: float


Models = dict[str, tuple[Run, Path]]  # by what a table calls them: the run and its model


def measure(runs: Models, prepared: Prepared, test: list[Document], progress: Progress) -> dict[str, Speed]:
    recipe = next(iter(runs.values()))[0].recipe  # they differ in the model alone
    device = choose_device(recipe.hardware.device)
    trainings = {name: _Training(run, load_model(path, device), prepared) for name, (run, path) in runs.items()}
    translators = {name: load(path, recipe.hardware.device) for name, (_, path) in runs.items()}
    sample = list(_sample(test))
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for repeat in progress.track(range(ROUNDS + 1), "measure speed", total=ROUNDS + 1, unit="rounds"):
        for name in runs:
            rate = trainings[name].words_a_second(), _decoding(translators[name], sample, recipe.decoding)
            if repeat:  # the first round warms up
                rates[name].append(rate)
    return {name: Speed(*(statistics.median(r) for r in zip(*found, strict=True))) for name, found in rates.items()}


class _Training:
    """Updates of a model's own step, its optimiser aside."""

    def __init__(self, run: Run, loaded: LoadedModel, prepared: Prepared):
        self.model = loaded.model.train()
        self.device = next(self.model.parameters()).device
        document = run.step == "document"
        if document and run.recipe.document.freeze:
            for _, parameter in self.model.sentence_parameters():
                parameter.requires_grad_(False)
        config = run.recipe.document if document else run.recipe.sentence
        rule = loaded.card.rule(loaded.source, None, loaded.target) if document else None
        self.examples = Examples([prepared.documents], loaded.source, loaded.target, rule)
        first = Stream(self.examples, config.batch_tokens, run.recipe.seed).epoch(0)[: BATCHES * (ROUNDS + 1)]
        self.batches = itertools.cycle(first)
        self.words_a_token = _words_a_token(prepared, loaded)
        self.autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=run.recipe.hardware.bf16)

    def words_a_second(self) -> float:
        tokens, started = 0, time.perf_counter()
        for rows in itertools.islice(self.batches, BATCHES):
            tokens += int(self.examples.own_lengths[rows].sum())
            with self.autocast:
                loss = self.model.loss(self.examples.batch(rows.tolist(), self.device), 0.1)[0]
            loss.backward()
            self.model.zero_grad()
        if self.device.type == "cuda":  # which goes on by itself after it was told what to do
            torch.cuda.synchronize()
        return tokens * self.words_a_token / (time.perf_counter() - started)


def _words_a_token(prepared: Prepared, loaded: LoadedModel) -> float:
    store = prepared.dev if len(prepared.dev) else prepared.documents
    pieces = [store.sentence("target", i).tolist() for i in range(min(len(store), 1000))]
    words = sum(len(text.split()) for text in loaded.target.decode(pieces))
    return words / sum(len(row) + 1 for row in pieces)


@torch.inference_mode()
def _decoding(translator: Translator, sample: list[Document], config: DecodingConfig) -> float:
    started = time.perf_counter()
    translated = translator.translate_documents(
        sample, beam=config.beam, length_penalty=config.length_penalty, batch_tokens=config.batch_tokens
    )
    words = sum(len(sentence.text.split()) for document in translated for sentence in document.sentences)
    return words / (time.perf_counter() - started)


def _sample(documents: list[Document]) -> list[Document]:
    """Whole documents, SENTENCES sentences or a few more."""
    sizes = itertools.accumulate(len(document) for document in documents)
    count = sum(1 for _ in itertools.takewhile(lambda size: size < SENTENCES, sizes)) + 1
    return documents[:count]


def efficiency_table(speeds: dict[str, Speed], recipe: Recipe) -> Table:
    headings = ("Training", "Decoding")
    ours_and_theirs = (*map(Column, headings), *(Column(f"paper: {heading}", paper=True) for heading in headings))
    table = Table(
        "Evaluation of training and decoding speed, in words a second", (Column("Method", text=True), *ours_and_theirs)
    )
    for name, speed in speeds.items():
        table.add(name, f"{speed.training:,.0f}", f"{speed.decoding:,.0f}", *paper.EFFICIENCY[name])
    base, ours = speeds["Transformer"], speeds["this work"]
    pairs = (ours.training, base.training), (ours.decoding, base.decoding)
    shares = [f"{one / other:.2f}" if other else "-" for one, other in pairs]  # a model may say nothing at all
    table.add("this work / Transformer", *shares, *paper.EFFICIENCY_SHARE, rule=True)
    table.notes += [
        f"Ours: {setting(recipe)}",
        "The paper's: Tesla P40 GPUs, four for training and one for decoding; its shares follow from its figures.",
    ]
    return table


def setting(recipe: Recipe) -> str:
    threads = torch.get_num_threads()
    device = f"{choose_device(recipe.hardware.device)} ({threads} thread{'s' * (threads > 1)})"
    return (
        f"{device}, median of {ROUNDS} interleaved rounds, beam {recipe.decoding.beam}, training without the "
        "optimiser's step."
    )


# ---- How long a run will take on this machine ----

# How long a run will take on this machine: a small batch is timed, and the rest is multiplication.

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
    total = 0.0
    for run, standing in standings.items():
        left = 0.0 if standing.finished else stopwatch.seconds(run, max(0, run.updates - standing.update))
        total += left
        done = "all" if standing.finished else f"{standing.update:,}"
        cells = (run.name, str(run.recipe.seed), run.step, f"{run.updates:,}", done)
        table.add(*cells, "-" if standing.finished else spoken(left))
    if total:
        table.notes.append(
            f"About {spoken(total)} of training to go, by the time that one small batch took just now; validation and "
            "translation come on top. A run that is stopped goes on where it was."
        )
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
