"""What is decoded and with which weights: models of several sizes, sentences of natural lengths, a random shortlist."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece

from docnmt.config import ContextConfig, DecodingConfig, ModelConfig
from docnmt.data.subwords import BOS, EOS, PAD, UNK, NamedSubwords, Subwords, Vocabulary

if TYPE_CHECKING:
    from docnmt.engine.shortlist import Shortlist

SEED = 1
FIRST_WORD = UNK + 1
SPREAD = 0.6  # of the logarithm of lengths
MEAN, SHORTEST, LONGEST = 25, 4, 90  # source pieces
BUCKET = 4  # target lengths are multiples of it
SHORTLIST = 800  # candidates of a batch


@dataclass(frozen=True)
class Size:
    model: ModelConfig
    vocabulary: int
    group: int  # sentences of one target length: batches are cut from them

    @property
    def of_marian(self) -> bool:
        """Whether it is a model as OPUS-MT has them: then each program gets it by its own way from Marian's file."""
        return self.model.start == "zero"


def _size(width: int, filter_width: int, heads: int, layers: int, vocabulary: int, group: int, **settings: Any) -> Size:
    model = ModelConfig(
        width=width, filter_width=filter_width, heads=heads, encoder_layers=layers, decoder_layers=layers, **settings
    )
    return Size(model, vocabulary, group)


MARIANS: dict[str, Any] = {"tie": "all", "activation": "swish", "positions": "marian", "norm_epsilon": 1e-6}
MARIANS |= {"output_bias": True, "start": "zero"}


SIZES = {
    "small": _size(256, 1024, 4, 4, 8_000, 64),
    "base": _size(512, 2048, 8, 6, 32_000, 64),
    "opus": _size(512, 2048, 8, 6, 60_000, 64, **MARIANS),
    "tiny": _size(32, 64, 2, 1, 1_000, 4),  # to see that everything runs
    "tiny-opus": _size(32, 64, 2, 1, 1_000, 4, **MARIANS),
}


# ---- sentences ----


@dataclass(frozen=True)
class Sentence:
    source: list[int]  # without marks
    context: list[int]  # two sentences, each with its end mark
    length: int  # of the target, forced


Batch = tuple[Sentence, ...]  # of one target length


def spread(size: Size, groups: int) -> list[list[Sentence]]:
    """Groups of sentences from short to long, as a large corpus would fill them: target lengths at evenly spaced
    quantiles, source lengths that are rounded up to them."""
    random = np.random.default_rng(SEED)
    natural = NormalDist(math.log(MEAN) - SPREAD**2 / 2, SPREAD)
    made = []
    for number in range(groups):
        middle = math.exp(natural.inv_cdf((number + 0.5) / groups))
        length = BUCKET * math.ceil(min(max(middle, SHORTEST), LONGEST) / BUCKET)
        shortest = max(SHORTEST, length - BUCKET + 1)
        lengths = random.integers(shortest, min(length, LONGEST) + 1, size.group)
        made.append([_sentence(random, size, int(source), length) for source in lengths])
    return made


def alike(size: Size, count: int, length: int) -> list[list[Sentence]]:
    """One group of sentences as long as each other."""
    random = np.random.default_rng(SEED)
    return [[_sentence(random, size, length, length) for _ in range(count)]]


def _sentence(random: np.random.Generator, size: Size, source: int, target: int) -> Sentence:
    def words(count: int) -> list[int]:
        return random.integers(FIRST_WORD, size.vocabulary, count).tolist()

    around = random.integers(MEAN - 5, MEAN + 5, 2)  # pieces; with their end marks about 50 together
    return Sentence(words(source), [token for count in around for token in (*words(count), EOS)], target)


def cut(groups: Sequence[Sequence[Sentence]], size: int, workers: int) -> list[Batch]:
    """Batches, those that take longest first, and at least one for each worker if there are so many sentences."""
    size = min(size, math.ceil(sum(map(len, groups)) / workers))
    made = [tuple(group[start : start + size]) for group in groups for start in range(0, len(group), size)]
    return sorted(made, key=lambda batch: -len(batch) * batch[0].length)


# ---- models ----


def write_models(folder: Path, size: Size) -> None:
    """One set of random weights: sentence and document model for docnmt, in float32 and in int8, the sentence model for
    the others; a shortlist for docnmt and CTranslate2."""
    import torch

    from docnmt.model.transformer import DocumentTransformer
    from docnmt.model_folder import ModelCard, quantize_folder, save_model, weights_of

    torch.manual_seed(SEED)
    subwords = _subwords(size)
    document = DocumentTransformer(size.model, ContextConfig(), size.vocabulary, size.vocabulary)
    weights = {
        "sentence": (ContextConfig(kind="none"), {name: p.detach() for name, p in document.sentence_parameters()}),
        "document": (ContextConfig(), weights_of(document)),
    }
    for name, (context, values) in weights.items():
        card = ModelCard(size.model, context, DecodingConfig(), "fr", "en")
        save_model(folder / name, values, card, subwords, subwords, {})
        quantize_folder(folder / name, folder / f"{name}-int8")
    random_shortlist(size.vocabulary, size.vocabulary).write(folder / "sentence")
    (_from_marian if size.of_marian else _from_docnmt)(folder)


def _from_docnmt(folder: Path) -> None:
    from decoders.ctranslate2_writer import export

    for quantization in ("float32", "int8"):
        export(folder / "sentence", folder / quantization, quantization)


def _from_marian(folder: Path) -> None:
    """Out as Marian's model, from which CTranslate2's own converter takes it, and as transformers'."""
    from ctranslate2.converters import MarianConverter
    from decoders.ctranslate2_writer import vocabulary_map

    from docnmt.engine.shortlist import Shortlist
    from docnmt.interop.convert import export

    for layout in ("marian", "huggingface"):
        export(folder / "sentence", folder / layout, layout)
    subwords = Subwords.load(folder / "sentence" / "source.spm")
    shortlist = Shortlist.read(folder / "sentence", subwords, subwords)
    assert shortlist is not None
    listed = folder / "vmap.txt"
    listed.write_text("".join(f"{line}\n" for line in vocabulary_map(shortlist, subwords, subwords)), encoding="utf-8")
    vocabularies = [str(folder / "marian" / f"{side}.vocab.yml") for side in ("source", "target")]
    converter = MarianConverter(str(folder / "marian" / "model.npz"), vocabularies)
    for quantization in ("float32", "int8"):
        converter.convert(str(folder / quantization), vmap=str(listed), quantization=quantization)


def random_shortlist(source_words: int, target_words: int, count: int = SHORTLIST) -> Shortlist:
    """Half of the candidates are everybody's. The other half are shared by all source words, some for each: so many
    that a batch of any size has nearly all of them."""
    from docnmt.engine.shortlist import Shortlist

    random = np.random.default_rng(SEED)
    always, others = np.split(random.permutation(np.arange(FIRST_WORD, target_words))[:count], 2)
    return Shortlist(np.array([EOS, *always]), random.choice(others, (source_words, 8)))


def _subwords(size: Size) -> Subwords:
    """A model of Marian numbers its words by a list of its own; the marks are where docnmt has them."""
    if not size.of_marian:
        return Subwords(_word_model(size.vocabulary))
    marks = ["<0>", "<s>", "</s>", "<unk>"]
    words = [f"word{n}" for n in range(size.vocabulary - len(marks))]
    return NamedSubwords(_word_model(100), Vocabulary((*marks, *words)))


def _word_model(vocabulary: int) -> bytes:
    """A SentencePiece model of so many words: made in a moment, and nothing here reads text."""
    words = [f"word{n}" for n in range(vocabulary - FIRST_WORD)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words),
        model_writer=model,
        model_type="word",
        vocab_size=vocabulary,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        minloglevel=2,
    )
    return model.getvalue()
