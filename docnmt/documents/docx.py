"""Word documents (.docx): paragraphs, headings, cells, notes, text boxes, alternative texts, headers and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from docnmt.base.errors import DocnmtError
from docnmt.documents.archive import Archive, PackageText
from docnmt.documents.inline import Change, Passage, Piece, Place, Span, has_letters, trim
from docnmt.documents.outline import Outline
from docnmt.documents.segment import FileText, Segment
from docnmt.documents.xml import Aside, AttributePlace, Element, MixedPlace, XmlBytes, XmlText, escape, pieces_of

# A paragraph of a Word document, cut into runs: those that look alike are one text, another look is a mark.

_AROUND = frozenset(f"w:{name}" for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo"))
_GAPS = frozenset(("w:tab", "w:ptab", "w:br", "w:cr"))
# What Word notes down about the words as they stand: spelling mistakes, where lines and pages happened to end.
_NOISE = frozenset(("w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:rPr", "w:pPr"))
_FREE = _NOISE | {"w:r", "w:t", "w:noBreakHyphen"}  # runs are divided as the words need it
_INLINE = _AROUND | {"w:sdt", "w:sdtContent", "w:fldSimple"}
_SAME_LOOK = frozenset(("w:lang", "w:noProof"))
# Controls whose text is one of a list or made by the program.
_CHOSEN = frozenset(("w:dropDownList", "w:comboBox", "w:date", "w14:checkbox"))
# Of all other fields the program makes the text anew.
_FIELDS_WITH_TEXT = frozenset(("HYPERLINK", "TOC", "INDEX"))
_MAX_FIELDS = 20  # inside each other, as Word has it
_NO_BREAK_HYPHEN = "\u2011"
_BOUND = re.compile("(Range)?(Start|End)$")


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    element: Element
    properties: Element | None
    look: bytes

    @classmethod
    def of(cls, element: Element, xml: XmlBytes) -> Run:
        properties = element.find("w:rPr")
        seen = [child for child in properties.elements if child.name not in _SAME_LOOK] if properties else []
        return cls(element, properties, b"".join(xml.data[child.start : child.end] for child in seen))


Copied = tuple[Run | None, int, int]  # bytes to copy, and the run they have to stand in


@dataclass(slots=True, eq=False)
class RunPiece(Piece):
    wide: bool = True  # what it is nobody knows
    copied: tuple[Copied, ...] = ()
    field: str = ""  # begin, instruction, separate or end
    look: Run | None = None  # of a mark that only changes the look

    @property
    def run(self) -> Run | None:
        return self.copied[0][0]


def _piece(start: int, end: int, run: Run | None = None, **more: object) -> RunPiece:
    return RunPiece(start, end, copied=((run, start, end),), **more)  # type: ignore[arg-type]


class ParagraphReader:
    """`code` are the styles of text that is no prose."""

    def __init__(self, xml: XmlBytes, code: frozenset[str]):
        self._xml, self._code = xml, code

    def place(self, paragraph: Element) -> RunsPlace | None:
        """None where there are no words."""
        if self._is_code(paragraph.find("w:pPr"), "w:pStyle"):
            return None
        pieces = _with_fields(self._pieces(paragraph))
        first, last = _whole_runs(pieces, *trim(pieces))
        base, marked = _with_looks(pieces[first:last])
        passage = Passage(marked)
        if base is None or not has_letters(passage.segment.text):
            return None
        start, end = _bounds(pieces[first].copied[0])[0], _bounds(pieces[last - 1].copied[-1])[1]
        return RunsPlace(start, end, passage, base, self._xml)

    def _is_code(self, properties: Element | None, name: str) -> bool:
        style = properties.find(name) if properties else None
        return style is not None and style.attributes.get("w:val") in self._code

    def _pieces(self, around: Element) -> Iterator[RunPiece]:
        for child in around.children:
            if isinstance(child, Aside):
                yield _piece(child.start, child.end)
            elif not isinstance(child, Element) or child.name in _NOISE:
                continue  # between runs there are only line ends
            elif child.name == "w:r" and not self._is_code(child.find("w:rPr"), "w:rStyle"):
                yield from _in_run(child, Run.of(child, self._xml))
            elif content := _content(child):
                inside = content.find(f"{content.name}Pr")
                yield _piece(child.start, inside.end if inside else content.inner, pair=child.start)
                yield from self._pieces(content)
                yield _piece(content.outer, child.end, pair=child.start, closing=True)
            elif child.name not in ("w:smartTagPr", "w:customXmlPr"):
                yield _piece(child.start, child.end).tied(_link(child))


def _content(element: Element) -> Element | None:
    """What holds the runs of an element that stands around some; None if it holds no text to translate."""
    if element.name == "w:sdt":
        properties, content = element.find("w:sdtPr"), element.find("w:sdtContent")
        chosen = properties is not None and any(child.name in _CHOSEN for child in properties.elements)
        return content if content and content.children and not chosen else None
    around = element.name in _AROUND
    if element.name == "w:fldSimple":
        around = _field_name(element.attributes.get("w:instr", "")) in _FIELDS_WITH_TEXT
    return element if around and element.children else None


def _in_run(element: Element, run: Run) -> Iterator[RunPiece]:
    for child in element.children:
        where = child.start, child.end, run
        if isinstance(child, Aside):
            yield _piece(*where)
        elif not isinstance(child, Element) or child.name in _NOISE:
            continue
        elif child.name == "w:t":
            text = child.text() if child.attributes.get("xml:space") == "preserve" else child.text().strip(" \t\r\n")
            yield _piece(*where, text=re.sub("[\t\r\n]", " ", text))
        elif child.name == "w:noBreakHyphen":
            yield _piece(*where, text=_NO_BREAK_HYPHEN)
        elif child.name == "w:fldChar":
            yield _piece(*where, field=child.attributes.get("w:fldCharType", ""))
        elif child.name == "w:instrText":
            yield _piece(*where, field="instruction " + child.text())
        else:
            yield _piece(*where, gap=child.name in _GAPS)


def _link(element: Element) -> str:
    """Bookmarks, comments and the like have a beginning and an end in the text."""
    bound = _BOUND.search(element.name)
    slash = "/" if bound and bound[2] == "End" else ""
    return f"{slash}{element.name[: bound.start()]} {element.attributes.get('w:id')}" if bound else ""


def _field_name(instruction: str) -> str:
    return next(iter(instruction.split()), "").upper()


def _with_fields(pieces: Iterable[RunPiece]) -> list[RunPiece]:
    """Fields as marks: links as a beginning and an end with text between them, all others as one."""
    result: list[RunPiece] = []
    begun: list[int] = []
    for piece in pieces:
        result.append(piece)
        if piece.field == "begin" and len(begun) < _MAX_FIELDS:
            begun.append(len(result) - 1)
        elif piece.field == "end" and begun:
            start = begun.pop()
            whole = result[start:]
            text = _name_of(whole) in _FIELDS_WITH_TEXT and any(part.field == "separate" for part in whole)
            if not text and _is_balanced(whole):
                result[start:] = [_merged(whole)]
            else:
                _merge_head(result, start)
                result[start].tied(f"field {piece.start}")
                piece.tied(f"/field {piece.start}")
    for start in reversed(begun):  # these end in another paragraph
        _merge_head(result, start)
    return result


def _name_of(field: Sequence[RunPiece]) -> str:
    return _field_name("".join(a.field.removeprefix("instruction ") for a in field[1:] if a.field.startswith("instr")))


def _merge_head(pieces: list[RunPiece], start: int) -> None:
    """Makes one mark of what stands before the text of a field."""
    end = next((i + 1 for i in range(start, len(pieces)) if pieces[i].field == "separate"), start)
    if end > start and _is_balanced(pieces[start:end]):
        pieces[start:end] = [_merged(pieces[start:end])]


def _is_balanced(pieces: Sequence[RunPiece]) -> bool:
    depth = 0
    for piece in pieces:
        if piece.pair and not piece.loose:
            depth += -1 if piece.closing else 1
        if depth < 0:
            return False
    return depth == 0


def _merged(pieces: Sequence[RunPiece]) -> RunPiece:
    copied = tuple(part for piece in pieces for part in piece.copied)
    return RunPiece(pieces[0].start, pieces[-1].end, copied=copied)


def _whole_runs(pieces: Sequence[RunPiece], first: int, last: int) -> tuple[int, int]:
    """Runs are written as a whole: what stands in the first and the last one with the text goes with it."""
    while 0 < first < last and pieces[first].run and pieces[first - 1].copied[-1][0] is pieces[first].run:
        first -= 1
    while first < last < len(pieces) and pieces[last].run and pieces[last].run is pieces[last - 1].copied[-1][0]:
        last += 1
    return first, last


def _with_looks(pieces: Sequence[RunPiece]) -> tuple[Run | None, list[RunPiece]]:
    """A run with the look of most of the text, and the pieces with marks around text that looks otherwise."""
    lengths: Counter[bytes] = Counter()
    runs: dict[bytes, Run] = {}
    stretches: list[tuple[int, int, bytes]] = []  # first and last text, and their look
    joined = False
    for number, piece in enumerate(pieces):
        if piece.pair and not piece.loose:
            joined = False
        elif piece.text and piece.run and not piece.text.isspace():
            look = piece.run.look
            lengths[look] += len(piece.text)
            runs.setdefault(look, piece.run)
            if joined and stretches[-1][2] == look:
                stretches[-1] = stretches[-1][0], number, look
            else:
                stretches.append((number, number, look))
            joined = True
    base = max(lengths, key=lambda look: lengths[look], default=b"")
    first = {start: look for start, _, look in stretches if look != base}
    last = {end: start for start, end, look in stretches if look != base}
    result: list[RunPiece] = []
    for number, piece in enumerate(pieces):
        if number in first:
            look_mark = RunPiece(piece.start, piece.start, look=runs[first[number]])
            result.append(look_mark.tied(f"look {number}"))
        result.append(piece)
        if number in last:
            result.append(RunPiece(piece.end, piece.end).tied(f"/look {last[number]}"))
    return runs.get(base), result


def _bounds(copied: Copied) -> Span:
    run, start, end = copied
    return (run.element.start, run.element.end) if run else (start, end)


@dataclass(frozen=True, slots=True)
class RunsPlace:
    """The runs of a paragraph from the first to the last with text."""

    start: int
    end: int
    passage: Passage
    base: Run
    xml: XmlBytes
    # The same paragraph once more, for programs that cannot show the first one.
    twins: list[RunsPlace] = field(default_factory=list)

    @property
    def segment(self) -> Segment:
        return self.passage.segment

    def changes(self, translation: Segment) -> Sequence[Change[bytes]]:
        if translation.reads_as(self.segment):
            return ()
        own = Change(self.start, self.end, tuple(self._parts(translation)))
        return [own, *(change for twin in self.twins for change in twin.changes(translation))]

    def _parts(self, translation: Segment) -> Iterator[bytes | Span]:
        prefix = self.xml.tag_name(self.base.element).removesuffix("r")
        end = self.xml.encode(f"</{prefix}r>")
        looks: dict[int | str, Run] = {}
        for piece in self.passage.pieces(translation):
            if isinstance(piece, str):
                run = next(reversed(looks.values()), self.base)
                yield from _in(run, [self.xml.encode(_spelled(piece, prefix))], end)
            elif isinstance(piece, RunPiece) and piece.copied:
                for copied, parts in groupby(piece.copied, key=lambda part: part[0]):
                    spans = [(start, end) for _, start, end in parts]
                    yield from _in(copied, spans, end) if copied else spans
            elif isinstance(piece, RunPiece) and piece.look:
                looks[piece.pair] = piece.look
            else:
                looks.pop(piece.pair)


def _in(run: Run, content: Sequence[bytes | Span], end: bytes) -> Iterator[bytes | Span]:
    yield run.element.start, run.element.inner
    if run.properties:
        yield run.properties.start, run.properties.end
    yield from content
    yield end


def _spelled(text: str, prefix: str) -> str:
    open_tag, close_tag = f'<{prefix}t xml:space="preserve">', f"</{prefix}t>"
    spelled = [f"{open_tag}{escape(part)}{close_tag}" if part else "" for part in text.split(_NO_BREAK_HYPHEN)]
    return f"<{prefix}noBreakHyphen/>".join(spelled)


_NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing": "wp",
    "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing": "wp",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.microsoft.com/office/word/2010/wordml": "w14",
    "http://schemas.openxmlformats.org/package/2006/content-types": "types",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_TYPES = "[Content_Types].xml"
_TITLE = "core-properties+xml"
_STYLES = "wordprocessingml.styles+xml"
_MAIN = (
    "wordprocessingml.document.main+xml",
    "wordprocessingml.template.main+xml",
    "ms-word.document.macroEnabled.main+xml",
    "ms-word.template.macroEnabledTemplate.main+xml",
)
# In the order in which they are read: the title first, headers and footers last.
_WITH_TEXT = (
    _TITLE,
    *_MAIN,
    *(f"wordprocessingml.{part}+xml" for part in ("footnotes", "endnotes", "header", "footer")),
)
# Styles have names in the user's language in a program, but these ones in the file.
_CODE = frozenset(
    ("html preformatted", "html code", "preformatted text", "source text", "source code", "verbatim char")
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    if data.startswith(_OLE):
        problem = "an old Word document (.doc) or one with a password"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .docx without a password, then translate it.")
    files = Archive(data, name)
    types = _types(files, name)
    if not any(kind.endswith(_MAIN) for kind in types.values()):
        problem = "not what its name says: no Word document is in the archive"
        raise DocnmtError(f"{name}: {problem}\n  Save it as .docx in the program that made it.")
    code = frozenset(
        style for part, kind in types.items() if kind.endswith(_STYLES) for style in _code_styles(files[part], name)
    )
    parts = {}
    outline = Outline(_NAMESPACES, _INLINE, lambda name, _: name in _FREE, frozenset(("w:rPr",)))
    for wanted in _WITH_TEXT:
        for part in sorted(part for part, kind in types.items() if kind.endswith(wanted)):
            xml = XmlBytes(files[part], f"{name} ({part})")
            places = partial(_title, xml) if wanted == _TITLE else partial(_places, xml, code)
            parts[part] = XmlText(xml, places, outline)
    return PackageText(data, parts)


def _types(files: Mapping[str, bytes], name: str) -> dict[str, str]:
    """What each file in the archive is."""
    xml = XmlBytes(files.get(_TYPES, b"<none/>"), f"{name} ({_TYPES})")
    overrides = [element.attributes for element in xml.elements(frozenset(("types:Override",)), _NAMESPACES)]
    types = {found.get("PartName", "").removeprefix("/"): found.get("ContentType", "") for found in overrides}
    return {part: kind for part, kind in types.items() if part in files}


def _code_styles(data: bytes, name: str) -> Iterator[str]:
    for style in XmlBytes(data, f"{name} (styles)").elements(frozenset(("w:style",)), _NAMESPACES):
        named = style.find("w:name")
        if named and named.attributes.get("w:val", "").lower() in _CODE:
            yield style.attributes.get("w:styleId", "")


def _title(xml: XmlBytes) -> Iterator[MixedPlace]:
    for title in xml.elements(frozenset(("dc:title",)), _NAMESPACES):
        if place := MixedPlace.of(list(pieces_of(title)), xml, collapse=True):
            yield place


def _places(xml: XmlBytes, code: frozenset[str]) -> Iterator[Place[bytes]]:
    reader = ParagraphReader(xml, code)
    for outermost in xml.elements(frozenset(("w:p", "wp:docPr")), _NAMESPACES):
        known: dict[Segment, RunsPlace] = {}
        found: list[Place[bytes]] = []
        for element in outermost.walk():
            if element.name == "wp:docPr":
                alternatives = (AttributePlace.of(element, attribute, xml) for attribute in ("title", "descr"))
                found += (alternative for alternative in alternatives if alternative)
            elif element.name == "w:p" and (place := reader.place(element)):
                if _is_fallback(element) and place.segment in known:
                    known[place.segment].twins.append(place)
                else:
                    known[place.segment] = place
                    found.append(place)
        yield from found


def _is_fallback(element: Element) -> bool:
    return any(around.name == "mc:Fallback" for around in element.ancestors)
