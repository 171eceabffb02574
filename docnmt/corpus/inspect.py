"""What is in a corpus: sizes, lengths, duplicates and contexts; and where it differs from the paper's."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from docnmt.base.report import Column, Table, columns
from docnmt.config import one_of
from docnmt.document import NO_CONTEXT, ContextSpec, ParallelDocument, context_sentences, visible_positions
from docnmt.text import scripts

EXAMPLES = 3
# A document must have this many sentences to serve as an example.
EXAMPLE_LENGTH = 3

UNSPACED = re.compile(f"[{scripts.UNSPACED}]")
_UNSPACED_PUNCTUATION = re.compile(f"[{scripts.CJK_PUNCTUATION}]")


def count_words(sentence: str) -> int:
    """Words separated by spaces; in scripts without spaces every character except punctuation counts."""
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
        lengths = sorted(histogram)
        reached = [*accumulate(histogram[length] for length in lengths)]  # how many are no longer than each
        count = reached[-1]
        median, percentile_95 = (lengths[bisect_left(reached, -(-count * percent // 100))] for percent in (50, 95))
        return cls(lengths[0], median, _sum(histogram) / count, percentile_95, lengths[-1])


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
    gaps: int  # positions in documents without a sentence pair
    source_words: int
    target_words: int
    source_lengths: Lengths
    target_lengths: Lengths
    document_lengths: Lengths
    repeated_pairs: int  # pairs that occurred earlier in the corpus, word for word
    repeated_sources: int
    context: ContextSpec
    with_context: float  # share of sentences with at least one context sentence
    with_full_context: float
    examples: tuple[Example, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def text_hash(text: str) -> bytes:
    """A short hash; among millions of texts two different ones hardly ever share it."""
    return blake2b(text.encode(), digest_size=8).digest()


def inspect(documents: Iterable[ParallelDocument], spec: ContextSpec) -> Inspection:
    """One pass over the documents; only histograms, hashes and a few examples are kept of them."""
    source_words: Counter[int] = Counter()
    target_words: Counter[int] = Counter()
    lengths: Counter[int] = Counter()
    contexts: Counter[int] = Counter()
    pairs: set[bytes] = set()
    sources: set[bytes] = set()
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
            sources.add(text_hash(source))
            pairs.add(text_hash(f"{source}\n{target}"))
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
        repeated_pairs=sentences - len(pairs),
        repeated_sources=sentences - len(sources),
        context=spec,
        with_context=_share(sentences - contexts[0], sentences),
        with_full_context=0.0 if spec == NO_CONTEXT else _share(contexts[spec.previous + spec.following], sentences),
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


# ---- For people; `Inspection.as_dict` is for programs ----


def print_inspection(console: Console, inspection: Inspection) -> None:
    console.print(_sizes(inspection))
    console.print(_lengths(inspection))
    for number, example in enumerate(inspection.examples, 1):
        console.print()
        console.print(_example(number, example, inspection.context))


def _sizes(found: Inspection) -> RichTable:
    def share(part: int) -> str:
        return f"{_share(part, found.sentences):.1%}"

    window = f"{found.context.previous} before, {found.context.following} after"
    rows = [
        ("documents", f"{found.documents:,}", ""),
        ("sentence pairs", f"{found.sentences:,}", ""),
        ("gaps", f"{found.gaps:,}", "positions without a pair, which contexts count"),
        ("source words", f"{found.source_words:,}", "characters in scripts without spaces"),
        ("target words", f"{found.target_words:,}", ""),
        ("repeated pairs", f"{found.repeated_pairs:,}", share(found.repeated_pairs)),
        ("repeated sources", f"{found.repeated_sources:,}", share(found.repeated_sources)),
        ("with context", f"{found.with_context:.1%}", f"of sentences ({window})"),
        ("with full context", f"{found.with_full_context:.1%}", "of sentences"),
    ]
    table = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in rows:
        if row[0] != "gaps" or found.gaps:
            table.add_row(*row)
    return table


def _lengths(inspection: Inspection) -> RichTable:
    table = RichTable(title="lengths", title_justify="left")
    table.add_column("")
    for heading in ("min", "median", "mean", "95 %", "max"):
        table.add_column(heading, justify="right")
    rows = {
        "words per source sentence": inspection.source_lengths,
        "words per target sentence": inspection.target_lengths,
        "sentences per document": inspection.document_lengths,
    }
    for name, lengths in rows.items():
        table.add_row(name, *(f"{n:.1f}" if isinstance(n, float) else f"{n:,}" for n in astuple(lengths)))
    return table


def _example(number: int, example: Example, spec: ContextSpec) -> RichTable:
    title = Text(f"example {number}: {example.document}, sentence {example.position + 1}", style="italic")
    table = RichTable(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    # Text, not markup: a sentence may contain square brackets.
    table.add_column(overflow="fold")
    before = min(spec.previous, example.position)
    for index, sentence in enumerate(example.context):
        table.add_row("before" if index < before else "after", Text(sentence, style="dim"))
    table.add_row("source", Text(example.source))
    table.add_row("target", Text(example.target))
    return table


def sizes_table(found: Mapping[str, Inspection]) -> Table:
    """Several corpora, one per row."""
    names = ("documents", "sentence pairs", "sentences per document", "source words", "target words", "with context")
    table = Table("Corpora", columns("corpus", *names))
    for name, each in found.items():
        words = f"{each.source_words:,}", f"{each.target_words:,}"
        mean, share = f"{each.document_lengths.mean:.1f}", f"{each.with_context:.1%}"
        table.add(name, f"{each.documents:,}", f"{each.sentences:,}", mean, *words, share)
    return table


# ---- Comparison with the paper's corpora, to see where data obtained for its recipes differs ----


@dataclass(frozen=True)
class Expected:
    """Figures as the paper prints them: a figure agrees if it would be printed the same way."""

    documents: str
    pairs: str
    mean: str = ""  # sentences per document


# Zhang et al. (2018), section 3.1.
PAPER: dict[str, dict[str, Expected]] = {
    "zh-en": {"documents": Expected("41K", "940K", "22.9"), "dev and test": Expected("588", "5,833")},
    "fr-en": {
        "documents": Expected("1,824", "220K"),
        "dev": Expected("8", "887"),
        "test": Expected("11", "1,664"),
    },
}
# The names for a single corpus: the language pair, and the part unless it is the training documents.
NAMES = {
    pair if part == "documents" else f"{pair}-{part.replace(' and ', '-')}": expected
    for pair, parts in PAPER.items()
    for part, expected in parts.items()
}


def expected_of(name: str) -> Expected:
    one_of("--expect", name, tuple(NAMES))
    return NAMES[name]


def agrees(found: float, printed: str) -> bool:
    """Whether a figure, rounded to as many digits as are printed, is the printed one."""
    number, unit = _parsed(printed)
    return abs(found - number) <= unit / 2


def _parsed(printed: str) -> tuple[float, float]:
    """The number, and the unit of its last significant digit: ten thousand for 940K."""
    digits = printed.removesuffix("K").replace(",", "")
    if "." in digits:
        return float(digits), 10.0 ** -len(digits.partition(".")[2])
    if not printed.endswith("K"):
        return int(digits), 1
    return 1000 * int(digits), 1000 * 10 ** (len(digits) - len(digits.rstrip("0")))


def comparison(found: Mapping[str, Inspection], expected: Mapping[str, Expected]) -> Table:
    """Each figure next to the paper's."""
    heads = (*columns("corpus", "figure", "here", text=2), Column("paper", paper=True), Column("", text=True))
    table = Table("Compared with the paper's data", heads)
    for part, wanted in expected.items():
        inspection = found[part]
        figures = (
            ("documents", inspection.documents, wanted.documents),
            ("sentence pairs", inspection.sentences, wanted.pairs),
            ("sentences per document", inspection.document_lengths.mean, wanted.mean),
        )
        for name, here, printed in figures:
            if not printed:
                continue
            number, same = _parsed(printed)[0], agrees(here, printed)
            off = f"{here - number:+,.{1 if '.' in printed else 0}f} ({(here - number) / number:+.1%})"
            told = f"{here:,.1f}" if isinstance(here, float) else f"{here:,}"
            table.add(part, name, told, printed, "as in the paper" if same else f"differs: {off}")
            table.figures.append({"corpus": part, "figure": name, "here": here, "agrees": same})
    if any(not figure["agrees"] for figure in table.figures):
        table.notes.append("docs/corpora.md describes the paper's data and the usual causes of differences.")
    return table
