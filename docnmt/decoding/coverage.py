"""What a shortlist leaves out: how many pieces of given translations are among the candidates of their sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from docnmt.base.errors import DocnmtError
from docnmt.base.report import Column, Table
from docnmt.decoding.shortlist import Shortlist
from docnmt.decoding.training_pairs import TrainingPairs

BATCH = 32  # sentences: they share their candidates


@dataclass(frozen=True)
class Coverage:
    covered: float  # share of the translations' pieces
    size: float  # candidates of a batch, on average


def coverage(shortlist: Shortlist, pairs: TrainingPairs, batch: int) -> Coverage:
    """In batches of sentences of about one length, as they are translated."""
    if not len(pairs.target.tokens):
        raise DocnmtError("there are no translations to look at\n  Give a corpus with sentence pairs.")
    sources, targets = pairs.source.sentences(), pairs.target.sentences()
    order = np.argsort(pairs.source.lengths, kind="stable")
    groups = [order[i : i + batch] for i in range(0, len(order), batch)]
    covered = size = 0
    for group in groups:
        candidates = shortlist.candidates([sources[i] for i in group])
        covered += int(np.isin(np.concatenate([targets[i] for i in group]), candidates).sum())
        size += len(candidates)
    return Coverage(covered / len(pairs.target.tokens), size / len(groups))


def coverage_table(shortlists: Iterable[tuple[int, Shortlist]], pairs: TrainingPairs, chosen: int) -> Table:
    """A row for each shortlist, under its number of candidates for a source piece; the chosen one stands out."""
    names = [f"{of}: {what}" for of in ("one sentence", f"{BATCH} sentences") for what in ("covered", "candidates")]
    table = Table("Pieces of the references that the shortlist has", [Column(n) for n in ("translations", *names)])
    for candidates, shortlist in shortlists:
        alone, together = coverage(shortlist, pairs, 1), coverage(shortlist, pairs, BATCH)
        cells = [f"{candidates}"]
        cells += [text for c in (alone, together) for text in (f"{100 * c.covered:.2f} %", f"{c.size:,.0f}")]
        table.add(*cells, strong=range(len(cells)) if candidates == chosen else ())
        table.figures.append(
            {
                "candidates": candidates,
                "written": candidates == chosen,
                "frequent": len(shortlist.always),
                "sentence": {"covered": alone.covered, "pieces": alone.size},
                f"batch_of_{BATCH}": {"covered": together.covered, "pieces": together.size},
            }
        )
    table.notes = [
        f"{pairs}, {len(pairs.target.tokens):,} pieces.",
        f"Translations: how many a source piece has beside the frequent pieces. The shortlist written has {chosen}.",
        "References translate freely at times: of what a model writes, the shortlist has more.",
    ]
    return table
