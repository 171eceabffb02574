"""Items of contrastive sets, and the documents that their contexts make up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_atomically
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, CorpusFiles, Flaw, InputFile, Line, find_flaw
from docnmt.corpus.read import read_corpus

# ---- Contrastive sets ----

# Contrastive sets: source sentences in their context, each with its right translation and wrong ones.
#
# One item is one question to a model: is the right translation more probable than every wrong one? A set is a file of
# JSON lines; the layouts of public sets are turned into the same fields (layouts.py).

_REQUIRED = ("document", "phenomenon", "source", "right", "wrong")
_OPTIONAL = ("position", "distance", "previous", "following", "previous_target", "expected")

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
    distance: int | None = None  # how many sentences back that is which decides; None: not known
    previous: Passage = ()  # the source sentences before
    following: Passage = ()  # and after
    previous_target: Passage = ()  # the reference of `previous`: gold, no system's own translation
    expected: str = ""  # the word that a translation must have, where a set names it; `wrong` may then be empty

    @property
    def candidates(self) -> tuple[Passage, ...]:
        return self.right, *self.wrong

    @property
    def chance(self) -> float:
        """Of a guess to be right."""
        return 1 / len(self.candidates)


@dataclass(frozen=True)
class Place:
    """Where an item stands in a file: on a line, or, where a file is one JSON value, as which of its items."""

    file: str
    line: int | None = None
    item: int | None = None

    def bad(self, problem: str, remedy: str = "See docs/contrastive.md for the fields.") -> BadInput:
        problem = problem if self.item is None else f"item {self.item}: {problem}"
        return BadInput("bad contrastive item", problem, remedy, file=self.file, line=self.line)


def item_from(record: Mapping[str, Any], place: Place) -> Item:
    """An item out of the fields of its JSON object, none missing, none unknown, each of its type."""
    for name in record:
        if name not in (*_REQUIRED, *_OPTIONAL):
            raise place.bad(f"unknown field {name!r}", f"The fields are {', '.join((*_REQUIRED, *_OPTIONAL))}.")
    for name in _REQUIRED:
        if name not in record:
            raise place.bad(f"no {name!r}")
    for name in ("document", "phenomenon"):
        value = record[name]
        if not isinstance(value, str) or not value.strip() or find_flaw(value, 1_000):
            raise place.bad(f"{name!r} is not a name: {_shown(value)}")
    expected = record.get("expected", "")
    if not isinstance(expected, str) or ("expected" in record and not expected.strip()):
        raise place.bad(f"'expected' is not a word: {_shown(expected)}")
    wrong = record["wrong"]
    if not isinstance(wrong, list) or not (wrong or expected):
        raise place.bad(f"'wrong' is not a list of one translation or more: {_shown(wrong)}")
    item = Item(
        document=record["document"],
        phenomenon=record["phenomenon"],
        source=_passage(record["source"], "source", place),
        right=_passage(record["right"], "right", place),
        wrong=tuple(_passage(candidate, "wrong", place) for candidate in wrong),
        position=_count(record.get("position"), "position", place),
        distance=_count(record.get("distance"), "distance", place),
        previous=_sentences(record.get("previous", []), "previous", place),
        following=_sentences(record.get("following", []), "following", place),
        previous_target=_sentences(record.get("previous_target", []), "previous_target", place),
        expected=expected,
    )
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


def read_items(file: InputFile) -> list[Item]:
    """A set in docnmt's own layout: an item a line."""
    items = []
    for number, line in enumerate(file.lines(MAX_CHARACTERS * SENTENCES_PER_LINE), 1):
        place = Place(file.name, line=number)
        if isinstance(line, Flaw):
            raise place.bad(line.problem, line.remedy)
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise place.bad(f"not JSON: {error}") from None
        if not isinstance(record, dict):
            raise place.bad("a JSON value that is not an object")
        items.append(item_from(record, place))
    return at_least_one(items, file.name)


def write_items(path: str | Path, items: Iterable[Item]) -> None:
    with write_atomically(path) as file:
        file.writelines(json.dumps(record_of(item), ensure_ascii=False) + "\n" for item in items)


def record_of(item: Item) -> dict[str, Any]:
    """The fields of an item as JSON has them: a passage of one sentence is a string."""
    return {
        "document": item.document,
        "position": item.position,
        "phenomenon": item.phenomenon,
        "distance": item.distance,
        "previous": list(item.previous),
        "following": list(item.following),
        "source": _text(item.source),
        "right": _text(item.right),
        "wrong": [_text(candidate) for candidate in item.wrong],
        "previous_target": list(item.previous_target),
        **({"expected": item.expected} if item.expected else {}),
    }


def at_least_one(items: list[Item], name: str) -> list[Item]:
    if not items:
        raise DocnmtError(f"{name}: no items\n  A contrastive set has one item or more.")
    return items


def _text(passage: Passage) -> str | list[str]:
    return passage[0] if len(passage) == 1 else list(passage)


def _passage(value: Any, name: str, place: Place) -> Passage:
    """What is scored: a sentence, or a list of them, none empty."""
    sentences = _sentences([value] if isinstance(value, str) else value, name, place)
    if not sentences or not all(sentence.strip() for sentence in sentences):
        raise place.bad(f"an empty sentence in {name!r}", "Write the sentence, or remove the item.")
    return sentences


def _sentences(value: Any, name: str, place: Place) -> Passage:
    if not isinstance(value, list) or not all(isinstance(sentence, str) for sentence in value):
        raise place.bad(f"{name!r} does not hold sentences: {_shown(value)}")
    for sentence in value:
        if flaw := find_flaw(sentence, MAX_CHARACTERS):
            raise place.bad(f"{flaw.problem} of a sentence in {name!r}", flaw.remedy)
    return tuple(value)


def _count(value: Any, name: str, place: Place) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise place.bad(f"{name!r} is not a number from 0 on: {_shown(value)}", "Write null where it is not known.")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


# ---- The documents a contrastive set was taken from: where its contexts are ----

KEPT = 20  # sentences of context on either side: more than any antecedent needs, far less than a film has


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some sentences of a document; `first` is the position of the first of them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    first: int


@dataclass(frozen=True)
class _Text:
    """A document whose lines may be flawed: only those that are needed have to be good."""

    id: str
    source: Sequence[Line]
    target: Sequence[Line]
    files: tuple[str, str]

    def excerpt(self, segment: int) -> Excerpt:
        first, end = max(0, segment - KEPT - 1), segment + KEPT + 2
        source, target = (
            tuple(legible(line, file, number, self.id) for number, line in enumerate(lines[first:end], first + 1))
            for lines, file in zip((self.source, self.target), self.files, strict=True)
        )
        return Excerpt(source, target, first)


def legible(line: Line, file: str, number: int, document: str = "") -> str:
    """A line with spaces for its control characters: subtitles have some, and nobody mends a public set."""
    if not isinstance(line, Flaw):
        return line
    if line.kind != "control character":
        raise BadInput(line.kind, line.problem, line.remedy, file=file, document=document, line=number)
    return line.text.replace("\ufffd", " ")


def excerpts(
    where: Sequence[str], wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]
) -> dict[tuple[str, int], Excerpt]:
    """What stands around segments, given as document id -> segment numbers; by (id, number).

    `where` is a folder with a file a document and language (ID.en, ID.de, in whatever sub-folder), or a corpus in one
    file or two. Documents are held one at a time.
    """
    if len(where) == 1 and Path(where[0]).is_dir():
        texts = _from_folder(Path(where[0]), wanted, languages)
    else:
        texts = _from_corpus(where, wanted, languages)
    found = {}
    for text in texts:
        for segment in wanted[text.id]:
            found[text.id, segment] = text.excerpt(segment)
    for name, segments in wanted.items():
        if (name, segments[0]) not in found:
            raise DocnmtError(f"{', '.join(where)}: no document {name}\n  Give the documents the set was made from.")
    return found


def _from_folder(folder: Path, wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]) -> Iterator[_Text]:
    paths = {path.name: path for path in folder.rglob("*") if path.is_file()}
    for name in wanted:
        for stem in _names(name):
            sides = [paths.get(f"{stem}.{language}") for language in languages]
            if all(sides):
                yield _read(name, str(sides[0]), str(sides[1]))
                break
        else:
            raise DocnmtError(
                f"{folder}: no files {_names(name)[-1]}.{languages[0]} and .{languages[1]}, for document {name}\n"
                "  Lay the documents out as the set's own script does, with the model's languages as endings."
            )


def _read(name: str, source: str, target: str) -> _Text:
    sides: list[list[Line]] = []
    for path in (source, target):
        with InputFile(path) as file:
            sides.append(list(file.lines(MAX_CHARACTERS)))
    if len(sides[0]) != len(sides[1]):
        raise DocnmtError(
            f"{source} and {target}: {len(sides[0]):,} and {len(sides[1]):,} lines\n"
            "  Both sides of a document have a line for each segment."
        )
    return _Text(name, sides[0], sides[1], (source, target))


def _from_corpus(
    where: Sequence[str], wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]
) -> Iterator[_Text]:
    if len(where) > 2:
        raise DocnmtError("--context-from takes a folder, or a corpus of one file or two\n  Name one or two.")
    files = CorpusFiles(path=where[0]) if len(where) == 1 else CorpusFiles(source=where[0], target=where[1])
    known = {other: name for name in wanted for other in reversed(_names(name))}
    for document in read_corpus(files, languages=languages):
        if document.id in known:
            yield _Text(known[document.id], document.source, document.target, (str(files), str(files)))


def _names(name: str) -> list[str]:
    """A document's id as the set has it, and without the ending that ContraPro leaves on it (`_.de`)."""
    return list(dict.fromkeys((name, name.rpartition(".")[0] or name)))
