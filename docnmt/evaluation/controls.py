"""Wrong contexts on purpose: what a model does with them shows whether it uses the right ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

from docnmt.document import Document
from docnmt.errors import DocnmtError


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
