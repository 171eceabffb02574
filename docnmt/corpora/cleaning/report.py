"""What cleaning did: for the terminal, as Markdown and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from docnmt.base.report import Column, Table
from docnmt.corpora.cleaning.cleaner import Cleaner
from docnmt.corpora.cleaning.filters import EXPLAINED

_LONGEST = 160  # characters of an example


def table(cleaner: Cleaner) -> Table:
    counts = cleaner.counts
    made = Table("Removed", (Column("filter", text=True), Column("what it removes", text=True), Column("pairs")))
    for name in cleaner.active:
        made.add(name, EXPLAINED[name], f"{counts.removed[name]:,}")
    share = counts.pairs_left / counts.pairs if counts.pairs else 0.0
    made.notes.append(
        f"{counts.pairs:,} pairs in {counts.documents:,} documents came in, {counts.pairs_left:,} ({share:.1%}) in "
        f"{counts.documents_left:,} are left. A pair counts under the first filter that it fails; it leaves a gap."
    )
    return made


def examples(cleaner: Cleaner) -> Table:
    made = Table("Examples", (Column("filter", text=True), Column("where", text=True), Column("pair", text=True)))
    for name in cleaner.active:
        for number, removed in enumerate(cleaner.counts.examples.get(name, ())):
            texts = f"{_short(removed.source)} | {_short(removed.target)}"
            made.add("" if number else name, f"{removed.document}, {removed.position + 1}", texts, rule=not number)
    return made


def _short(text: str) -> str:
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def markdown(cleaner: Cleaner) -> str:
    return f"{table(cleaner).markdown()}\n{examples(cleaner).markdown()}"


def as_dict(cleaner: Cleaner) -> dict[str, Any]:
    return {"limits": asdict(cleaner.limits), **asdict(cleaner.counts)}
