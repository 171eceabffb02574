"""The corpus as it is published: split by document into train, dev and test, with a card that describes it.

The splits do not leak into each other. No document is in two of them. And no sentence of train stands in dev or
test, nor one of dev in test, not even with other numbers, marks or case or, from eight words on, with a word put in,
left out or changed: in the larger split it becomes a gap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from docnmt.base.files import file_hash, write_atomically, write_json
from docnmt.base.report import Table, columns
from docnmt.corpus import clean as report
from docnmt.corpus.clean import Cleaner, text_hash, with_gaps, word_key
from docnmt.corpus.inspect import inspect
from docnmt.document import NO_CONTEXT, ParallelDocument

SPLITS = ("train", "dev", "test")
SHORTEST, LONGEST = 8, 150  # pairs of a document that may be held out
FEWEST = 10  # documents of a source, for at least one to be held out
_SHORT_SENTENCE = 4  # words: shorter ones (titles, "Yes.") may be in all splits
_LONG_SENTENCE = 8  # words: from here on, a word may differ

Splits = dict[str, list[ParallelDocument]]


def source_of(document: ParallelDocument) -> str:
    return document.id.partition(":")[0]


def split(documents: Sequence[ParallelDocument], share: float, seed: int) -> tuple[Splits, dict[str, int]]:
    """The splits, and how many pairs became gaps in each because a smaller one has them.

    Of each source about the same share goes to dev and as much to test, by hashes of the ids.
    """
    sources: dict[str, list[str]] = {}
    for document in documents:
        if SHORTEST <= len(document.filled) <= LONGEST:
            sources.setdefault(source_of(document), []).append(document.id)
    place: dict[str, str] = {}
    for ids in sources.values():
        ids.sort(key=lambda name: text_hash(f"{seed}:{name}"))
        count = max(round(share * len(ids)), 1 if len(ids) >= FEWEST else 0)
        place |= dict.fromkeys(ids[:count], "test") | dict.fromkeys(ids[count : 2 * count], "dev")
    splits: Splits = {name: [] for name in SPLITS}
    for document in documents:
        splits[place.get(document.id, "train")].append(document)
    emptied = dict.fromkeys(SPLITS, 0)
    held: set[bytes] = set()
    for name in reversed(SPLITS):
        left = []
        for document in splits[name]:
            kept = {i for i in document.filled if held.isdisjoint(_keys(document, i))}
            emptied[name] += len(document.filled) - len(kept)
            if kept:
                left.append(with_gaps(document, kept))
        splits[name] = left
        if name != "train":
            held.update(key for document in left for i in document.filled for key in _keys(document, i))
    return splits, emptied


def _keys(document: ParallelDocument, position: int) -> Iterator[bytes]:
    """Keys that nearly equal sentences, on either side, share: of all words, and of all words but one."""
    for text in (document.source[position], document.target[position]):
        words = word_key(text)
        if len(words) >= _SHORT_SENTENCE:
            yield text_hash(" ".join(words))
        if len(words) >= _LONG_SENTENCE:
            for i in range(len(words)):
                yield text_hash(" ".join(words[:i] + words[i + 1 :]))


# ---- The card: what is in the corpus, from where, under what licences, and what was done to it ----


@dataclass
class SourceCard:
    """What was found in a source."""

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
            found = inspect(documents, NO_CONTEXT)
            self.splits[name] = {
                "documents": found.documents,
                "pairs": found.sentences,
                "gaps": found.gaps,
                "source_words": found.source_words,
                "target_words": found.target_words,
            }
            for document in documents:
                source = sources[source_of(document)]
                source.documents += 1
                source.pairs += len(document.filled)
                source.gaps += len(document) - len(document.filled)

    def write(self, folder: Path, cleaner: Cleaner) -> None:
        """README.md and corpus.json, once the splits are written."""
        self.filters = report.as_dict(cleaner)
        for name, figures in self.splits.items():
            figures["sha256"] = file_hash(folder / f"{name}.tsv")
        write_json(folder / "corpus.json", {**asdict(self), "sha256": self.digest})
        with write_atomically(folder / "README.md") as file:
            file.write(self.markdown(cleaner))

    @property
    def digest(self) -> str:
        """One hash for all that is in the corpus."""
        parts = "".join(f"{name} {figures['sha256']}\n" for name, figures in self.splits.items())
        return hashlib.sha256(parts.encode()).hexdigest()

    def tables(self) -> list[Table]:
        splits = Table("Splits", columns("split", "documents", "pairs", "gaps", "source words", "target words"))
        for name, figures in self.splits.items():
            splits.add(name, *(f"{number:,}" for number in list(figures.values())[:5]))
        splits.notes.append(
            f"By document, seed {self.seed}, about {self.held_out:.1%} of each source to dev and as much to test. "
            "Pairs that became gaps because a smaller split has them, or nearly: "
            f"{self.emptied['train']:,} in train, {self.emptied['dev']:,} in dev."
        )
        heads = columns("source", "domain", "licence", "packages", "documents", "pairs", "gaps", text=3)
        sources = Table("Sources", heads)
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
        tables = "\n".join(table.markdown() for table in self.tables())
        return f"""# Manuals and games from Debian packages, {source} to {target}

Made with `{self.command}`. UTF-8; a line is document id, source and target with tabs between them;
lines of one id are running text. A line with nothing after its id is a gap: a pair that was missing
or removed. The text stays under the licences of its sources.

{tables}
## Filters

{report.markdown(cleaner)}
## Packages

{versions}
SHA-256 of the whole: `{self.digest}`
"""
