"""JSON files of strings, as programs keep their translations in: every string that is a value is text, keys are not.

Of Chrome's and FormatJS' layout (`{"key": {"message": "...", "description": "..."}}`) the message alone is text; of
ARB files what is under keys that begin with @ is none. A message with choices of ICU, `{n, plural, one {# letter} other
{# letters}}`, stays as it is and is read as context: a piece of a sentence cannot be translated alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.messages import Message, message
from docnmt.documents.segment import Segment

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*+")|([\[\]{},:])|[^\s"\[\]{},:]+)')
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_TEXT_KEYS = frozenset(("message", "defaultMessage"))
_ENTRY_KEYS = _TEXT_KEYS | {"description", "placeholders", "id", "hash", "meaning", "context", "comment"}


@dataclass(slots=True)
class _Container:
    """An object or array, and where it stands."""

    parent: int
    key: str
    is_object: bool
    keys: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)  # the keys whose values are strings

    @property
    def is_entry(self) -> bool:
        return self.is_object and bool(self.strings & _TEXT_KEYS) and self.keys <= _ENTRY_KEYS


@dataclass(frozen=True, slots=True)
class _String:
    start: int
    end: int
    container: int
    key: str


@dataclass(frozen=True, slots=True)
class _Item:
    start: int
    end: int
    message: Message


class JsonStrings:
    def __init__(self, data: bytes, name: str):
        self._data = data
        self._text, self._encoding = decoded(data, name)
        _check(self._text, name)
        # Some programs write plain ASCII; then so is what comes back.
        self._ascii = self._text.isascii() and re.search(r"\\u(?!00[0-7])", self._text) is not None
        self._items: list[_Item] = []
        strings = _texts(self._text)
        values = [json.loads(self._text[string.start : string.end]) for string in strings]
        self._icu = any(_CHOICE.search(value) for value in values)
        for string, value in zip(strings, values, strict=True):
            if any("\ud800" <= character <= "\udfff" for character in value):
                continue  # half a character: it could not be written again
            text = message(value, translate=_CHOICE.search(value) is None)
            if text.segments:
                self._items.append(_Item(string.start, string.end, text))
        self.segments: Sequence[Segment] = [segment for item in self._items for segment in item.message.segments]

    def write(self, translations: Sequence[Segment]) -> bytes:
        pieces: list[str] = []
        start = end = 0
        for item in self._items:
            stop = start + len(item.message.segments)
            new = item.message.written(translations[start:stop])
            start = stop
            if self._icu and "'{" not in item.message.text:
                new = new.replace("'{", "''{")  # ICU takes one apostrophe before a brace for a quote
            if new != item.message.text:
                pieces += self._text[end : item.start], self._literal(new, self._text[item.start : item.end])
                end = item.end
        if not pieces:
            return self._data
        return self._encoding.encoded("".join([*pieces, self._text[end:]]))

    def _literal(self, text: str, old: str) -> str:
        literal = json.dumps(text, ensure_ascii=self._ascii)
        return literal.replace("/", "\\/") if "\\/" in old else literal


def _check(text: str, name: str) -> None:
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise DocnmtError(
            f"{name}, line {error.lineno}: not JSON: {error.msg}\n"
            "  Mend the file at this place; JSON knows no comments and no commas at the end."
        ) from None
    except RecursionError:
        raise DocnmtError(f"{name}: objects nested too deep\n  This is no file of strings.") from None


def _texts(text: str) -> list[_String]:
    """The strings that are to be translated, of JSON that was checked."""
    containers: list[_Container] = [_Container(-1, "", False)]  # around the whole
    strings: list[_String] = []
    here = 0
    key, is_key = "", False
    for token in _TOKEN.finditer(text):
        container = containers[here]
        if token[1] and is_key:
            key, is_key = json.loads(token[1]), False
            container.keys.add(key)
        elif token[1]:
            container.strings.add(key)
            strings.append(_String(*token.span(1), here, key))
        elif token[2] in ("{", "["):
            containers.append(_Container(here, key, token[2] == "{"))
            here = len(containers) - 1
            is_key = token[2] == "{"
        elif token[2] in ("}", "]"):
            here = container.parent
            key, is_key = containers[here].key if not containers[here].is_object else "", False
        elif token[2] == ",":
            is_key = container.is_object
    return _without_notes(strings, containers)


def _without_notes(strings: list[_String], containers: list[_Container]) -> list[_String]:
    """Leaves out what is said about messages to programs and translators."""
    entries = [c for c in containers[2:] if c.parent == 1 and not c.key.startswith("@")]
    has_entries = bool(entries) and containers[1].strings <= {"$schema"} and all(c.is_entry for c in entries)
    is_note = [False]
    for container in containers[1:]:
        inside_entry = has_entries and container.parent > 1
        is_note.append(is_note[container.parent] or container.key.startswith("@") or inside_entry)
    return [
        string
        for string in strings
        if not (is_note[string.container] or string.key.startswith("@"))
        and not (has_entries and (string.container == 1 or string.key not in _TEXT_KEYS))
    ]


def read(data: bytes, name: str, languages: tuple[str, str]) -> JsonStrings:
    return JsonStrings(data, name)
