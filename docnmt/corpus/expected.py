"""The sizes of the paper's corpora, to hold one's own against: who follows its recipes sees where the data differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from docnmt.base.report import Column, Table
from docnmt.config import one_of
from docnmt.corpus.inspect import Inspection


@dataclass(frozen=True)
class Expected:
    """As the paper prints it, so that a figure counts as the same if it would be printed so."""

    documents: str
    pairs: str
    mean: str = ""  # sentences a document


# Zhang et al. (2018), section 3.1.
PAPER: dict[str, dict[str, Expected]] = {
    "zh-en": {"documents": Expected("41K", "940K", "22.9"), "dev and test": Expected("588", "5,833")},
    "fr-en": {
        "documents": Expected("1,824", "220K"),
        "dev": Expected("8", "887"),
        "test": Expected("11", "1,664"),
    },
}
# What can be asked of one corpus: its name, and a part where it is not the training documents.
NAMES = {
    pair if part == "documents" else f"{pair}-{part.replace(' and ', '-')}": expected
    for pair, parts in PAPER.items()
    for part, expected in parts.items()
}


def expected_of(name: str) -> Expected:
    one_of("--expect", name, tuple(NAMES))
    return NAMES[name]


def agrees(found: float, printed: str) -> bool:
    """Whether a figure, rounded to the digits that are printed, is the printed one."""
    number, unit = _parsed(printed)
    return abs(found - number) <= unit / 2


def _parsed(printed: str) -> tuple[float, float]:
    """The number, and what its last digit that says something counts: 940K is a multiple of ten thousand."""
    digits = printed.removesuffix("K").replace(",", "")
    scale = 1000 if printed.endswith("K") else 1
    if "." in digits:
        return float(digits), 10.0 ** -len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if scale > 1 else 0
    return int(digits) * scale, scale * 10**zeros


def comparison(found: Mapping[str, Inspection], expected: Mapping[str, Expected]) -> Table:
    """Each figure beside the paper's."""
    columns = (Column("corpus", text=True), Column("figure", text=True), Column("here"), Column("paper", paper=True))
    table = Table("Beside the paper's data", (*columns, Column("", text=True)))
    for part, wanted in expected.items():
        inspection = found[part]
        figures = (
            ("documents", inspection.documents, wanted.documents),
            ("sentence pairs", inspection.sentences, wanted.pairs),
            ("sentences a document", inspection.document_lengths.mean, wanted.mean),
        )
        for name, here, printed in figures:
            if not printed:
                continue
            told = f"{here:,.1f}" if isinstance(here, float) else f"{here:,}"
            table.add(part, name, told, printed, _verdict(here, printed))
            table.figures.append({"corpus": part, "figure": name, "here": here, "agrees": agrees(here, printed)})
    if any(not figure["agrees"] for figure in table.figures):
        table.notes.append("docs/corpora.md says what the paper's data is and what usually makes the difference.")
    return table


def _verdict(here: float, printed: str) -> str:
    if agrees(here, printed):
        return "as in the paper"
    wanted = _parsed(printed)[0]
    return f"differs: {here - wanted:+,.{1 if re.search('[.]', printed) else 0}f} ({(here - wanted) / wanted:+.1%})"
