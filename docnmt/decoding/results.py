"""What can be asked of a translator, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.config import DecodingConfig
from docnmt.decoding.phrases import Phrase
from docnmt.decoding.terms import Glossary
from docnmt.document import ContextSpec, Document

OFF = "off"  # passes the context modules over: the sentence model


@dataclass(frozen=True)
class Options(DecodingConfig):
    """How to decode: what a recipe says of it, and what is chosen from call to call."""

    nbest: int = 1  # translations a sentence
    context: ContextSpec | str | None = None  # None: as the model was trained; "off": as if it had no context modules
    glossary: Glossary | None = None
    shortlist: bool = True  # words from the model's shortlist alone, where it has one

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.context, str) and self.context != OFF:
            ContextSpec.parse(self.context)  # a spec that makes no sense is found here, before any work is done
        if not 1 <= self.nbest <= (2 * self.beam if self.beam > 1 else 1):
            raise DocnmtError(
                f"beam {self.beam}, n-best {self.nbest}\n  Ask for up to twice the beam; for one with a beam of one."
            )

    def changed(self, *, glossary: Glossary | Mapping[str, str] | None = None, **given: Any) -> Options:
        """Other values for those that are given; None leaves one as it is. A glossary may be a mapping of terms."""
        if glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary.of(glossary)
        given["glossary"] = glossary
        return replace(self, **{name: value for name, value in given.items() if value is not None})


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
