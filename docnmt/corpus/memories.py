"""Translation memories and catalogues as parallel text: TMX, XLIFF and gettext."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from docnmt.base.errors import BadInput
from docnmt.base.lines import Flaw, InputFile, Line
from docnmt.corpus.pairs import Pair, good_rows, sentence_pairs
from docnmt.corpus.rows import MAX_UNDIVIDED, Reading, Row, documents_from_rows, no_boundaries
from docnmt.corpus.sgml import same_language
from docnmt.corpus.sgml_tokens import Tag, decode_references, followed, sentence
from docnmt.document import GAP, ParallelDocument
from docnmt.documents.messages import message
from docnmt.documents.plural_forms import PluralForms
from docnmt.documents.po import PoEntry, decoded, header_fields, read_entries
from docnmt.version import __version__

# ---- TMX translation memories, read unit by unit ----

# Their content is code of the original format, not text; <hi> is the one inline element that holds text.
_TMX_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))
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


class _TmxReader:
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
        elif tag.name in _TMX_CODES and not tag.empty:
            self._codes = max(0, self._codes + (-1 if tag.closing else 1))

    def _start(self, gathering: bool) -> None:
        self._pieces, self._size, self._codes = ([] if gathering else None), 0, 0

    def text(self, text: str) -> None:
        if self._pieces is not None and not self._codes and self._size <= 10 * self._limit:
            self._pieces.append(text)
            self._size += len(text)


def _units(file: InputFile, reading: Reading) -> Iterator[_Unit]:
    reader: _TmxReader | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if reader:
                reader.text(token)
        elif token.name == "tu":
            if reader:
                yield reader.unit
            reader = None if token.closing else _TmxReader(token.line, reading.limit)
        elif reader:
            reader.tag(token)
    if reader:
        reading.bad("bad markup", "the translation unit has no end", file=file.name, line=reader.unit.line)


def _tmx_rows(file: InputFile, reading: Reading) -> Iterator[Row]:
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
    return documents_from_rows(_tmx_rows(file, reading), file.name, reading)


# ---- XLIFF 1.2 and 2.x ----

# XLIFF 1.2 and 2.x: a <file> is a document, its units in their order; what is not translated yet leaves a gap.

# What holds one source and its target: in 1.2 and in 2.x.
_UNITS = frozenset(("trans-unit", "segment"))
# Their content is code of the original format, not text.
_XLIFF_CODES = frozenset(("bpt", "ept", "ph", "it"))
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


class _XliffReader:
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
        elif tag.name in _XLIFF_CODES:
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
    reader: _XliffReader | None = None
    for token in followed(file, reading):
        if isinstance(token, str):
            if reader:
                reader.text(token)
        elif token.name in _UNITS:
            if reader:
                yield here, reader.unit
            reader = None if token.closing else _XliffReader(token, translate, reading.limit)
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


def _xliff_rows(file: InputFile, reading: Reading) -> Iterator[Row]:
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
    for document in documents_from_rows(_xliff_rows(file, reading), file.name, reading):
        if document.filled:
            yield document


# ---- gettext catalogues as parallel text: a file is a document, its messages in their order ----

# What has no finished translation (nothing, or one marked fuzzy) leaves a gap; obsolete entries are no part of the
# text.


def read_po(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """The messages are the source, unless the header says that the translations are in the source language."""
    for document in documents_from_rows(_po_rows(file, reading), file.name, reading):
        if document.filled:
            yield document


def _po_rows(file: InputFile, reading: Reading) -> Iterator[Row]:
    text, _ = decoded(file.content(), file.name)
    entries = read_entries(text, file.name)
    header = header_fields(entries)
    forms = PluralForms.parse(header.get("plural-forms", ""))
    language, (source, target) = header.get("language", ""), reading.languages
    if language and source and target and not any(same_language(language, wanted) for wanted in (source, target)):
        problem = f"translations in {language} where {source} to {target} is wanted"
        remedy = "Leave the file out, or correct `Language` in its header."
        reading.on_bad(BadInput("other languages", problem, remedy, file=file.name))
        return
    swap = bool(language and source) and same_language(language, source) and not same_language(language, target)
    languages = (target, source) if swap else (source, target)
    for entry in entries:
        if entry.is_header:
            continue
        document = f"{file.stem}:{entry.line}" if reading.pairs else file.stem
        texts = messages(entry, forms) if entry.translated else ()
        pairs = [pair for text in texts for pair in _pairs(*text, languages)] or [(GAP, GAP)]
        if swap:
            pairs = [(right, left) for left, right in pairs]
        yield from good_rows(pairs, entry.line, document, file.name, reading)


def messages(entry: PoEntry, forms: PluralForms | None) -> Iterator[Pair]:
    """Each message of an entry and its translation, if it has one."""
    assert entry.msgid is not None
    if entry.plural is None:
        yield entry.msgid.text, entry.forms[min(entry.forms)].text
        return
    of_one = 0 if forms is None else forms.of_one
    if of_one in entry.forms and len(entry.forms) > 1:
        yield entry.msgid.text, entry.forms[of_one].text
    yield entry.plural.text, entry.forms[max(entry.forms)].text


def _pairs(source: str, target: str, languages: tuple[str, str]) -> list[Pair]:
    sides = [[segment.text for segment in message(text).segments] for text in (source, target)]
    if len(sides[0]) != len(sides[1]):
        sides = [[" ".join(lines)] if lines else [] for lines in sides]
    if len(sides[0]) != len(sides[1]):
        return []  # one of the two has no text at all
    return [pair for left, right in zip(*sides, strict=True) for pair in sentence_pairs(left, right, languages)]


# ---- Sentence pairs as a translation memory, which every tool for translators reads ----

_CONTROLS = dict.fromkeys((*range(32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)), " ")  # XML has none of them


def tmx(pairs: Iterable[tuple[str, str, str]], languages: tuple[str, str]) -> bytes:
    """TMX 1.4, a unit a pair, in order. A pair is the name of its document, the source and its translation."""
    units = []
    for document, *texts in pairs:
        variants = "".join(
            f"<tuv xml:lang={quoteattr(language)}><seg>{_written(text)}</seg></tuv>"
            for language, text in zip(languages, texts, strict=True)
        )
        units.append(f'<tu><prop type="x-document">{_written(document)}</prop>{variants}</tu>\n')
    header = (
        f'<header creationtool="docnmt" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
        f'o-tmf="docnmt" adminlang="en" srclang={quoteattr(languages[0])} datatype="plaintext"/>'
    )
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n{header}\n<body>\n'
    return f"{start}{''.join(units)}</body>\n</tmx>\n".encode()


def _written(text: str) -> str:
    return escape(text.translate(_CONTROLS))
