"""TMX translation memories, read unit by unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from docnmt.base.lines import Flaw, InputFile, Line
from docnmt.corpora.assembly import MAX_UNDIVIDED, Reading, Row, documents_from_rows, no_boundaries
from docnmt.corpora.markup import same_language
from docnmt.corpora.markup_tokens import Tag, decode_references, followed, sentence
from docnmt.document import ParallelDocument

# Their content is code of the original format, not text; <hi> is the one inline element that holds text.
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))
_DOCUMENT_PROPERTIES = ("x-document", "document")


@dataclass(slots=True)
class _Unit:
    """A `<tu>`: the document it belongs to, if told, and its text by language, in the order of the file."""

    line: int
    document: str = ""
    languages: list[str] = field(default_factory=list)
    sentences: list[Line] = field(default_factory=list)

    def side(self, language: str, position: int) -> Line | None:
        if not language:
            return self.sentences[position] if position < len(self.sentences) else None
        return next(
            (s for s, tag in zip(self.sentences, self.languages, strict=True) if same_language(tag, language)), None
        )


class _UnitReader:
    """Follows the tokens of one unit."""

    def __init__(self, line: int, limit: int):
        self.unit = _Unit(line)
        self._limit = limit
        self._language = ""
        self._codes = 0
        self._pieces: list[str] | None = None
        self._size = 0
        self._in_document = False

    def tag(self, tag: Tag) -> None:
        if tag.name == "tuv" and not tag.closing:
            self._language = tag.attributes.get("xml:lang") or tag.attributes.get("lang", "")
        elif tag.name == "seg":
            if tag.closing and self._pieces is not None:
                self.unit.languages.append(self._language)
                self.unit.sentences.append(sentence(self._pieces, self._limit))
            self._start(not tag.closing)
        elif tag.name == "prop":
            if self._in_document and self._pieces is not None:
                self.unit.document = decode_references("".join(self._pieces)).strip()
            self._in_document = not tag.closing and tag.attributes.get("type", "").lower() in _DOCUMENT_PROPERTIES
            self._start(self._in_document)
        elif tag.name in _CODES and not tag.empty:
            self._codes = max(0, self._codes + (-1 if tag.closing else 1))

    def _start(self, gathering: bool) -> None:
        self._pieces, self._size, self._codes = ([] if gathering else None), 0, 0

    def text(self, text: str) -> None:
        if self._pieces is not None and not self._codes and self._size <= 10 * self._limit:
            self._pieces.append(text)
            self._size += len(text)


def _units(file: InputFile, reading: Reading) -> Iterator[_Unit]:
    reader: _UnitReader | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if reader:
                reader.text(token)
        elif token.name == "tu":
            if reader:
                yield reader.unit
            reader = None if token.closing else _UnitReader(token.line, reading.limit)
        elif reader:
            reader.tag(token)
    if reader:
        reading.bad("bad markup", "the translation unit has no end", file=file.name, line=reader.unit.line)


def _rows(file: InputFile, reading: Reading) -> Iterator[Row]:
    undivided = 0
    for unit in _units(file, reading):
        if unit.document or reading.pairs:
            document = unit.document or f"{file.stem}:{unit.line}"
        else:
            # Units that name no document are taken, in order, for the text of one.
            document = file.stem
            undivided += 1
            if undivided > MAX_UNDIVIDED:
                raise no_boundaries(file.name, undivided)
        sides = [unit.side(language, position) for position, language in enumerate(reading.languages)]
        flaw = next((side for side in sides if isinstance(side, Flaw)), None)
        if flaw:
            reading.flaw(flaw, file=file.name, document=document, line=unit.line)
        elif isinstance(sides[0], str) and isinstance(sides[1], str) and sides[0] and sides[1]:
            yield unit.line, document, sides[0], sides[1]
        else:
            missing = [name or f"language {i}" for i, name in enumerate(reading.languages, 1) if not sides[i - 1]]
            problem = f"no text in {' and '.join(missing)}"
            reading.bad("empty side", problem, file=file.name, document=document, line=unit.line)


def read_tmx(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """Languages are found by name where told, otherwise the first two of each unit are taken."""
    return documents_from_rows(_rows(file, reading), file.name, reading)
