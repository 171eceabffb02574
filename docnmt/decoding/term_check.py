"""What became of a glossary's terms in a run, and the report of those that could not be met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from docnmt.base.report import Column, Table
from docnmt.decoding.demands import Demand
from docnmt.decoding.results import TranslatedDocument
from docnmt.document import Document


@dataclass(frozen=True)
class UnmetTerm:
    document: str
    sentence: str
    translation: str
    term: str
    wanted: str


@dataclass
class TermCheck:
    found: int = 0  # terms in the sentences that were translated
    unmet: list[UnmetTerm] = field(default_factory=list)

    def note(self, document: Document, demands: Sequence[Demand], result: TranslatedDocument) -> None:
        for sentence, demand, translated in zip(document.sentences, demands, result.sentences, strict=True):
            self.found += sum(1 for phrase in demand.phrases if phrase.source)
            self.unmet += [
                UnmetTerm(document.id, sentence, translated.text, phrase.source, phrase.text)
                for phrase in translated.unmet
                if phrase.source
            ]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def take(self) -> dict[str, Any]:
        """All that was noted so far, for JSON; after that nothing is."""
        noted = self.as_dict()
        self.found, self.unmet = 0, []
        return noted

    def give(self, noted: Mapping[str, Any]) -> None:
        """Notes what was taken elsewhere."""
        self.found += noted["found"]
        self.unmet += [UnmetTerm(**term) for term in noted["unmet"]]

    def table(self) -> Table:
        columns = [Column(name, text=True) for name in ("document", "term", "wanted", "sentence", "translation")]
        table = Table("Terms of the glossary that could not be met", columns)
        for term in self.unmet:
            table.add(term.document, term.term, term.wanted, _short(term.sentence), _short(term.translation))
        return table

    def summary(self) -> str:
        return f"glossary: {self.found - len(self.unmet):,} of {self.found:,} terms met"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
