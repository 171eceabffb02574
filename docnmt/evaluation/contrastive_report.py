"""All that `docnmt contrast` finds out about a model and a set: contrastive and generative accuracy side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from docnmt.base.progress import Progress
from docnmt.base.report import Table
from docnmt.decoding.translator import Translator
from docnmt.evaluation import contrastive as accuracy
from docnmt.evaluation import contrastive_generative as generative
from docnmt.evaluation.contrastive_items import Item, record_of


class ContrastReport:
    """What a model says of a set, under each use of it (with context, shuffled, none, as a sentence model)."""

    def __init__(
        self, translator: Translator, items: Sequence[Item], context: str | None, shuffled: bool, resample: str
    ):
        self.translator, self.items, self.context, self.resample = translator, items, context, resample
        self.uses = accuracy.uses(translator, context, shuffled)
        self.asked = dict.fromkeys(self.uses, items)
        if accuracy.SHUFFLED in self.uses:
            self.asked[accuracy.SHUFFLED] = accuracy.with_shuffled_contexts(items)
        self.verdicts: dict[str, list[accuracy.Verdict]] = {}
        self.written: dict[str, list[generative.Written]] = {}

    @property
    def has_candidates(self) -> bool:
        """Whether every item has something to choose from; otherwise a model is only asked to translate."""
        return all(item.wrong for item in self.items)

    def judge(self, progress: Progress) -> None:
        for use, context in self.uses.items():
            with progress.bar(use, len(self.items), "items") as tick:
                self.verdicts[use] = accuracy.judge(self.translator, self.asked[use], context, tick)

    def translate(self, progress: Progress) -> None:
        for use, context in self.uses.items():
            with progress.bar(f"translate, {use}", len(self.items), "items") as tick:
                self.written[use] = generative.write(self.translator, self.asked[use], context, tick)

    @property
    def signature(self) -> str:
        return accuracy.signature(self.translator, self.context, len(self.items), self.resample)

    @property
    def notes(self) -> list[str]:
        return accuracy.notes(self.items, accuracy.sees_translations(self.translator, self.context))

    def tables(self, name: str) -> list[Table]:
        found = []
        if self.verdicts:
            groups = accuracy.groups(self.items, self.verdicts, self.resample)
            found.append(accuracy.table(f"Contrastive accuracy: {name}", groups, [*self.notes, self.signature]))
        if self.written:
            groups = accuracy.groups(self.items, self.written, self.resample)
            title = f"Generative accuracy: {name}"
            found.append(generative.generative_table(title, groups, self.written, not self.has_candidates))
        return found

    def as_dict(self) -> dict[str, Any]:
        contrastive = accuracy.groups(self.items, self.verdicts, self.resample) if self.verdicts else []
        figures = {"signature": self.signature, "notes": self.notes, "groups": accuracy.as_json(contrastive)}
        if self.written:
            groups = accuracy.groups(self.items, self.written, self.resample)
            figures["generative"] = generative.generative_json(groups, self.written)
        return figures

    def item_rows(self) -> Iterator[dict[str, Any]]:
        """One for each item, for looking at errors: its fields and what each use of the model says of it."""
        for number, item in enumerate(self.items):
            row: dict[str, Any] = {"item": number + 1, **record_of(item)}
            for use in self.uses:
                said: dict[str, Any] = {}
                if self.verdicts:
                    said |= accuracy.verdict_row(self.verdicts[use][number])
                if self.written:
                    said |= generative.written_row(self.written[use][number])
                row[accuracy.key_of(use)] = said
            yield row
