"""Documents, and the one rule that determines a sentence's context.

A document is a sequence of sentences. Everything in docnmt (a corpus, a file, a request, a test
set) is an iterable of documents, and contexts are derived from them here, never given by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import TypeVar

from docnmt.base.errors import DocnmtError

# A place in a document whose sentence is missing (it had no translation, or a filter removed it).
# It is not a training pair and is never translated or scored. Contexts count it as a position but
# see nothing there, so that the sentences before and after it are never taken for neighbours.
GAP = ""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document:
    """A document in one language."""

    id: str
    sentences: tuple[str, ...]

    def __post_init__(self) -> None:
        _sentences(self, "sentences")

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def filled(self) -> tuple[int, ...]:
        """The positions that are not gaps."""
        return tuple(i for i, sentence in enumerate(self.sentences) if sentence)


@dataclass(frozen=True, slots=True)
class ParallelDocument:
    """A document and its translation, sentence by sentence."""

    id: str
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        _sentences(self, "source")
        _sentences(self, "target")
        if len(self.source) != len(self.target):
            raise DocnmtError(
                f"document {self.id}: {len(self.source)} source sentences but {len(self.target)} target sentences\n"
                "  Give each source sentence exactly one target sentence."
            )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def filled(self) -> tuple[int, ...]:
        """The positions that are not gaps."""
        return tuple(i for i, pair in enumerate(zip(self.source, self.target, strict=True)) if any(pair))


def _sentences(document: Document | ParallelDocument, side: str) -> None:
    """A list becomes a tuple; a string, which would be taken for a list of letters (or numbers), is refused."""
    given = getattr(document, side)
    if isinstance(given, str | bytes):
        shown = repr(given) if len(given) <= 40 else f"{given[:40]!r}..."
        raise DocnmtError(f"document {document.id}: {side} is a single string, {shown}\n  Give a list of sentences.")
    if not isinstance(given, tuple):
        given = tuple(given)
        object.__setattr__(document, side, given)
    check_sentences(given, f"document {document.id}: {side}")


def windows(items: Iterable[T], size: int, length: Callable[[T], int]) -> Iterator[list[T]]:
    """Groups of consecutive items (documents, or something with one) that have at least `size` sentences together."""
    window: list[T] = []
    sentences = 0
    for item in items:
        window.append(item)
        sentences += length(item)
        if sentences >= size:
            yield window
            window, sentences = [], 0
    if window:
        yield window


def check_sentences(sentences: Sequence[str], name: str) -> None:
    """`name` is what the sentences are."""
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            shown = repr(sentence)[:40]
            raise DocnmtError(f"{name}: sentence {number} is not a string: {shown}\n  Give a list of strings.")


def check_characters(text: str) -> None:
    """Refuses a string that cannot be written as UTF-8: it has half of a character that takes two."""
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = f"half a character in {text[:40]!r}"
        raise DocnmtError(f"{problem}\n  It was decoded wrongly: decode its bytes again, as UTF-8.") from None


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """How many neighbouring source sentences a sentence sees (the paper: two before, none after)."""

    previous: int = 2
    following: int = 0

    def __post_init__(self) -> None:
        if self.previous < 0 or self.following < 0:
            raise DocnmtError(f"a context cannot have a negative number of sentences: {self}\n  Use 0 or more.")

    def __str__(self) -> str:
        """In the form that `parse` reads."""
        parts = [f"{name}={n}" for name, n in (("previous", self.previous), ("following", self.following)) if n]
        return ",".join(parts) or "none"

    @classmethod
    def parse(cls, text: str) -> ContextSpec:
        """`previous=2,following=1`, or `none` for no sentences at all."""
        if text == "none":
            return NO_CONTEXT
        counts = {"previous": 0, "following": 0}
        for part in text.split(","):
            name, _, number = part.strip().partition("=")
            if name not in counts or not number.isdecimal():
                raise DocnmtError(
                    f"invalid context {text!r}\n"
                    "  Write previous=N, following=N, both separated by a comma, or none; `translate` also takes off."
                )
            counts[name] = int(number)
        return cls(**counts)


NO_CONTEXT = ContextSpec(previous=0, following=0)


def context_positions(position: int, length: int, spec: ContextSpec) -> tuple[int, ...]:
    """The positions, in reading order, of the sentences that sentence `position` of `length` sees as context.

    Never outside the document; empty if there is no neighbour.
    """
    before = range(max(0, position - spec.previous), min(position, length))
    after = range(position + 1, min(length, position + 1 + spec.following))
    return (*before, *after)


def visible_positions(sentences: Sequence[Sized], position: int, spec: ContextSpec) -> tuple[int, ...]:
    """Those of `context_positions` that are not gaps; sentences are text or token ids."""
    return tuple(i for i in context_positions(position, len(sentences), spec) if len(sentences[i]))


def context_sentences(sentences: Sequence[str], position: int, spec: ContextSpec) -> tuple[str, ...]:
    """The context of one sentence as text."""
    return tuple(sentences[i] for i in visible_positions(sentences, position, spec))


def trim_to_budget(before: int, after: int, budget: int) -> tuple[int, int]:
    """How many tokens of the context before and after to keep when only `budget` fit.

    The far ends are cut first: what is next to the sentence is kept. Each side may use what the other leaves free.
    """
    keep_before = min(before, max(budget - after, (budget + 1) // 2))
    return keep_before, min(after, budget - keep_before)
