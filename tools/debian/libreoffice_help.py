"""LibreOffice's help: made from one source for all languages, so paragraphs have the same ids in each."""

from __future__ import annotations

from html.parser import HTMLParser

from tools.debian.blocks import Block, names, tidy

_PARAGRAPHS = names("p h1 h2 h3 h4 h5 h6")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._name = ""  # of the paragraph that is being read; "": none, or code
        self._pieces: list[str] = []
        self._script = False
        self._mac = 0  # open spans of what is said to users of a Mac: a page shows either that or what follows

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if tag in _PARAGRAPHS:
            name = named.get("id", "")
            is_text = name.startswith(("par_", "hd_")) and "code" not in named.get("class", "")
            self._name, self._pieces, self._mac = name if is_text else "", [], 0
        elif tag == "span" and (self._mac or "MAC" in named.get("class", "").split()):
            self._mac += 1
        elif tag in ("script", "style"):
            self._script = True
        elif tag == "br":
            self._pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            if self._name and (text := tidy("".join(self._pieces))):
                self.blocks.append(Block(self._name, text))
            self._name = ""
        elif tag == "span" and self._mac:
            self._mac -= 1
        elif tag in ("script", "style"):
            self._script = False

    def handle_data(self, data: str) -> None:
        if self._name and not self._script and not self._mac:
            self._pieces.append(data)


def parse_libreoffice(text: str) -> list[Block]:
    page = _Page()
    page.feed(text)
    page.close()
    return page.blocks
