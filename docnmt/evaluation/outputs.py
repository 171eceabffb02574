"""Reading references and translations, and matching each translation with its reference.

Files that name documents are aligned by these names; plain text is aligned by its lines, and the references tell
which document they belong to. Whatever does not fit exactly is an error: a translation with the wrong reference would
give a wrong score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, STDIN, CorpusFiles, InputFile
from docnmt.corpus.read import read_corpus, read_rows, scored_format
from docnmt.corpus.rows import Row, Want
from docnmt.text.scripts import letters

_REMEDY = "Translate the source of these references again, or give the references that belong to these translations."
_EMPTY_REMEDY = f"{_REMEDY} If empty lines are empty translations, write TSV or JSON lines."


@dataclass(frozen=True, eq=False)
class References:
    """The documents of a test set, their sentences one after another."""

    ids: tuple[str, ...]
    documents: NDArray[np.int64]  # for each sentence, the index of its document in `ids`
    texts: tuple[tuple[str, ...], ...]  # texts[reference][sentence]
    sources: tuple[str, ...] | None  # if the file has them
    lines: tuple[int, ...] = ()  # for plain text, the line of each sentence
    whole: References | None = None  # the same with its gaps, if there are any: translations have them, too
    kept: tuple[int, ...] = ()  # for each sentence, its index in `whole`

    def __len__(self) -> int:
        return len(self.documents)

    def lengths(self) -> list[int]:
        return np.bincount(self.documents, minlength=len(self.ids)).tolist()

    def position(self, sentence: int) -> int:
        """The number of a sentence in its document, from 1."""
        if self.whole is not None:
            return self.whole.position(self.kept[sentence])
        return sentence - int(np.searchsorted(self.documents, self.documents[sentence])) + 1

    def without_gaps(self) -> References:
        """What is scored: everything except positions with neither source nor reference."""
        columns = zip(*(self.sources, *self.texts) if self.sources else (), strict=True)
        gaps = {number for number, sentences in enumerate(columns) if not any(map(str.strip, sentences))}
        if not gaps:
            return self
        kept = tuple(number for number in range(len(self)) if number not in gaps)
        names, documents = np.unique(self.documents[list(kept)], return_inverse=True)
        return References(
            tuple(self.ids[name] for name in names),
            documents,
            tuple(_chosen(version, kept) for version in self.texts),
            _chosen(self.sources, kept) if self.sources else None,
            whole=self,
            kept=kept,
        )


def _chosen(sentences: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(sentences[place] for place in places)


@dataclass(frozen=True)
class Output:
    """A system's translation of the test set."""

    name: str
    sentences: tuple[str, ...]


def read_references(paths: Sequence[str], language: str = "", *, ids: str = "", starts: str = "") -> References:
    """The references of one or several files. The first file tells the documents and, if it has it, the source.

    For plain text the documents may be given by a file of `ids`, one per line, or of the indices where each `starts`.
    """
    first = _first_references(paths[0], language, ids, starts)
    texts = {path: _aligned_texts(path, first, language, Want.REFERENCES) for path in paths[1:]}
    texts = {paths[0]: first.texts, **texts}
    files = [path for path, versions in texts.items() for _ in versions]
    found = replace(first, texts=tuple(version for versions in texts.values() for version in versions)).without_gaps()
    if not len(found):
        raise _no_references(paths[0])
    for path, version in zip(files, found.texts, strict=True):
        empty = [number for number, text in enumerate(version) if not text.strip()]
        if empty:
            raise BadInput(
                "empty side",
                f"sentence {found.position(empty[0])} has an empty reference",
                "Add the reference, or remove the sentence from the test set.",
                file=path,
                document=found.ids[found.documents[empty[0]]],
            )
    return found


def read_outputs(paths: Sequence[str], references: References, language: str = "") -> list[Output]:
    """The translations of each file, one for each reference sentence. Systems have the names of their files."""
    outputs = []
    for name, path in zip(_names(paths), paths, strict=True):
        texts = _aligned_texts(path, references.whole or references, language, Want.TRANSLATIONS)
        if len(texts) > 1:
            raise DocnmtError(
                f"{path}: {len(texts)} translations per sentence, but only one can be scored\n"
                "  Put each system's translations into a file of their own."
            )
        outputs.append(Output(name, _chosen(texts[0], references.kept) if references.whole else texts[0]))
    return outputs


def _names(paths: Sequence[str]) -> list[str]:
    """The names of systems in tables: as much of each path as is needed to distinguish them."""
    plain = [Path("stdin" if path == STDIN else path.removesuffix(".gz")) for path in paths]
    for names in ([path.stem for path in plain], [path.name for path in plain], list(paths)):
        if len(set(names)) == len(names):
            return names
    raise DocnmtError(f"{max(paths, key=paths.count)}: given twice\n  Give each system once.")


def _first_references(path: str, language: str, document_ids: str, document_starts: str) -> References:
    plain = False
    if document_ids or document_starts:
        # The reader expects two sides: both are this file.
        documents = read_corpus(CorpusFiles("", path, path, document_ids, document_starts))
        rows = [Row(document.id, None, None, (text,)) for document in documents for text in document.target]
    else:
        plain = _format(path) == "text"
        rows = read_rows(path, Want.REFERENCES, language)
    ids = tuple(dict.fromkeys(row.document for row in rows))
    if not ids:
        raise _no_references(path)
    places = {name: place for place, name in enumerate(ids)}
    sources = tuple(row.source for row in rows if row.source is not None)
    return References(
        ids,
        np.array([places[row.document] for row in rows]),
        _versions(rows, path),
        sources if len(sources) == len(rows) else None,
        tuple(row.line or 0 for row in rows) if plain else (),
    )


def _no_references(path: str) -> DocnmtError:
    return DocnmtError(f"{path}: contains no references\n  Choose a file that has them.")


def _aligned_texts(path: str, references: References, language: str, want: Want) -> tuple[tuple[str, ...], ...]:
    """The texts of a file, in the order of the references: one, or several where the file has several versions."""
    if _format(path) == "text":
        return (_aligned_lines(path, references),)
    rows = _aligned_rows(read_rows(path, want, language), path, references)
    _check_sources(rows, path, references.sources)
    return _versions(rows, path)


def _format(path: str) -> str:
    with InputFile(path) as file:
        return scored_format(file)


def _versions(rows: Sequence[Row], path: str) -> tuple[tuple[str, ...], ...]:
    """The translations of all rows, which must all have the same number of them."""
    for row in rows:
        if len(row.targets) != len(rows[0].targets):
            raise BadInput(
                "unequal sides",
                f"expected {len(rows[0].targets)} translations, as in the first document, but found {len(row.targets)}",
                "Give every document the same number, or leave the others out.",
                file=path,
                document=row.document,
                line=row.line,
            )
    return tuple(zip(*(row.targets for row in rows), strict=True))


# ---- Files that name documents ----


def _aligned_rows(rows: Sequence[Row], path: str, references: References) -> list[Row]:
    documents: dict[str, list[Row]] = {}
    for row in rows:
        documents.setdefault(row.document, []).append(row)
    names = list(documents)
    if set(names) != set(references.ids) and (_is_numbered(names) or _is_numbered(references.ids)):
        # A reader numbered documents that had no names: they can only be matched by order.
        if len(names) != len(references.ids):
            raise DocnmtError(f"{path}: expected {len(references.ids):,} documents, found {len(names):,}\n  {_REMEDY}")
        documents = dict(zip(references.ids, documents.values(), strict=True))
    for name, expected in zip(references.ids, references.lengths(), strict=True):
        own = documents.get(name, [])
        if len(own) != expected:
            over = own[expected] if len(own) > expected else own[-1] if own else None
            raise _mismatch(path, name, over.line if over else None, expected, len(own))
    known = set(references.ids)
    for name, own in documents.items():
        if name not in known:
            raise _mismatch(path, name, own[0].line, 0, len(own))
    return [row for name in references.ids for row in documents[name]]


def _check_sources(rows: Sequence[Row], path: str, sources: Sequence[str] | None) -> None:
    """If both files have the source, checks that each translation has the same source as its reference."""
    if sources is None:
        return
    for row, source in zip(rows, sources, strict=True):
        theirs, ours = letters(row.source or ""), letters(source)
        if theirs and ours and theirs != ours:
            found, expected = (shorten(text, 60, placeholder=" …") for text in (row.source or "", source))
            raise BadInput(
                "other source",
                f"the source is {found!r} here, but {expected!r} in the references",
                f"{_REMEDY} If the source text was edited for this system, leave the source column out of its file.",
                file=path,
                document=row.document,
                line=row.line,
            )


def _is_numbered(names: Sequence[str]) -> bool:
    """Whether documents are called `file:1`, `file:2` and so on, as they are if a file does not name them."""
    stem = names[0].rpartition(":")[0] if names else ""
    return list(names) == [f"{stem}:{number}" for number in range(1, len(names) + 1)]


def _mismatch(file: str, document: str, line: int | None, expected: int, found: int, remedy: str = _REMEDY) -> BadInput:
    counts = f"expected {expected:,} sentences, found {found:,}"
    problem = "it is not in the references" if not expected else "it is missing: " + counts if not found else counts
    return BadInput("unequal sides", problem, remedy, file=file, document=document, line=line)


# ---- Plain text ----


def _aligned_lines(path: str, references: References) -> tuple[str, ...]:
    """The lines of plain text that translate the sentences.

    An empty line may separate documents or be an empty translation. So layouts are tried, the surest first: that of the
    references themselves, an empty line between documents, empty lines only (but not all of them) between documents,
    and none at all.
    """
    with InputFile(path) as file:
        lines = [line for _, line in file.numbered_lines(MAX_CHARACTERS)]
    count = len(references)
    starts = {0, *(np.flatnonzero(np.diff(references.documents)) + 1).tolist()}  # the first sentence of each document
    full = [number for number, line in enumerate(lines, 1) if line.strip()]
    between = [number + 1 + int(document) for number, document in enumerate(references.documents)]
    layouts = [references.lines, between]
    if len(full) == count and all(full[i] == full[i - 1] + 1 for i in range(1, count) if i not in starts):
        layouts.append(tuple(full))
    # As many blocks as documents but of other sizes: sentences are missing, not translated as empty lines.
    if len(_blocks(lines)) != len(references.ids) or len(references.ids) == 1:
        layouts.append(range(1, count + 1))
    for layout in layouts:
        if layout and layout[-1] <= len(lines) and set(full) <= set(layout):
            return tuple(lines[number - 1].strip() and lines[number - 1] for number in layout)
    raise _text_mismatch(path, lines, references)


def _blocks(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first line of each run of non-empty lines, and the length of the run."""
    blocks = []
    for is_empty, run in groupby(enumerate(lines, 1), key=lambda numbered: not numbered[1].strip()):
        numbers = [number for number, _ in run]
        if not is_empty:
            blocks.append((numbers[0], len(numbers)))
    return blocks


def _text_mismatch(path: str, lines: Sequence[str], references: References) -> BadInput:
    blocks = _blocks(lines)
    if len(blocks) > 1:
        for name, expected, block in zip_longest(references.ids, references.lengths(), blocks):
            if name is None:
                return _mismatch(path, f"number {len(references.ids) + 1}", block[0], 0, block[1])
            first, found = block or (len(lines), 0)
            if found != expected:
                return _mismatch(path, name, first, expected, found, _EMPTY_REMEDY)
    found = sum(bool(line.strip()) for line in lines)
    last = min(found, len(references) - 1)
    name = references.ids[references.documents[last]]
    problem = f"expected {len(references):,} lines, one for each sentence, found {found:,}"
    return BadInput("unequal sides", problem, _REMEDY, file=path, document=name, line=min(found, len(references)) + 1)
