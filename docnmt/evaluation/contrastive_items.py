"""Items of contrastive sets: source sentences in their context, each with its right translation and
wrong ones.

One item is one question to a model: is the right translation more probable than every wrong one? A
set is a file of JSON lines; contrastive_layouts.py turns the layouts of public sets into the same
fields. Some leave the contexts out: these are found in ContraPro's documents, in ctxpro's file of inputs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_json_lines
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, CorpusFiles, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.read import read_corpus
from docnmt.text.scripts import letters

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
    write_json_lines(path, map(record_of, items))


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
            raise place.bad(f"not valid JSON: {error}") from None
        if not isinstance(record, dict):
            raise place.bad("this line is not a JSON object")
        items.append(item_from(record, place))
    return at_least_one(items, file.name)


def at_least_one(items: list[Item], name: str) -> list[Item]:
    if not items:
        raise DocnmtError(f"{name}: contains no items\n  A contrastive set needs at least one item.")
    return items


# ---- checking fields ----


@dataclass(frozen=True)
class ItemPlace:
    """Where an item is in a file: its line or, if the file is one JSON value, its number."""

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
            raise place.bad(f"unknown field {name!r}", f"Use only these fields: {', '.join(_FIELDS)}.")
    for name in _REQUIRED:
        if name not in record:
            raise place.bad(f"the field {name!r} is missing")
    item = Item(**{name: read(record[name], name, place) for name, read in _FIELDS.items() if name in record})
    if not item.wrong and not item.expected:
        raise place.bad("'wrong' must be a list of one or more translations, not []")
    for candidate in item.candidates:
        if len(candidate) != len(item.source):
            raise place.bad(
                f"{len(item.source)} source sentences, but a translation has {len(candidate)}",
                "'right' and every entry of 'wrong' need one target sentence for each source sentence.",
            )
    if item.previous_target and len(item.previous_target) != len(item.previous):
        raise place.bad(
            f"{len(item.previous)} sentences in 'previous' but {len(item.previous_target)} in 'previous_target'",
            "Give a translation for each of them, or leave 'previous_target' out.",
        )
    return item


def _name(value: Any, name: str, place: ItemPlace) -> str:
    if not isinstance(value, str) or not value.strip() or find_flaw(value, 1_000):
        raise place.bad(f"{name!r} must be a short, non-empty string, not {_shown(value)}")
    return value


def _word(value: Any, name: str, place: ItemPlace) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.bad(f"{name!r} must be a non-empty string, not {_shown(value)}")
    return value


def _count(value: Any, name: str, place: ItemPlace) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise place.bad(
            f"{name!r} must be a whole number, 0 or more, not {_shown(value)}", "Write null if it is unknown."
        )
    return value


def _sentences(value: Any, name: str, place: ItemPlace) -> Passage:
    if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
        raise place.bad(f"{name!r} must be a sentence or a list of sentences, not {_shown(value)}")
    for sentence in value:
        if flaw := find_flaw(sentence, MAX_CHARACTERS):
            raise place.bad(f"{flaw.problem} of a sentence in {name!r}", flaw.remedy)
    return tuple(value)


def _passage(value: Any, name: str, place: ItemPlace) -> Passage:
    """What is scored: a sentence, or a list of them, none empty."""
    sentences = _sentences([value] if isinstance(value, str) else value, name, place)
    if not sentences or not all(sentence.strip() for sentence in sentences):
        raise place.bad(f"{name!r} has an empty sentence", "Write the sentence, or remove the item.")
    return sentences


def _passages(value: Any, name: str, place: ItemPlace) -> tuple[Passage, ...]:
    if not isinstance(value, list):
        raise place.bad(f"{name!r} must be a list of one or more translations, not {_shown(value)}")
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


# ---- contexts that are not in the set itself ----

_STRAYED = 0.05  # the share of items that may stand elsewhere than they say: more, and the texts are other ones
_SENTENCE_END = re.compile(r"\s*<eos>\s*")


def _legible(line: Line, file: str, number: int, document: str = "") -> str:
    """A line with spaces for its control characters: subtitles have some, and public sets are not corrected."""
    if not isinstance(line, Flaw):
        return line
    if line.kind != "control character":
        raise BadInput(line.kind, line.problem, line.remedy, file=file, document=document, line=number)
    return line.text.replace("\ufffd", " ")


def in_inputs(items: list[Item], name: str, context_from: Sequence[str]) -> list[Item]:
    """The items of a ctxpro set with the sentences before them. Its file of inputs has a line for
    each item: these sentences, and last the item's own, with `<eos>` between them."""
    if len(context_from) > 1:
        raise DocnmtError(
            "--context-from takes one file for a ctxpro set\n  Give the input file that belongs to the set."
        )
    (path,) = context_from
    with InputFile(path) as file:
        lines = [
            _legible(line, file.name, number)
            for number, line in enumerate(file.lines(MAX_CHARACTERS * SENTENCES_PER_LINE), 1)
        ]
    if len(lines) != len(items):
        raise DocnmtError(
            f"{path}: {len(lines):,} lines, but {name} has {len(items):,} items\n"
            "  Give the input file that belongs to the set; it has the same name."
        )
    placed, strayed = [], []
    for number, (item, line) in enumerate(zip(items, lines, strict=True), 1):
        *previous, own = _SENTENCE_END.split(line.strip())
        fits = letters(own) == letters(item.source[0])
        strayed += [] if fits else [number]
        placed.append(replace(item, previous=tuple(previous)) if fits else item)
    if len(strayed) > _STRAYED * len(items):
        raise DocnmtError(
            f"{path}, line {strayed[0]}: does not end with the source sentence of item {strayed[0]} of {name}\n"
            "  Give the input file that belongs to the set, with <eos> after each context sentence."
        )
    return placed


def in_documents(
    items: list[Item], segments: Sequence[int], name: str, where: Sequence[str], languages: tuple[str, str]
) -> list[Item]:
    """The items of a ContraPro set in the documents that it was made from; `segments` are their
    numbers there.

    `where` is a folder with a file for each document and language (ID.en, ID.de, in any
    sub-folder), or a corpus in one file or two. Documents are held one at a time.
    """
    wanted: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        wanted.setdefault(item.document, []).append(number)
    # ContraPro counts the segments of a document from 1, Lopes et al. from 0: the source sentences
    # tell.
    counted: dict[int, dict[int, Item]] = {1: {}, 0: {}}  # counted from -> number of an item -> the item in its context
    seen = set()
    from_folder = len(where) == 1 and Path(where[0]).is_dir()
    texts = _from_folder(Path(where[0]), wanted, languages) if from_folder else _from_corpus(where, wanted, languages)
    for text in texts:
        seen.add(text.id)
        for number in wanted[text.id]:
            for first, found in counted.items():
                if placed := text.placed(items[number], segments[number] - first):
                    found[number] = placed
    for document in wanted:
        if document not in seen:
            raise DocnmtError(
                f"document {document} was not found in {', '.join(where)}\n"
                "  Give the documents that the set was made from."
            )
    fitting = max(counted.values(), key=len)
    strayed = [number for number in range(len(items)) if number not in fitting]
    if strayed:
        number = strayed[0]
        problem = f"its source sentence is not segment {segments[number]} of document {items[number].document}"
        if len(strayed) > _STRAYED * len(items):
            remedy = "Use the documents that the set was made from (its README names their release)."
            raise ItemPlace(name, item=number + 1).bad(problem, remedy)
        warnings.warn(
            f"{name}: {len(strayed):,} of {len(items):,} items are not where the set says, so they have no context; "
            f"the first is item {number + 1}: {problem}",
            stacklevel=2,
        )
    return [fitting.get(number, item) for number, item in enumerate(items)]


@dataclass(frozen=True)
class _Text:
    """A document whose lines may be flawed: only those that are needed have to be good."""

    id: str
    source: Sequence[Line]
    target: Sequence[Line]
    files: tuple[str, str]

    def placed(self, item: Item, position: int) -> Item | None:
        """The item in its context, if it stands at this position."""
        if not 0 <= position < len(self.source):
            return None
        (own,) = self._lines(0, position, position + 1)
        if letters(own) != letters(item.source[0]):
            return None
        first = max(0, position - KEPT)
        return replace(
            item,
            position=position,
            previous=self._lines(0, first, position),
            following=self._lines(0, position + 1, position + 1 + KEPT),
            previous_target=self._lines(1, first, position),
        )

    def _lines(self, side: int, first: int, end: int) -> Passage:
        lines = enumerate((self.source, self.target)[side][first:end], first + 1)
        return tuple(_legible(line, self.files[side], number, self.id) for number, line in lines)


def _from_folder(folder: Path, wanted: Iterable[str], languages: tuple[str, str]) -> Iterator[_Text]:
    paths = {path.name: str(path) for path in folder.rglob("*") if path.is_file()}
    for name in wanted:
        both = [tuple(paths.get(f"{stem}.{language}", "") for language in languages) for stem in _stems(name)]
        files = next((files for files in both if all(files)), None)
        if files is None:
            raise DocnmtError(
                f"{folder}: no files {_stems(name)[-1]}.{languages[0]} and .{languages[1]} for document {name}\n"
                "  Arrange the documents as the set's own script does, with the model's languages as extensions."
            )
        sides: list[list[Line]] = []
        for path in files:
            with InputFile(path) as file:
                sides.append(list(file.lines(MAX_CHARACTERS)))
        if len(sides[0]) != len(sides[1]):
            raise DocnmtError(
                f"{files[0]} and {files[1]}: {len(sides[0]):,} and {len(sides[1]):,} lines\n"
                "  Both sides of a document need one line per segment."
            )
        yield _Text(name, sides[0], sides[1], (files[0], files[1]))


def _from_corpus(where: Sequence[str], wanted: Iterable[str], languages: tuple[str, str]) -> Iterator[_Text]:
    if len(where) > 2:
        raise DocnmtError("--context-from takes a folder, or a corpus of one file or two\n  Give one or two paths.")
    files = CorpusFiles(path=where[0]) if len(where) == 1 else CorpusFiles(source=where[0], target=where[1])
    known = {stem: name for name in wanted for stem in reversed(_stems(name))}
    for document in read_corpus(files, languages=languages):
        if document.id in known:
            yield _Text(known[document.id], document.source, document.target, (str(files), str(files)))


def _stems(name: str) -> list[str]:
    """A document's id as the set has it, and without the ending that ContraPro leaves on it (`_.de`)."""
    return list(dict.fromkeys((name, name.rpartition(".")[0] or name)))
