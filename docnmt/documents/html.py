"""HTML and XHTML pages: blocks are segments, tags in the line are marks; code, scripts and drawings are left alone."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from docnmt.base.errors import DocnmtError
from docnmt.documents.html_tokens import (
    BLOCKS,
    Attribute,
    Token,
    Tokens,
    attributes,
    decode,
    line_of,
    match,
    names,
    tokens,
)
from docnmt.documents.outline import Outline
from docnmt.documents.runs import (
    TEMPLATE,
    Edit,
    Piece,
    Run,
    collapsed,
    edited,
    is_readable,
    make_run,
    rewritten,
    unlinked,
)
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Mark, Room, Segment

LEFT_ALONE = names(
    "script style textarea pre code kbd samp var svg math rt rp xmp iframe noembed noframes object applet"
)
_WIDE = names("img input code kbd samp var svg math object video audio canvas meter progress embed")
_READ_ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "aria-description")
_READ_METAS = names("description og:title og:description twitter:title twitter:description")
_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]{1,31};?)")
_HARD_SPACE = re.compile(r"&(?:nbsp|#160|#[xX][aA]0);")
_NOTE = re.compile(r"\W*\d{0,4}\W*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read."""

    text: str
    encoding: str
    mark: bytes  # for the order of bytes
    runs: tuple[Run, ...]
    languages: tuple[Edit, ...]  # how to say that the page is in another language now
    name: str = ""  # of XML: what is written has to be such, too

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(run.segment for run in self.runs)

    def write(self, translations: Sequence[Segment]) -> bytes:
        new = rewritten(self.text, self.runs, translations, self.languages)
        if not self.name or new == self.text:
            return self._encoded(new)
        return _outline().checked(self._encoded(self.text), self._encoded(new), self.name)

    def relabelled(self) -> bytes:
        """With nothing changed but the language that it says it is in."""
        return self._encoded(edited(self.text, self.languages))

    def _encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, "surrogateescape")


def _outline() -> Outline:
    return Outline({"http://www.w3.org/1999/xhtml": ""}, inline=lambda name: name not in BLOCKS)


def read(data: bytes, name: str, languages: tuple[str, str]) -> Page:
    return read_page(data, name, languages, xml=PurePath(name).suffix.lower() == ".xhtml")


def read_page(data: bytes, name: str, languages: tuple[str, str], xml: bool) -> Page:
    mark, text, encoding = decode(data, name)
    xml = xml or text.lstrip().startswith("<?xml")
    reader = Reader(text, name, xml, encoding, languages)
    reader.read(0, len(text))
    return Page(text, encoding, mark, reader.found(), tuple(reader.edits), name if xml else "")


def runs_in(text: str, name: str, start: int, end: int) -> tuple[Run, ...]:
    """The runs of a piece of HTML inside another text."""
    reader = Reader(text, name, False, "utf-8", ("", ""))
    reader.read(start, end)
    return reader.found()


class Reader:
    """Finds the runs of a page, or of a part of it."""

    def __init__(self, text: str, name: str, xml: bool, encoding: str, languages: tuple[str, str]):
        self._text, self._name, self._xml = text, name, xml
        self._encoding, self._languages = encoding, languages
        self._hard_space = "\xa0"  # as the page spells it
        self._pieces: list[Piece] = []
        self._later: list[Run] = []  # of the attributes in the line, which are read after it
        self._runs: list[Run] = []
        self.edits: list[Edit] = []  # that say that the page is in the target language

    def found(self) -> tuple[Run, ...]:
        room = Room(len(self._text), self._name)
        for run in self._runs:
            room.add(run.segment)
            if _SURROGATE.search(run.segment.text):
                place = f"{self._name}, line {line_of(self._text, run.start)}"
                problem = f"bytes that are no {self._encoding.upper()}"
                raise DocnmtError(f"{place}: {problem}\n  Save the page as UTF-8.")
        return tuple(self._runs)

    def read(self, start: int, end: int) -> None:
        if hard_space := _HARD_SPACE.search(self._text, start, end):
            self._hard_space = hard_space[0]
        found = Tokens(tokens(self._text, self._name, self._xml, start, end), start)
        ends, partners = match(found, self._xml)
        number = 0
        while number < len(found):
            token = found[number]
            following = number + 1
            if token.kind in ("text", "cdata"):
                self._read_text(token)
            elif token.kind == "open":
                read = attributes(self._text, token)
                if token.name in LEFT_ALONE or _says_no(read):
                    following = ends[number]
                    self._leave_alone(token, found[following - 1].end, read)
                elif token.name in ("sup", "sub", "a") and self._is_note(found, number, partners[number]):
                    following = ends[number]
                    self._pieces.append(Piece(token.start, found[following - 1].end, wide=True))
                else:
                    self._read_tag(token, read, number + 1 if partners[number] else 0)
            elif token.name in BLOCKS:
                self._end_run()
            elif token.kind != "raw":
                pair = partners[number]
                self._pieces.append(Piece(token.start, token.end, pair=pair, closing=pair > 0))
            number = following
        self._end_run()

    def _read_text(self, token: Token) -> None:
        if token.kind == "cdata":
            content = self._text[token.start + 9 : token.end].removesuffix("]]>")
            self._pieces.append(Piece(token.start, token.end, content))
            return
        end = token.start
        for template in TEMPLATE.finditer(self._text, token.start, token.end):
            self._read_words(end, template.start())
            self._pieces.append(Piece(*template.span(), wide=True))
            end = template.end()
        self._read_words(end, token.end)

    def _read_words(self, start: int, end: int) -> None:
        for reference in _REFERENCE.finditer(self._text, start, end):
            if reference.start() > start:
                self._pieces.append(Piece(start, reference.start(), self._text[start : reference.start()]))
            self._pieces.append(Piece(*reference.span(), html.unescape(reference[0])))
            start = reference.end()
        if end > start:
            self._pieces.append(Piece(start, end, self._text[start:end]))

    def _leave_alone(self, token: Token, end: int, read: dict[str, Attribute]) -> None:
        """An element that nobody translates; what its tag says may be translated all the same."""
        runs = [] if _says_no(read) else self._attribute_runs(token, read)
        if token.name in BLOCKS:
            self._end_run()
            self._runs += runs
        else:
            self._later += runs
            self._pieces.append(Piece(token.start, end, wide=token.name not in ("rt", "rp")))

    def _is_note(self, found: Sequence[Token], first: int, last: int) -> bool:
        """Whether this is the number of a note, or a number put higher or lower: no words."""
        inside = found[first : last + 1] if 1 < last - first < 12 else []
        if not inside or any(token.name in BLOCKS for token in inside):
            return False
        text = "".join(self._text[token.start : token.end] for token in inside if token.kind == "text").strip()
        if inside[0].name == "a":
            return text.startswith("[") and text.endswith("]") and bool(_NOTE.fullmatch(text))
        return bool(_NOTE.fullmatch(html.unescape(text)))

    def _read_tag(self, token: Token, read: dict[str, Attribute], pair: int) -> None:
        runs = self._attribute_runs(token, read)
        self.edits += self._language_edits(token, read)
        if token.name in BLOCKS:
            self._end_run()
            self._runs += runs
            return
        if token.name == "br" and self._follows_break():
            self._end_run()  # an empty line parts paragraphs
        self._later += runs
        wide, breaks = token.name in _WIDE, token.name == "br"
        self._pieces.append(Piece(token.start, token.end, pair=pair, wide=wide, breaks=breaks))

    def _follows_break(self) -> bool:
        for piece in reversed(self._pieces):
            if piece.text is None or piece.text.strip():
                return piece.breaks
        return False

    def _end_run(self) -> None:
        if len(self._pieces) > 2 * MAX_IN_PARAGRAPH:
            place = f"{self._name}, line {line_of(self._text, self._pieces[0].start)}"
            raise DocnmtError(f"{place}: more than {MAX_IN_PARAGRAPH:,} tags in one paragraph\n  Part it into several.")
        if run := make_run(self._text, self._pieces, self._spell):
            self._runs.append(run)
        self._runs += self._later
        self._pieces, self._later = [], []

    def _attribute_runs(self, token: Token, read: dict[str, Attribute]) -> list[Run]:
        return [run for attribute in _read_attributes(token.name, read) if (run := self._attribute(attribute))]

    def _attribute(self, attribute: Attribute) -> Run | None:
        text = collapsed(html.unescape(attribute.value)).strip()
        if not is_readable(text):
            return None
        quote = attribute.quote or '"'

        def spell(new: str, marks: Sequence[Mark]) -> str:
            escaped = self._spell(new, marks).replace(quote, "&quot;" if quote == '"' else "&#39;")
            return f"{quote}{escaped}{quote}"

        return Run(attribute.start, attribute.end, Segment(text), (), spell, inner=True)

    def _spell(self, text: str, marks: Sequence[Mark]) -> str:
        parts: list[str] = []
        start = 0
        for mark in unlinked(marks, _is_link):
            parts += self._escape(text[start : mark.at]), mark.code
            start = mark.at
        return "".join([*parts, self._escape(text[start:])])

    def _escape(self, text: str) -> str:
        text = html.escape(text, quote=False).replace("\xa0", self._hard_space)
        return text.encode(self._encoding, "xmlcharrefreplace").decode(self._encoding)

    def _language_edits(self, token: Token, read: dict[str, Attribute]) -> Iterable[Edit]:
        """What says that the page, or a part of it, is in the source language says the target language."""
        source, target = (language.replace("_", "-") for language in self._languages)
        if not target:
            return
        whole = token.name == "html"
        for key in ("lang", "xml:lang"):
            if key in read:
                old = read[key].value
                same = old.replace("_", "-").partition("-")[0].lower() == source.partition("-")[0].lower()
                if read[key].start < read[key].end and (whole or (source and same)):
                    yield read[key].start, read[key].end, f'"{target}"'
        if whole and "lang" not in read:
            after = token.start + 1 + len(token.name)
            yield after, after, f' lang="{target}"'


def _says_no(read: dict[str, Attribute]) -> bool:
    said = read["translate"].value.lower() if "translate" in read else ""
    return said == "no" or ("class" in read and "notranslate" in read["class"].value.split())


def _read_attributes(name: str, read: dict[str, Attribute]) -> list[Attribute]:
    """The attributes of a tag that somebody reads."""
    names: tuple[str, ...] = _READ_ATTRIBUTES
    if name == "meta":
        about = next((read[key].value.lower() for key in ("name", "property") if key in read), "")
        names = ("content",) if about in _READ_METAS else ()
    elif name in ("link", "style", "script", "param"):
        names = ()  # there a title is a name
    elif name in ("option", "optgroup", "track"):
        names = (*names, "label")
    elif name == "input" and "type" in read and read["type"].value.lower() in ("submit", "button", "reset"):
        names = (*names, "value")
    return sorted(read[key] for key in names if key in read)


def _is_link(mark: Mark) -> bool:
    return bool(re.match(r"<a[\s>]", mark.code, re.IGNORECASE)) or (not mark.pair and "<a " in mark.code.lower())
