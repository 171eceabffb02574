"""What there is to gain from the sentences before: what a plain cache of their translations adds to a model.

    python benchmarks/context_worth.py MODEL DEV TEST [--previous 2] [--domains NAME=ID,... ...]

Where a document model hardly gains from context, either there is little to be had or it has not learnt to take it.
This tells without training anything. Beside the model's probability of a piece stand two of a cache: the share of the
piece among all pieces of the translations before (p_words), and its share after the piece just written, where that
stands in them (p_next):

    p = (1 - a - b) p_model + a p_words + b p_next          a and b are chosen on DEV

The cache holds the reference's translations, the model's own, or, as a control, those of another document. It knows
repetition alone, neither pronouns nor senses, and it sees the target side, which the paper's model does not.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.corpus.read import read_corpus
from docnmt.decoding.translator import Translator, load
from docnmt.document import ContextSpec, Document, ParallelDocument, visible_positions
from docnmt.evaluation.metrics import Mean
from docnmt.evaluation.scores import by_domain
from docnmt.evaluation.significance import interval
from docnmt.evaluation.test_sets import shuffled

Floats = NDArray[np.float64]
SHARES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # to choose a and b from
BEGIN = ""  # the piece before the first


class Scored:
    """Documents with the probability of each target piece: the model's, and those of every cache."""

    def __init__(self, translator: Translator, documents: Sequence[ParallelDocument], spec: ContextSpec):
        self.ids = [document.id for document in documents]
        scores = list(translator.score(documents))
        self.document = np.repeat(np.arange(len(scores)), [sum(len(s.pieces) for s in each) for each in scores])
        self.model = np.exp([p for each in scores for score in each for p in score.log_probabilities])
        written = [[score.pieces for score in each] for each in scores]
        self.caches: dict[str, tuple[Floats, ...]] = {}
        for name, remembered in (
            ("the reference's translations", documents),
            ("the model's own translations", translated(translator, documents)),
            ("those of another document", shuffled(documents, seed=1)),
        ):
            rows = [
                row
                for document, pieces in zip(remembered, written, strict=True)
                for row in cached(translator, document, pieces, spec)
            ]
            self.caches[name] = tuple(np.array(column) for column in zip(*rows, strict=True))

    def gains(self, cache: str, a: float, b: float) -> Floats:
        """Of each piece, in nats."""
        p_words, p_next, any_words, any_next = self.caches[cache]
        a_here, b_here = a * any_words, b * any_next
        mixed = (1 - a_here - b_here) * self.model + a_here * p_words + b_here * p_next
        return np.log(mixed / self.model)


def translated(translator: Translator, documents: Sequence[ParallelDocument]) -> list[ParallelDocument]:
    sources = [Document(document.id, document.source) for document in documents]
    found = Progress().track(translator.translate_documents(sources), "translate", total=len(sources), unit="documents")
    return [
        ParallelDocument(document.id, document.source, tuple(sentence.text for sentence in result.sentences))
        for document, result in zip(documents, found, strict=True)
    ]


def cached(
    translator: Translator, remembered: ParallelDocument, written: Sequence[Sequence[str]], spec: ContextSpec
) -> list[tuple[float, float, bool, bool]]:
    """For each piece of a document p_words and p_next, and whether the cache has anything to say."""
    target = translator.target
    known = [[BEGIN, *target.pieces([*ids, target.eos])] for ids in target.encode(remembered.target)]
    rows = []
    for position, pieces in enumerate(written):
        before = [known[i] for i in visible_positions(remembered.source, position, spec)]
        words = Counter(piece for sentence in before for piece in sentence[1:])
        pairs = Counter(pair for sentence in before for pair in pairwise(sentence))
        firsts = Counter(piece for sentence in before for piece in sentence[:-1])
        for last, piece in pairwise([BEGIN, *pieces]):
            p_words = words[piece] / words.total() if words else 0.0
            p_next = pairs[last, piece] / firsts[last] if last in firsts else 0.0
            rows.append((p_words, p_next, bool(words), last in firsts))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("dev")
    parser.add_argument("test")
    parser.add_argument("--previous", type=int, default=2, help="sentences before (default: %(default)s)")
    parser.add_argument("--domains", nargs="+", default=(), metavar="NAME=ID,...")
    options = parser.parse_args()
    translator, spec, mean = load(options.model), ContextSpec(options.previous, 0), Mean("nats a piece")
    dev, test = (
        Scored(translator, list(read_corpus(CorpusFiles(path=path))), spec) for path in (options.dev, options.test)
    )
    columns = (Column("cache", text=True), Column("documents", text=True), Column("nats a piece"), Column("95 %"))
    table = Table("What a cache of the sentences before adds", columns)
    parts = {"all": range(len(test.ids)), **by_domain(test.ids, options.domains)}
    for cache in test.caches:
        a, b = max(product(SHARES, SHARES), key=lambda shares: dev.gains(cache, *shares).mean())
        gains = test.gains(cache, a, b)
        for name, documents in parts.items():
            inside = np.isin(test.document, documents)
            rows = np.stack([gains[inside], np.ones(inside.sum())], axis=1)
            around = interval(mean, rows, test.document[inside])
            figures = f"{mean.score(rows.sum(axis=0)):+.4f}", f"{around.low:+.4f} … {around.high:+.4f}"
            table.add(cache if name == "all" else "", name, *figures, rule=name == "all")
        table.notes.append(f"{cache}: a = {a}, b = {b}")
    table.notes.append(f"The model alone: {-np.log(test.model).mean():.4f} nats a piece")
    table.print(Console())


if __name__ == "__main__":
    main()
