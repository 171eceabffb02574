"""Word documents (.docx): paragraphs, headings, cells, notes, text boxes, alternative texts, headers and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from docnmt.base.errors import DocnmtError
from docnmt.documents.archive import Archive, PackageText
from docnmt.documents.inline import Passage, Piece, has_letters, trim
from docnmt.documents.segment import Change, FileText, Place, Segment
from docnmt.documents.xml import (
    Element,
    Outline,
    Part,
    Text,
    XmlBytes,
    attribute_places,
    escape,
    pieces_of,
    text_places,
    xml_file,
)

# ---- paragraphs: runs that look alike are one text, another look is a mark ----

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
    """Text of one look, as Word cuts paragraphs into them: at every change of look, and at many other places."""

    element: Element
    properties: Element | None
    look: bytes

    @classmethod
    def of(cls, element: Element, xml: XmlBytes) -> Run:
        properties = element.find("w:rPr")
        seen = [child for child in properties.elements if child.name not in _SAME_LOOK] if properties else []
        return cls(element, properties, b"".join(xml.data[child.start : child.end] for child in seen))


@dataclass(slots=True, eq=False)
class RunPiece(Piece):
    wide: bool = True  # what it is nobody knows
    run: Run | None = None  # in which it stands
    merged: tuple[RunPiece, ...] = ()  # of which it was made
    field: str = ""  # begin, separate, end, or instruction and its text
    look: Run | None = None  # of a mark that only changes the look

    @property
    def parts(self) -> tuple[RunPiece, ...]:
        return self.merged or (self,)


class _Part:
    """One of the XML files in the archive. `code` are the styles of text that is no prose."""

    def __init__(self, xml: XmlBytes, code: frozenset[str]):
        self.xml, self._code = xml, code

    def places(self, outermost: Element) -> Iterator[Place[bytes]]:
        known: dict[Segment, list[_Runs]] = {}
        for element in outermost.walk():
            if element.name == "wp:docPr":
                yield from attribute_places(self.xml, element, "title", "descr")
            elif element.name == "w:p" and (runs := self._runs(element)):
                segment = runs.passage.segment
                if segment in known and any(around.name == "mc:Fallback" for around in element.ancestors):
                    known[segment].append(runs)  # the same text once more, for programs that cannot show the first
                else:
                    known[segment] = [runs]
                    yield Place(runs.start, (segment,), partial(_changes, known[segment]))

    def _runs(self, paragraph: Element) -> _Runs | None:
        """None where there are no words."""
        if self._is_code(paragraph.find("w:pPr"), "w:pStyle"):
            return None
        pieces = _with_fields(self._pieces(paragraph))
        first, last = _whole_runs(pieces, *trim(pieces))
        base, marked = _with_looks(pieces[first:last])
        passage = Passage(marked)
        if base is None or not has_letters(passage.segment.text):
            return None
        begin, end = pieces[first].parts[0], pieces[last - 1].parts[-1]
        start, stop = (begin.run.element if begin.run else begin).start, (end.run.element if end.run else end).end
        return _Runs(start, stop, passage, base, self.xml)

    def _is_code(self, properties: Element | None, name: str) -> bool:
        style = properties.find(name) if properties else None
        return style is not None and style.attributes.get("w:val") in self._code

    def _pieces(self, around: Element) -> Iterator[RunPiece]:
        for child in around.children:
            if isinstance(child, Text):
                if child.text is None:  # between runs there are only line ends
                    yield RunPiece(child.start, child.end)
            elif child.name == "w:r" and not self._is_code(child.find("w:rPr"), "w:rStyle"):
                yield from _in_run(child, Run.of(child, self.xml))
            elif content := _content(child):
                inside = content.find(f"{content.name}Pr")
                yield RunPiece(child.start, inside.end if inside else content.inner, pair=child.start)
                yield from self._pieces(content)
                yield RunPiece(content.outer, child.end, pair=child.start, closing=True)
            elif child.name not in _NOISE and child.name not in ("w:smartTagPr", "w:customXmlPr"):
                yield RunPiece(child.start, child.end).tied(_link(child))


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
        piece = RunPiece(child.start, child.end, run=run)
        if isinstance(child, Text):
            if child.text is not None:
                continue
        elif child.name in _NOISE:
            continue
        elif child.name == "w:t":
            text = child.text() if child.attributes.get("xml:space") == "preserve" else child.text().strip(" \t\r\n")
            piece.text = re.sub("[\t\r\n]", " ", text)
        elif child.name == "w:noBreakHyphen":
            piece.text = _NO_BREAK_HYPHEN
        elif child.name == "w:fldChar":
            piece.field = child.attributes.get("w:fldCharType", "")
        elif child.name == "w:instrText":
            piece.field = "instruction " + child.text()
        else:
            piece.gap = child.name in _GAPS
        yield piece


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
    return RunPiece(pieces[0].start, pieces[-1].end, merged=tuple(part for piece in pieces for part in piece.parts))


def _whole_runs(pieces: Sequence[RunPiece], first: int, last: int) -> tuple[int, int]:
    """Runs are written as a whole: what stands in the first and the last one with the text goes with it."""

    def share_a_run(one: RunPiece, other: RunPiece) -> bool:
        return one.parts[-1].run is not None and one.parts[-1].run is other.parts[0].run

    while 0 < first < last and share_a_run(pieces[first - 1], pieces[first]):
        first -= 1
    while first < last < len(pieces) and share_a_run(pieces[last - 1], pieces[last]):
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


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a paragraph from the first to the last with text."""

    start: int
    end: int
    passage: Passage
    base: Run
    xml: XmlBytes

    def parts(self, translation: Segment) -> Iterator[Part]:
        prefix = self.xml.tag_name(self.base.element).removesuffix("r")
        end = self.xml.encode(f"</{prefix}r>")
        looks: dict[int | str, Run] = {}
        for piece in self.passage.pieces(translation):
            if isinstance(piece, str):
                run = next(reversed(looks.values()), self.base)
                yield from _in(run, [self.xml.encode(_spelled(piece, prefix))], end)
            elif piece.pair in looks:
                del looks[piece.pair]
            elif isinstance(piece, RunPiece) and piece.look:
                looks[piece.pair] = piece.look
            elif isinstance(piece, RunPiece):
                for around, parts in groupby(piece.parts, key=lambda part: part.run):
                    spans = [(part.start, part.end) for part in parts]
                    yield from _in(around, spans, end) if around else spans


def _changes(twins: Sequence[_Runs], translation: Segment) -> Iterator[Change[bytes]]:
    for runs in twins:
        if not translation.reads_as(runs.passage.segment):
            yield Change(runs.start, runs.end, list(runs.parts(translation)))


def _in(run: Run, content: Sequence[Part], end: bytes) -> Iterator[Part]:
    yield run.element.start, run.element.inner
    if run.properties:
        yield run.properties.start, run.properties.end
    yield from content
    yield end


def _spelled(text: str, prefix: str) -> str:
    open_tag, close_tag = f'<{prefix}t xml:space="preserve">', f"</{prefix}t>"
    spelled = [f"{open_tag}{escape(part)}{close_tag}" if part else "" for part in text.split(_NO_BREAK_HYPHEN)]
    return f"<{prefix}noBreakHyphen/>".join(spelled)


# ---- the archive ----

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
    outline = Outline(_NAMESPACES, _INLINE.__contains__, lambda name, _: name in _FREE, frozenset(("w:rPr",)))
    for wanted in _WITH_TEXT:
        for part in sorted(part for part, kind in types.items() if kind.endswith(wanted)):
            xml = XmlBytes(files[part], f"{name} ({part})")
            if wanted == _TITLE:
                parts[part] = xml_file(xml, frozenset(("dc:title",)), partial(_title, xml), outline)
            else:
                parts[part] = xml_file(xml, frozenset(("w:p", "wp:docPr")), _Part(xml, code).places, outline)
    return PackageText(data, parts)


def _title(xml: XmlBytes, title: Element) -> Iterator[Place[bytes]]:
    return text_places(xml, pieces_of(title))


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
