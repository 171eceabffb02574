"""Any two rows of the tables beside each other: how much they differ on each set, and whether that could be chance."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from docnmt.base.errors import DocnmtError
from docnmt.base.report import Column, Table
from docnmt.evaluation.comparison import few_note
from docnmt.evaluation.scores import signature_notes
from docnmt.evaluation.significance import Difference
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import Parts, Scoreboard
from docnmt.experiments.tables import Row

# "Significant improvements over the original Transformer (p < 0.01)", and over Kuang et al.'s cache on it, likewise.
CLAIMS = {"comparison": (("this work", "Vaswani et al. (2017)"), ("this work", "Kuang et al. (2017)*"))}
CLAIMED = "< 0.01"

Rows = Mapping[str, Mapping[str, tuple[Run, ...]]]  # table -> label -> runs, one a seed


@dataclass(frozen=True)
class Pair:
    """A row and what it is held against."""

    name: str
    against: str
    runs: tuple[Run, ...]
    baseline: tuple[Run, ...]
    claimed: bool = False  # by the paper


def labelled(rows: Sequence[Row]) -> dict[str, tuple[Run, ...]]:
    """A table's rows by all that stands in front of them, and by its first column alone where that tells them apart."""
    ours = [row for row in rows if row.runs]
    first = Counter(row.labels[0] for row in ours)
    named = {row.labels[0]: row.runs for row in ours if first[row.labels[0]] == 1}
    return named | {", ".join(filter(None, row.labels)): row.runs for row in ours}


def asked_pairs(rows: Rows, names: Iterable[Sequence[str]]) -> list[Pair]:
    """The paper's claims about tables that are there, and those that somebody names."""
    claims = [
        Pair(name, other, rows[table][name], rows[table][other], claimed=True)
        for table, pairs in CLAIMS.items()
        if table in rows
        for name, other in pairs
    ]
    asked = [Pair(name, other, _find(rows, name), _find(rows, other)) for name, other in names]
    for pair in asked:
        if pair.runs == pair.baseline:
            raise DocnmtError(
                f"--compare {pair.name!r} {pair.against!r}: both are the same runs\n  Name two different rows."
            )
    return [*claims, *asked]


def _find(rows: Rows, name: str) -> tuple[Run, ...]:
    """By its label; where tables call different runs so, by the table's name and a colon before it."""
    named = {label: runs for table in rows.values() for label, runs in table.items()}
    placed = {f"{table}:{label}": runs for table, each in rows.items() for label, runs in each.items()}
    found = {runs for table in rows.values() for label, runs in table.items() if label == name}
    if len(found) > 1:
        where = [place for place in placed if place.endswith(f":{name}")]
        raise DocnmtError(f"--compare {name!r}: several tables have such a row\n  Say which: {', '.join(where)}.")
    if name in placed:
        return placed[name]
    if not found:
        near = difflib.get_close_matches(name, [*named, *placed], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Rows: {'; '.join(named) or 'none'}."
        raise DocnmtError(f"--compare {name!r}: no table that is made has such a row\n  {hint}")
    return found.pop()


def pairs_table(pairs: Sequence[Pair], parts: Parts, scoreboard: Scoreboard) -> Table:
    texts = [Column(name, text=True) for name in ("row", "against", "set")]
    figures = [Column(name) for name in (scoreboard.metric.name, "the other's", "difference", "95 %", "p")]
    claimed = any(pair.claimed for pair in pairs)
    table = Table("Pairs of rows", (*texts, *figures, *([Column("paper: p", paper=True)] if claimed else [])))
    for pair in pairs:
        for part in (parts.dev, *parts.tests):
            found = scoreboard.difference(pair.baseline, pair.runs, part)
            first = part is parts.dev
            paper = [CLAIMED if pair.claimed and part is parts.whole else ""] if claimed else []
            names = (pair.name, pair.against) if first else ("", "")
            scores = f"{found.system:.2f}", f"{found.baseline:.2f}"
            table.add(*names, part.title, *scores, *told(found), *paper, rule=first and bool(table.rows))
            figures_of = {"row": pair.name, "against": pair.against, "set": part.title}
            table.figures.append({**figures_of, **asdict(found)})
    whole = parts.whole.test
    table.notes += [
        *signature_notes([scoreboard.metric]),
        "Intervals by bootstrap, p by swapping the two rows' outputs, both over documents. A set of few documents has "
        "every way to swap them counted.",
        *(f"{parts.whole.title}: {note[0].lower()}{note[1:]}." for note in few_note(len(whole.documents), "documents")),
    ]
    return table


def told(difference: Difference | None) -> tuple[str, str, str]:
    """Difference, interval and p as tables show them; nothing where there is nothing to compare with."""
    if difference is None:
        return "", "", ""
    low, high = difference.interval.low, difference.interval.high
    return f"{difference.difference:+.2f}", f"{low:+.2f} … {high:+.2f}", f"{difference.p_randomisation:.4f}"
