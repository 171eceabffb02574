"""Several corpora read as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from docnmt.base.errors import DocnmtError, OnBad
from docnmt.base.lines import CorpusFiles
from docnmt.corpora.readers import read_corpus
from docnmt.document import ParallelDocument


def read_all(corpora: Iterable[CorpusFiles], languages: tuple[str, str], on_bad: OnBad) -> Iterator[ParallelDocument]:
    """The documents of all corpora. An id that an earlier corpus has, too, gets the corpus's name before it."""
    seen: set[str] = set()
    for corpus in corpora:
        for document in read_corpus(corpus, languages=languages, on_bad=on_bad):
            name = document.id if document.id not in seen else f"{corpus.title}/{document.id}"
            if name in seen:
                raise DocnmtError(f"{corpus}: document {name} is there twice\n  Rename one of the two, or its file.")
            seen.add(name)
            yield replace(document, id=name)
