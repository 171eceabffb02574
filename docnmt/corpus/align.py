"""Aligns two books sentence by sentence: first their chapters, then the sentences of each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.base.report import Table, columns
from docnmt.corpus.align_scores import (
    SKIP,
    Bead,
    ChapterScores,
    Matrix,
    Shape,
    Translations,
    WordTable,
    bags,
    best_beads,
    cognate_key,
    cognates,
    fold,
    sums,
    words_of,
)
from docnmt.document import GAP, ParallelDocument
from docnmt.documents.segment import read_document
from docnmt.text.sentences import split

# ---- Which chapters of two books belong together: by lengths, and by the names and numbers that both have ----

_LARGEST = 4_000  # sentences of a chapter
_SPREAD = 0.15  # standard deviation of the logarithm of two chapters' lengths
# The cost of joining two chapters, or of leaving one out. It is high, so chapters are paired one to one unless another
# pairing fits far better; whether they really are translations is decided by their sentences.
_JOINED, _ALONE = -4.0, -6.0

Chapter = list[str]  # its sentences


class ChapterPair(NamedTuple):
    number: int  # of the source's chapters, from 1
    source: Chapter
    target: Chapter


def align_chapters(source: list[Chapter], target: list[Chapter]) -> list[ChapterPair]:
    """The pairs, in order; a chapter that the other book does not have is left out."""
    for side, chapters in (("source", source), ("target", target)):
        longest = max(chapters, key=len, default=[])
        if len(longest) > _LARGEST:
            raise DocnmtError(
                f"a chapter of the {side} has {len(longest):,} sentences; it begins: {longest[0][:60]!r}\n"
                "  Mark the chapters with headings on lines of their own, such as Chapter 1 or a Roman numeral."
            )
    shared, lengths = _shared_words(source, target), [_lengths(source), _lengths(target)]
    ratio = lengths[1].sum() / max(1.0, lengths[0].sum())
    scores: dict[Shape, Matrix] = {}
    for (a, b), cost in {(1, 1): 0.0, (1, 2): _JOINED, (2, 1): _JOINED}.items():
        if len(source) >= a and len(target) >= b:
            one, other = (sums(side, n) for side, n in zip(lengths, (a, b), strict=True))
            off = np.log(other[None, :] / (ratio * one[:, None])) / _SPREAD
            scores[a, b] = sums(sums(shared, a).T, b).T / max(a, b) - off**2 / 2 + cost
    beads = best_beads(scores, (_ALONE, _ALONE), (len(source), len(target)))
    return [
        ChapterPair(
            bead.source.start + 1,
            [text for i in bead.source for text in source[i]],
            [text for i in bead.target for text in target[i]],
        )
        for bead in beads
        if bead.source and bead.target
    ]


def _shared_words(source: list[Chapter], target: list[Chapter]) -> Matrix:
    """For each pair of chapters: how many more words that begin alike they share than either with other chapters.
    Rare words count more."""
    keys = [[_keys(chapter) for chapter in side] for side in (source, target)]
    often = Counter(key for side in keys for known in side for key in known)
    weights = np.array([math.log((len(source) + len(target)) / count) for count in often.values()])
    ours, theirs = (bags(side, often) for side in keys)
    shared = (ours * weights) @ theirs.T
    usual = (shared.mean(axis=0, keepdims=True) + shared.mean(axis=1, keepdims=True)) / 2
    return np.asarray(shared - usual)


def _keys(chapter: Chapter) -> dict[str, None]:
    """Each once, in order: that of a set, and with it the last digits of sums, is another in every process."""
    return dict.fromkeys(key for text in chapter for word in words_of(text) if (key := cognate_key(word)))


def _lengths(chapters: list[Chapter]) -> Matrix:
    return np.array([sum(map(len, chapter)) for chapter in chapters], dtype=np.float64)


# ---- Two books as chapters of sentences, and their alignment ----

_HEADING = re.compile(
    r"\W*(?:(?:chapitre|chapter|livre|book|partie|part|kapitel|buch|teil|cap[ií]tulo|libro|parte|volume|tome|acte?|scène|"
    r"scene|épilogue|epilogue|prologue|préface|preface)\b.{0,80}|[ivxlc]{1,8}|\d{1,3}|第.{1,8}[章回节部卷].{0,40})\W*",
    re.IGNORECASE,
)
_ROUNDS = 3  # of learning a word table and aligning again
_COGNATES, _LEARNT = (
    0.1,
    0.5,
)  # the share of words that cognates explain, and that a table from very many sentences explains
_MANY = 1_000  # sentences from which half of that is learnt
_ENOUGH = 0.35  # the share of its sentences that must be aligned for a chapter to be accepted
_FITS = 0.1  # nats per word by which a pair must be more probable as a translation than by chance


@dataclass(frozen=True)
class AlignedChapter:
    number: int
    source: Chapter
    target: Chapter
    beads: list[Bead]
    fits: list[float]  # of each bead, in nats per word; 0 for what was left out

    @property
    def share(self) -> float:
        """The share of source sentences in beads that fit."""
        pairs = zip(self.beads, self.fits, strict=True)
        good = sum(len(bead.source) for bead, value in pairs if bead.target and value > _FITS)
        return good / max(1, len(self.source))

    def document(self, name: str) -> ParallelDocument:
        """The aligned sentences; what was left out, on either side, is a gap."""
        sources, targets = [], []
        for bead in self.beads:
            paired = bool(bead.source and bead.target)
            sources.append(" ".join(self.source[i] for i in bead.source) if paired else GAP)
            targets.append(" ".join(self.target[i] for i in bead.target) if paired else GAP)
        return ParallelDocument(f"{name}/chapter-{self.number}", tuple(sources), tuple(targets))


def read_book(data: bytes, name: str, language: str) -> list[Chapter]:
    """The chapters of a file of any supported kind: a heading is the first sentence of its chapter."""
    chapters: list[Chapter] = [[]]
    for segment in read_document(data, name, (language, "")).segments:
        text = " ".join(segment.text.split())
        if _HEADING.fullmatch(text) and any(not _HEADING.fullmatch(sentence) for sentence in chapters[-1]):
            chapters.append([])
        chapters[-1] += [sentence.strip() for sentence in split(text, language) if sentence.strip()]
    if not any(chapters):
        raise DocnmtError(f"{name}: contains no text\n  Give a file with sentences in it.")
    return [chapter for chapter in chapters if chapter]


def align_books(source: list[Chapter], target: list[Chapter], progress: Progress) -> list[AlignedChapter]:
    """Chapters that belong together, then the sentences of each, with words learnt from all of them."""
    pairs = align_chapters(source, target)
    frequencies = Counter(word for chapter in target for text in chapter for word in words_of(text))
    source_length = sum(len(text) for pair in pairs for text in pair.source)
    ratio = sum(len(text) for pair in pairs for text in pair.target) / max(1, source_length)
    scores = [ChapterScores(pair.source, pair.target, frequencies, ratio) for pair in pairs]
    sentences = sum(len(pair.source) for pair in pairs)
    tables: list[Translations] = [cognates]
    trust = _COGNATES
    with progress.bar("align", len(pairs) * (_ROUNDS + 1), "chapters") as tick:
        aligned = [_align(*pair, tables, trust, tick) for pair in zip(pairs, scores, strict=True)]
        trust = max(_COGNATES, _LEARNT * sentences / (sentences + _MANY))
        for _ in range(_ROUNDS):
            tables = [partial(_words_and_cognates, table) for table in _learnt(aligned)]
            aligned = [_align(*pair, tables, trust, tick) for pair in zip(pairs, scores, strict=True)]
    return aligned


def _align(
    pair: ChapterPair, scores: ChapterScores, tables: Sequence[Translations], trust: float, tick: Callable[[], Any]
) -> AlignedChapter:
    matrices = scores.matrices(tables, trust)
    skip = math.log(SKIP)
    beads = best_beads(matrices, (skip, skip), (len(pair.source), len(pair.target)))
    fits = []
    for bead in beads:
        shape = len(bead.source), len(bead.target)
        value = matrices[shape][bead.source.start, bead.target.start] if shape in matrices else 0.0
        fits.append(float(value) / max(1.0, scores.words_in(bead.target)))
    tick()
    return AlignedChapter(*pair, beads, fits)


def _learnt(aligned: Sequence[AlignedChapter]) -> list[WordTable]:
    """Two word tables, each learnt from the beads that the other will score. A table explains its own training data too
    well: two unrelated books would seem to fit."""
    parts: list[list[tuple[list[str], list[str]]]] = [[], []]
    for chapter in aligned:
        for bead in chapter.beads:
            if bead.source and bead.target:
                source = [word for i in bead.source for word in words_of(chapter.source[i])]
                target = [word for i in bead.target for word in words_of(chapter.target[i])]
                parts[int(fold(np.array([bead.source.start]), 2)[0])].append((source, target))
    return [WordTable(pairs) for pairs in reversed(parts)]


def _words_and_cognates(table: WordTable, source: Sequence[str], target: Sequence[str]) -> Matrix:
    """Names that are not in the table are still recognised as cognates."""
    return np.maximum(table.matrix(source, target)[1:], cognates(source, target))


def good_chapters(aligned: Sequence[AlignedChapter], names: tuple[str, str]) -> list[AlignedChapter]:
    """The chapters that align; an error if most do not."""
    good = [chapter for chapter in aligned if chapter.share >= _ENOUGH]
    if 2 * len(good) < len(aligned) or not good:
        worst = min(aligned, key=lambda chapter: chapter.share, default=None)
        where = f"; worst is chapter {worst.number}: {100 * worst.share:.0f} % of its sentences" if worst else ""
        raise DocnmtError(
            f"{names[0]} and {names[1]}: only {len(good)} of {len(aligned)} chapters align{where}\n"
            "  Give the same complete text in two languages, with its chapters marked in both."
        )
    return good


def alignment_table(
    source: list[Chapter], target: list[Chapter], aligned: Sequence[AlignedChapter], good: Sequence[AlignedChapter]
) -> Table:
    """A row per chapter: its sentences, how many were aligned, and whether it was accepted."""
    headings = ("chapter", "source", "target", "pairs", "left out", "fit")
    table = Table("Aligned chapters", columns(*headings))
    for chapter in aligned:
        pairs = sum(bool(bead.source and bead.target) for bead in chapter.beads)
        taken = any(chapter is other for other in good)
        figures = {
            "chapter": chapter.number,
            "source": len(chapter.source),
            "target": len(chapter.target),
            "pairs": pairs,
            "left_out": len(chapter.beads) - pairs,
            "fit": chapter.share,
            "taken": taken,
        }
        table.figures.append(figures)
        counts = [f"{figures[name]:,}" for name in ("source", "target", "pairs", "left_out")]
        name = f"{chapter.number}: {chapter.source[0][:40]}"
        table.add(name if taken else f"{name} (rejected)", *counts, f"{100 * chapter.share:.0f} %")
    table.notes.append(
        f"Of {len(source):,} and {len(target):,} chapters, {len(good):,} are accepted. Fit: source sentences whose "
        f"words make their translation probable; a chapter below {100 * _ENOUGH:.0f} % is rejected."
    )
    return table
