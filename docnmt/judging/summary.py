"""The paper's Table 5: how often each judge found one system better, equal or worse; agreement and sign tests."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.base.report import Table, columns
from docnmt.evaluation.significance import sign_test
from docnmt.judging.store import FIRST, SECOND, Judgement, Place, Sample, Store

# ---- how far judges agree ----


@dataclass(frozen=True)
class Agreement:
    """Fleiss' kappa, and the two shares it is made of; not a number where there is nothing to compute it from."""

    kappa: float
    observed: float  # the share of pairs of judges that agree
    expected: float  # the same if all judged by chance, with the shares of the verdicts as they are


def fleiss_kappa(verdicts: Sequence[Sequence[Hashable]]) -> Agreement:
    """Agreement on items that all have the same number of verdicts, two or more; who gave which
    does not matter.

    Where all verdicts are the same, chance would agree as well, and kappa is not defined.
    """
    if not verdicts or len(verdicts[0]) < 2:
        return Agreement(math.nan, math.nan, math.nan)
    judges = len(verdicts[0])
    if any(len(item) != judges for item in verdicts):
        raise ValueError("each item must have the same number of verdicts")
    counts = [Counter(item) for item in verdicts]
    agreeing = sum(n * (n - 1) for item in counts for n in item.values())
    observed = agreeing / (len(verdicts) * judges * (judges - 1))
    totals = sum(counts, Counter())
    given = len(verdicts) * judges
    chance = sum(n * n for n in totals.values())
    expected = chance / given**2
    kappa = (observed - expected) / (1 - expected) if chance < given**2 else math.nan
    return Agreement(kappa, observed, expected)


# ---- what they found ----
#
# Nobody is asked about sentences that both systems translate by the same words. They count as equal
# for each judge as far as he has come, but not for the agreement, which they would make look better
# than it is.

OVERALL = "Overall"


@dataclass(frozen=True)
class Signs:
    """Units (sentences or documents) in which a system was found better, and the sign test over them."""

    better: int
    worse: int
    p: float


@dataclass(frozen=True)
class Row:
    """The verdicts of one judge, or of all; better and worse are the first system's."""

    name: str
    better: int
    equal: int  # with the sentences that are the same
    worse: int
    same: int  # those alone
    sentence_signs: Signs
    document_signs: Signs

    @property
    def judgements(self) -> int:
        return self.better + self.equal + self.worse

    @property
    def shares(self) -> tuple[float, float, float]:
        better, equal, worse = (100 * n / self.judgements for n in (self.better, self.equal, self.worse))
        return better, equal, worse


@dataclass(frozen=True)
class Summary:
    sample: Sample
    rows: tuple[Row, ...]  # a judge each
    overall: Row
    agreement: Agreement
    agreed_on: int  # sentences that all judges were asked about and have judged
    places: tuple[int, int]  # how often the translation that stood first was found better, and the second

    @property
    def unfinished(self) -> list[Row]:
        return [row for row in self.rows if row.judgements < len(self.sample.sentences)]


def summarise(store: Store, judges: Sequence[str] = ()) -> Summary:
    """Of all judges, or of some."""
    sample = store.sample
    by_judge = chosen_judgements(store, judges)
    verdicts = {name: _values(own) for name, own in by_judge.items()}
    rows = [_row(name, [own], sample) for name, own in verdicts.items()]
    shared = [place for place in sample.questions if all(place in own for own in verdicts.values())]
    everything = [judgement for own in by_judge.values() for judgement in own]
    stood = Counter(judgement.choice for judgement in everything)
    return Summary(
        sample,
        tuple(rows),
        _row(OVERALL, list(verdicts.values()), sample),
        fleiss_kappa([[own[place] for own in verdicts.values()] for place in shared]),
        len(shared),
        (stood[FIRST], stood[SECOND]),
    )


def chosen_judgements(store: Store, judges: Sequence[str] = ()) -> dict[str, list[Judgement]]:
    """The judgements of each judge who has made any."""
    found: dict[str, list[Judgement]] = {}
    for judgement in store.judgements():
        found.setdefault(judgement.judge, []).append(judgement)
    if not found:
        raise DocnmtError("there are no judgements yet\n  Let someone judge first.")
    if not judges:
        return found
    names = {name.casefold(): name for name in found}
    for name in judges:
        if name.casefold() not in names:
            raise DocnmtError(f"there are no judgements by {name!r}\n  Choose from {', '.join(found)}.")
    return {names[name.casefold()]: found[names[name.casefold()]] for name in judges}


def same_passed(sample: Sample, judged: Iterable[Place]) -> list[Place]:
    """The sentences that are the same in both systems and stand before the first one still to be judged."""
    done = set(judged)
    passed = []
    for place in sample.sentences:
        if sample.is_same(place):
            passed.append(place)
        elif place not in done:
            break
    return passed


def _values(judgements: Iterable[Judgement]) -> dict[Place, int]:
    """+1 where the first system was found better, -1 where the second, 0 for equal."""
    return {judgement.place: {0: 1, 1: -1, None: 0}[judgement.better] for judgement in judgements}


def _row(name: str, verdicts: Sequence[dict[Place, int]], sample: Sample) -> Row:
    """The judges' verdicts together. A sentence (or document) is won by the system that most of them prefer."""
    counts = Counter(value for own in verdicts for value in own.values())
    same = sum(len(same_passed(sample, own)) for own in verdicts)
    sentences: Counter[Place] = Counter()
    documents: Counter[int] = Counter()
    for own in verdicts:
        for place, value in own.items():
            sentences[place] += value
            documents[place.document] += value
    return Row(
        name, counts[1], counts[0] + same, counts[-1], same, _signs(sentences.values()), _signs(documents.values())
    )


def _signs(sums: Iterable[int]) -> Signs:
    values = list(sums)
    better, worse = sum(value > 0 for value in values), sum(value < 0 for value in values)
    return Signs(better, worse, sign_test(better, worse))


# ---- as a table, as figures and as CSV ----


def summary_table(summary: Summary) -> Table:
    sample = summary.sample
    one, other = sample.systems
    heads = columns("judge", ">", "=", "<", "verdicts", "p, sentences", "p, documents")
    sizes = f"{len(sample.documents):,} documents, {len(sample.sentences):,} sentences"
    table = Table(f"{one} against {other}, judged by people: {sizes}", heads, notes=_notes(summary))
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
        notes.append(
            f"{same:,} sentences are the same in both: judges were not asked about them, and they count as equal."
        )
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
            verdict: tuple[object, ...] = ("equal", "", "no", "", "")
            if judgement := said.get(place):
                better = "equal" if judgement.better is None else "ab"[judgement.better]
                verdict = (better, "ab"[judgement.first_system], "yes", judgement.time, judgement.revisions)
            where = (sample.documents[place.document].id, place.position + 1)
            writer.writerow((name, *where, *sample.systems, *sample.texts(place), *verdict))
    return out.getvalue()
