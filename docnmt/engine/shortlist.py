"""A vocabulary shortlist: the target pieces that a source sentence may need; the softmax computes only these."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from docnmt.base.errors import DocnmtError
from docnmt.base.files import regular_file, write_atomically
from docnmt.data.subwords import Subwords, Vocabulary
from docnmt.document import ParallelDocument

if TYPE_CHECKING:
    from docnmt.base.progress import Progress

# ---- Sentence pairs as token ids in memory ----

SENTENCES_AT_ONCE = 8192  # encoded together
MOST = 300_000  # more pairs add little and take longer

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """One language's sentences, one after another."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Collection[Sequence[int]]) -> Side:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), np.int32, int(lengths.sum())), lengths)

    @classmethod
    def encoded(cls, texts: Sequence[str], subwords: Subwords) -> Side:
        blocks = (texts[i : i + SENTENCES_AT_ONCE] for i in range(0, len(texts), SENTENCES_AT_ONCE))
        return cls.joined([cls.of([]), *(cls.of(subwords.encode(block, os.cpu_count() or 1)) for block in blocks)])

    @classmethod
    def joined(cls, sides: Sequence[Side]) -> Side:
        return cls(np.concatenate([side.tokens for side in sides]), np.concatenate([side.lengths for side in sides]))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return self.lengths.cumsum() - self.lengths

    def sentences(self) -> list[NDArray[np.int32]]:
        return np.split(self.tokens, self.lengths.cumsum())[:-1]


@dataclass(frozen=True)
class TrainingPairs:
    source: Side
    target: Side
    out_of: int  # how many there were; these may be a sample of them

    @classmethod
    def read(
        cls, documents: Iterable[ParallelDocument], source: Subwords, target: Subwords, most: int = MOST
    ) -> TrainingPairs:
        texts, count = evenly(((d.source[i], d.target[i]) for d in documents for i in d.filled), most)
        return cls(Side.encoded([s for s, _ in texts], source), Side.encoded([t for _, t in texts], target), count)

    def __len__(self) -> int:
        return len(self.source)

    def __str__(self) -> str:
        sampled = f", taken evenly from {self.out_of:,}" if self.out_of > len(self) else ""
        return f"{len(self):,} sentence pairs{sampled}"


def runs(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... of each run, one run after another."""
    before = lengths.cumsum() - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def evenly(items: Iterable[T], most: int) -> tuple[list[T], int]:
    """At most this many of the items, evenly spaced, and how many there were."""
    kept: list[T] = []
    step = 1
    count = 0
    for item in items:
        if count % step == 0:
            kept.append(item)
            if len(kept) > most:
                del kept[1::2]
                step *= 2
        count += 1
    return kept, count


# ---- How pieces are translated ----

# Model 1 of Brown et al. (1993), "The Mathematics of Statistical Machine Translation".
# Each target piece e of a pair comes from one of its source pieces f, or from an empty one that every pair has:
#     count(e, f) = sum over the pairs, over each e and f in them, of t(e | f) / sum over f' in the pair of t(e | f')
#     t(e | f) = count(e, f) / sum over e' of count(e', f)
# iterated, with all t equal at first. The counts of a target piece do not depend on those of another. So a block of
# target pieces is taken at a time: only a block has a table of all combinations, the others keep those that occur.

ROUNDS = 5
LEAST_PROBABILITY = 1e-4  # less probable translations are left out
BLOCK = 1 << 21  # combinations in a table
CHUNK = 1 << 21  # links, of a target piece to a source piece of its pair, that are processed together

Ids = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Lexicon:
    """t(target | source): a combination has the same place in all three."""

    source: Ids
    target: Ids
    probability: Floats

    def best(self, count: int, without: NDArray) -> tuple[Ids, Ids]:
        """Each source piece with its `count` most probable target pieces, not counting those in `without`."""
        left = ~np.isin(self.target, without)
        source, target = self.source[left], self.target[left]
        order = np.lexsort((target, -self.probability[left], source))
        source, target = source[order], target[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        return source[rank < count], target[rank < count]


def learn_lexicon(
    pairs: TrainingPairs, progress: Progress, rounds: int = ROUNDS, least: float = LEAST_PROBABILITY
) -> Lexicon:
    """What is less probable than `least` is left out."""
    empty = int(pairs.source.tokens.max(initial=-1)) + 1
    width = empty + 1
    source = Side(np.insert(pairs.source.tokens, pairs.source.lengths.cumsum(), empty), pairs.source.lengths + 1)
    blocks = [_Block(source, width, *found) for found in _occurrences(pairs.target, max(1, BLOCK // width))]
    totals = np.zeros(width)
    with progress.bar("align", rounds * len(pairs.target.tokens), "pieces") as advance:
        for _ in range(rounds):
            sums = np.zeros(width)
            for block in blocks:
                block.count(totals)
                sums += np.bincount(block.combinations % width, block.counts, minlength=width)
                advance(len(block.rows))
            totals = sums
    found = [block.probabilities(totals, least) for block in blocks]
    return Lexicon(*map(np.concatenate, zip(*found, strict=True)))


def _occurrences(target: Side, height: int) -> Iterator[tuple[int, Ids, Ids]]:
    """For each `height` target pieces the first of them, and which of them occur in which pairs, in order."""
    order = np.argsort(target.tokens, kind="stable")
    pieces = target.tokens[order]
    pairs = np.repeat(np.arange(len(target), dtype=np.int32), target.lengths)[order]
    for first in range(0, int(pieces.max(initial=0)) + 1, height):
        start, end = np.searchsorted(pieces, (first, first + height))
        yield first, pieces[start:end] - first, pairs[start:end]


class _Block:
    """Some target pieces, a row of a table each, and what was counted for them in the last round."""

    def __init__(self, source: Side, width: int, first: int, rows: Ids, pairs: Ids):
        self.source, self.width = source, width
        self.first, self.rows, self.pairs = first, rows, pairs
        self.size = (int(rows.max(initial=-1)) + 1) * width
        self.combinations = np.empty(0, np.int32)  # that occur: row * width + source piece
        self.counts = np.empty(0, np.float32)

    def count(self, totals: NDArray[np.float64]) -> None:
        """One round; `totals` are the sums of all blocks' counts by source piece, from the round before."""
        first_round = not len(self.combinations)
        table = np.full(self.size, float(first_round), np.float32)
        table[self.combinations] = self.counts / totals[self.combinations % self.width]
        counts = np.zeros(self.size)
        for chunk in self._chunks():
            pairs = self.pairs[chunk]
            lengths = self.source.lengths[pairs]
            links = self.source.tokens[runs(self.source.starts[pairs], lengths)]
            links += np.repeat(self.rows[chunk] * np.int32(self.width), lengths)
            share = table[links]
            share /= np.repeat(np.add.reduceat(share, lengths.cumsum() - lengths), lengths)
            counts += np.bincount(links, share, minlength=self.size)
        if first_round:
            self.combinations = np.flatnonzero(counts).astype(np.int32)
        self.counts = counts[self.combinations].astype(np.float32)

    def _chunks(self) -> Iterator[slice]:
        """Runs of occurrences with about CHUNK links."""
        links = self.source.lengths[self.pairs].cumsum()
        ends = np.unique(np.searchsorted(links, np.arange(CHUNK, links.max(initial=0) + CHUNK, CHUNK)) + 1)
        yield from map(slice, [0, *ends[:-1]], ends)

    def probabilities(self, totals: NDArray[np.float64], least: float) -> tuple[Ids, Ids, Floats]:
        """Source pieces, target pieces and t, without the empty source piece."""
        rows, source = np.divmod(self.combinations, np.int32(self.width))
        probability = (self.counts / totals[source]).astype(np.float32)
        kept = (probability >= least) & (source < self.width - 1)
        return source[kept], rows[kept] + np.int32(self.first), probability[kept]


# ---- The shortlist ----

# The most frequent pieces; and for each source piece its most probable translations, learnt from
# the training pairs, and the pieces that copy it letter by letter. The context's words add nothing:
# a context decides which of a word's own translations to take, and some more of these cover more
# than the context's words would.

FILE = "shortlist.safetensors"
FREQUENT = 500  # pieces that every sentence may use
CANDIDATES = 20  # further translations of a source piece


class Shortlist:
    """`always`: the pieces that every sentence may use; row f of `lexicon`: those that source piece
    f adds. Shorter rows are filled with pieces of their own or of `always`."""

    def __init__(self, always: NDArray, lexicon: NDArray):
        self.always, self.lexicon = always.astype(np.int32), lexicon.astype(np.int32)

    def candidates(self, source: Sequence[int] | NDArray) -> NDArray[np.int64]:
        """The target pieces for a source sentence, in the order of their ids."""
        return np.unique(np.concatenate([self.always, self.lexicon[source].ravel()])).astype(np.int64)

    def write(self, folder: Path) -> None:
        """Into a model folder."""
        # One note: the order of several would differ from file to file.
        note = f"{subwords_key(folder)} {_digest(self.always, self.lexicon)}"
        content = save({"always": self.always, "lexicon": self.lexicon}, {"subwords": note})
        with write_atomically(folder / FILE, binary=True) as file:
            file.write(content)

    @classmethod
    def read(cls, folder: Path, source: Subwords, target: Subwords) -> Shortlist | None:
        """The shortlist of a model folder with these subwords; None if it has none."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            with safe_open(regular_file(path), "numpy") as file:
                key, _, digest = (file.metadata() or {}).get("subwords", "").partition(" ")
                always, lexicon = (file.get_tensor(name) for name in ("always", "lexicon"))
        except (OSError, SafetensorError, TypeError) as error:
            raise DocnmtError(f"{path}: damaged ({error})\n  Run docnmt shortlist again, or delete the file.") from None
        if key != subwords_key(folder):
            raise DocnmtError(
                f"{path}: this shortlist was made for other subwords than the model's\n"
                "  Run docnmt shortlist for this model, or delete the file."
            )
        problem = _problem(always, lexicon, source, target)
        if not problem and digest not in ("", _digest(always, lexicon)):  # older files have none
            problem = "its SHA-256 differs"
        if problem:
            raise DocnmtError(f"{path}: damaged ({problem})\n  Run docnmt shortlist again, or delete the file.")
        return cls(always, lexicon)


def _digest(*tables: NDArray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(table).tobytes() for table in tables)).hexdigest()


def _problem(always: NDArray, lexicon: NDArray, source: Subwords, target: Subwords) -> str:
    """Why these tables are not a shortlist for these subwords; empty if they are."""
    if always.dtype != np.int32 or lexicon.dtype != np.int32 or (always.ndim, lexicon.ndim) != (1, 2):
        return f"tables of {always.dtype} {list(always.shape)} and {lexicon.dtype} {list(lexicon.shape)}"
    if len(lexicon) != len(source):
        return f"{len(lexicon):,} source pieces, but the model has {len(source):,}"
    for table in (always, lexicon):
        if table.size and not 0 <= table.min() <= table.max() < len(target):
            return (
                f"piece {table.min() if table.min() < 0 else table.max():,} is not one of {len(target):,} target pieces"
            )
    return "" if target.eos in always else "the end mark is missing, so sentences could not end"


def subwords_key(folder: Path) -> str:
    """A hash of a model folder's subwords."""
    models = [folder / f"{side}.spm" for side in ("source", "target")]
    files = [path for model in models for path in (model, Vocabulary.path(model)) if path == model or path.exists()]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def make_shortlist(
    lexicon: Lexicon,
    pairs: TrainingPairs,
    source: Subwords,
    target: Subwords,
    frequent: int = FREQUENT,
    candidates: int = CANDIDATES,
) -> Shortlist:
    counts = np.bincount(pairs.target.tokens, minlength=len(target))
    counts[target.eos] = len(pairs.target.tokens) + 1  # every sentence ends
    order = np.argsort(-counts, kind="stable")[: max(1, frequent)]
    always = order[counts[order] > 0]
    copies = [(f, e) for f, spelt in enumerate(_spelt(source, target)) for e in spelt]
    added = np.stack(lexicon.best(candidates, always), axis=1)
    added = np.concatenate([added, np.array(copies, np.int32).reshape(-1, 2)])
    added = np.unique(added[~np.isin(added[:, 1], always)], axis=0)
    place = np.arange(len(added)) - np.searchsorted(added[:, 0], added[:, 0])
    rows = np.full((len(source), 1 + place.max(initial=-1)), target.eos)
    rows[added[:, 0], place] = added[:, 1]
    return Shortlist(always, rows)


def _spelt(source: Subwords, target: Subwords) -> Iterator[list[int]]:
    """For each source piece the target pieces that write the same text: one if there is one, else the
    longest that fit, and finally bytes."""
    # Bytes come before letters in a vocabulary: if both write the same, the letter stays.
    ids = {text: piece for piece, text in enumerate(target.written()) if text}
    for text in source.written():
        spelt = []
        while text:
            size = next((n for n in range(len(text), 0, -1) if text[:n] in ids), 0)
            spelt += [ids[text[:size]]] if size else []
            text = text[size or 1 :]
        yield spelt


# ---- What a shortlist leaves out: how many pieces of given translations are candidates of their sources ----

BATCH = 32  # sentences, whose candidates are scored together


@dataclass(frozen=True)
class Coverage:
    covered: float  # share of the translations' pieces
    size: float  # candidates of a sentence, on average
    together: float  # of BATCH sentences


def coverage(shortlist: Shortlist, pairs: TrainingPairs) -> Coverage:
    """In batches of sentences of similar length, as in translation."""
    if not len(pairs.target.tokens):
        raise DocnmtError(
            "the corpus for testing the shortlist has no translations\n  Give a corpus with sentence pairs."
        )
    candidates = [shortlist.candidates(source) for source in pairs.source.sentences()]
    covered = sum(
        int(np.isin(target, own).sum()) for target, own in zip(pairs.target.sentences(), candidates, strict=True)
    )
    order = np.argsort(pairs.source.lengths, kind="stable")
    groups = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    together = [len(np.unique(np.concatenate([candidates[i] for i in group]))) for group in groups]
    return Coverage(
        covered / len(pairs.target.tokens), float(np.mean([*map(len, candidates)])), float(np.mean(together))
    )
