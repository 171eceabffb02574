"""Translation memories and catalogues: TMX, XLIFF and gettext, in which a unit or message is a source and its target.

What is not translated yet leaves a gap in a corpus. Translations and references are compared message by message, as
they are translated; of references only finished ones count, but a translation counts even if it awaits review.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from docnmt.base import __version__
from docnmt.base.lines import Flaw, InputFile, Line
from docnmt.corpus.pairs import Pair, sentence_pairs
from docnmt.corpus.rows import MAX_UNDIVIDED, Reading, Row, Want, no_boundaries, rows_at
from docnmt.corpus.sgml import Tag, Text, elements, same_language
from docnmt.document import GAP
from docnmt.documents.messages import message
from docnmt.documents.po import PluralForms, PoEntry, decoded, header_fields, read_entries

# The content of these elements is code of the original format, not text.
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))

# ---- TMX ----

_DOCUMENT_PROPERTIES = ("x-document", "document")


@dataclass(slots=True)
class _TmxUnit:
    """A `<tu>`: its document, if it names one, and its texts with their languages, in file order."""

    line: int
    document: str = ""
    texts: list[tuple[str, Line]] = field(default_factory=list)

    def side(self, language: str, position: int) -> Line:
        if not language:
            return self.texts[position][1] if position < len(self.texts) else ""
        return next((text for tag, text in self.texts if same_language(tag, language)), "")


def _tmx_units(file: InputFile, reading: Reading) -> Iterator[_TmxUnit]:
    unit: _TmxUnit | None = None
    language = ""
    for found in elements(file, reading, ("seg", "prop"), ends=("tu", "tuv"), codes=_CODES):
        if isinstance(found, Text):
            if unit and found.element.name == "seg":
                unit.texts.append((language, found.content))
            elif unit and found.element.attributes.get("type", "").lower() in _DOCUMENT_PROPERTIES:
                unit.document = found.content if isinstance(found.content, str) else found.content.text
        elif found.name == "tuv" and not found.closing:
            language = found.attributes.get("xml:lang") or found.attributes.get("lang", "")
        elif found.name == "tu":
            if unit:
                yield unit
            unit = None if found.closing else _TmxUnit(found.line)
    if unit:
        reading.bad("bad markup", "the translation unit has no end tag", file=file.name, line=unit.line)


def read_tmx(file: InputFile, reading: Reading) -> Iterator[Row]:
    """Sides are matched by language if the languages are known; otherwise the first two texts of a unit are used."""
    undivided = 0
    for unit in _tmx_units(file, reading):
        document = unit.document or (f"{file.stem}:{unit.line}" if reading.sentence_level else file.stem)
        if not unit.document and not reading.sentence_level:
            # Units that name no document are read as one document, in order.
            undivided += 1
            if undivided > MAX_UNDIVIDED:
                raise no_boundaries(file.name, undivided)
        sides = [unit.side(language, position) for position, language in enumerate(reading.languages)]
        if all(sides):
            yield from rows_at(unit.line, document, [sides], file.name, reading)
        else:
            missing = [name or f"language {i}" for i, name in enumerate(reading.languages, 1) if not sides[i - 1]]
            problem = f"the unit has no text in {' and '.join(missing)}"
            reading.bad("empty side", problem, file=file.name, document=document, line=unit.line)


# ---- XLIFF 1.2 and 2.x: a <file> is a document ----

_UNITS = frozenset(("trans-unit", "segment"))  # what holds one source and its target, in 1.2 and in 2.x
_SUGGESTIONS = frozenset(("alt-trans", "mtc:matches"))  # they have sources and targets of their own
_UNFINISHED = ("new", "needs-", "initial")


@dataclass(slots=True)
class _XliffUnit:
    line: int
    translate: bool
    finished: bool
    sides: dict[str, Line] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _XliffFile:
    """A `<file>`: its document, and its languages if it names them."""

    line: int
    document: str
    source: str = ""
    target: str = ""


def _is_finished(tag: Tag) -> bool:
    return not tag.attributes.get("state", "").startswith(_UNFINISHED)


def _translates(tag: Tag) -> bool:
    return tag.attributes.get("translate", "yes") != "no"


def _xliff_units(file: InputFile, reading: Reading) -> Iterator[tuple[_XliffFile, _XliffUnit]]:
    here = _XliffFile(1, file.stem)
    languages = "", ""
    translate = True
    seen: dict[str, int] = {}
    unit: _XliffUnit | None = None
    ends = (*_UNITS, "unit", "file")
    for found in elements(file, reading, ("source", "target"), ends=ends, codes=_CODES, aside=_SUGGESTIONS):
        if isinstance(found, Text):
            if unit:
                unit.sides[found.element.name] = found.content
                unit.finished &= _is_finished(found.element)
        elif found.name in _UNITS:
            if unit:
                yield here, unit
            unit = None
            if not found.closing:
                unit = _XliffUnit(found.line, translate and _translates(found), _is_finished(found))
        elif unit or found.closing:
            continue
        elif found.name == "xliff":
            languages = found.attributes.get("srclang", ""), found.attributes.get("trglang", "")
        elif found.name == "file":
            name = found.attributes.get("original") or found.attributes.get("id") or file.stem
            seen[name] = seen.get(name, 0) + 1
            document = name if seen[name] == 1 else f"{name}#{seen[name]}"
            source = found.attributes.get("source-language") or languages[0]
            here = _XliffFile(found.line, document, source, found.attributes.get("target-language") or languages[1])
        elif found.name == "unit":
            translate = _translates(found)
    if unit:
        reading.bad("bad markup", "the unit has no end tag", file=file.name, line=unit.line)


def _sides_in_order(here: _XliffFile, file: InputFile, reading: Reading) -> tuple[str, ...]:
    """Which side is the source and which the target; empty if the languages are not the wanted ones."""
    wanted = reading.languages
    if reading.for_scoring or (same_language(here.source, wanted[0]) and same_language(here.target, wanted[1])):
        return "source", "target"
    if same_language(here.source, wanted[1]) and same_language(here.target, wanted[0]):
        return "target", "source"
    problem = f"the languages are {here.source} to {here.target or 'none'}, but {wanted[0]} to {wanted[1]} is wanted"
    remedy = "Leave the file out, or name its languages in the recipe."
    reading.bad("other languages", problem, file=file.name, document=here.document, line=here.line, remedy=remedy)
    return ()


def read_xliff(file: InputFile, reading: Reading) -> Iterator[Row]:
    last: _XliffFile | None = None
    order: tuple[str, ...] = ()
    for here, unit in _xliff_units(file, reading):
        if here != last:
            last, order = here, _sides_in_order(here, file, reading)
        if not order:
            continue
        source, target = (unit.sides.get(side, "") for side in order)
        if not unit.translate or not (unit.finished or reading.want is Want.TRANSLATIONS):
            source, target = GAP, GAP
        document = f"{here.document}:{unit.line}" if reading.sentence_level else here.document
        if isinstance(source, Flaw) or isinstance(target, Flaw):
            pairs: list[tuple[Line, Line]] = [(source, target)]
        elif reading.for_scoring:
            pairs = [_message_pair(source, target, bool(target.strip()) or reading.want is Want.TRANSLATIONS)]
        else:
            pairs = [*sentence_pairs(source, target, reading.languages)] if source and target else [(GAP, GAP)]
        yield from rows_at(unit.line, document, pairs, file.name, reading)


def _message_pair(source: str, target: str, counts: bool) -> Pair:
    """A message and its translation, each on one line; a gap if it does not count."""
    return (" ".join(source.split()), " ".join(target.split())) if counts else (GAP, GAP)


# ---- gettext catalogues: a file is a document, its messages in their order ----


def read_po(file: InputFile, reading: Reading) -> Iterator[Row]:
    """The messages are the source, unless the header says that the translations are in the source language."""
    text, _ = decoded(file.content(), file.name)
    entries = read_entries(text, file.name)
    header = header_fields(entries)
    forms = PluralForms.parse(header.get("plural-forms", ""))
    language, (source, target) = header.get("language", ""), reading.languages
    if language and source and target and not any(same_language(language, wanted) for wanted in (source, target)):
        problem = f"the translations are in {language}, but {source} to {target} is wanted"
        remedy = "Leave the file out, or correct `Language` in its header."
        reading.bad("other languages", problem, file=file.name, remedy=remedy)
        return
    swap = bool(language and source) and same_language(language, source) and not same_language(language, target)
    for entry in entries:
        if entry.is_header:
            continue
        finished = entry.translated or reading.want is Want.TRANSLATIONS
        if reading.for_scoring:
            document = f"{file.stem}:1"  # a number, not a name: it is compared with files of other names
            pairs = [_message_pair(*pair, finished) for pair in _messages(entry, forms)]
        else:
            document = f"{file.stem}:{entry.line}" if reading.sentence_level else file.stem
            languages = (target, source) if swap else (source, target)
            messages = _messages(entry, forms) if finished else ()
            pairs = [pair for texts in messages for pair in _sentence_pairs(*texts, languages)] or [(GAP, GAP)]
        if swap:
            pairs = [(right, left) for left, right in pairs]
        yield from rows_at(entry.line, document, pairs, file.name, reading)


def _messages(entry: PoEntry, forms: PluralForms | None) -> Iterator[Pair]:
    """Each message of an entry and its translation, if it has one."""
    assert entry.msgid is not None
    if entry.plural is None:
        yield entry.msgid.text, entry.forms[min(entry.forms)].text
        return
    of_one = 0 if forms is None else forms.of_one
    if of_one in entry.forms and len(entry.forms) > 1:
        yield entry.msgid.text, entry.forms[of_one].text
    yield entry.plural.text, entry.forms[max(entry.forms)].text


def _sentence_pairs(source: str, target: str, languages: tuple[str, str]) -> list[Pair]:
    sides = [[segment.text for segment in message(text).segments] for text in (source, target)]
    if len(sides[0]) != len(sides[1]):
        sides = [[" ".join(lines)] if lines else [] for lines in sides]
    if len(sides[0]) != len(sides[1]):
        return []  # one of the two has no text at all
    return [pair for left, right in zip(*sides, strict=True) for pair in sentence_pairs(left, right, languages)]


# ---- Sentence pairs as a translation memory, which every translation tool reads ----

_CONTROLS = dict.fromkeys((*range(32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)), " ")  # XML has none of them


def tmx(pairs: Iterable[tuple[str, str, str]], languages: tuple[str, str]) -> bytes:
    """TMX 1.4, a unit per pair, in order. A pair is the name of its document, the source and its translation."""
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
