"""Wrong contexts on purpose: what a model does with them shows whether it uses the right ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from docnmt.document import NO_CONTEXT, ContextSpec, Document, context_positions
from docnmt.errors import DocnmtError

TRUE, NONE, SHUFFLED, REPEATED = "true", "none", "shuffled", "repeated"


@dataclass(frozen=True)
class Contexts:
    """Sentences with contexts of one kind, as `Translator.translate_documents` and `Translator.score` take them."""

    documents: Sequence[Document]
    context_from: Sequence[Document]
    context: ContextSpec


def with_contexts(documents: Sequence[Document], spec: ContextSpec, seed: int) -> dict[str, Contexts]:
    """The same sentences, in the same order, with their own contexts and with three kinds of wrong ones."""
    alone = [Document(document.id, (sentence,)) for document in documents for sentence in document.sentences]
    return {
        TRUE: Contexts(documents, documents, spec),
        NONE: Contexts(documents, documents, NO_CONTEXT),
        SHUFFLED: Contexts(documents, shuffled(documents, seed), spec),
        REPEATED: Contexts(alone, repeated(documents, spec), ContextSpec(0, spec.previous + spec.following)),
    }


def shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    """For each document, another text of its length put together from other documents: contexts that do not belong."""
    if len({document.id for document in documents}) < 2:
        raise DocnmtError("shuffled contexts come from other documents\n  Give two documents or more.")
    generator = random.Random(seed)
    foreign = []
    for document in documents:
        sentences: list[str] = []
        while len(sentences) < len(document):
            other = generator.choice(documents)
            if other.id != document.id:
                sentences += other.sentences
        foreign.append(Document(document.id, tuple(sentences[: len(document)])))
    return foreign


def repeated(documents: Sequence[Document], spec: ContextSpec) -> list[Document]:
    """For each sentence a document of its own: the sentence, then once more for every sentence of its context.

    A context that is as long as the true one and fits, but tells nothing new.
    """
    return [
        Document(document.id, (sentence,) * (1 + len(context_positions(position, len(document), spec))))
        for document in documents
        for position, sentence in enumerate(document.sentences)
    ]
