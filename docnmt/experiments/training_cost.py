"""`docnmt train --dry-run`: what an update of each step takes, in seconds and in memory, before the data is there.

Two updates are made with made-up sentences of the usual length, one with half of the recipe's batch and one with all of
it, in a process of its own, whose memory is then nothing else's. The two tell how memory grows with the batch.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch

from docnmt.base.progress import spoken
from docnmt.base.report import Column, Table
from docnmt.config import ContextConfig, Recipe
from docnmt.data.subwords import Subwords
from docnmt.experiments.estimate import Shape, Stopwatch, build
from docnmt.model_folder import choose_device, set_threads
from docnmt.training.loop import keep_freed_memory
from docnmt.training.two_step import NOTHING, settled

GIGABYTE = 10**9
SMALL_MACHINE = 8 * GIGABYTE


@dataclass(frozen=True)
class Cost:
    trained: int  # parameters
    frozen: int
    seconds: float  # an update
    memory: int  # bytes, at the peak
    more: float  # bytes for each token that a batch has more

    def fitting(self, tokens: int) -> int:
        """The batch that a small machine has room for."""
        return max(0, int(tokens + (SMALL_MACHINE - self.memory) / max(self.more, 1)) // 500 * 500)


def estimate(recipe: Recipe, steps: tuple[str, ...]) -> Table:
    """Trains nothing and writes nothing."""
    recipe = settled(recipe, steps)
    columns = ("trained", "frozen", "batch", "an update", "updates", "all", "memory", "8 GB hold")
    table = Table("What training takes", [Column("step", text=True), *map(Column, columns)])
    for step in steps:
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawned) as process:
            cost = process.submit(measured, recipe, step).result()
        config = recipe.document if step == "document" else recipe.sentence
        table.add(
            step,
            f"{cost.trained / 1e6:.1f} M",
            f"{cost.frozen / 1e6:.1f} M",
            f"{config.batch_tokens:,}",
            f"{cost.seconds:.1f} s",
            f"{config.updates:,}",
            spoken(config.updates * cost.seconds),
            f"{cost.memory / GIGABYTE:.1f} GB",
            f"{cost.fitting(config.batch_tokens):,}",
        )
        table.figures.append({"step": step, **vars(cost)})
    device, threads = choose_device(recipe.hardware.device), recipe.hardware.threads or torch.get_num_threads()
    table.notes += [
        f"Measured just now on {device}, threads: {threads}, by one update with made-up sentences of about 28 pieces. "
        "Validation comes on top.",
        "Batches are tokens (batch_tokens); 8 GB hold about the one named, if the machine does nothing else. A smaller "
        "batch with accumulation makes the same update.",
    ]
    return table


def measured(recipe: Recipe, step: str) -> Cost:
    set_threads(recipe.hardware.threads)
    keep_freed_memory()
    document = step == "document"
    config = recipe.document if document else recipe.sentence
    context = recipe.context if document else ContextConfig(kind="none")
    shape, device = _shape(recipe), choose_device(recipe.hardware.device)
    model = build(recipe, context, shape).to(device).train()
    if document and recipe.document.freeze and recipe.document.start_from != NOTHING:
        for _, parameter in model.sentence_parameters():
            parameter.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-9, fused=True)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=recipe.hardware.bf16)
    sentences, peaks = Stopwatch(shape).sentences(recipe, context), []
    for tokens in (config.batch_tokens // 2, config.batch_tokens):
        started = time.perf_counter()
        for _ in range(config.accumulation):
            with autocast:
                loss = model.loss(sentences.batch(device, tokens), config.smoothing)[0]
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        peaks.append(_peak(device))
        seconds = time.perf_counter() - started
    more = 2 * (peaks[1] - peaks[0]) / config.batch_tokens
    count = sum(parameter.numel() for parameter in trained)
    return Cost(count, sum(p.numel() for p in model.parameters()) - count, seconds, peaks[1], more)


def _shape(recipe: Recipe) -> Shape:
    """The vocabularies of the model that step 2 starts from, or those that the recipe asks for."""
    shape, given = Shape.expected(recipe), (recipe.subwords.source_model, recipe.subwords.target_model)
    if not all(given):
        return shape
    source, target = (len(Subwords.load(model)) for model in given)
    return Shape(source, target, shape.source_length, shape.target_length)


def _peak(device: torch.device) -> int:
    """Bytes that this process has held at most; on a GPU, there."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated(device)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else 1024 * held
