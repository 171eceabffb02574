"""XLIFF 1.2 and 2.x: a <file> is a document, its units in their order; what is not translated yet leaves a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from docnmt.base.errors import BadInput
from docnmt.base.lines import Flaw, InputFile, Line
from docnmt.corpora.assembly import Reading, Row, documents_from_rows
from docnmt.corpora.markup import same_language
from docnmt.corpora.markup_tokens import Tag, followed, sentence
from docnmt.corpora.sentence_pairs import good_rows, sentence_pairs
from docnmt.document import GAP, ParallelDocument

# What holds one source and its target: in 1.2 and in 2.x.
_UNITS = frozenset(("trans-unit", "segment"))
# Their content is code of the original format, not text.
_CODES = frozenset(("bpt", "ept", "ph", "it"))
# Suggestions, which have sources and targets of their own.
_ASIDE = frozenset(("alt-trans", "mtc:matches"))
_UNFINISHED = ("new", "needs-", "initial")


@dataclass(slots=True)
class Unit:
    line: int
    translate: bool
    finished: bool
    sides: dict[str, Line] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit is: the document and its languages, as far as they are told."""

    line: int = 1
    document: str = ""
    source: str = ""
    target: str = ""


class _UnitReader:
    """Follows the tokens of one unit."""

    def __init__(self, tag: Tag, translate: bool, limit: int):
        translate = translate and tag.attributes.get("translate", "yes") != "no"
        self.unit = Unit(tag.line, translate, not _unfinished(tag))
        self._limit = limit
        self._pieces: list[str] | None = None
        self._codes = self._aside = self._size = 0

    def tag(self, tag: Tag) -> None:
        step = 0 if tag.empty else -1 if tag.closing else 1
        if tag.name in _ASIDE:
            self._aside = max(0, self._aside + step)
        elif self._aside:
            return
        elif tag.name in ("source", "target"):
            if tag.closing and self._pieces is not None:
                self.unit.sides[tag.name] = sentence(self._pieces, self._limit)
            self._pieces = [] if step == 1 else None
            self._codes = self._size = 0
            if tag.name == "target" and _unfinished(tag):
                self.unit.finished = False
        elif tag.name in _CODES:
            self._codes = max(0, self._codes + step)

    def text(self, text: str) -> None:
        if self._pieces is not None and not self._codes and not self._aside and self._size <= 10 * self._limit:
            self._pieces.append(text)
            self._size += len(text)


def _unfinished(tag: Tag) -> bool:
    return tag.attributes.get("state", "").startswith(_UNFINISHED)


def units(file: InputFile, reading: Reading) -> Iterator[tuple[Place, Unit]]:
    here = Place(document=file.stem)
    languages = "", ""
    translate = True
    seen: dict[str, int] = {}
    reader: _UnitReader | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if reader:
                reader.text(token)
        elif token.name in _UNITS:
            if reader:
                yield here, reader.unit
            reader = None if token.closing else _UnitReader(token, translate, reading.limit)
        elif reader:
            reader.tag(token)
        elif token.closing:
            continue
        elif token.name == "xliff":
            languages = token.attributes.get("srclang", ""), token.attributes.get("trglang", "")
        elif token.name == "file":
            name = token.attributes.get("original") or token.attributes.get("id") or file.stem
            seen[name] = seen.get(name, 0) + 1
            document = name if seen[name] == 1 else f"{name}#{seen[name]}"
            source = token.attributes.get("source-language") or languages[0]
            here = Place(token.line, document, source, token.attributes.get("target-language") or languages[1])
        elif token.name == "unit":
            translate = token.attributes.get("translate", "yes") != "no"
    if reader:
        reading.bad("bad markup", "the unit has no end", file=file.name, line=reader.unit.line)


def _order(here: Place, file: InputFile, reading: Reading) -> tuple[str, str] | None:
    """Which side is which; None where the languages are others than those wanted."""
    wanted = reading.languages
    if same_language(here.source, wanted[0]) and same_language(here.target, wanted[1]):
        return "source", "target"
    if same_language(here.source, wanted[1]) and same_language(here.target, wanted[0]):
        return "target", "source"
    problem = f"{here.source} to {here.target or 'no language'} where {wanted[0]} to {wanted[1]} is wanted"
    remedy = "Leave the file out, or name its languages in the recipe."
    reading.on_bad(BadInput("other languages", problem, remedy, file=file.name, document=here.document, line=here.line))
    return None


def _rows(file: InputFile, reading: Reading) -> Iterator[Row]:
    place: Place | None = None
    order: tuple[str, str] | None = None
    for here, unit in units(file, reading):
        if here != place:
            place, order = here, _order(here, file, reading)
        if order is None:
            continue
        document = f"{here.document}:{unit.line}" if reading.pairs else here.document
        sides = [unit.sides.get(side, "") for side in order] if unit.translate and unit.finished else [GAP, GAP]
        flaw = next((side for side in sides if isinstance(side, Flaw)), None)
        if flaw:
            reading.flaw(flaw, file=file.name, document=document, line=unit.line)
        elif isinstance(sides[0], str) and isinstance(sides[1], str):
            whole = bool(sides[0] and sides[1])
            pairs = sentence_pairs(sides[0], sides[1], reading.languages) if whole else [(GAP, GAP)]
            yield from good_rows(pairs, unit.line, document, file.name, reading)


def read_xliff(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    for document in documents_from_rows(_rows(file, reading), file.name, reading):
        if document.filled:
            yield document
