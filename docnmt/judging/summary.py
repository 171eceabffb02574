"""The paper's Table 5: how often each judge found one system better, equal or worse; agreement and sign tests.

Sentences that both systems translate by the same words are asked of nobody. They count as equal for each judge as far
as he has come, but not for the agreement, which they would make look better than it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docnmt.base.errors import DocnmtError
from docnmt.judging.sampling import Place, Sample
from docnmt.judging.statistics import Agreement, fleiss_kappa, sign_test
from docnmt.judging.store import FIRST, SECOND, Judgement, Store

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
        raise DocnmtError("no judgements yet\n  Let somebody judge first.")
    if not judges:
        return found
    names = {name.casefold(): name for name in found}
    for name in judges:
        if name.casefold() not in names:
            raise DocnmtError(f"no judgements of {name!r}\n  Name some of {', '.join(found)}.")
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
