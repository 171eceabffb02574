"""JSON files in which programs keep their translations: all values that are strings are text, keys are not.

In Chrome's and FormatJS' layout (`{"key": {"message": "...", "description": "..."}}`) only the message is text; in ARB
files nothing under keys that begin with @ is. A message with choices of ICU, `{n, plural, one {# letter} other {#
letters}}`, stays as it is and only serves as context: pieces of a sentence cannot be translated alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.messages import message
from docnmt.documents.segment import Change, Place, Segment, SplicedFile
from docnmt.text.scripts import primary

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*+")|([\[\]{},:])|[^\s"\[\]{},:]+)')
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FEW, _BYTES = 50_000, 24  # objects, arrays and keys that any file may have; beyond that, one for this many bytes
_TEXT_KEYS = {"message", "defaultMessage"}
_ENTRY_KEYS = _TEXT_KEYS | {"description", "placeholders", "id", "hash", "meaning", "context", "comment"}


def read(data: bytes, name: str, languages: tuple[str, str]) -> SplicedFile:
    text, encoding = decoded(data, name)
    strings = _Strings(text, _has_entries(_parsed(text, name)), languages)
    return SplicedFile(data, text, name, strings.places, encoding.encoded)


def _parsed(text: str, name: str) -> Any:
    most = _FEW + len(text) // _BYTES
    many = sum(map(text.count, "{[:")) > most  # perhaps in strings
    if many and sum(token[2] in ("{", "[", ":") for token in _TOKEN.finditer(text)) > most:
        problem = "objects are nested too deeply, or there is little but brackets and keys"
        raise DocnmtError(f"{name}: {problem}\n  Only JSON files of a program's texts can be translated.")
    try:
        # Numbers are not used, and long ones take long to parse.
        return json.loads(text, parse_int=lambda digits: None, parse_float=lambda digits: None)
    except json.JSONDecodeError as error:
        raise DocnmtError(
            f"{name}, line {error.lineno}: not valid JSON: {error.msg}\n"
            "  Correct this line; JSON allows no comments and no trailing commas."
        ) from None
    except RecursionError:
        raise DocnmtError(
            f"{name}: objects are nested too deeply\n  Only JSON files of a program's texts can be translated."
        ) from None


def _has_entries(whole: Any) -> bool:
    """Whether everything in the file is an entry: a message and remarks about it."""
    if not isinstance(whole, dict | list):
        return False
    items = whole.items() if isinstance(whole, dict) else (("", item) for item in whole)
    entries = (
        _is_entry(item)
        for key, item in items
        if (isinstance(item, str) and key != "$schema") or (isinstance(item, dict | list) and not key.startswith("@"))
    )
    return next(entries, False) and all(entries)


def _is_entry(item: Any) -> bool:
    if not isinstance(item, dict) or not item.keys() <= _ENTRY_KEYS:
        return False
    return any(isinstance(item.get(key), str) for key in _TEXT_KEYS)


class _Container(NamedTuple):
    """An object or array that is open."""

    key: str
    is_object: bool
    is_note: bool  # its content is for programs and translators, not for users


class _Strings:
    def __init__(self, text: str, has_entries: bool, languages: tuple[str, str]):
        self._text, self._has_entries, self._languages = text, has_entries, languages
        # A file in plain ASCII, as some programs write it, stays so.
        self._ascii = text.isascii() and re.search(r"\\u(?!00[0-7])", text) is not None
        self._icu = False

    def places(self) -> Iterator[Place | Change]:
        """Walks through JSON that has been checked, with only the open containers in memory."""
        opened = [_Container("", False, False)]
        key, is_key = "", False
        for token in _TOKEN.finditer(self._text):
            here = opened[-1]
            if token[1] and is_key:
                key, is_key = json.loads(token[1]), False
            elif token[1]:
                depth = len(opened) - 1
                if depth == 1 and key == "@@locale":
                    yield from self._locale(*token.span(1))
                elif self._has_entries and (depth != 2 or key not in _TEXT_KEYS):
                    continue
                elif not here.is_note and not key.startswith("@"):
                    yield from self._string(*token.span(1))
            elif token[2] in ("{", "["):
                is_key = token[2] == "{"
                opened.append(_Container(key, is_key, here.is_note or key.startswith("@")))
            elif token[2] in ("}", "]"):
                opened.pop()
                key, is_key = opened[-1].key, False
            elif token[2] == ",":
                is_key = here.is_object

    def _string(self, start: int, end: int) -> Iterator[Place]:
        value = json.loads(self._text[start:end])
        if _SURROGATE.search(value):
            return  # half of a surrogate pair cannot be written
        choice = _CHOICE.search(value) is not None
        self._icu = self._icu or choice
        found = message(value, translate=not choice)

        def changes(*translations: Segment) -> Iterator[Change]:
            new = found.written(translations)
            if self._icu and "'{" not in value:
                new = new.replace("'{", "''{")  # to ICU an apostrophe before a brace is a quote
            if new != value:
                literal = self._literal(new)
                slashes = "\\/" in self._text[start:end]
                yield Change(start, end, [literal.replace("/", "\\/") if slashes else literal])

        if found.segments:
            yield Place(start, found.segments, changes)

    def _locale(self, start: int, end: int) -> Iterator[Change]:
        """ARB files state their language: now it is the target language."""
        source, target = (language.replace("-", "_") for language in self._languages)
        if target and (not source or primary(json.loads(self._text[start:end])) == primary(source)):
            yield Change(start, end, [self._literal(target)])

    def _literal(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._ascii)
