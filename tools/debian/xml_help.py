"""Help in Mallard and DocBook (GNOME, MATE, KDE): translated block by block from one tree."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from tools.debian.blocks import Block, names, tidy

_BLOCKS = names(
    "p title desc cite subtitle para simpara term entry phrase caption refpurpose question answer subject tip td th"
)
_SKIPPED = names(
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
    """The blocks of a file; none where it is no whole XML."""
    try:
        found: list[Block] = []
        _walk(ET.fromstring(_without_entities(text)), "", found)
        return found
    except (ET.ParseError, RecursionError, ValueError):
        return []


def _without_entities(text: str) -> str:
    """With its entities put in, each once and not into each other: so they cannot grow."""
    declared = {name: first or second for name, first, second in _ENTITY.findall(text)}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in _BUILT_IN:
            return match[0]
        # One that is declared elsewhere is named after what it stands for, as a rule.
        known = declared.get(name) or name.replace("-", " ").replace(".", " ")
        return re.sub("<[^>]*>|[<>&]", " ", known[:_LONGEST_ENTITY])

    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text.removeprefix("\ufeff"))  # it is decoded already
    return _REFERENCE.sub(value, _DOCTYPE.sub("", text, count=1))


def _name(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""  # "" of a comment


def _walk(element: ET.Element, parent: str, found: list[Block]) -> None:
    name = _name(element)
    if not name or name in _SKIPPED:
        return
    inner = list(element)
    if name in _BLOCKS:
        pieces: list[str] = []
        inner = []
        _read(element, pieces, inner)
        if text := tidy("".join(pieces)):
            found.append(Block(f"{parent}/{name}", text))
    for child in inner:
        _walk(child, name, found)


def _read(element: ET.Element, pieces: list[str], inner: list[ET.Element]) -> None:
    """The running text of a block, and the blocks inside it that are no part of it."""
    pieces.append(element.text or "")
    for child in element:
        name = _name(child)
        if name in _INNER or (name in _BLOCKS and name != "phrase"):
            inner.append(child)
        elif name == "menuchoice":
            pieces.append(" → ".join(_text(part) for part in child if _name(part) != "shortcut"))
        elif name in ("keycombo", "keyseq"):
            pieces.append("+".join(_text(part) for part in child))
        elif name and name != "indexterm":
            _read(child, pieces, inner)
        pieces.append(child.tail or "")


def _text(element: ET.Element) -> str:
    return "".join(element.itertext()).strip()
