"""Manuals as HTML: the blocks of a page, without what leads around in it and without code."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tools.debian.blocks import Block, names, tidy

_BLOCKS = names("p li dt dd h1 h2 h3 h4 h5 h6 td th caption div blockquote section article title figcaption")
_SKIPPED = names("script style pre nav header footer head form button select")
_BOXES = names("div ul ol p span table dl")
_VOID = names("br img hr meta link input col area base wbr")
# Classes and ids of what is not running text in DocBook's, Sphinx's and Apache's pages.
_ASIDE = re.compile(
    r"navheader|navfooter|\btoc\b|sphinxsidebar|related|docnav|list-of|programlisting|screen\b|banner|langavail|preamble"
    r"|top\b|path|toplang|bottomlang|indexdiv|calloutlist|navigation|highlight|comments|footer|quickview|directive-list"
)
_DEEPEST = 500  # elements inside each other: real pages have some dozens


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._open: list[tuple[str, bool]] = []  # elements, and whether each is skipped
        self._skipped = 0
        self._kind = "-"
        self._pieces: list[str] = []

    def flush(self) -> None:
        if text := tidy("".join(self._pieces).replace("¶", "")):
            self.blocks.append(Block(self._kind, text))
        self._pieces = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            if tag == "br":
                self._pieces.append(" ")
            return
        named = {name: value or "" for name, value in attrs}
        classes = named.get("class", "")
        aside = tag in _BOXES and _ASIDE.search(f"{classes} {named.get('id', '')}") is not None
        if tag in _BLOCKS and not self._skipped:
            self.flush()
            self._kind = ".".join((tag, *classes.split()[:1]))
        if len(self._open) < _DEEPEST:
            self._open.append((tag, tag in _SKIPPED or aside))
            self._skipped += self._open[-1][1]

    def handle_endtag(self, tag: str) -> None:
        if all(name != tag for name, _ in self._open):
            return
        name = ""
        while name != tag:
            name, skipped = self._open.pop()
            if name in _BLOCKS and not self._skipped:
                self.flush()
                self._kind = f"/{name}"
            self._skipped -= skipped

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._pieces.append(data)


def parse_html(text: str) -> list[Block]:
    page = _Page()
    page.feed(text)
    page.close()
    page.flush()
    return page.blocks
