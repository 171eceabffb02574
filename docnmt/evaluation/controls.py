"""Wrong contexts on purpose: what a model does with them shows whether it uses the right ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from docnmt.base.errors import DocnmtError
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, visible_positions

TRUE, NONE, SHUFFLED, REPEATED = "true", "none", "shuffled", "repeated"

D = TypeVar("D", Document, ParallelDocument)


@dataclass(frozen=True)
class Contexts(Generic[D]):
    """Sentences with contexts of one kind: Documents as `Translator.translate_documents` takes them, ParallelDocuments
    as `Translator.score` does."""

    documents: Sequence[D]
    context_from: Sequence[D]
    context: ContextSpec
    last_only: bool = False  # the last sentence of each document is meant; empty ones before it keep its place

    def positions(self, document: D) -> Sequence[int]:
        """Of the sentences that are meant; a gap never is."""
        return range(len(document))[-1:] if self.last_only else document.filled


def with_contexts(documents: Sequence[D], spec: ContextSpec, seed: int) -> dict[str, Contexts[D]]:
    """The same sentences, in the same order, with their own contexts and with three kinds of wrong ones."""
    return {
        TRUE: Contexts(documents, documents, spec),
        NONE: Contexts(documents, documents, NO_CONTEXT),
        SHUFFLED: Contexts(documents, shuffled(documents, seed), spec),
        REPEATED: Contexts(_alone(documents, spec), repeated(documents, spec), spec, last_only=True),
    }


def shuffled(documents: Sequence[D], seed: int) -> list[D]:
    """For each document, another text of its length put together from other documents: contexts that do not belong."""
    if len({document.id for document in documents}) < 2:
        raise DocnmtError("shuffled contexts come from other documents\n  Give two documents or more.")
    generator = random.Random(seed)
    foreign = []
    for document in documents:
        sentences: list[Any] = []
        while len(sentences) < len(document):
            other = generator.choice(documents)
            if other.id != document.id:
                sentences += _sentences(other)
        foreign.append(_made_of(document, sentences[: len(document)]))
    return foreign


def repeated(documents: Sequence[D], spec: ContextSpec) -> list[D]:
    """For each sentence a document of its own: the sentence, and once more for every sentence of its context.

    A context that is as long as the true one and fits, but tells nothing new.
    """
    return [
        _made_of(document, [sentences[position]] * (1 + len(_visible(document, position, spec))))
        for document in documents
        for sentences in [_sentences(document)]
        for position in document.filled
    ]


def _alone(documents: Sequence[D], spec: ContextSpec) -> list[D]:
    """For each sentence a document of its own, in which it stands where `repeated` has as many before it as it had."""
    return [
        _made_of(document, _after_empty_ones(sum(i < position for i in _visible(document, position, spec)), sentence))
        for document in documents
        for position in document.filled
        for sentence in [_sentences(document)[position]]
    ]


# ---- documents in one language or in two ----


def _sentences(document: D) -> list[Any]:
    """Sentences, or pairs of them."""
    if isinstance(document, Document):
        return list(document.sentences)
    return list(zip(document.source, document.target, strict=True))


def _visible(document: Document | ParallelDocument, position: int, spec: ContextSpec) -> tuple[int, ...]:
    return visible_positions(document.sentences if isinstance(document, Document) else document.source, position, spec)


def _after_empty_ones(count: int, sentence: Any) -> list[Any]:
    return [*["" if isinstance(sentence, str) else ("", "")] * count, sentence]


def _made_of(document: D, sentences: Iterable[Any]) -> D:
    """One of the same kind and name."""
    if isinstance(document, Document):
        return Document(document.id, tuple(sentences))
    pairs = list(sentences)
    return ParallelDocument(document.id, tuple(s for s, _ in pairs), tuple(t for _, t in pairs))
