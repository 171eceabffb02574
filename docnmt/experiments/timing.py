"""Words a second, in training and in decoding: all models in one go, by turns."""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.config import DecodingConfig, Recipe
from docnmt.data.batches import Examples, Stream
from docnmt.data.prepare import Prepared
from docnmt.decoding.translator import Translator, load
from docnmt.document import Document
from docnmt.experiments import paper
from docnmt.experiments.runs import Run
from docnmt.model_folder import LoadedModel, choose_device, load_model

if TYPE_CHECKING:
    pass


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
