"""How often a model is right about contrastive items: accuracy by phenomenon and distance, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from docnmt.base import __version__
from docnmt.base.progress import Progress
from docnmt.base.report import Table, columns
from docnmt.decoding.translator import Translator
from docnmt.evaluation.contrastive import (
    NEITHER,
    RIGHT,
    SHUFFLED,
    WITH,
    WITHOUT,
    WRONG,
    Verdict,
    Written,
    judge,
    sees_translations,
    uses,
    with_shuffled_contexts,
    write,
)
from docnmt.evaluation.contrastive_items import Item, Passage, record_of
from docnmt.evaluation.metrics import Ints, Mean
from docnmt.evaluation.significance import Interval, compare, interval, sign_test

_FAR = 3  # distances beyond this are counted together
_Z = 1.959964  # standard deviations to either side that hold 95 %

# What is measured: whether the right candidate is preferred, whether the model writes its word, or,
# where a set has no candidates, the word that is expected.
CONTRASTIVE, GENERATIVE, EXPECTED = "contrastive", "generative", "expected"
_NOTES = {
    CONTRASTIVE: "Percent of items, with 95 % intervals.",
    GENERATIVE: "Percent of translations with a word that only the right candidate has, and none that only "
    "wrong ones have, with 95 % intervals; of decided: among those with one or the other.",
    EXPECTED: "Percent of translations that have the expected word, with 95 % intervals.",
}

Answer = Verdict | Written
Answers = Mapping[str, Sequence[Answer]]  # by use


@dataclass(frozen=True)
class Accuracy:
    right: int
    total: int
    drawn: Interval | None = None  # by drawing documents, where that was asked for

    @property
    def percent(self) -> float:
        return 100 * self.right / self.total

    @property
    def interval(self) -> Interval:
        """95 %, in percent. Where documents were not drawn it is Wilson's, which stays within 0 and
        100 and holds for few items, too."""
        if self.drawn is not None:
            return self.drawn
        share = self.right / self.total
        middle = share + _Z * _Z / (2 * self.total)
        spread = _Z * math.sqrt(share * (1 - share) / self.total + _Z * _Z / (4 * self.total**2))
        scale = 100 / (1 + _Z * _Z / self.total)
        return Interval(max(0.0, scale * (middle - spread)), min(100.0, scale * (middle + spread)))

    @property
    def cell(self) -> str:
        low, high = self.interval
        return f"{self.percent:.1f}" + (f" [{low:.1f}, {high:.1f}]" if self.interval.is_known else "")


@dataclass(frozen=True)
class Group:
    """Some of the items, under a heading of the table."""

    kind: str  # "all", "phenomenon" or "distance"
    name: str
    items: tuple[int, ...]  # by their place in the set
    chance: float  # percent right by guessing
    outcomes: dict[str, list[str]]  # by use
    accuracy: dict[str, Accuracy]
    p: float | None  # with context against none; None where these were not compared

    def of_decided(self, use: str) -> Accuracy | None:
        """Among the translations that have a right or a wrong word; None where none has."""
        outcomes = self.outcomes[use]
        decided = len(outcomes) - outcomes.count(NEITHER)
        return Accuracy(outcomes.count(RIGHT), decided) if decided else None


def groups(items: Sequence[Item], answers: Answers, resample: str = "items") -> list[Group]:
    """All items, then those of each phenomenon, then those of each distance. `resample`: whether
    items are taken as independent, or documents are drawn."""
    numbers: dict[str, int] = {}
    documents = np.array([numbers.setdefault(item.document, len(numbers)) for item in items])
    places: dict[str, dict[str, list[int]]] = {"all": {}, "phenomenon": {}, "distance": {}}
    for n, item in enumerate(items):
        for kind, name in (("all", "all"), ("phenomenon", item.phenomenon), ("distance", _distance(item))):
            places[kind].setdefault(name, []).append(n)
    result = []
    for kind, named in places.items():
        for name, chosen in sorted(named.items()):
            outcomes = {use: [own[n].outcome for n in chosen] for use, own in answers.items()}
            right = {use: [outcome == RIGHT for outcome in own] for use, own in outcomes.items()}
            chance = 100 * sum(items[n].chance for n in chosen) / len(chosen)
            if resample == "documents":
                tested = _by_document(right, documents[chosen])
            else:
                accuracy = {use: Accuracy(sum(values), len(chosen)) for use, values in right.items()}
                tested = accuracy, mcnemar(right[WITH], right[WITHOUT]) if WITH in right else None
            result.append(Group(kind, name, tuple(chosen), chance, outcomes, *tested))
    return result


def _distance(item: Item) -> str:
    """As text, which sorts as it should: "0" ... "3", ">3", "unknown"."""
    if item.distance is None:
        return "unknown"
    return str(item.distance) if item.distance <= _FAR else f">{_FAR}"


def _by_document(right: Mapping[str, Sequence[bool]], documents: Ints) -> tuple[dict[str, Accuracy], float | None]:
    """Accuracies with intervals by drawing documents, and p of with context against none by swapping them."""
    metric = Mean("accuracy", scale=100)
    rows = {use: np.array([values, [1] * len(values)], dtype=np.float64).T for use, values in right.items()}
    accuracy = {
        use: Accuracy(sum(values), len(values), interval(metric, rows[use], documents)) for use, values in right.items()
    }
    if WITH not in rows:
        return accuracy, None
    return accuracy, compare(metric, rows[WITHOUT], rows[WITH], documents).p_randomisation


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """McNemar's exact test, two-sided: the sign test of the items on which the two differ."""
    pairs = list(zip(first, second, strict=True))
    return sign_test(sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs))


# ---- a model and a set ----


class ContrastReport:
    """How a model does on a set, under each use of it (with context, shuffled, none, as a sentence model)."""

    def __init__(
        self,
        translator: Translator,
        items: Sequence[Item],
        context: str | None,
        shuffled: bool,
        resample: str,
        seed: int = 1,  # of shuffled contexts
    ):
        self.translator, self.items, self.resample = translator, items, resample
        self.signature = signature(translator, context, len(items), resample)
        self.notes = notes(items, sees_translations(translator, context))
        self.uses = uses(translator, context, shuffled)
        self.asked = dict.fromkeys(self.uses, items)
        if SHUFFLED in self.uses:
            self.asked[SHUFFLED] = with_shuffled_contexts(items, seed)
        self.answers: dict[str, Answers] = {}  # by measure

    def ask(self, translate: bool, progress: Progress) -> None:
        """Which candidates the model prefers; and what it writes itself, if that is wanted or there are none."""
        has_candidates = all(item.wrong for item in self.items)
        if has_candidates:
            self.answers[CONTRASTIVE] = self._ask(judge, "", progress)
        if translate or not has_candidates:
            self.answers[GENERATIVE if has_candidates else EXPECTED] = self._ask(write, "translate, ", progress)

    def _ask(self, about: Callable[..., Sequence[Answer]], title: str, progress: Progress) -> Answers:
        answers = {}
        for use, context in self.uses.items():
            with progress.bar(title + use, len(self.items), "items") as tick:
                answers[use] = about(self.translator, self.asked[use], context, tick)
        return answers

    @cached_property
    def groups(self) -> dict[str, list[Group]]:
        return {measure: groups(self.items, answers, self.resample) for measure, answers in self.answers.items()}

    def tables(self, name: str) -> list[Table]:
        tables = []
        for measure, found in self.groups.items():
            title = "Contrastive" if measure == CONTRASTIVE else "Generative"
            below = [*self.notes, self.signature] if measure == CONTRASTIVE else []
            tables.append(accuracy_table(f"{title} accuracy: {name}", found, measure, below))
        return tables

    def as_dict(self) -> dict[str, Any]:
        figures: dict[str, Any] = {"signature": self.signature, "notes": self.notes, "groups": []}
        for measure, found in self.groups.items():
            figures["groups" if measure == CONTRASTIVE else "generative"] = as_json(found, measure)
        return figures

    def item_rows(self) -> Iterator[dict[str, Any]]:
        """One for each item, for looking at errors: its fields and what each use of the model says of it."""
        for number, item in enumerate(self.items):
            row: dict[str, Any] = {"item": number + 1, **record_of(item)}
            for use in self.uses:
                row[_key(use)] = {}
                for answers in self.answers.values():
                    row[_key(use)] |= answers[use][number].as_dict()
            yield row


def signature(translator: Translator, context: str | None, count: int, resample: str = "items") -> str:
    drawn = resample == "documents"
    spread = "interval:bootstrap-of-documents-95" if drawn else "interval:wilson-95"
    parts = ["contrastive", f"items:{count}", "score:sum-of-log-probabilities", "ties:wrong", spread]
    if WITH in uses(translator, context):
        spec = translator.card.context.spec
        test = "p:swaps-of-documents" if drawn else "p:mcnemar-exact"
        parts += [f"context:{context or f'previous={spec.previous},following={spec.following}'}", test]
    return "|".join((*parts, f"docnmt:{__version__}"))


def notes(items: Sequence[Item], translations_seen: bool = False) -> list[str]:
    """What a reader of the figures has to know about the set, and about a model that sees translations of contexts."""
    found = []
    gold = any(item.previous_target for item in items)
    if gold and not translations_seen:
        found.append("The set has gold target context, which this model does not use.")
    elif gold:
        found.append("This model sees the set's gold target context, not its own translations.")
    if translations_seen and (own := sum(bool(item.previous) and not item.previous_target for item in items)):
        found.append(f"Items without target context, for which the model translated the previous sentences: {own:,}.")
    called_right: dict[tuple[Passage, ...], set[Passage]] = {}
    for item in items:
        called_right.setdefault((item.previous, item.source, item.following), set()).add(item.right)
    others = [called_right[item.previous, item.source, item.following] - {item.right} for item in items]
    if undecided := sum(not rights.isdisjoint(item.wrong) for item, rights in zip(items, others, strict=True)):
        found.append(
            "Items that source context cannot decide, as another item with the same source counts one of their "
            f"wrong translations as right: {undecided:,}."
        )
    if same := sum(item.right in item.wrong for item in items):
        found.append(f"Items with a wrong candidate that is the same as the right one, counted as wrong: {same:,}.")
    if bare := sum(bool(item.distance) and not item.previous for item in items):
        found.append(f"Items that depend on a previous sentence which the set does not contain: {bare:,}.")
    if alone := sum(item.distance is None and not item.previous and not item.following for item in items):
        found.append(
            f"Items without any context, whose distance is unknown: {alone:,}. They say nothing about the use of "
            "context."
        )
    return found


# ---- tables and JSON ----


def accuracy_table(title: str, found: Sequence[Group], measure: str, below: Sequence[str] = ()) -> Table:
    heads = ["", "items", *(["chance"] if measure == CONTRASTIVE else [])]
    for use in found[0].accuracy:
        heads += [use, f"{use}, of decided"] if measure == GENERATIVE else [use]
    compared = found[0].p is not None
    table = Table(title, columns(*heads, *(["p"] if compared else [])))
    for number, group in enumerate(found):
        cells = [f"distance {group.name}" if group.kind == "distance" else group.name, f"{len(group.items):,}"]
        cells += [f"{group.chance:.1f}"] if measure == CONTRASTIVE else []
        for use, accuracy in group.accuracy.items():
            decided = group.of_decided(use)
            cells.append(accuracy.cell)
            cells += [f"{decided.percent:.1f}" if decided else ""] if measure == GENERATIVE else []
        cells += [] if group.p is None else ["< 0.0001" if group.p < 0.0001 else f"{group.p:.4f}"]
        table.add(*cells, rule=number > 0 and group.kind != found[number - 1].kind)
    table.notes += [_NOTES[measure], *(["p: with context against none."] if compared else [])]
    if measure == CONTRASTIVE:
        table.notes = [" ".join(table.notes), *below]
    return table


def as_json(found: Sequence[Group], measure: str) -> list[dict[str, Any]]:
    rows = []
    counted = (RIGHT,) if measure == CONTRASTIVE else (RIGHT, WRONG, NEITHER)
    for group in found:
        row: dict[str, Any] = {"group": group.kind, "name": group.name, "items": len(group.items)}
        row |= {"chance": group.chance} if measure == CONTRASTIVE else {}
        for use, accuracy in group.accuracy.items():
            counts = {outcome: group.outcomes[use].count(outcome) for outcome in counted}
            row[_key(use)] = {**counts, "accuracy": accuracy.percent, **accuracy.interval.as_dict()}
        rows.append(row if group.p is None else {**row, "p": group.p})
    return rows


def _key(use: str) -> str:
    return use.replace(" ", "_")
