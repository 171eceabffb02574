"""Manual pages: translated from pages with the same macros in the same order."""

from __future__ import annotations

import re

from tools.debian.blocks import Block, tidy

# What a reader sees for an escape; the rest of what roff has is dropped.
_NAMED = {
    "aq": "'", "dq": '"', "lq": '"', "rq": '"', "oq": "'", "cq": "'", "em": "—", "en": "–", "bu": "•", "ha": "^",
    "ti": "~", "Fo": "«", "Fc": "»", "co": "©", "mc": "µ", "->": "→", "rs": "\\", "ga": "`", "<=": "≤", ">=": "≥",
    "+-": "±", "mu": "×", "hy": "-", "bv": "|", "de": "°",
}  # fmt: skip
_ESCAPE = re.compile(
    r'\\(?:f(?:\[[^]]*\]|\(..|.)|s[-+]?\d|"(?P<comment>.*)$|\*(?:\[[^]]*\]|\(..|.)'
    r"|\((?P<two>..)|\[(?P<long>[^]]{1,12})\]|(?P<one>.))",
    re.MULTILINE,
)
_SINGLE = {"-": "-", " ": " ", "~": " ", "0": " ", "e": "\\", "\\": "\\", "'": "´", "`": "`"}
_REQUEST = re.compile(r"""^[.'][ \t]*([A-Za-z\\"]+)[ \t]*(.*)$""")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"\\])+)')

_LITERAL, _LITERAL_ENDS = {"EX", "nf", "TS", "EQ"}, {"EE", "fi", "TE", "EN"}
_PARAGRAPHS = {"PP", "P", "LP", "TP", "TQ", "HP", "IP", "RS", "RE", "br", "sp"}
_FONTS, _MIXED = {"B", "I", "SM", "SB"}, {"BR", "BI", "IB", "IR", "RB", "RI"}
_SHORTEST = 200  # characters of a page; a shorter one only names another


def parse_man(text: str) -> list[Block]:
    return _Page().read(text) if len(text) >= _SHORTEST else []


class _Page:
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
                self.pieces.append(line)
                self._end_term()
            else:
                self._flush()
        self._flush()
        return self.blocks

    def _flush(self) -> None:
        if text := tidy(_plain(" ".join(self.pieces))):
            self.blocks.append(Block(self.kind, text))
        self.pieces = []

    def _end_term(self) -> None:
        """The first line after .TP is the term, what follows explains it."""
        if self.kind == "TP":
            self._flush()
            self.kind = "TP body"

    def _request(self, name: str, rest: str) -> None:
        if name.startswith(('"', "\\")):  # a comment
            return
        if name in _LITERAL:
            self._flush()
            self.literal = True
        elif name in _LITERAL_ENDS:
            self._flush()
            self.literal, self.kind = False, name
        elif self.literal:
            return
        elif name in ("SH", "SS"):
            self._flush()
            if title := tidy(_plain(" ".join(_arguments(rest)))):
                self.blocks.append(Block(name, title))
            self.kind = f"{name} body"
        elif name in _PARAGRAPHS:
            self._flush()
            self.kind = name
            mark = tidy(_plain("".join(_arguments(rest)[:1]))) if name == "IP" else ""
            if mark:
                self.blocks.append(Block("IP mark", mark))
        elif name in _FONTS or name in _MIXED:
            self.pieces.append(("" if name in _MIXED else " ").join(_arguments(rest)))
            self._end_term()
        elif name in ("UR", "MT", "UE", "ME"):
            self.pieces.append(rest)


def _arguments(text: str) -> list[str]:
    return [quoted.replace('""', '"') or bare for quoted, bare in _ARGUMENT.findall(text)]


def _plain(text: str) -> str:
    def seen(found: re.Match[str]) -> str:
        if found["one"]:
            return _SINGLE.get(found["one"], "")
        name = found["two"] or found["long"]
        return _NAMED.get(name, " ") if name else ""

    return _ESCAPE.sub(seen, text)
