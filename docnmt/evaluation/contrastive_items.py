"""Items of contrastive sets: source sentences in their context, each with its right translation and
wrong ones.

One item is one question to a model: is the right translation more probable than every wrong one? A
set is a file of JSON lines; contrastive_layouts.py turns the layouts of public sets into the same
fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_atomically
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, Flaw, InputFile, find_flaw

KEPT = 20  # sentences of context on either side: more than any antecedent needs, far less than a film has

Passage = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A passage (nearly always one sentence) with its candidate translations, all sentence by sentence."""

    document: str
    phenomenon: str
    source: Passage
    right: Passage
    wrong: tuple[Passage, ...]
    position: int | None = None  # of the first source sentence in its document, from 0
    distance: int | None = None  # how many sentences back the one that decides is; None: not known
    previous: Passage = ()  # the source sentences before
    following: Passage = ()  # and after
    previous_target: Passage = ()  # the reference of `previous`: gold, no system's own translation
    expected: str = ""  # the word that a translation must have, where a set names it; `wrong` may then be empty

    @property
    def candidates(self) -> tuple[Passage, ...]:
        return self.right, *self.wrong

    @property
    def chance(self) -> float:
        """That a guess is right."""
        return 1 / len(self.candidates)


def record_of(item: Item) -> dict[str, Any]:
    """The fields of an item as JSON has them: a passage of one sentence is a string."""

    def text(passage: Passage) -> str | list[str]:
        return passage[0] if len(passage) == 1 else list(passage)

    return {
        "document": item.document,
        "position": item.position,
        "phenomenon": item.phenomenon,
        "distance": item.distance,
        "previous": list(item.previous),
        "following": list(item.following),
        "source": text(item.source),
        "right": text(item.right),
        "wrong": [text(candidate) for candidate in item.wrong],
        "previous_target": list(item.previous_target),
        **({"expected": item.expected} if item.expected else {}),
    }


def write_items(path: str | Path, items: Iterable[Item]) -> None:
    with write_atomically(path) as file:
        file.writelines(json.dumps(record_of(item), ensure_ascii=False) + "\n" for item in items)


def read_items(file: InputFile) -> list[Item]:
    """A set in docnmt's own layout: an item a line."""
    items = []
    for number, line in enumerate(file.lines(MAX_CHARACTERS * SENTENCES_PER_LINE), 1):
        place = ItemPlace(file.name, line=number)
        if isinstance(line, Flaw):
            raise place.bad(line.problem, line.remedy)
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise place.bad(f"not JSON: {error}") from None
        if not isinstance(record, dict):
            raise place.bad("not a JSON object")
        items.append(item_from(record, place))
    return at_least_one(items, file.name)


def at_least_one(items: list[Item], name: str) -> list[Item]:
    if not items:
        raise DocnmtError(f"{name}: no items\n  A contrastive set has one item or more.")
    return items


# ---- checking fields ----


@dataclass(frozen=True)
class ItemPlace:
    """Where an item stands in a file: on a line, or, where a file is one JSON value, as which of its items."""

    file: str
    line: int | None = None
    item: int | None = None

    def bad(self, problem: str, remedy: str = "See docs/contrastive.md for the fields.") -> BadInput:
        problem = problem if self.item is None else f"item {self.item}: {problem}"
        return BadInput("bad contrastive item", problem, remedy, file=self.file, line=self.line)


def item_from(record: Mapping[str, Any], place: ItemPlace) -> Item:
    """An item from the fields of its JSON object, none missing, none unknown, each of its type."""
    for name in record:
        if name not in _FIELDS:
            raise place.bad(f"unknown field {name!r}", f"The fields are {', '.join(_FIELDS)}.")
    for name in _REQUIRED:
        if name not in record:
            raise place.bad(f"no {name!r}")
    item = Item(**{name: read(record[name], name, place) for name, read in _FIELDS.items() if name in record})
    if not item.wrong and not item.expected:
        raise place.bad("'wrong' is not a list of one translation or more: []")
    for candidate in item.candidates:
        if len(candidate) != len(item.source):
            raise place.bad(
                f"{len(item.source)} source sentences but a translation of {len(candidate)}",
                "Give each source sentence one target sentence, in 'right' and in each of 'wrong'.",
            )
    if item.previous_target and len(item.previous_target) != len(item.previous):
        raise place.bad(
            f"{len(item.previous)} sentences in 'previous' but {len(item.previous_target)} in 'previous_target'",
            "Give each of them its translation, or leave 'previous_target' out.",
        )
    return item


def _name(value: Any, name: str, place: ItemPlace) -> str:
    if not isinstance(value, str) or not value.strip() or find_flaw(value, 1_000):
        raise place.bad(f"{name!r} must be a short string that is not empty, not {_shown(value)}")
    return value


def _word(value: Any, name: str, place: ItemPlace) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.bad(f"{name!r} must be a string that is not empty, not {_shown(value)}")
    return value


def _count(value: Any, name: str, place: ItemPlace) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise place.bad(
            f"{name!r} must be a whole number, 0 or more, not {_shown(value)}", "Write null where it is not known."
        )
    return value


def _sentences(value: Any, name: str, place: ItemPlace) -> Passage:
    if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
        raise place.bad(f"{name!r} does not hold sentences: {_shown(value)}")
    for sentence in value:
        if flaw := find_flaw(sentence, MAX_CHARACTERS):
            raise place.bad(f"{flaw.problem} of a sentence in {name!r}", flaw.remedy)
    return tuple(value)


def _passage(value: Any, name: str, place: ItemPlace) -> Passage:
    """What is scored: a sentence, or a list of them, none empty."""
    sentences = _sentences([value] if isinstance(value, str) else value, name, place)
    if not sentences or not all(sentence.strip() for sentence in sentences):
        raise place.bad(f"an empty sentence in {name!r}", "Write the sentence, or remove the item.")
    return sentences


def _passages(value: Any, name: str, place: ItemPlace) -> tuple[Passage, ...]:
    if not isinstance(value, list):
        raise place.bad(f"{name!r} is not a list of one translation or more: {_shown(value)}")
    return tuple(_passage(candidate, name, place) for candidate in value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


_REQUIRED: dict[str, Callable[[Any, str, ItemPlace], Any]] = {
    "document": _name,
    "phenomenon": _name,
    "source": _passage,
    "right": _passage,
    "wrong": _passages,
}
_FIELDS = _REQUIRED | {
    "position": _count,
    "distance": _count,
    "previous": _sentences,
    "following": _sentences,
    "previous_target": _sentences,
    "expected": _word,
}
