"""Running the filters over documents. A pair that goes leaves a gap, so what stood apart never becomes neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from docnmt.base.errors import DocnmtError
from docnmt.corpora.cleaning.filters import EXPLAINED, Limits, pair_filters
from docnmt.corpora.cleaning.measures import size
from docnmt.document import GAP, ParallelDocument

EXAMPLES = 3
SHORT_PAIR = 4  # words: labels and titles, which a corpus may well repeat


@dataclass(frozen=True)
class Removed:
    """A pair that went."""

    document: str
    position: int
    source: str
    target: str


@dataclass
class Counts:
    """What came in, what went and why, and what is left."""

    documents: int = 0
    pairs: int = 0
    gaps: int = 0  # that were there before
    documents_left: int = 0
    pairs_left: int = 0
    removed: dict[str, int] = field(default_factory=dict)  # filter -> pairs
    examples: dict[str, list[Removed]] = field(default_factory=dict)

    def remove(self, reason: str, removed: Removed) -> None:
        self.removed[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append(removed)


class Cleaner:
    """Filters documents as they come; it remembers hashes of what it let through, to find repetitions."""

    def __init__(
        self, languages: tuple[str, str] = ("", ""), limits: Limits | None = None, without: Iterable[str] = ()
    ):
        off = set(without)
        if unknown := sorted(off - EXPLAINED.keys()):
            raise DocnmtError(f"no filter is called {unknown[0]!r}\n  There are: {', '.join(EXPLAINED)}.")
        self.limits = limits or Limits()
        found = pair_filters(languages, self.limits)
        self.filters = {name: removes for name, removes in found.items() if name not in off}
        self.repeated = {name for name in ("repeated pair", "repeated document") if name not in off}
        self.active = tuple(name for name in EXPLAINED if name in self.filters or name in self.repeated)
        self.counts = Counts(removed=dict.fromkeys(self.active, 0))
        self._pairs: Counter[bytes] = Counter()
        self._documents: set[bytes] = set()

    def clean(self, documents: Iterable[ParallelDocument]) -> Iterator[ParallelDocument]:
        """Documents of which something is left, with gaps in the place of what went."""
        for document in documents:
            counts, filled = self.counts, document.filled
            counts.documents += 1
            counts.pairs += len(filled)
            counts.gaps += len(document) - len(filled)
            kept = set() if self._is_repeated(document) else {i for i in filled if self._keeps(document, i)}
            if not kept:
                continue
            counts.documents_left += 1
            counts.pairs_left += len(kept)
            sides = document.source, document.target
            source, target = (tuple(text if i in kept else GAP for i, text in enumerate(side)) for side in sides)
            yield ParallelDocument(document.id, source, target)

    def _is_repeated(self, document: ParallelDocument) -> bool:
        if "repeated document" not in self.repeated:
            return False
        key = _hash("\n".join((*document.source, *document.target)))
        if key not in self._documents:
            self._documents.add(key)
            return False
        for i in document.filled:
            self._remove("repeated document", document, i)
        return True

    def _keeps(self, document: ParallelDocument, position: int) -> bool:
        source, target = document.source[position], document.target[position]
        for name, removes in self.filters.items():
            if removes(source, target):
                self._remove(name, document, position)
                return False
        if "repeated pair" in self.repeated:
            key = _hash(f"{source}\n{target}")
            self._pairs[key] += 1
            short = min(size(source), size(target)) < SHORT_PAIR
            if self._pairs[key] > (self.limits.repeats if short else 1):
                self._remove("repeated pair", document, position)
                return False
        return True

    def _remove(self, reason: str, document: ParallelDocument, position: int) -> None:
        self.counts.remove(reason, Removed(document.id, position, document.source[position], document.target[position]))


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
