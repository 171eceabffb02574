"""Training speed beside peers: target tokens a second, the same batches, one run, interleaved, medians.

    python benchmarks/training.py [--sizes small base] [--rounds 5] [--json FILE]

Each system runs in a process of its own, as its users would run it, and they take turns: one pass over the batches
each, round after round. Sizes, lengths and batches follow the usual setting of such comparisons: lengths log-normal
with mean 25 (4 to 90), about 4,000 target tokens a batch, Adam, dropout 0.1 on embeddings and sub-layer outputs, label
smoothing 0.1, float32. Documents have 20 sentences, so that contexts (two sentences back) are as long as they would be.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from docnmt.base.files import write_json
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.batches import ContextRule, Examples, epoch_batches
from docnmt.data.packing import Batch, Packed
from docnmt.data.store import TokenStore
from docnmt.document import ContextSpec
from docnmt.model.transformer import DocumentTransformer
from docnmt.training.loop import keep_freed_memory

SIZES = {  # width, filter, heads, layers a side, vocabulary; batches a pass
    "small": (ModelConfig("transformer", 256, 1024, 4, 4, 4, 0.1), 8_000, 6),
    "base": (ModelConfig("transformer", 512, 2048, 8, 6, 6, 0.1), 32_000, 3),
}
SYSTEMS = ("docnmt step 1", "docnmt step 2", "Hugging Face Marian", "torch.nn.Transformer")
TARGET_TOKENS = 4_000
SENTENCES, PER_DOCUMENT = 6_000, 20


class Marks:
    """What Examples asks of sub-words."""

    bos, eos = 1, 2


def examples(vocabulary: int, folder: Path, with_context: bool) -> Examples:
    """A token store of random sentences with natural lengths."""
    random = np.random.default_rng(7)
    source = np.clip(np.exp(random.normal(np.log(25) - 0.18, 0.6, SENTENCES)), 4, 90).astype(np.int64)
    target = np.clip(source * np.exp(random.normal(0, 0.15, SENTENCES)), 4, 90).astype(np.int64)
    card: dict[str, Any] = {"token_type": "uint16", "key": "", "sentences": SENTENCES}
    for side, lengths in (("source", source), ("target", target)):
        random.integers(4, vocabulary, lengths.sum(), dtype=np.uint16).tofile(folder / f"{side}.tokens")
        lengths.cumsum().tofile(folder / f"{side}.ends")
        card[f"{side}_tokens"] = int(lengths.sum())
    np.arange(PER_DOCUMENT, SENTENCES + 1, PER_DOCUMENT).tofile(folder / "documents.ends")
    card["documents"] = SENTENCES // PER_DOCUMENT
    write_json(folder / "store.json", card)
    rule = ContextRule(ContextSpec(), 256, 1, 2) if with_context else None
    return Examples([TokenStore(folder)], Marks, Marks, rule)  # type: ignore[arg-type]


def sample(data: Examples, count: int) -> list[Batch]:
    """Batches from short to long sentences, evenly spread."""
    budget = TARGET_TOKENS * (4 if data.rule else 2)  # source and target; with a context about twice that
    plan = sorted(epoch_batches(data, budget, seed=1, epoch=0), key=lambda rows: data.target_lengths[rows].mean())
    places = ((2 * np.arange(count) + 1) * len(plan)) // (2 * count)
    return [data.batch(plan[i].tolist()) for i in places]


# ---- the systems: each a function from a batch to its loss, and the parameters it trains ----

System = tuple[Callable[[Batch], Tensor], list[nn.Parameter]]


def docnmt(config: ModelConfig, vocabulary: int, step: int) -> System:
    keep_freed_memory()  # as docnmt train does
    kind = "attention" if step == 2 else "none"
    model = DocumentTransformer(config, ContextConfig(kind=kind), vocabulary, vocabulary).train()
    if step == 2:
        for _, parameter in model.sentence_parameters():
            parameter.requires_grad_(False)

    def loss(batch: Batch) -> Tensor:
        return model.loss(batch, 0.1)[0] / len(batch.target_out)

    return loss, [p for p in model.parameters() if p.requires_grad]


def padded(packed: Packed, filler: int) -> Tensor:
    rows = torch.full(packed.segments.mask.shape, filler)
    rows[packed.segments.mask] = packed.tokens
    return rows


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1, ignore_index=-100)


def marian(config: ModelConfig, vocabulary: int) -> System:
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=config.width,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.filter_width,
            decoder_ffn_dim=config.filter_width,
            dropout=0.1,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            max_position_embeddings=512,
            pad_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    ).train()

    def loss(batch: Batch) -> Tensor:
        logits = model(
            input_ids=padded(batch.source, 0),
            attention_mask=batch.source.segments.mask.long(),
            decoder_input_ids=padded(batch.target_in, 0),
        ).logits
        return _cross_entropy(logits, padded(Packed(batch.target_out, batch.target_in.segments), -100))

    return loss, list(model.parameters())


class TorchTransformer(nn.Module):
    def __init__(self, config: ModelConfig, vocabulary: int):
        super().__init__()
        self.source = nn.Embedding(vocabulary, config.width)
        self.target = nn.Embedding(vocabulary, config.width)
        self.positions = nn.Embedding(512, config.width).requires_grad_(False)
        self.dropout = nn.Dropout(0.1)
        self.transformer = nn.Transformer(
            config.width,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.filter_width,
            dropout=0.1,
            batch_first=True,
        )
        for module in self.transformer.modules():  # the same dropout as the others: none inside the sub-layers
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0

    def forward(self, batch: Batch) -> Tensor:
        source, target = padded(batch.source, 0), padded(batch.target_in, 0)
        hidden = ~batch.source.segments.mask
        length = target.shape[1]
        states = self.transformer(
            self.dropout(self.source(source) + self.positions.weight[: source.shape[1]]),
            self.dropout(self.target(target) + self.positions.weight[:length]),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return states @ self.target.weight.t()


def torch_transformer(config: ModelConfig, vocabulary: int) -> System:
    model = TorchTransformer(config, vocabulary).train()

    def loss(batch: Batch) -> Tensor:
        return _cross_entropy(model(batch), padded(Packed(batch.target_out, batch.target_in.segments), -100))

    return loss, [p for p in model.parameters() if p.requires_grad]


# ---- taking turns ----


def work(name: str, size: str) -> None:
    """A worker: for every line on standard input one pass over the batches, answered by one line of JSON."""
    torch.manual_seed(1)
    config, vocabulary, count = SIZES[size]
    with tempfile.TemporaryDirectory() as folder:
        batches = sample(examples(vocabulary, Path(folder), name == "docnmt step 2"), count)
    loss, parameters = {
        "docnmt step 1": lambda: docnmt(config, vocabulary, 1),
        "docnmt step 2": lambda: docnmt(config, vocabulary, 2),
        "Hugging Face Marian": lambda: marian(config, vocabulary),
        "torch.nn.Transformer": lambda: torch_transformer(config, vocabulary),
    }[name]()
    optimizer = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.monotonic()
        for batch in batches:
            loss(batch).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seconds = time.monotonic() - begin
        tokens = sum(len(batch.target_out) for batch in batches)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"rate": tokens / seconds, "memory": memory}), flush=True)


def measure(size: str, rounds: int, console: Console) -> dict[str, Any]:
    workers = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--worker", name, "--sizes", size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in SYSTEMS
    }

    def turn(name: str) -> dict[str, float]:
        worker = workers[name]
        assert worker.stdin and worker.stdout
        worker.stdin.write("go\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    found: dict[str, list[dict[str, float]]] = {name: [] for name in SYSTEMS}
    try:
        for worker in workers.values():
            assert worker.stdout
            worker.stdout.readline()
        for round_number in range(rounds + 1):  # the first one warms up
            for name in SYSTEMS:
                result = turn(name)
                if round_number:
                    found[name].append(result)
                    console.print(f"[dim]{size}, round {round_number}/{rounds}, {name}: {result['rate']:,.0f} tokens/s")
    finally:
        for worker in workers.values():
            worker.kill()
    rates = {name: median(result["rate"] for result in results) for name, results in found.items()}
    ours = [result["rate"] for result in found["docnmt step 1"]]
    return {
        name: {
            "tokens_per_second": rates[name],
            "peak_memory_mb": found[name][-1]["memory"],
            # pairs of turns in the same round: what else the machine does falls on both
            "step_1_is_times": median(own / other["rate"] for own, other in zip(ours, found[name], strict=True)),
        }
        for name in SYSTEMS
    }


def show(console: Console, size: str, figures: dict[str, Any]) -> None:
    config, vocabulary, _ = SIZES[size]
    table = Table(
        title=f"{size}: width {config.width}, {config.encoder_layers}+{config.decoder_layers} layers, "
        f"vocabulary {vocabulary:,}; {torch.get_num_threads()} threads"
    )
    table.add_column("")
    for heading in ("target tokens/s", "step 1 / this", "peak MB"):
        table.add_column(heading, justify="right")
    for name, row in figures.items():
        table.add_row(
            name, f"{row['tokens_per_second']:,.0f}", f"{row['step_1_is_times']:.2f}", f"{row['peak_memory_mb']:,.0f}"
        )
    console.print(table)
    share = 1 / figures["docnmt step 2"]["step_1_is_times"]
    console.print(f"step 2 runs at {share:.3f} of step 1's rate (the paper, on its GPUs: 0.756)\n")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--json", default="", metavar="FILE")
    options.add_argument("--worker", choices=SYSTEMS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        work(chosen.worker, chosen.sizes[0])
        return
    console = Console(highlight=False)
    figures = {}
    for size in chosen.sizes:
        figures[size] = measure(size, chosen.rounds, console)
        show(console, size, figures[size])
    if chosen.json:
        write_json(chosen.json, figures)


if __name__ == "__main__":
    main()
