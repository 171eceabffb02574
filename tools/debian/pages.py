"""Pages of manuals as blocks (paragraphs, titles, cells), and the alignment of pages in two languages."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from docnmt.corpus.clean import similar_size
from docnmt.documents.html_tokens import names

SHORTEST_RUN = 4  # consecutive blocks of the same kinds that count as translations of each other
_ALIKE = 0.9  # of a run's blocks must be of similar size
_RATIO = 2.0
MAX_BLOCKS = 20_000  # of a page: the time for comparing grows faster than their number

_INVISIBLE = re.compile("[\u200b\u200e\u200f\ufeff\u00ad]")

Texts = list[tuple[str, str]]  # of each block in its order: English, and the translation or ""


class Block(NamedTuple):
    kind: str  # its tag, or a name that it has in every language
    text: str


def tidy(text: str) -> str:
    """On one line, in one normal form, without invisible characters."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", text)).split())


def align(english: Sequence[Block], foreign: Sequence[Block]) -> Texts:
    """Translations by the order of kinds; where the orders differ, by runs in which they agree."""
    kinds = [[block.kind for block in side] for side in (english, foreign)]
    if kinds[0] == kinds[1]:
        return [(left.text, right.text) for left, right in zip(english, foreign, strict=True)]
    found = [""] * len(english)
    if max(map(len, kinds)) <= MAX_BLOCKS:
        for i, j, length in difflib.SequenceMatcher(None, kinds[0], kinds[1], autojunk=False).get_matching_blocks():
            run = list(zip(english[i : i + length], foreign[j : j + length], strict=True))
            alike = sum(similar_size(left.text, right.text, _RATIO) for left, right in run)
            if length >= SHORTEST_RUN and alike >= _ALIKE * length:
                found[i : i + length] = [right.text for _, right in run]
    return [(block.text, text) for block, text in zip(english, found, strict=True)]


def align_by_name(english: Sequence[Block], foreign: Sequence[Block]) -> Texts:
    """Translations by names that blocks have in every language; of blocks of one name the first counts."""
    sides = [{block.kind: block.text for block in reversed(side)} for side in (english, foreign)]
    names = dict.fromkeys(block.kind for block in english)
    return [(sides[0][name], sides[1].get(name, "")) for name in names]


# ---- HTML ----

_BLOCKS = names("p li dt dd h1 h2 h3 h4 h5 h6 td th caption div blockquote section article title figcaption")
_SKIPPED = names("script style pre nav header footer head form button select")
_BOXES = names("div ul ol p span table dl")
_VOID = names("img hr meta link input col area base wbr")
# Classes and ids of what is not running text in DocBook's, Sphinx's and Apache's pages.
_ASIDE = re.compile(
    r"navheader|navfooter|\btoc\b|sphinxsidebar|related|docnav|list-of|programlisting|screen\b|banner|langavail|preamble"
    r"|top\b|path|toplang|bottomlang|indexdiv|calloutlist|navigation|highlight|comments|footer|quickview|directive-list"
)
_DEEPEST = 500  # elements inside each other: real pages have some dozens


class _Page(HTMLParser):
    kind = ""  # of the block that is being read; "": none is
    skipped = 0  # open elements whose text is passed over

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.pieces: list[str] = []

    def read(self, text: str) -> list[Block]:
        self.feed(text)
        self.close()
        return self.blocks

    def flush(self) -> None:
        text = tidy("".join(self.pieces))
        if text and self.kind:
            self.blocks.append(Block(self.kind, text))
        self.pieces = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag == "br":
            self.pieces.append(" ")
        else:
            self.start(tag, named.get("class", ""), named.get("id", ""))

    def start(self, tag: str, classes: str, name: str) -> None:
        raise NotImplementedError

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.pieces.append(data)


class _HtmlPage(_Page):
    """Running text, without navigation and code."""

    kind = "-"

    def __init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, bool]] = []  # elements, and whether each is skipped

    def start(self, tag: str, classes: str, name: str) -> None:
        if tag in _VOID:
            return
        aside = tag in _BOXES and _ASIDE.search(f"{classes} {name}") is not None
        if tag in _BLOCKS and not self.skipped:
            self.flush()
            self.kind = ".".join((tag, *classes.split()[:1]))
        if len(self._open) < _DEEPEST:
            self._open.append((tag, tag in _SKIPPED or aside))
            self.skipped += self._open[-1][1]

    def handle_endtag(self, tag: str) -> None:
        if all(name != tag for name, _ in self._open):
            return
        name = ""
        while name != tag:
            name, skipped = self._open.pop()
            if name in _BLOCKS and not self.skipped:
                self.flush()
                self.kind = f"/{name}"
            self.skipped -= skipped

    def handle_data(self, data: str) -> None:
        super().handle_data(data.replace("¶", ""))  # the sign for a link to a heading

    def close(self) -> None:
        super().close()
        self.flush()


def parse_html(text: str) -> list[Block]:
    return _HtmlPage().read(text)


# ---- LibreOffice's help: made from one source for all languages, so paragraphs have the same ids in each ----

_PARAGRAPHS = names("p h1 h2 h3 h4 h5 h6")


class _LibreOfficePage(_Page):
    """Paragraphs by their ids. What is for users of a Mac is skipped: a page shows either that or what follows."""

    def start(self, tag: str, classes: str, name: str) -> None:
        if tag in _PARAGRAPHS:
            is_text = name.startswith(("par_", "hd_")) and "code" not in classes
            self.kind, self.pieces, self.skipped = name if is_text else "", [], 0
        elif tag in ("script", "style") or (tag == "span" and (self.skipped or "MAC" in classes.split())):
            self.skipped += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self.flush()
            self.kind = ""
        elif tag in ("script", "style", "span") and self.skipped:
            self.skipped -= 1


def parse_libreoffice(text: str) -> list[Block]:
    return _LibreOfficePage().read(text)


# ---- Help in Mallard and DocBook (GNOME, MATE, KDE): translated block by block from one tree ----

_XML_BLOCKS = names(
    "p title desc cite subtitle para simpara term entry phrase caption refpurpose question answer subject tip td th"
)
_XML_SKIPPED = names(
    "credit revision legalnotice copyright author authorgroup publisher othercredit revhistory code screen "
    "programlisting synopsis literallayout bookinfo articleinfo indexterm date releaseinfo cmdsynopsis input "
    "output edition license keyword keywordset"
)
# Blocks of their own that may stand inside a paragraph.
_INNER = names(
    "itemizedlist orderedlist variablelist table informaltable figure mediaobject note warning important "
    "caution example informalexample blockquote procedure simplelist list steps item media listitem "
    "varlistentry section sect1 sect2 sect3 sect4 qandaset screenshot footnote segmentedlist glosslist "
    "calloutlist"
)
_BUILT_IN = names("amp lt gt quot apos")
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')""")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", re.DOTALL)
_REFERENCE = re.compile(r"&([A-Za-z_][\w.-]*);")
_LONGEST_ENTITY = 200  # characters: names of programs and people


def parse_xml(text: str) -> list[Block]:
    """The blocks of a file; none if it is not well-formed."""
    try:
        found: list[Block] = []
        _walk(ET.fromstring(_without_entities(text)), "", found)
        return found
    except (ET.ParseError, RecursionError, ValueError):
        return []


def _without_entities(text: str) -> str:
    """The text with its entities replaced, once and not recursively, so that they cannot grow."""
    declared = {name: first or second for name, first, second in _ENTITY.findall(text)}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in _BUILT_IN:
            return match[0]
        # An entity that is declared elsewhere is usually named after its value.
        known = declared.get(name) or name.replace("-", " ").replace(".", " ")
        return re.sub("<[^>]*>|[<>&]", " ", known[:_LONGEST_ENTITY])

    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text.removeprefix("\ufeff"))  # it is decoded already
    return _REFERENCE.sub(value, _DOCTYPE.sub("", text, count=1))


def _name(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""  # "" of a comment


def _walk(element: ET.Element, parent: str, found: list[Block]) -> None:
    name = _name(element)
    if not name or name in _XML_SKIPPED:
        return
    inner = list(element)
    if name in _XML_BLOCKS:
        inner = []
        if text := tidy(_running_text(element, inner)):
            found.append(Block(f"{parent}/{name}", text))
    for child in inner:
        _walk(child, name, found)


def _running_text(element: ET.Element, inner: list[ET.Element]) -> str:
    """The text of a block; the blocks inside it, which are no part of it, are added to `inner`."""
    text = element.text or ""
    for child in element:
        name = _name(child)
        if name in _INNER or (name in _XML_BLOCKS and name != "phrase"):
            inner.append(child)
        elif name == "menuchoice":
            text += " → ".join("".join(part.itertext()).strip() for part in child if _name(part) != "shortcut")
        elif name in ("keycombo", "keyseq"):
            text += "+".join("".join(part.itertext()).strip() for part in child)
        elif name and name != "indexterm":
            text += _running_text(child, inner)
        text += child.tail or ""
    return text


# ---- Manual pages: translated from pages with the same macros in the same order ----

_SEEN = tomllib.loads(Path(__file__).with_name("roff.toml").read_text(encoding="utf-8"))
_ESCAPE = re.compile(
    r'\\(?:f(?:\[[^]]*\]|\(..|.)|s[-+]?\d|"(?P<comment>.*)$|\*(?:\[[^]]*\]|\(..|.)'
    r"|\((?P<two>..)|\[(?P<long>[^]]{1,12})\]|(?P<one>.))",
    re.MULTILINE,
)
_REQUEST = re.compile(r"""^[.'][ \t]*([A-Za-z\\"]+)[ \t]*(.*)$""")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"\\])+)')

_LITERAL, _LITERAL_ENDS = names("EX nf TS EQ"), names("EE fi TE EN")
_PARAGRAPH_MACROS = names("PP P LP TP TQ HP IP RS RE br sp")
_FONTS, _MIXED = names("B I SM SB"), names("BR BI IB IR RB RI")
_SHORTEST = 200  # characters: a shorter page only refers to another


def parse_man(text: str) -> list[Block]:
    return _ManualPage().read(text) if len(text) >= _SHORTEST else []


class _ManualPage:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.kind = "-"
        self.pieces: list[str] = []
        self.literal = False  # within code or a table

    def read(self, text: str) -> list[Block]:
        for line in text.split("\n"):
            if found := _REQUEST.match(line):
                self._request(found[1], found[2])
            elif self.literal:
                continue
            elif line.strip():
                self._text(line)
            else:
                self._start(self.kind)
        self._start("")
        return self.blocks

    def _add(self, kind: str, text: str) -> None:
        if shown := tidy(_plain(text)):
            self.blocks.append(Block(kind, shown))

    def _start(self, kind: str) -> None:
        self._add(self.kind, " ".join(self.pieces))
        self.kind, self.pieces = kind, []

    def _text(self, text: str) -> None:
        self.pieces.append(text)
        if self.kind == "TP":  # the first line after it is the term, what follows explains it
            self._start("TP body")

    def _request(self, name: str, rest: str) -> None:
        if name in _LITERAL or name in _LITERAL_ENDS:
            self.literal = name in _LITERAL
            self._start(self.kind if self.literal else name)
        elif self.literal or name.startswith(('"', "\\")):  # the latter: a comment
            return
        elif name in ("SH", "SS"):
            self._start(f"{name} body")
            self._add(name, " ".join(_arguments(rest)))
        elif name in _PARAGRAPH_MACROS:
            self._start(name)
            if name == "IP":
                self._add("IP mark", "".join(_arguments(rest)[:1]))
        elif name in _FONTS or name in _MIXED:
            self._text(("" if name in _MIXED else " ").join(_arguments(rest)))
        elif name in ("UR", "MT", "UE", "ME"):
            self.pieces.append(rest)


def _arguments(text: str) -> list[str]:
    return [quoted.replace('""', '"') or bare for quoted, bare in _ARGUMENT.findall(text)]


def _plain(text: str) -> str:
    def seen(found: re.Match[str]) -> str:
        if found["one"]:
            return _SEEN["short"].get(found["one"], "")
        name = found["two"] or found["long"]
        return _SEEN["long"].get(name, " ") if name else ""

    return _ESCAPE.sub(seen, text)
