"""The card of a corpus: what is in it, from where, under what licences, and what was done to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from docnmt.base.files import write_atomically, write_json
from docnmt.base.report import Column, Table
from docnmt.corpus import clean as report
from docnmt.corpus.clean import Cleaner
from docnmt.corpus.inspect import count_words
from docnmt.document import ParallelDocument


@dataclass
class SourceCard:
    """What came of a source."""

    name: str
    domain: str
    licence: str
    packages: dict[str, str] = field(default_factory=dict)  # name -> version
    missing: list[str] = field(default_factory=list)  # packages that this release does not have
    documents: int = 0
    pairs: int = 0
    gaps: int = 0


@dataclass
class Card:
    languages: tuple[str, str]
    command: str
    seed: int
    held_out: float
    sources: list[SourceCard] = field(default_factory=list)
    splits: dict[str, dict[str, Any]] = field(default_factory=dict)
    emptied: dict[str, int] = field(default_factory=dict)  # split -> pairs that a smaller split has, too
    filters: dict[str, Any] = field(default_factory=dict)

    def count(self, splits: Mapping[str, Sequence[ParallelDocument]]) -> None:
        sources = {source.name: source for source in self.sources}
        for name, documents in splits.items():
            pairs = gaps = source_words = target_words = 0
            for document in documents:
                filled = document.filled
                pairs += len(filled)
                gaps += len(document) - len(filled)
                source_words += sum(count_words(document.source[i]) for i in filled)
                target_words += sum(count_words(document.target[i]) for i in filled)
                source = sources[document.id.partition(":")[0]]
                source.documents += 1
                source.pairs += len(filled)
                source.gaps += len(document) - len(filled)
            self.splits[name] = {
                "documents": len(documents),
                "pairs": pairs,
                "gaps": gaps,
                "source_words": source_words,
                "target_words": target_words,
            }

    def write(self, folder: Path, cleaner: Cleaner) -> None:
        """README.md and corpus.json, once the splits are written."""
        self.filters = report.as_dict(cleaner)
        for name in self.splits:
            with (folder / f"{name}.tsv").open("rb") as file:
                self.splits[name]["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        write_json(folder / "corpus.json", {**asdict(self), "sha256": self.digest})
        with write_atomically(folder / "README.md") as file:
            file.write(self.markdown(cleaner))

    @property
    def digest(self) -> str:
        """One hash for all that is in the corpus."""
        parts = "".join(f"{name} {figures['sha256']}\n" for name, figures in self.splits.items())
        return hashlib.sha256(parts.encode()).hexdigest()

    def tables(self) -> list[Table]:
        splits = Table(
            "Splits",
            (Column("split", text=True), *map(Column, ("documents", "pairs", "gaps", "source words", "target words"))),
        )
        for name, figures in self.splits.items():
            splits.add(name, *(f"{number:,}" for number in list(figures.values())[:5]))
        splits.notes.append(
            f"By document, seed {self.seed}, about {self.held_out:.1%} of each source to dev and as much to test. "
            "Pairs that became gaps because a smaller split has them, or nearly: "
            + ", ".join(f"{self.emptied[name]:,} in {name}" for name in ("train", "dev"))
            + "."
        )
        sources = Table(
            "Sources",
            (
                Column("source", text=True),
                Column("domain", text=True),
                Column("licence", text=True),
                *map(Column, ("packages", "documents", "pairs", "gaps")),
            ),
        )
        for source in self.sources:
            numbers = len(source.packages), source.documents, source.pairs, source.gaps
            sources.add(source.name, source.domain, source.licence, *(f"{number:,}" for number in numbers))
        missing = [name for source in self.sources for name in source.missing]
        if missing:
            sources.notes.append(f"Not in this release, left out: {', '.join(missing)}.")
        return [splits, sources]

    def markdown(self, cleaner: Cleaner) -> str:
        source, target = self.languages
        versions = "".join(
            f"- {each.name}: {', '.join(f'{name} {version}' for name, version in each.packages.items())}\n"
            for each in self.sources
            if each.packages
        )
        return "\n".join(
            [
                f"# Manuals and games from Debian packages, {source} to {target}\n",
                f"Made with `{self.command}`. UTF-8; a line is document id, source and target with tabs between them;",
                "lines of one id are running text. A line with nothing after its id is a gap: a pair that was missing",
                "or removed. The text stays under the licences of its sources.\n",
                *(table.markdown() for table in self.tables()),
                "## Filters\n",
                report.markdown(cleaner),
                "## Packages\n",
                versions,
                f"SHA-256 of the whole: `{self.digest}`\n",
            ]
        )
