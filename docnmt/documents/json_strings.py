"""JSON files of strings, as programs keep their translations in: every string that is a value is text, keys are not.

Of Chrome's and FormatJS' layout (`{"key": {"message": "...", "description": "..."}}`) the message alone is text; of
ARB files what is under keys that begin with @ is none. A message with choices of ICU, `{n, plural, one {# letter} other
{# letters}}`, stays as it is and is read as context: a piece of a sentence cannot be translated alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import decoded
from docnmt.documents.inline import Change, Splice
from docnmt.documents.messages import Message, message
from docnmt.documents.segment import Room, Segment
from docnmt.text.languages import primary

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*+")|([\[\]{},:])|[^\s"\[\]{},:]+)')
_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_FEW, _BYTES = 50_000, 16  # objects and arrays that any file may have; beyond them one for so many bytes
_TEXT_KEYS = frozenset(("message", "defaultMessage"))
_ENTRY_KEYS = _TEXT_KEYS | {"description", "placeholders", "id", "hash", "meaning", "context", "comment"}


@dataclass(slots=True)
class _Container:
    """An object or array that is open."""

    key: str
    is_object: bool
    is_note: bool  # what is in it is for programs and translators
    keys: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)  # the keys whose values are strings

    @property
    def is_entry(self) -> bool:
        return self.is_object and bool(self.strings & _TEXT_KEYS) and self.keys <= _ENTRY_KEYS


@dataclass(frozen=True, slots=True)
class _String:
    start: int
    end: int
    depth: int  # of what it stands in; 1 is the whole
    key: str
    is_note: bool


class JsonStrings:
    """A file that was read. Its strings are found once more when it is written: the segments alone are kept."""

    def __init__(self, data: bytes, name: str, languages: tuple[str, str]):
        self._data, self._languages = data, languages
        self._text, self._encoding = decoded(data, name)
        _check(self._text, name)
        # Some programs write plain ASCII; then so is what comes back.
        self._ascii = self._text.isascii() and re.search(r"\\u(?!00[0-7])", self._text) is not None
        self._has_entries = _Layout(self._text).has_entries()
        self._icu = False
        room = Room(len(data), name)
        self.segments: Sequence[Segment] = [
            room.add(segment) for _, text in self._messages() for segment in text.segments
        ]

    def _messages(self) -> Iterator[tuple[_String, Message]]:
        for string in _Layout(self._text).strings():
            if self._is_no_text(string):
                continue
            value = json.loads(self._text[string.start : string.end])
            if any("\ud800" <= character <= "\udfff" for character in value):
                continue  # half a character: it could not be written again
            choice = _CHOICE.search(value) is not None
            self._icu = self._icu or choice
            text = message(value, translate=not choice)
            if text.segments:
                yield string, text

    def _is_no_text(self, string: _String) -> bool:
        if self._has_entries and (string.depth != 2 or string.key not in _TEXT_KEYS):
            return True
        return string.is_note or string.key.startswith("@")

    def write(self, translations: Sequence[Segment]) -> bytes:
        changes: list[Change[str]] = []
        start = 0
        for string, old in self._messages():
            stop = start + len(old.segments)
            new = old.written(translations[start:stop])
            start = stop
            if self._icu and "'{" not in old.text:
                new = new.replace("'{", "''{")  # ICU takes one apostrophe before a brace for a quote
            if new != old.text:
                literal = self._literal(new, self._text[string.start : string.end])
                changes.append(Change(string.start, string.end, (literal,)))
        if start != len(translations):
            raise ValueError(f"{len(translations)} translations for {start} segments")
        if not changes:
            return self._data
        changes += self._locale()
        return self._encoding.encoded(Splice(self._text, changes).whole())

    def _locale(self) -> Iterator[Change[str]]:
        """ARB: the language that a file says it is in is the target's now."""
        source, target = (language.replace("-", "_") for language in self._languages)
        for string in _Layout(self._text).strings():
            if target and string.depth == 1 and string.key == "@@locale":
                old = json.loads(self._text[string.start : string.end]).replace("-", "_")
                if not source or primary(old) == primary(source):
                    yield Change(string.start, string.end, (self._literal(target, ""),))

    def _literal(self, text: str, old: str) -> str:
        literal = json.dumps(text, ensure_ascii=self._ascii)
        return literal.replace("/", "\\/") if "\\/" in old else literal


def _check(text: str, name: str) -> None:
    most = _FEW + len(text) // _BYTES
    if text.count("{") + text.count("[") > most:  # in strings, perhaps
        brackets = sum(token[2] in ("{", "[") for token in _TOKEN.finditer(text))
        if brackets > most:
            problem = "objects nested too deep, or nearly nothing but brackets"
            raise DocnmtError(f"{name}: {problem}\n  This is no file of strings.")
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise DocnmtError(
            f"{name}, line {error.lineno}: not JSON: {error.msg}\n"
            "  Mend the file at this place; JSON knows no comments and no commas at the end."
        ) from None
    except RecursionError:
        raise DocnmtError(f"{name}: objects nested too deep\n  This is no file of strings.") from None


class _Layout:
    """Goes through JSON that was checked, with no more in memory than what is open."""

    def __init__(self, text: str):
        self._text = text
        self._open: list[_Container] = [_Container("", False, False)]  # around the whole
        self._entries = 0  # objects that are entries, of those in the whole
        self._others = False

    def has_entries(self) -> bool:
        """Whether all that is in the whole are entries with a message and what is said about it."""
        for _ in self.strings():
            pass
        return self._entries > 0 and not self._others

    def strings(self) -> Iterator[_String]:
        key, is_key = "", False
        for token in _TOKEN.finditer(self._text):
            here = self._open[-1]
            if token[1] and is_key:
                key, is_key = json.loads(token[1]), False
                if len(here.keys) <= len(_ENTRY_KEYS):  # with more it is no entry
                    here.keys.add(key)
            elif token[1]:
                if len(here.strings) <= len(_ENTRY_KEYS):
                    here.strings.add(key)
                self._others |= len(self._open) == 2 and key != "$schema"
                yield _String(*token.span(1), len(self._open) - 1, key, here.is_note)
            elif token[2] in ("{", "["):
                self._open.append(_Container(key, token[2] == "{", here.is_note or key.startswith("@")))
                is_key = token[2] == "{"
            elif token[2] in ("}", "]"):
                self._close()
                here = self._open[-1]
                key, is_key = here.key if not here.is_object else "", False
            elif token[2] == ",":
                is_key = here.is_object

    def _close(self) -> None:
        closed = self._open.pop()
        if len(self._open) == 2 and not closed.key.startswith("@"):
            self._entries += closed.is_entry
            self._others |= not closed.is_entry


def read(data: bytes, name: str, languages: tuple[str, str]) -> JsonStrings:
    return JsonStrings(data, name, languages)
