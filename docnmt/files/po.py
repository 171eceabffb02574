"""gettext catalogues (.po, .pot): messages without a finished translation get one, marked fuzzy for review.

The segments are the msgids, in the order of the file. Those translated already are read as context and stay. A
translation that equals the message is not written: gettext shows the message itself where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from docnmt.base.errors import DocnmtError
from docnmt.files.bilingual import check_language
from docnmt.files.messages import Message, message
from docnmt.files.plural_forms import PluralForms
from docnmt.files.po_entries import WIDTH, PoEntry, decoded, header_fields, literal, read_entries
from docnmt.files.segments import Segment

Edit = tuple[int, int, str]  # what stands from here to there becomes this


@dataclass(frozen=True, slots=True)
class _Item:
    """An entry and what there is to translate in it."""

    entry: PoEntry
    singular: Message
    plural: Message | None

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.singular, self.plural) if self.plural else (self.singular,)


class PoFile:
    def __init__(self, data: bytes, name: str, language: str):
        self._data, self._name, self._language = data, name, language
        self._text, self._encoding = decoded(data, name)
        self._entries = read_entries(self._text, name)
        self._items = [_item(entry) for entry in self._entries if not entry.is_header]
        header = header_fields(self._entries)
        check_language(name, header.get("language", ""), language, "target")
        self._forms = PluralForms.parse(header.get("plural-forms", ""))
        self._newline = "\r\n" if "\r\n" in self._text else "\n"
        self._wrap = not self._has_long_lines()
        self.segments: Sequence[Segment] = [s for item in self._items for m in item.messages for s in m.segments]

    def _has_long_lines(self) -> bool:
        """Beyond the header, whose Plural-Forms many programs leave on a line of their own."""
        header = next((entry for entry in self._entries if entry.is_header), None)
        start = max(string.end for string in header.forms.values()) if header else 0
        return (
            re.compile(r'^(?:msg\S+ )?"(?=[^\n]{80})[^\n]* [^\n]*"', re.MULTILINE).search(self._text, start) is not None
        )

    def write(self, translations: Sequence[Segment]) -> bytes:
        edits: list[Edit] = []
        start = 0
        for item in self._items:
            new: list[str] = []
            for text in item.messages:
                end = start + len(text.segments)
                new.append(text.written(translations[start:end]))
                start = end
            if new != [text.text for text in item.messages] and not item.entry.translated:
                edits += self._entry_edits(item, new)
        if not edits:
            return self._data
        edits += self._header_edits()
        return self._encoded(_edited(self._text, sorted(edits, key=lambda edit: edit[:2])))

    def _entry_edits(self, item: _Item, new: list[str]) -> list[Edit]:
        entry = item.entry
        edits: list[Edit] = []
        if not entry.fuzzy:
            if entry.flags:
                edits.append((entry.flags.start(), entry.flags.start() + 2, "#, fuzzy,"))
            else:
                at = entry.previous if entry.previous >= 0 else entry.start
                edits.append((at, at, f"#, fuzzy{self._newline}"))
        forms = self._forms if item.plural else None
        end = entry.start
        for number, string in entry.forms.items():
            if forms and number >= forms.count and not string.text and number:
                edits.append((end, string.end, ""))  # a form of the template's, which this language has not
            elif entry.fuzzy or not string.text:  # else somebody translated this form
                edits.append((string.start, string.end, self._literal(item, new, number)))
            end = string.end
        for number in range(forms.count if forms else 0):
            if number not in entry.forms:
                added = f"{self._newline}{_keyword(item, number)}{self._literal(item, new, number)}"
                edits.append((end, end, added))
        return edits

    def _form(self, item: _Item, new: list[str], number: int) -> str:
        """The translation of msgid for the form that 1 takes, else that of msgid_plural."""
        if item.plural is None:
            return new[0]
        singular = number == 0 if self._forms is None else number == self._forms.of_one
        # "one file" cannot stand for 21, which takes the form of 1 in many languages.
        if singular and self._forms and not self._forms.few:
            singular = _placeholders(item.singular.text) == _placeholders(item.plural.text)
        return new[0] if singular else new[1]

    def _literal(self, item: _Item, new: list[str], number: int) -> str:
        room = WIDTH - len(_keyword(item, number))
        return literal(self._form(item, new, number), room, self._wrap, self._newline)

    def _header_edits(self) -> list[Edit]:
        """The language, and in a template the charset, which the translation needs to be read at all."""
        header = next((entry for entry in self._entries if entry.is_header), None)
        if header is None:
            return []
        string = header.forms[min(header.forms)]
        edits: list[Edit] = []
        charset, language = "charset=CHARSET", r'(?<=["n])Language: *(?=\\n)'
        for pattern, value in ((charset, "charset=UTF-8"), (language, f"Language: {self._language}")):
            found = re.compile(pattern).search(self._text, string.start, string.end)
            if found and (pattern is charset or self._language):
                edits.append((found.start(), found.end(), value))
        return edits

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise DocnmtError(
                f"{self._name}: the translation has {text[error.start]!r}, which the catalogue's charset "
                f"{self._encoding} has not\n  Convert the file first: msgconv -t UTF-8."
            ) from None


def _item(entry: PoEntry) -> _Item:
    assert entry.msgid is not None
    translate = not entry.translated
    plural = message(entry.plural.text, translate=translate) if entry.plural else None
    return _Item(entry, message(entry.msgid.text, translate=translate), plural)


def _keyword(item: _Item, number: int) -> str:
    return f"msgstr[{number}] " if item.plural else "msgstr "


def _placeholders(text: str) -> int:
    return text.count("%") + text.count("{")


def _edited(text: str, edits: list[Edit]) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop, new in edits:
        pieces += text[end:start], new
        end = stop
    return "".join([*pieces, text[end:]])


def read(data: bytes, name: str, languages: tuple[str, str]) -> PoFile:
    return PoFile(data, name, languages[1])
