"""A summary as a table, as figures and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from docnmt.base.report import Column, Table
from docnmt.judging.store import FIRST, SECOND, Store
from docnmt.judging.summary import Row, Summary, chosen_judgements, same_passed


def summary_table(summary: Summary) -> Table:
    sample = summary.sample
    one, other = sample.systems
    columns = [
        Column("judge", text=True),
        *(Column(sign) for sign in (">", "=", "<")),
        Column("verdicts"),
        Column("p, sentences"),
        Column("p, documents"),
    ]
    sizes = f"{len(sample.documents):,} documents, {len(sample.sentences):,} sentences"
    table = Table(f"{one} against {other}, judged by people: {sizes}", columns, notes=_notes(summary))
    for row in (*summary.rows, summary.overall):
        shares = (f"{share:.1f} %" for share in row.shares)
        chances = (_p(signs.p) for signs in (row.sentence_signs, row.document_signs))
        table.add(row.name, *shares, f"{row.judgements:,}", *chances, rule=row is summary.overall)
    return table


def _notes(summary: Summary) -> list[str]:
    sample, agreement = summary.sample, summary.agreement
    one, other = sample.systems
    notes = [f">: {one} is better than {other}; =: they are equal; <: {one} is worse."]
    same = len(sample.sentences) - len(sample.questions)
    if same:
        notes.append(f"{same:,} sentences are the same in both: nobody was asked about them, they count as equal.")
    notes.append(
        "p: sign test, exact and two-sided, ties left out. Overall, a sentence or a document counts for the system "
        "that most verdicts prefer. Sentences of a document are not independent of each other, which makes p by "
        "sentences too small: go by documents."
    )
    if len(summary.rows) == 1:
        notes.append("One judge: there is no agreement to measure.")
    elif math.isnan(agreement.kappa):
        notes.append("Fleiss' kappa: not defined, as no sentence was judged by all, or all verdicts were the same.")
    else:
        notes.append(
            f"Fleiss' kappa: {agreement.kappa:.2f}, over the {summary.agreed_on:,} sentences that differ and that all "
            f"{len(summary.rows)} judged ({100 * agreement.observed:.1f} % agreement, "
            f"{100 * agreement.expected:.1f} % by chance)."
        )
    notes.append(
        f"Of two translations the first was preferred {summary.places[0]:,} times, the second {summary.places[1]:,}."
    )
    if summary.unfinished:
        notes.append(f"Not finished: {', '.join(row.name for row in summary.unfinished)}.")
    return notes


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def figures(summary: Summary) -> dict[str, Any]:
    sample, agreement = summary.sample, summary.agreement
    return {
        "systems": sample.systems,
        "seed": sample.seed,
        "documents": len(sample.documents),
        "sentences": len(sample.sentences),
        "same": len(sample.sentences) - len(sample.questions),
        "judges": [_row_figures(row) for row in summary.rows],
        "overall": _row_figures(summary.overall),
        "agreement": {
            **{name: None if math.isnan(value) else value for name, value in asdict(agreement).items()},
            "sentences": summary.agreed_on,
        },
        "places": dict(zip((FIRST, SECOND), summary.places, strict=True)),
        "notes": _notes(summary),
    }


def _row_figures(row: Row) -> dict[str, Any]:
    shares = dict(zip(("better", "equal", "worse"), row.shares, strict=True))
    return {**asdict(row), "judgements": row.judgements, "percent": shares}


_COLUMNS = (
    *("judge", "document", "sentence", "system_a", "system_b", "source", "translation_a", "translation_b"),
    *("better", "shown_first", "asked", "time", "revisions"),
)


def as_csv(store: Store, judges: Sequence[str] = ()) -> str:
    """A row a judge and sentence, those that nobody was asked about as well; of a revised judgement the last."""
    sample = store.sample
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, own in chosen_judgements(store, judges).items():
        said = {judgement.place: judgement for judgement in own}
        for place in sorted((*said, *same_passed(sample, said)), key=astuple):
            document, here = sample.documents[place.document], place.position
            texts = (document.source[here], *(output[here] for output in document.outputs))
            verdict: tuple[object, ...] = ("equal", "", "no", "", "")
            if judgement := said.get(place):
                better = "equal" if judgement.better is None else "ab"[judgement.better]
                verdict = (better, "ab"[judgement.first_system], "yes", judgement.time, judgement.revisions)
            writer.writerow((name, document.id, here + 1, *sample.systems, *texts, *verdict))
    return out.getvalue()
