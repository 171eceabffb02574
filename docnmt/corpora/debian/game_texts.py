"""Games whose data holds the English text in its order (JSON or Lua) and whose translations are gettext catalogues.

A document is a file: dialogue, lore, the script of a scenario.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from docnmt.corpora.debian.blocks import Texts, names, tidy
from docnmt.corpora.debian.catalogues import catalogues, is_catalogue
from docnmt.corpora.debian.languages import Language
from docnmt.corpora.debian.packages import Files
from docnmt.corpora.debian.pages import text_of

# Keys of Cataclysm's objects under which there is no running text.
_NOT_TEXT = names("id type symbol color copy-from name name_plural str_pl // looks_like category abstract flags")
_LUA = re.compile(r'_\s*\(?\s*(?:"((?:[^"\\]|\\.)*)"|\[(=*)\[(.*?)\]\2\]|\'((?:[^\'\\]|\\.)*)\')', re.DOTALL)
_MARKUP = re.compile(r"</?(?:color|p|b|i|font|br|vspace|img|h\d|div|li|info|good|bad|neutral)[^>]*>")
_MARKS = re.compile(r"^\s*(?:~|\||%s )")  # of how a line is spoken
_ESCAPES = {"n": "\n", "t": "\t", "\n": "\n"}


@dataclass(frozen=True)
class GameTexts:
    data: re.Pattern[str]  # the files with the English text; group `page`
    strings: Callable[[str], Iterator[str]]

    def wants(self, path: str, language: Language) -> bool:
        return self.data.fullmatch(path) is not None or is_catalogue(path, language)

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        known: dict[str, str] = {}
        for messages in catalogues(files, language).values():
            known = messages | known
        for path in sorted(files):
            if found := self.data.fullmatch(path):
                texts: Texts = []
                for string in self.strings(text_of(files[path])):
                    if len(string.split()) > 1:  # not a key or a label
                        texts += paragraphs(string, known.get(string) or known.get(string.strip(), ""), _shown, r"\n+")
                yield found["page"], texts


def paragraphs(english: str, foreign: str, shown: Callable[[str], str], between: str) -> Texts:
    """The paragraphs of a message beside their translations; one pair if the two sides are not divided alike."""
    if foreign == english:  # as messages are left that nobody has translated
        foreign = ""
    sides = [[text for part in re.split(between, side) if (text := shown(part))] for side in (english, foreign)]
    if not sides[1]:
        return [(text, "") for text in sides[0]]
    if len(sides[0]) != len(sides[1]):
        return [(shown(english), shown(foreign))]
    return list(zip(*sides, strict=True))


def _shown(text: str) -> str:
    return tidy(_MARKS.sub("", _MARKUP.sub(" ", text)))


def json_strings(text: str) -> Iterator[str]:
    try:
        yield from _strings(json.loads(text))
    except (ValueError, RecursionError):
        return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NOT_TEXT:
                yield from _strings(item)


def lua_strings(text: str) -> Iterator[str]:
    """Strings that are given to `_` for translation."""
    for quoted, _, bracketed, single in _LUA.findall(text):
        if bracketed:
            yield bracketed.removeprefix("\n")
        else:
            yield re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), quoted or single, flags=re.DOTALL)
