"""Tagged test and training sets: NIST SGML, IWSLT XML, WMT XML and IWSLT `train.tags` files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from docnmt.base.lines import Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import Reading, SeenIds, Side, good_sentences, pair_up
from docnmt.corpus.sgml_tokens import Tag, decode_references, followed, sentence
from docnmt.document import Document, ParallelDocument
from docnmt.text.languages import primary


class Segments:
    """Gathers the text of `<seg>` elements into the side of a document, bounded in length."""

    def __init__(self, file: InputFile, document: str, line: int, limit: int):
        self.id, self.line = document, line
        self._file, self._limit = file.name, limit
        self._lines: list[Line] = []
        self._numbers: list[int] = []
        self._pieces: list[str] | None = None
        self._size = 0

    def tag(self, tag: Tag) -> None:
        if tag.name == "seg":
            self._close()
            if not tag.closing:
                self._pieces, self._size = [], 0
                self._numbers.append(tag.line)

    def text(self, text: str) -> None:
        # Markup makes text at most ten times longer (&#x10FFFF;); past that it is too long whatever it says.
        if self._pieces is not None and self._size <= 10 * self._limit:
            self._pieces.append(text)
            self._size += len(text)

    def side(self) -> Side:
        self._close()
        return Side(self._file, self.id, self.line, self._lines, self._numbers)

    def _close(self) -> None:
        # SGML lets the end tag be left out: the next segment or the end of the document closes it, too.
        if self._pieces is not None:
            self._lines.append(sentence(self._pieces, self._limit))
            self._pieces = None


SOURCES = "srcset"
_SETS = (SOURCES, "refset", "tstset")
# Which translation a document is of: the kind of its set, the set's number and the translator. One refset may hold
# several translations of a document, told apart by sysid; or each may have a refset of its own.
_Version = tuple[str, int, str]


def _set_documents(file: InputFile, reading: Reading) -> Iterator[Side]:
    """The documents of a NIST or IWSLT file, from all its sets of the first one's kind, each in its first version."""
    kind, met = "", SeenIds()
    for version, side in _versions(file, reading):
        kind = kind or version[0]
        if version[0] == kind and met.add(side.id):
            yield side


def _versions(file: InputFile, reading: Reading) -> Iterator[tuple[_Version, Side]]:
    """All documents in all their versions."""
    seen: defaultdict[_Version, SeenIds] = defaultdict(SeenIds)
    version: _Version = "", 0, ""
    segments: Segments | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if segments:
                segments.text(token)
        elif token.name == "doc":
            if segments:
                yield version, segments.side()
            segments = None
            if not token.closing:
                version = version[0], version[1], token.attributes.get("sysid", "")
                # A source has no versions: the same document in two srcsets is one too many.
                once = (SOURCES, 0, "") if version[0] == SOURCES else version
                segments = _open_document(file, token, "docid", seen[once], reading)
        elif token.name in _SETS:
            if token.closing and segments:
                break
            if not token.closing:
                version = token.name, version[1] + 1, ""
        elif segments:
            segments.tag(token)
    if segments:
        reading.bad("bad markup", "the document has no end", file=file.name, document=segments.id, line=segments.line)


def _open_document(file: InputFile, tag: Tag, key: str, seen: SeenIds, reading: Reading) -> Segments | None:
    """Starts a document, if it has an id and the id is new."""
    name = decode_references(tag.attributes.get(key) or tag.attributes.get("id", "")).strip()
    if not name or find_flaw(name, 1_000):
        reading.bad("unknown document", f"a document without {key}", file=file.name, line=tag.line)
    elif not seen.add(name):
        problem = "a second document with this id"
        reading.bad("repeated document", problem, file=file.name, document=name, line=tag.line)
    else:
        return Segments(file, name, tag.line, reading.limit)
    return None


def read_sets(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """NIST SGML or IWSLT XML: a srcset in one file and a refset or tstset in the other."""
    return _pair_by_id(_set_documents(source, reading), _set_documents(target, reading), reading)


def read_set_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    for side in _set_documents(file, reading):
        if sentences := good_sentences(side, reading):
            yield Document(side.id, sentences)


def _pair_by_id(sources: Iterator[Side], targets: Iterator[Side], reading: Reading) -> Iterator[ParallelDocument]:
    """Pairs the documents of two files; only those out of step are kept waiting for their partner."""
    waiting: tuple[dict[str, Side], dict[str, Side]] = {}, {}
    for sides in zip_longest(sources, targets):
        for side, own in zip(sides, waiting, strict=True):
            if side is not None:
                own[side.id] = side
        for side in sides:
            if side is not None and side.id in waiting[0] and side.id in waiting[1]:
                document = pair_up(waiting[0].pop(side.id), waiting[1].pop(side.id), reading)
                if document:
                    yield document
    for lonely, other in zip(waiting, ("target", "source"), strict=True):
        for side in lonely.values():
            problem = f"no such document on the {other} side"
            reading.bad("unknown document", problem, file=side.file, document=side.id, line=side.line)


@dataclass(frozen=True)
class Translated:
    """A document, its source if the file has it, and all translations of it."""

    id: str
    source: Side | None
    translations: list[Side]


def read_set_translations(file: InputFile, reading: Reading, preferred: str) -> Iterator[Translated]:
    """All translations of each document of a NIST or IWSLT file, from its sets of the preferred kind if it has any.

    `preferred` is refset or tstset. A file with a srcset alone is one of translations, too, under another name.
    """
    versions: defaultdict[_Version, dict[str, Side]] = defaultdict(dict)
    for version, side in _versions(file, reading):
        versions[version][side.id] = side
    kinds = {kind for kind, _, _ in versions}
    kind = next((kind for kind in (preferred, "refset", "tstset", "srcset", "") if kind in kinds), "")
    chosen = [sides for version, sides in versions.items() if version[0] == kind]
    sources = {
        name: side
        for version, sides in versions.items()
        if version[0] == SOURCES != kind
        for name, side in sides.items()
    }
    ids = dict.fromkeys(name for sides in chosen for name in sides)
    for name in ids:
        yield Translated(name, sources.get(name), [sides[name] for sides in chosen if name in sides])


# --- WMT XML ---------------------------------------------------------------------------------------------------------


class _WmtDocument:
    """A `<doc>` of a WMT file: its sources, references and translations in the languages that are read."""

    def __init__(self, file: InputFile, name: str, line: int, reading: Reading):
        self.id, self.line = name, line
        self.sides: dict[str, list[Side]] = {"src": [], "ref": [], "hyp": []}
        self._file, self._limit = file, reading.limit
        self._languages = reading.languages
        self._open: Segments | None = None
        self._opened = ""

    def tag(self, tag: Tag) -> None:
        if tag.name in self.sides:
            self._close()
            wanted = self._languages[tag.name != "src"]
            if not tag.closing and same_language(tag.attributes.get("lang", ""), wanted):
                self._open = Segments(self._file, self.id, tag.line, self._limit)
                self._opened = tag.name
        elif self._open:
            self._open.tag(tag)

    def text(self, text: str) -> None:
        if self._open:
            self._open.text(text)

    def _close(self) -> None:
        if self._open:
            self.sides[self._opened].append(self._open.side())
        self._open = None

    @property
    def source(self) -> Side | None:
        return self.sides["src"][0] if self.sides["src"] else None

    @property
    def reference(self) -> Side | None:
        return self.sides["ref"][0] if self.sides["ref"] else None


def same_language(tag: str, wanted: str) -> bool:
    """`fr` is the language of `fr`, `fr-FR` and `FR_ca`; where none is wanted or none is told, any will do."""
    return not wanted or not tag or primary(tag) == primary(wanted)


def _wmt_documents(file: InputFile, reading: Reading) -> Iterator[_WmtDocument]:
    seen = SeenIds()
    document: _WmtDocument | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if document:
                document.text(token)
        elif token.name == "doc":
            if document:
                yield document
            opened = None if token.closing else _open_document(file, token, "id", seen, reading)
            document = _WmtDocument(file, opened.id, token.line, reading) if opened else None
        elif document:
            document.tag(token)
    if document:
        reading.bad("bad markup", "the document has no end", file=file.name, document=document.id, line=document.line)


def read_wmt_xml(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """`<src>` and `<ref>` of each document; `<hyp>` and further references are passed over."""
    for document in _wmt_documents(file, reading):
        if document.source is None or document.reference is None:
            missing = "src" if document.source is None else "ref"
            language = reading.languages[missing == "ref"]
            problem = f"no <{missing}>" + (f" in {language}" if language else "")
            reading.bad("unequal sides", problem, file=file.name, document=document.id, line=document.line)
        elif pair := pair_up(document.source, document.reference, reading):
            yield pair


def read_wmt_translations(file: InputFile, reading: Reading, tag: str) -> Iterator[Translated]:
    """All translations of each document: its `<ref>` or its `<hyp>` elements, as `tag` says."""
    for document in _wmt_documents(file, reading):
        if translations := document.sides[tag]:
            yield Translated(document.id, document.source, translations)
        else:
            problem = f"no <{tag}>" + (f" in {reading.languages[1]}" if reading.languages[1] else "")
            reading.bad("unequal sides", problem, file=file.name, document=document.id, line=document.line)


def read_wmt_xml_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    for document in _wmt_documents(file, reading):
        if document.source is None:
            problem = "no <src>"
            reading.bad("unequal sides", problem, file=file.name, document=document.id, line=document.line)
        elif sentences := good_sentences(document.source, reading):
            yield Document(document.id, sentences)


# --- IWSLT train.tags ------------------------------------------------------------------------------------------------

_TALK_TAGS = "doc url talkid keywords speaker title description reviewer translator transcript date transcriber editor"
_TALK_LINE = re.compile(rf"\s*<(/?)({'|'.join(_TALK_TAGS.split())})\b[^>]*>([^<]*)")
_TALK_STARTS = ("doc", "url", "talkid")


def _talks(file: InputFile, reading: Reading) -> Iterator[Side]:
    """The talks of a `train.tags` file: untagged lines are sentences, and a heading after sentences starts a talk."""
    number_of_talks = 1
    talk = Side(file.name, f"{file.stem}:1", 1, [], [])
    numbers: list[int] = []
    for number, line in enumerate(file.lines(reading.limit), 1):
        heading = _TALK_LINE.match(line.text if isinstance(line, Flaw) else line)
        if heading is None:
            talk.lines.append(line if isinstance(line, Flaw) else line.strip())
            numbers.append(number)
            continue
        if heading[2] in _TALK_STARTS and not heading[1]:
            if any(talk.lines):
                talk.numbers = numbers
                yield talk
                number_of_talks += 1
            if talk.lines:
                talk, numbers = Side(file.name, f"{file.stem}:{number_of_talks}", number, [], []), []
            if heading[2] == "talkid" and heading[3].strip():
                talk.id = heading[3].strip()
    if any(talk.lines):
        talk.numbers = numbers
        yield talk


def read_talks(source: InputFile, target: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """IWSLT `train.tags` files, one a side."""
    # Without talk ids the talks are numbered, and the numbers must not depend on the name of the file.
    target.stem = source.stem
    return _pair_by_id(_talks(source, reading), _talks(target, reading), reading)


def read_talks_source(file: InputFile, reading: Reading) -> Iterator[Document]:
    for side in _talks(file, reading):
        if sentences := good_sentences(side, reading):
            yield Document(side.id, sentences)
