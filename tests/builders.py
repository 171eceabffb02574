"""Small models, batches, sub-words and stores for the tests. Nothing here takes longer than some milliseconds."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from docnmt.config import ContextConfig, DecodingConfig, ModelConfig, SubwordConfig
from docnmt.data.context import ContextRule
from docnmt.data.packing import Batch, make_batch
from docnmt.data.store import TokenStore, write_store
from docnmt.data.subwords import Subwords, train_subwords
from docnmt.document import ParallelDocument
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, ModelCard

torch.set_num_threads(1)  # for tensors this small a second thread only costs

BOS, EOS = 1, 2
SOURCE_WORDS, TARGET_WORDS = 23, 19  # two sizes, so that one vocabulary in the place of the other is an error

INTEGRATIONS = ("encoder", "decoder", "both")
CONNECTIONS = ("gate", "residual")
STARTS = ("paper", "sentence")


def model_config(**settings: object) -> ModelConfig:
    small = {"width": 16, "filter_width": 24, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1}
    return ModelConfig(**(small | settings))


def shake(model: nn.Module, seed: int = 0, size: float = 0.2) -> nn.Module:
    """Moves every parameter that training moves. Fresh biases are 0 and fresh norms 1: a test could not tell if they
    were left out."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.requires_grad):
            parameter += size * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    return model


def make_model(
    seed: int = 0,
    *,
    context: ContextConfig | None = None,
    source_words: int = SOURCE_WORDS,
    target_words: int = TARGET_WORDS,
    shaken: bool = True,
    **settings: object,
) -> DocumentTransformer:
    """A random document model in eval mode; `settings` are ModelConfig's."""
    torch.manual_seed(seed)
    model = DocumentTransformer(model_config(**settings), context or ContextConfig(), source_words, target_words)
    if shaken:
        shake(model, seed)
    return model.eval()


def sentence_model_of(model: DocumentTransformer) -> DocumentTransformer:
    """A model built without any context module, with theta_s of the given one."""
    vocabularies = len(model.source_embedding.weight), len(model.softmax.weight)
    sentence = DocumentTransformer(model.model_config, ContextConfig(kind="none"), *vocabularies)
    missing = sentence.load_weights({name: p.detach() for name, p in model.sentence_parameters()})
    assert not missing
    return sentence.eval()


def random_sentences(count: int, words: int, seed: int = 0, shortest: int = 1, longest: int = 7) -> list[list[int]]:
    """Word ids without marks."""
    random = np.random.default_rng(seed)
    lengths = random.integers(shortest, longest + 1, count)
    return [random.integers(3, words, length).tolist() for length in lengths]


def with_end(sentences: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[*sentence, EOS] for sentence in sentences]


def random_batch(
    count: int = 5,
    seed: int = 0,
    *,
    context: bool = True,
    source_words: int = SOURCE_WORDS,
    target_words: int = TARGET_WORDS,
) -> Batch:
    """Sentence pairs of several lengths; the first has no context sentence, thus the begin mark alone."""
    contexts = with_end(random_sentences(count, source_words, seed + 2, longest=9))
    contexts[0] = [BOS]
    return make_batch(
        with_end(random_sentences(count, source_words, seed)),
        contexts if context else None,
        random_sentences(count, target_words, seed + 1),
        BOS,
        EOS,
    )


def fit(model: DocumentTransformer, batches: Iterable[Batch], rate: float) -> DocumentTransformer:
    """A short training, for tests of decoding: a random model says one word again and again and does not end.

    From values of few digits, in double precision: training magnifies how a processor rounds, and what is proved on one
    must be proved on all.
    """
    model.half().double()
    optimiser = torch.optim.Adam(model.train().parameters(), lr=rate)
    for batch in batches:
        optimiser.zero_grad()
        loss, _ = model.loss(batch)
        (loss / len(batch.target_out)).backward()
        optimiser.step()
    return model.float().eval().requires_grad_(False)


def toy_batch(seed: int, count: int = 24, words: int = TARGET_WORDS) -> Batch:
    """A toy language: the sentence backwards, after a word that only the context tells."""
    sources, contexts = (random_sentences(count, words, 2 * seed + i, longest=5) for i in range(2))
    targets = [[context[0], *reversed(source)] for source, context in zip(sources, contexts, strict=True)]
    return make_batch(with_end(sources), with_end(contexts), targets, BOS, EOS)


@functools.cache
def toy_model(words: int = TARGET_WORDS, updates: int = 100) -> DocumentTransformer:
    """Half trained, so that its beams hold real alternatives. Shared: do not change it."""
    model = make_model(
        3,
        source_words=words,
        target_words=words,
        shaken=False,
        dropout=0.0,
        width=32,
        filter_width=48,
        encoder_layers=1,
    )
    return fit(model, (toy_batch(seed, words=words) for seed in range(updates)), 0.008)


def logits_of(model: DocumentTransformer, batch: Batch) -> torch.Tensor:
    with torch.no_grad():
        return model.softmax(model(batch))


# ---- text ----

SUBJECTS = ("le chat", "la ville", "un homme", "ma soeur", "ce livre", "notre train")
VERBS = ("voit", "cherche", "quitte", "aime", "trouve")
OBJECTS = ("la mer", "le pain", "une lettre", "deux amis", "la gare", "rien")
TARGET_LETTERS = str.maketrans("aeioulrst", "eioaurlts")  # another language: the same words, respelt


def lines(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        parts = [
            " ".join([str(random.choice(SUBJECTS)), str(random.choice(VERBS)), str(random.choice(OBJECTS))])
            for _ in range(random.integers(1, 3))
        ]
        result.append(", ".join(parts) + str(random.choice([".", " !", " ?"])))
    return result


def in_target_language(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(sentence.translate(TARGET_LETTERS) for sentence in sentences)


@functools.cache
def subwords(side: str = "source") -> Subwords:
    """A tiny SentencePiece model; byte fallback takes 256 pieces of it."""
    text = lines(200, seed=1)
    if side == "source":
        return small_subwords(text, 330)
    return small_subwords(in_target_language(text), 340)


def small_subwords(text: Sequence[str], vocabulary: int, **settings: Any) -> Subwords:
    config = SubwordConfig(vocabulary, sample=1000, character_coverage=1.0, **settings)
    return train_subwords(lambda: text, config, seed=1)


def parallel_documents(sizes: Sequence[int], seed: int = 0) -> list[ParallelDocument]:
    text = iter(lines(sum(sizes), seed))
    documents = []
    for number, size in enumerate(sizes):
        source = tuple(next(text) for _ in range(size))
        documents.append(ParallelDocument(f"document-{seed}-{number}", source, in_target_language(source)))
    return documents


def make_store(folder: Path, documents: Sequence[ParallelDocument]) -> TokenStore:
    return write_store(folder, documents, subwords("source"), subwords("target"), threads=1, key="test")


@functools.cache
def loaded_model() -> LoadedModel:
    """What load_model gives, without a folder; trained for a moment. Shared: do not change it."""
    source, target = subwords("source"), subwords("target")
    context = ContextConfig()
    model = make_model(
        3,
        context=context,
        source_words=len(source),
        target_words=len(target),
        shaken=False,
        dropout=0.0,
        width=32,
        filter_width=48,
        encoder_layers=1,
        max_length=40,
    )
    rule = ContextRule(context.spec, context.max_tokens, source.bos, source.eos)

    def batch(seed: int) -> Batch:
        (document,) = parallel_documents([20], seed=seed)
        ids = source.encode(document.source)
        return make_batch(
            [[*sentence, source.eos] for sentence in ids],
            [rule.context(rule.around(ids, i)) for i in range(len(ids))],
            target.encode(document.target),
            target.bos,
            target.eos,
        )

    fit(model, map(batch, range(100, 145)), 0.01)
    return LoadedModel(model, ModelCard(model.model_config, context, DecodingConfig(), "fr", "en"), source, target)


def endless_model() -> DocumentTransformer:
    """A model that never ends a sentence."""
    model = make_model()

    def forbid_end(module: nn.Module, inputs: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits.index_fill(-1, torch.tensor([EOS]), -torch.inf)

    model.softmax.register_forward_hook(forbid_end)
    return model


def replace_weights(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Other weights in a model folder, on purpose: it is not to know its files any more."""
    save_file(weights, folder / "weights.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config.pop("files", None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
