"""How often a model finds the right translation more probable than the wrong ones, with its context and without."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.base.report import Column, Table
from docnmt.decoding.scoring import OFF, Choice
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.evaluation.contrastive_items import Item, Passage
from docnmt.evaluation.metrics import Metric
from docnmt.evaluation.significance import Interval, compare, interval
from docnmt.version import __version__

# How a model was used: columns.
WITH, SHUFFLED, WITHOUT, SENTENCE = "with context", "shuffled context", "no context", "sentence model"
_NAMES = {"none": WITHOUT, OFF: SENTENCE}
_FAR = 3  # distances beyond this are counted together


@dataclass(frozen=True)
class Verdict:
    """What a model says of one item: the log-probability of each candidate, the right one's first."""

    scores: tuple[float, ...]
    right: bool


class Judged(Protocol):
    @property
    def right(self) -> bool: ...


class ShareRight(Metric):
    """Statistics are, for each item, whether it is right, and 1; a model gives them, not a text."""

    name, higher_is_better, signature = "accuracy", True, "accuracy"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        raise NotImplementedError

    def score(self, totals: NDArray[np.float64]) -> float:
        return float(100 * totals[0] / totals[1])


@dataclass(frozen=True)
class Accuracy:
    right: int
    total: int
    drawn: Interval | None = None  # by drawing documents, where that was asked for

    @property
    def percent(self) -> float:
        return 100 * self.right / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, in percent; Wilson's, which stays within 0 and 100 and holds for few items, too, unless documents were
        drawn."""
        if self.drawn is not None:
            return self.drawn.low, self.drawn.high
        z, share = 1.959964, self.right / self.total
        middle = share + z * z / (2 * self.total)
        spread = z * math.sqrt(share * (1 - share) / self.total + z * z / (4 * self.total**2))
        scale = 100 / (1 + z * z / self.total)
        return max(0.0, scale * (middle - spread)), min(100.0, scale * (middle + spread))


@dataclass(frozen=True)
class Group:
    """Some of the items, under a heading of the table."""

    kind: str  # "all", "phenomenon" or "distance"
    name: str
    items: tuple[int, ...]  # by their place in the set
    chance: float  # percent, for guessing
    accuracy: dict[str, Accuracy]  # by use
    p: float | None  # with context against none; None where these were not compared


def uses(translator: Translator, context: str | None, shuffled: bool = False) -> dict[str, str | None]:
    """The ways to score a set with a model, as contexts: all that tell what context does, or the one asked for."""
    if not translator.card.context.active:
        return {SENTENCE: None}
    if context in _NAMES:
        return {_NAMES[context]: context}
    wrong = {SHUFFLED: context} if shuffled else {}
    return {WITH: context, **wrong, WITHOUT: "none", SENTENCE: OFF}


def with_shuffled_contexts(items: Sequence[Item], seed: int = 1) -> list[Item]:
    """Each item with the context of an item of another document."""
    if len({item.document for item in items}) < 2:
        raise DocnmtError("shuffled contexts come from other documents\n  Give a set from two documents or more.")
    generator, result = random.Random(seed), []
    for item in items:
        other = item
        while other.document == item.document:
            other = generator.choice(items)
        before, gold = other.previous, other.previous_target
        result.append(replace(item, previous=before, following=other.following, previous_target=gold))
    return result


def judge(
    translator: Translator, items: Sequence[Item], context: str | None, tick: Callable[[], Any] = lambda: None
) -> list[Verdict]:
    """Scores all candidates of all items; a candidate of several sentences has the sum of theirs."""
    choices = _choices(items, target_contexts(translator, items, context))
    scores = translator.score_choices(choices, context=context)
    verdicts = []
    for item in items:
        sentences = [next(scores) for _ in item.source]
        totals = [sum(found[n].total for found in sentences) for n in range(len(item.candidates))]
        # The same text twice is a tie, whatever the last digits of its two scores.
        right = all(totals[0] > other for other in totals[1:]) and item.right not in item.wrong
        verdicts.append(Verdict(tuple(totals), right))
        tick()
    return verdicts


def sees_translations(translator: Translator, context: str | None) -> bool:
    rule = translator.rule(context)
    return rule is not None and rule.sees_translations and rule.spec.previous > 0


def target_contexts(translator: Translator, items: Sequence[Item], context: str | None) -> list[Passage]:
    """For each item the translations of its `previous`: the set's, or, where it has none and the model sees them, the
    model's own. Those too far off to be seen are left empty."""
    found = [item.previous_target for item in items]
    rule = translator.rule(context)
    if rule is None or not sees_translations(translator, context):
        return found
    bare = [n for n, item in enumerate(items) if not item.previous_target]
    documents = (Document(items[n].document, items[n].previous[-rule.spec.previous :]) for n in bare)
    for n, translated in zip(bare, translator.translate_documents(documents, context=context), strict=True):
        near = [sentence.text for sentence in translated.sentences]
        found[n] = (*[""] * (len(items[n].previous) - len(near)), *near)
    return found


def _choices(items: Sequence[Item], before: Sequence[Passage]) -> Iterator[Choice]:
    """Each sentence to be scored, in the document that its item makes. In a passage, what a candidate says of the
    sentences before is part of its context."""
    for item, known in zip(items, before, strict=True):
        document = Document(item.document, (*item.previous, *item.source, *item.following))
        for place in range(len(item.source)):
            yield Choice(
                document,
                len(item.previous) + place,
                [candidate[place] for candidate in item.candidates],
                [(*known, *candidate[:place]) for candidate in item.candidates],
            )


def groups(items: Sequence[Item], verdicts: Mapping[str, Sequence[Judged]], resample: str = "items") -> list[Group]:
    """All items, then those of each phenomenon, then those of each distance. `resample`: whether items are taken as
    independent, or documents are drawn."""
    names = {name: number for number, name in enumerate(dict.fromkeys(item.document for item in items))}
    documents = np.array([names[item.document] for item in items])
    places: dict[tuple[str, str], list[int]] = {("all", "all"): list(range(len(items)))}
    for name in sorted({item.phenomenon for item in items}):
        places["phenomenon", name] = [n for n, item in enumerate(items) if item.phenomenon == name]
    for name in (*map(str, range(_FAR + 1)), f">{_FAR}", "unknown"):
        if found := [n for n, item in enumerate(items) if _distance(item) == name]:
            places["distance", name] = found
    result = []
    for (kind, name), chosen in places.items():
        right = {use: [said[n].right for n in chosen] for use, said in verdicts.items()}
        chance = 100 * sum(items[n].chance for n in chosen) / len(chosen)
        if resample == "documents":
            tested = _by_document(right, documents[chosen])
        else:
            accuracy = {use: Accuracy(sum(values), len(chosen)) for use, values in right.items()}
            tested = accuracy, mcnemar(right[WITH], right[WITHOUT]) if WITH in right else None
        result.append(Group(kind, name, tuple(chosen), chance, *tested))
    return result


def _by_document(
    right: Mapping[str, Sequence[bool]], documents: NDArray[np.int64]
) -> tuple[dict[str, Accuracy], float | None]:
    """Accuracies with intervals by drawing documents, and p of with context against none by swapping them."""
    rows = {use: np.array([values, [1] * len(values)], dtype=np.float64).T for use, values in right.items()}
    metric = ShareRight()
    accuracy = {
        use: Accuracy(sum(values), len(values), interval(metric, rows[use], documents)) for use, values in right.items()
    }
    if WITH not in rows:
        return accuracy, None
    return accuracy, compare(metric, rows[WITHOUT], rows[WITH], documents).p_randomisation


def _distance(item: Item) -> str:
    if item.distance is None:
        return "unknown"
    return str(item.distance) if item.distance <= _FAR else f">{_FAR}"


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """McNemar's exact test, two-sided: how probable it is that, of the items on which the two differ, one side gets so
    many or more, if each were the toss of a coin."""
    won = sum(a and not b for a, b in zip(first, second, strict=True))
    lost = sum(b and not a for a, b in zip(first, second, strict=True))
    tosses, fewer = won + lost, min(won, lost)
    ways = one = 1
    for k in range(fewer):
        one = one * (tosses - k) // (k + 1)
        ways += one
    return min(1.0, 2 * ways / 2**tosses)  # whole numbers: exact however many


# ---- showing it ----


def notes(items: Sequence[Item], translations_seen: bool = False) -> list[str]:
    """What a reader of the figures has to know about the set, and about a model that sees translations of contexts."""
    found = []
    gold = any(item.previous_target for item in items)
    if gold and not translations_seen:
        found.append("Gold target context is given in the set and not used by this model.")
    elif gold:
        found.append("This model sees the gold target context of the set, not its own translations.")
    if translations_seen and (own := sum(bool(item.previous) and not item.previous_target for item in items)):
        found.append(f"Items without target context, for which the model translated the sentences before: {own:,}.")
    called_right: dict[tuple[Passage, ...], set[Passage]] = {}
    for item in items:
        called_right.setdefault((item.previous, item.source, item.following), set()).add(item.right)
    others = [called_right[item.previous, item.source, item.following] - {item.right} for item in items]
    if undecided := sum(not rights.isdisjoint(item.wrong) for item, rights in zip(items, others, strict=True)):
        found.append(
            "Items that source context cannot decide, as another item with the same source text calls one of their "
            f"wrong translations right: {undecided:,}."
        )
    if same := sum(item.right in item.wrong for item in items):
        found.append(f"Items with a wrong candidate that is the same as the right one, counted as wrong: {same:,}.")
    if bare := sum(bool(item.distance) and not item.previous for item in items):
        found.append(f"Items that depend on a sentence before, of which the set gives none: {bare:,}.")
    if alone := sum(item.distance is None and not item.previous and not item.following for item in items):
        found.append(
            f"Items without any context, whose distance is not known: {alone:,}. They say nothing about the use of "
            "context."
        )
    return found


def signature(translator: Translator, context: str | None, count: int, resample: str = "items") -> str:
    drawn = resample == "documents"
    spread = "interval:bootstrap-of-documents-95" if drawn else "interval:wilson-95"
    parts = ["contrastive", f"items:{count}", "score:sum-of-log-probabilities", "ties:wrong", spread]
    if WITH in uses(translator, context):
        spec = translator.card.context.spec
        test = "p:swaps-of-documents" if drawn else "p:mcnemar-exact"
        parts += [f"context:{context or f'previous={spec.previous},following={spec.following}'}", test]
    return "|".join((*parts, f"docnmt:{__version__}"))


def table(title: str, found: Sequence[Group], below: Sequence[str]) -> Table:
    names = list(found[0].accuracy)
    compared = found[0].p is not None
    columns = [Column("", text=True), Column("items"), Column("chance"), *map(Column, names)]
    result = Table(title, [*columns, *([Column("p")] if compared else [])])
    for number, group in enumerate(found):
        name = f"distance {group.name}" if group.kind == "distance" else group.name
        cells = [name, f"{len(group.items):,}", f"{group.chance:.1f}"]
        cells += [shown(group.accuracy[use]) for use in names]
        cells += [] if group.p is None else ["< 0.0001" if group.p < 0.0001 else f"{group.p:.4f}"]
        result.add(*cells, rule=number > 0 and group.kind != found[number - 1].kind)
    result.notes.append("Percent of items, with 95 % intervals." + (" p: with context against none." * compared))
    result.notes += below
    return result


def as_json(found: Sequence[Group]) -> list[dict[str, Any]]:
    rows = []
    for group in found:
        row: dict[str, Any] = {"group": group.kind, "name": group.name, "items": len(group.items)}
        row["chance"] = group.chance
        for use, accuracy in group.accuracy.items():
            low, high = (None if math.isnan(end) else end for end in accuracy.interval)
            row[key_of(use)] = {"right": accuracy.right, "accuracy": accuracy.percent, "low": low, "high": high}
        rows.append(row if group.p is None else {**row, "p": group.p})
    return rows


def verdict_row(said: Verdict) -> dict[str, Any]:
    right, *wrong = said.scores
    return {"preferred": said.right, "right": right, "wrong": wrong}


def shown(accuracy: Accuracy) -> str:
    low, high = accuracy.interval
    if math.isnan(low):  # a single document
        return f"{accuracy.percent:.1f}"
    return f"{accuracy.percent:.1f} [{low:.1f}, {high:.1f}]"


def key_of(use: str) -> str:
    return use.replace(" ", "_")
