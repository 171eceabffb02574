"""What is in a corpus: sizes, lengths, duplicates, and the context its sentences get."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from docnmt.base import report
from docnmt.document import ContextSpec, ParallelDocument, context_sentences, visible_positions
from docnmt.text import scripts

EXAMPLES = 3
# A document must have this many sentences to serve as an example.
EXAMPLE_LENGTH = 3

UNSPACED = re.compile(f"[{scripts.UNSPACED}]")
_UNSPACED_PUNCTUATION = re.compile(f"[{scripts.CJK_PUNCTUATION}]")


def count_words(sentence: str) -> int:
    """Words between spaces; in scripts without spaces every character counts, their punctuation aside."""
    if sentence.isascii():
        return len(sentence.split())
    rest, characters = UNSPACED.subn(" ", sentence)
    if characters:
        rest = _UNSPACED_PUNCTUATION.sub(" ", rest)
    return characters + len(rest.split())


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths."""

    minimum: int
    median: int
    mean: float
    percentile_95: int
    maximum: int

    @classmethod
    def of(cls, histogram: Counter[int]) -> Lengths:
        if not histogram:
            return cls(0, 0, 0.0, 0, 0)
        count = histogram.total()
        total = sum(length * times for length, times in histogram.items())
        return cls(
            minimum=min(histogram),
            median=_percentile(histogram, count, 50),
            mean=total / count,
            percentile_95=_percentile(histogram, count, 95),
            maximum=max(histogram),
        )


def _percentile(histogram: Counter[int], count: int, percent: int) -> int:
    """The smallest length that at least `percent` of all are not longer than."""
    reached = 0
    for length in sorted(histogram):
        reached += histogram[length]
        if reached * 100 >= count * percent:
            return length
    raise AssertionError("a histogram adds up to its count")


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence as the model sees it."""

    document: str
    position: int
    context: tuple[str, ...]
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Inspection:
    documents: int
    sentences: int
    gaps: int  # places in documents whose sentences are not there
    source_words: int
    target_words: int
    source_lengths: Lengths
    target_lengths: Lengths
    document_lengths: Lengths
    repeated_pairs: int  # pairs that stood in the corpus before, word for word
    repeated_sources: int
    context: ContextSpec
    with_context: float  # share of sentences with at least one context sentence
    with_full_context: float
    examples: tuple[Example, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class _Repeats:
    """Counts what was met before, by 8-byte hashes; two different texts out of millions hardly ever share one."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._met = 0

    def add(self, text: str) -> None:
        self._met += 1
        self._hashes.add(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little"))

    def count(self) -> int:
        return self._met - len(self._hashes)


def inspect(documents: Iterable[ParallelDocument], spec: ContextSpec) -> Inspection:
    """One pass over the documents; only histograms, hashes and a few examples are kept of them."""
    source_words: Counter[int] = Counter()
    target_words: Counter[int] = Counter()
    lengths: Counter[int] = Counter()
    contexts: Counter[int] = Counter()
    pairs, sources = _Repeats(), _Repeats()
    samples: list[ParallelDocument] = []
    gaps = 0
    for document in documents:
        filled = document.filled
        gaps += len(document) - len(filled)
        lengths[len(filled)] += 1
        contexts.update(len(visible_positions(document.source, i, spec)) for i in filled)
        for source, target in ((document.source[i], document.target[i]) for i in filled):
            source_words[count_words(source)] += 1
            target_words[count_words(target)] += 1
            sources.add(source)
            pairs.add(f"{source}\n{target}")
        if len(samples) < EXAMPLES and len(filled) >= EXAMPLE_LENGTH:
            samples.append(document)
    sentences = contexts.total()
    return Inspection(
        documents=lengths.total(),
        sentences=sentences,
        gaps=gaps,
        source_words=_sum(source_words),
        target_words=_sum(target_words),
        source_lengths=Lengths.of(source_words),
        target_lengths=Lengths.of(target_words),
        document_lengths=Lengths.of(lengths),
        repeated_pairs=pairs.count(),
        repeated_sources=sources.count(),
        context=spec,
        with_context=_share(sentences - contexts[0], sentences),
        with_full_context=_share(contexts[spec.previous + spec.following], sentences)
        if spec != ContextSpec(0, 0)
        else 0.0,
        examples=_examples(samples, spec),
    )


def _sum(histogram: Counter[int]) -> int:
    return sum(length * times for length, times in histogram.items())


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _examples(samples: list[ParallelDocument], spec: ContextSpec) -> tuple[Example, ...]:
    """Sentences a quarter, half and three quarters through the sample documents, taken in turn."""
    examples = []
    for turn in range(EXAMPLES if samples else 0):
        document = samples[turn % len(samples)]
        position = document.filled[(turn + 1) * len(document.filled) // (EXAMPLES + 1)]
        context = context_sentences(document.source, position, spec)
        examples.append(Example(document.id, position, context, document.source[position], document.target[position]))
    return tuple(examples)


def print_inspection(console: Console, inspection: Inspection) -> None:
    """For people; `Inspection.as_dict` is for programs."""
    console.print(_sizes(inspection))
    console.print(_lengths(inspection))
    for number, example in enumerate(inspection.examples, 1):
        console.print()
        console.print(_example(number, example, inspection.context))


def sizes_table(found: Mapping[str, Inspection]) -> report.Table:
    """Several corpora, a line each."""
    names = ("documents", "sentence pairs", "sentences a document", "source words", "target words", "with context")
    table = report.Table("Corpora", [report.Column("corpus", text=True), *map(report.Column, names)])
    for name, each in found.items():
        words = f"{each.source_words:,}", f"{each.target_words:,}"
        mean, share = f"{each.document_lengths.mean:.1f}", f"{each.with_context:.1%}"
        table.add(name, f"{each.documents:,}", f"{each.sentences:,}", mean, *words, share)
    return table


def _sizes(inspection: Inspection) -> Table:
    context = inspection.context
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    total = inspection.sentences
    table.add_row("documents", f"{inspection.documents:,}", "")
    table.add_row("sentence pairs", f"{total:,}", "")
    if inspection.gaps:
        table.add_row("gaps", f"{inspection.gaps:,}", "places without a pair, which contexts know of")
    table.add_row("source words", f"{inspection.source_words:,}", "characters where there are no spaces")
    table.add_row("target words", f"{inspection.target_words:,}", "")
    repeated = inspection.repeated_pairs, inspection.repeated_sources
    table.add_row("repeated pairs", f"{repeated[0]:,}", f"{_share(repeated[0], total):.1%}")
    table.add_row("repeated sources", f"{repeated[1]:,}", f"{_share(repeated[1], total):.1%}")
    wanted = f"{context.previous} before, {context.following} after"
    table.add_row("with context", f"{inspection.with_context:.1%}", f"of sentences ({wanted})")
    table.add_row("with full context", f"{inspection.with_full_context:.1%}", "of sentences")
    return table


def _lengths(inspection: Inspection) -> Table:
    table = Table(title="lengths", title_justify="left")
    table.add_column("")
    for heading in ("min", "median", "mean", "95 %", "max"):
        table.add_column(heading, justify="right")
    rows = (
        ("words a source sentence", inspection.source_lengths),
        ("words a target sentence", inspection.target_lengths),
        ("sentences a document", inspection.document_lengths),
    )
    for name, lengths in rows:
        whole = (f"{n:,}" for n in (lengths.percentile_95, lengths.maximum))
        table.add_row(name, f"{lengths.minimum:,}", f"{lengths.median:,}", f"{lengths.mean:.1f}", *whole)
    return table


def _example(number: int, example: Example, spec: ContextSpec) -> Table:
    title = Text(f"example {number}: {example.document}, sentence {example.position + 1}", style="italic")
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    # Text, not markup: a sentence may hold square brackets.
    table.add_column(overflow="fold")
    before = min(spec.previous, example.position)
    for index, sentence in enumerate(example.context):
        table.add_row("before" if index < before else "after", Text(sentence, style="dim"))
    table.add_row("source", Text(example.source))
    table.add_row("target", Text(example.target))
    return table
