"""What can be asked of a translator, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from docnmt.base.errors import DocnmtError
from docnmt.decoding.phrases import Phrase
from docnmt.decoding.terms import Glossary
from docnmt.document import ContextSpec, Document

OFF = "off"  # passes the context modules over: the sentence model


@dataclass(frozen=True)
class Options:
    """How to decode. `context` None: as the model was trained; "off": as if it had no context modules."""

    beam: int = 4
    length_penalty: float = 0.6
    nbest: int = 1
    context: ContextSpec | str | None = None
    batch_tokens: int = 4_000
    glossary: Glossary | None = None
    shortlist: bool = True  # words from the model's shortlist alone, where it has one

    def __post_init__(self) -> None:
        if isinstance(self.context, str) and self.context != OFF:
            ContextSpec.parse(self.context)  # a spec that makes no sense is found here, before any work is done
        if self.beam < 1 or not 1 <= self.nbest <= (2 * self.beam if self.beam > 1 else 1):
            raise DocnmtError(
                f"beam {self.beam}, n-best {self.nbest}\n  Use a beam of 1 or more, n-best up to twice that."
            )


class Changes(TypedDict, total=False):
    """The options by name, for calls."""

    beam: int
    length_penalty: float
    nbest: int
    context: ContextSpec | str | None
    batch_tokens: int
    glossary: Glossary | None
    shortlist: bool


class Choice(NamedTuple):
    """Several translations of one sentence, which is told by its document and position."""

    document: Document
    position: int
    translations: Sequence[str]
    # for each of them the translations of all sentences before, for systems that see these
    before: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class TranslatedSentence:
    texts: tuple[str, ...]  # best first
    scores: tuple[float, ...]  # log-probability over length penalty, of all that the decoder wrote
    unmet: tuple[Phrase, ...] = ()  # terms of the glossary that are not in the best one

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True)
class TranslatedDocument:
    id: str
    sentences: tuple[TranslatedSentence, ...]


@dataclass(frozen=True)
class SentenceScore:
    """Log-probabilities of a given translation: each piece's, the end mark's last."""

    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.log_probabilities)
