"""Does a model's own translation have the right word? The items of a set, translated in their contexts.

A model may find the right candidate more probable and still write the other word, or a sentence with neither; so this
stands beside contrastive accuracy (accuracy.py) and does not replace it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from docnmt.base.report import Column, Table
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.evaluation.contrastive import Accuracy, Group, key_of, shown
from docnmt.evaluation.contrastive_ctxpro import has_expected
from docnmt.evaluation.contrastive_items import Item, Passage
from docnmt.text.scripts import CJK

RIGHT, WRONG, NEITHER = "right", "wrong", "neither"


@dataclass(frozen=True)
class Written:
    """What a model made of an item, and what that is."""

    translation: str
    verdict: str

    @property
    def right(self) -> bool:
        return self.verdict == RIGHT


def verdict(item: Item, translation: str) -> str:
    """Right: a word that only the right candidate has, and none that only wrong ones have. Where a set names the word
    to expect, that has to be there."""
    if item.expected:
        return RIGHT if has_expected(translation, item.expected) else NEITHER
    right, wrong = decisive(item)
    found = set(tokens((translation,)))
    if not found.isdisjoint(wrong):
        return WRONG
    return NEITHER if found.isdisjoint(right) else RIGHT


def write(
    translator: Translator, items: Sequence[Item], context: str | None, tick: Callable[[], Any] = lambda: None
) -> list[Written]:
    """Translates the sentences of all items, each in its context; a system that sees the translations of its context
    translates that, too."""
    rule = translator.rule(context)
    before, after = (rule.spec.previous, rule.spec.following) if rule else (0, 0)
    asked, around = [], []
    for item in items:
        previous, following = item.previous[max(0, len(item.previous) - before) :], item.following[:after]
        asked.append(Document(item.document, (*[""] * len(previous), *item.source, *[""] * len(following))))
        around.append(Document(item.document, (*previous, *item.source, *following)))
    written = []
    results = translator.translate_documents(asked, context_from=around, context=context)
    for item, result in zip(items, results, strict=True):
        text = " ".join(sentence.text for sentence in result.sentences if sentence.text)
        written.append(Written(text, verdict(item, text)))
        tick()
    return written


# ---- showing it ----


def of_decided(written: Sequence[Written], places: Sequence[int]) -> Accuracy | None:
    """Among the translations that have a right or a wrong word; None where none has."""
    verdicts = [written[place].verdict for place in places]
    decided = len(verdicts) - verdicts.count(NEITHER)
    return Accuracy(verdicts.count(RIGHT), decided) if decided else None


def generative_table(title: str, found: Sequence[Group], written: dict[str, list[Written]], named: bool) -> Table:
    """`named`: the set names the word to expect, and knows no wrong ones."""
    compared = found[0].p is not None
    columns = [Column("", text=True), Column("items")]
    for use in written:
        columns += [Column(use)] if named else [Column(use), Column(f"{use}, of decided")]
    table = Table(title, [*columns, *([Column("p")] if compared else [])])
    for number, group in enumerate(found):
        cells = [f"distance {group.name}" if group.kind == "distance" else group.name, f"{len(group.items):,}"]
        for use, texts in written.items():
            decided = of_decided(texts, group.items)
            cells.append(shown(group.accuracy[use]))
            cells += [] if named else [f"{decided.percent:.1f}" if decided else ""]
        cells += [] if group.p is None else ["< 0.0001" if group.p < 0.0001 else f"{group.p:.4f}"]
        table.add(*cells, rule=number > 0 and group.kind != found[number - 1].kind)
    if named:
        table.notes.append("Percent of translations that have the expected word, with 95 % intervals.")
    else:
        table.notes.append(
            "Percent of translations that have a word which only the right candidate has, and none which only wrong "
            "ones have, with 95 % intervals; of decided: among those that have one or the other."
        )
    if compared:
        table.notes.append("p: with context against none.")
    return table


def generative_json(found: Sequence[Group], written: dict[str, list[Written]]) -> list[dict[str, Any]]:
    rows = []
    for group in found:
        row: dict[str, Any] = {"group": group.kind, "name": group.name, "items": len(group.items)}
        for use, texts in written.items():
            verdicts = [texts[place].verdict for place in group.items]
            low, high = (None if math.isnan(end) else end for end in group.accuracy[use].interval)
            counts = {kind: verdicts.count(kind) for kind in (RIGHT, WRONG, NEITHER)}
            row[key_of(use)] = {**counts, "accuracy": group.accuracy[use].percent, "low": low, "high": high}
        rows.append(row if group.p is None else {**row, "p": group.p})
    return rows


def written_row(written: Written) -> dict[str, str]:
    return {"translation": written.translation, "generative": written.verdict}


# ---- The words that tell the candidates of an item apart ----

_TOKEN = re.compile(rf"[{CJK}]|[^\W_]+")  # a word, or a character where no spaces part words


class Decisive(NamedTuple):
    right: tuple[str, ...]  # words of the right translation that a wrong one has not, as they come
    wrong: tuple[str, ...]  # words of wrong translations that the right one has not


def decisive(item: Item) -> Decisive:
    right = tokens(item.right)
    counts = Counter(right)
    wrong = [Counter(tokens(candidate)) for candidate in item.wrong]
    missing = set().union(*(counts - other for other in wrong))
    added = dict.fromkeys(word for other in wrong for word in other - counts)
    return Decisive(tuple(dict.fromkeys(word for word in right if word in missing)), tuple(added))


def tokens(passage: Passage) -> list[str]:
    return [word for sentence in passage for word in _TOKEN.findall(sentence.lower())]
