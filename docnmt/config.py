"""What a recipe can say: one TOML file holds everything that determines a result.

Frozen dataclasses, read strictly: an unknown key is an error that names the nearest known one. Any
value can be set from the command line: `--set model.width=256`.
"""

# No `from __future__ import annotations`: the checks are in the annotations themselves.

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from docnmt.base.errors import DocnmtError, OnBad, SkipBad, nearest, raise_bad
from docnmt.base.lines import CorpusFiles
from docnmt.document import ContextSpec

# ---- What a value must be beside its type: said in its annotation ----

Check = Callable[[str, Any], None]  # refuses a value that cannot work, by the name of its key


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuses a value that is not one of the choices and suggests the nearest."""
    if value not in choices:
        raise DocnmtError(f"{name}: unknown value {value!r}\n  {nearest(value, choices, 'Choose from')}")


def choice(*choices: str) -> Check:
    return lambda name, value: one_of(name, value, choices)


def at_least(least: int) -> Check:
    def check(name: str, value: float) -> None:
        if not least <= value < math.inf:  # refuses NaN, too
            wrong = "too small" if value < least else "not finite"
            raise DocnmtError(f"{name}: {value} is {wrong}\n  Use {least} or more.")

    return check


def share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise DocnmtError(f"{name}: {value} is out of range\n  Use a number from 0 to below 1.")


def inside(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise DocnmtError(f"{name}: {value} is not between 0 and 1\n  Use a fraction such as 0.5.")


Natural = Annotated[int, at_least(0)]
Positive = Annotated[int, at_least(1)]
Weight = Annotated[float, at_least(0)]
Share = Annotated[float, share]
ShareOrNone = Annotated[float, lambda name, value: share(name, max(value, 0.0))]  # below 0: as another key says
Inside = Annotated[float, inside]


class Section:
    """A part of a recipe: a dataclass whose values are checked, however it is made."""

    section: ClassVar[str] = ""  # its name

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            for check in getattr(each.type, "__metadata__", ()):
                check(f"{self.section}.{each.name}".removeprefix("."), getattr(self, each.name))


# ---- Sections ----


@dataclass(frozen=True)
class DataConfig:
    source_language: str = "fr"
    target_language: str = "en"
    documents: tuple[CorpusFiles, ...] = ()  # D_d: parallel documents, for both steps
    sentences: tuple[CorpusFiles, ...] = ()  # D_s: more sentence pairs, for step 1 only
    dev: tuple[CorpusFiles, ...] = ()  # documents for validation
    test: tuple[CorpusFiles, ...] = ()  # documents on which no decision is based, for `docnmt tables`
    skip_bad: bool = False  # skip and count bad pairs instead of stopping at the first
    max_characters: int = 20_000  # a longer line is an error

    @property
    def languages(self) -> tuple[str, str]:
        return self.source_language, self.target_language

    def on_bad(self) -> OnBad:
        """What to do with bad pairs: count them, or stop at the first."""
        return SkipBad() if self.skip_bad else raise_bad


@dataclass(frozen=True)
class SubwordConfig(Section):
    section = "subwords"
    vocabulary: int = 32_000  # its size
    # What the size counts; "merges": BPE merges only, without characters, bytes and marks.
    counts: Annotated[str, choice("pieces", "merges")] = "pieces"
    shared: bool = False  # one model for both languages
    sample: int = 1_000_000  # train on at most this many lines, drawn at random
    character_coverage: float = 0.9995  # share of characters with a piece of their own; the rest are spelt in bytes
    lowercase: bool = False  # both languages are lower-cased, also the text to translate
    tokenized: bool = False  # the corpora have spaces between words and punctuation: pieces end at spaces only
    source_model: str = ""  # an existing SentencePiece model instead of training one
    target_model: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.98 <= self.character_coverage <= 1:  # SentencePiece's own bounds
            wrong = f"subwords.character_coverage: {self.character_coverage} is out of range"
            raise DocnmtError(f"{wrong}\n  Use a number from 0.98 to 1.")


@dataclass(frozen=True)
class ModelConfig(Section):
    section = "model"
    kind: str = "transformer"  # Vaswani et al. (2017); "rnnsearch": Bahdanau et al. (2015), one layer and no heads
    width: Positive = 512  # D
    filter_width: Positive = 2048
    heads: Positive = 8
    encoder_layers: Positive = 6  # N_s
    decoder_layers: Positive = 6  # N_t
    dropout: Share = 0.1  # on embeddings and sub-layer outputs
    # "target": W_o is the target embedding; "all": the source embedding too.
    tie: Annotated[str, choice("none", "target", "all")] = "target"
    max_length: Annotated[int, at_least(8)] = 512  # longest sentence in pieces; a longer one is translated in parts
    # How models of other programs differ from the paper's: see docs/import.md.
    activation: Annotated[str, choice("relu", "swish", "gelu")] = "relu"  # of feed-forward networks
    positions: Annotated[str, choice("vaswani", "marian")] = "vaswani"  # the table of sinusoids
    norm_epsilon: float = 1e-5  # of the base's layer norms
    output_bias: bool = False  # the softmax has a bias
    start: Annotated[str, choice("mark", "zero")] = "mark"  # the decoder's first input; "zero": a vector of zeros
    # Length penalty and end of a search; "wu": Wu et al. (2016).
    search: Annotated[str, choice("wu", "marian", "huggingface")] = "wu"
    forbidden: tuple[str, ...] = ()  # pieces that are never output

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "transformer" and self.width % self.heads:
            raise DocnmtError(
                f"model.width {self.width} cannot be split into {self.heads} heads\n"
                "  Choose a width that is a multiple of heads."
            )


@dataclass(frozen=True)
class ContextConfig(Section):
    section = "context"
    kind: str = "attention"  # the paper's; "none": the sentence-level model; "voita" and others: docs/systems.md
    previous: Natural = 2  # sentences before the current one
    following: Natural = 0  # sentences after it
    # "layers": the paper's; "encoder": the source encoder's states.
    representation: Annotated[str, choice("layers", "encoder", "embedding", "lstm")] = "layers"
    layers: Positive = 1  # N_c
    integration: Annotated[str, choice("encoder", "decoder", "both", "none")] = "both"
    connection: Annotated[str, choice("gate", "residual")] = "gate"
    gate_opening: Inside = 0.5  # "attention": share of the context that gates let in at first; not 0.5: set by a bias
    # "sentence", ours: H + (1 - lambda) Sub(H), which starts as exactly the sentence model.
    start: Annotated[str, choice("paper", "sentence")] = "paper"
    max_tokens: Annotated[int, at_least(2)] = 256  # a longer context is trimmed at its far end
    dropout: ShareOrNone = -1.0  # "attention": on the context's embeddings and in its encoder; below 0: model.dropout
    embedding_dropout: ShareOrNone = -1.0  # "attention": on the context's embeddings, if different; below 0: the same
    residual_dropout: ShareOrNone = 0.0  # "attention": on the context sub-layer of connection = "residual"
    translate_previous: bool = False  # "concat": the previous sentences are translated again with each sentence
    # "concat": between sentences; "prefix": every word before the sentence has one.
    mark: Annotated[str, choice("break", "prefix")] = "break"
    cache_words: Positive = 100  # "cache" and "continuous-cache": words of the previous translations
    topic_words: Natural = 200  # "cache": topic words in addition; 0: none
    stop_words: tuple[str, ...] = ()  # "cache": target words that it does not remember; none: the frequent ones
    stop_frequency: Inside = 0.002  # "cache": a piece with this share of all pieces is a stop word, if none are named

    @property
    def active(self) -> bool:
        return self.kind != "none" and self.integration != "none"

    @property
    def spec(self) -> ContextSpec:
        return ContextSpec(self.previous, self.following)


@dataclass(frozen=True)
class StepConfig(Section):
    """One training step."""

    updates: Positive = 100_000  # number of updates
    batch_tokens: Positive = 48_000  # per batch: source, context and target together, with padding
    accumulation: Positive = 1  # batches per update, in each process
    learning_rate: Weight = 1.0  # factor on Vaswani's schedule
    warmup: Positive = 4_000  # updates
    cooldown: Natural = 0  # updates at the end over which the rate falls linearly to zero
    smoothing: Share = 0.1  # of labels
    clip: Weight = 0.0  # largest gradient norm; 0: no clipping
    log_every: Positive = 50  # updates
    validate_every: Positive = 2_000
    checkpoint_every: Positive = 500
    patience: Natural = 0  # stop after this many validations without a better one; 0: never
    average: Positive = 1  # the final model averages this many of the best validations

    def cooling(self, update: int) -> list[int] | None:
        """The first and last update of the cooldown, if it has begun by this update."""
        first = max(0, self.updates - self.cooldown)
        return [first, self.updates] if self.cooldown and update > first else None


@dataclass(frozen=True)
class SentenceStepConfig(StepConfig):
    section = "sentence"
    corpora: Annotated[str, choice("all", "documents")] = "all"  # D_s and D_d; "documents": only D_d, for comparison


@dataclass(frozen=True)
class DocumentStepConfig(StepConfig):
    section = "document"
    batch_tokens: Positive = 96_000  # per batch: source, context and target together, with padding
    freeze: bool = True  # theta_s stays as it is
    base_dropout: ShareOrNone = -1.0  # on what theta_s computes; 0: only on the added modules; below 0: model.dropout
    start_from: str = ""  # a model folder; "": the result of the sentence step; "nothing": train from scratch
    # Controls: "shuffled", contexts of other documents; "none", empty ones.
    context_from: Annotated[str, choice("own", "shuffled", "none")] = "own"
    focus: tuple[str, ...] = ()  # target words that count more: those that context decides
    focus_weight: Weight = 5.0  # how many times they count; the dev loss counts all words once
    focus_only: bool = False  # sentences without such a word are skipped, except as context
    choices: tuple[str, ...] = ()  # classes of target words, such as "his,her,its", with a loss within each
    choice_weight: Weight = 5.0  # of that loss
    choice_balance: bool = False  # rare and frequent words of a class have the same weight in total
    word_dropout: Share = 0.0  # share of the source's words that are hidden; not in the context
    word_dropout_of: tuple[str, ...] = ()  # only these words, all in a sentence at once; none: any piece
    split_pairs: Share = 0.0  # share of the pairs that are split; the first half is context of the second
    # Batches are cut as if each sentence saw this many before it; -1: as it does.
    batches_for: Annotated[int, at_least(-1)] = -1


@dataclass(frozen=True)
class ValidationConfig(Section):
    section = "validation"
    # How "best" is measured; "bleu": the paper's multi-bleu on all references.
    metric: Annotated[str, choice("loss", "bleu")] = "loss"
    decode: bool = True  # BLEU by translating the dev documents, with and without context
    beam: Natural = 0  # for these translations; 0: as decoding.beam

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric == "bleu" and not self.decode:
            raise DocnmtError('validation.metric = "bleu" needs translations\n  Set validation.decode = true.')


@dataclass(frozen=True)
class EvaluationConfig:
    metric: str = "multi-bleu"  # the paper's: case-insensitive; or another metric of `docnmt evaluate`
    tokenized: bool = False  # the text is tokenised: its tokens are left as they are
    domains: tuple[str, ...] = ()  # parts to report separately, by document id: "games=wesnoth,widelands"
    contrastive: str = ""  # a contrastive set (docs/contrastive.md), for the table of all systems


@dataclass(frozen=True)
class DecodingConfig(Section):
    section = "decoding"
    beam: Positive = 4  # hypotheses per sentence
    length_penalty: Weight = 0.6  # alpha of Wu et al. (2016)
    batch_tokens: Positive = 4_000  # per batch: source and context, with padding

    def __post_init__(self) -> None:
        super().__post_init__()
        # Far beyond what anybody uses: the room for all hypotheses, and an exponent of lengths, which overflows.
        for name, value, most in (("beam", self.beam, 1000), ("length_penalty", self.length_penalty, 10)):
            if value > most:
                raise DocnmtError(f"decoding.{name}: {value} is too large\n  Use {most} or less.")


@dataclass(frozen=True)
class HardwareConfig:
    device: str = "auto"  # "cpu", "cuda", ...
    bf16: bool = False  # autocast, on devices that support it
    compile: bool = False  # torch.compile
    threads: int = 0  # 0: as many as torch finds


@dataclass(frozen=True)
class Recipe(Section):
    like: str = ""  # "paper" or "released": the defaults for what this recipe leaves out
    seed: Natural = 1  # of everything random
    output: str = "runs/run"  # the folder that everything is written to
    data: DataConfig = field(default_factory=DataConfig)
    subwords: SubwordConfig = field(default_factory=SubwordConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    sentence: SentenceStepConfig = field(default_factory=SentenceStepConfig)
    document: DocumentStepConfig = field(default_factory=DocumentStepConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    hardware: HardwareConfig = field(default_factory=HardwareConfig)

    @property
    def validation_beam(self) -> int:
        return self.validation.beam or self.decoding.beam


T = TypeVar("T")


def from_table(kind: type[T], table: dict[str, Any], where: str) -> T:
    """A dataclass from a table of plain values; every key and type is checked."""
    hints = typing.get_type_hints(kind)
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise DocnmtError(f"{where}: unknown key {key!r}\n  {nearest(key, known, 'Known keys:')}")
    values = {key: _convert(hints[key], value, f"{where}: {key}") for key, value in table.items()}
    return kind(**values)


def _convert(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        if hint is CorpusFiles and isinstance(value, str):
            return CorpusFiles(path=value)
        if not isinstance(value, dict):
            raise DocnmtError(
                f"{where}: must be a section, not {value!r}\n  Write its keys below its name in brackets."
            )
        return from_table(typing.cast(type, hint), value, where)
    if typing.get_origin(hint) is tuple:
        items = value if isinstance(value, list) else [value]
        return tuple(_convert(typing.get_args(hint)[0], item, where) for item in items)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise DocnmtError(f"{where}: expected {hint.__name__}, found {value!r}\n  Correct the value.")
    return value
