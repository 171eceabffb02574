"""gettext catalogues (.po, .pot): messages without a finished translation get one, marked fuzzy for review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from gettext import c2py
from itertools import islice
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.documents.messages import message
from docnmt.documents.segment import Change, Place, Segment, SplicedFile
from docnmt.documents.text import filled
from docnmt.documents.xliff import check_language
from docnmt.text.scripts import CJK, CJK_PUNCTUATION, columns

# ---- entries: where each string is, what it says, how to write it ----

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_STRINGS = re.compile(_STRING)
_TOKEN = re.compile(
    rf"\s+|(?P<comment>\#[^\n]*)|(?P<string>{_STRING})"
    r"|(?P<key>(?P<keyword>[a-z_]+)(?:[ \t]*\[[ \t]*(?P<form>[0-9]{1,4})[ \t]*\])?+)"
    rf"(?:\s*+(?P<strings>{_STRING}(?:\s*+{_STRING})*+))?+"
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', **{value: f"\\{name}" for name, value in _ESCAPES.items()}})
# Those that gettext reads; Python has more, some of them codecs that take quadratic time.
_CHARSET = re.compile(
    r"utf-?8|(?:us-)?ascii|latin-?1|iso-?8859-\d+|koi8-[rtu]|(?:cp|windows-)\d+|gb[\dk]+|euc-\w+|big5\S*"
    r"|shift_jis|johab|tis-620"
)
_KEYWORDS = {"domain", "msgctxt", "msgid", "msgid_plural", "msgstr"}
# A word, or a character of a script without spaces, with what must not begin a line.
_PIECE = re.compile(rf"[{CJK}](?:[{CJK_PUNCTUATION}]| )*|[^ {CJK}]+ *| +")
WIDTH = 79  # gettext's own
_LONG_LINE = re.compile(r'^(?:msg\S+ )?"(?=[^\n]{80})[^\n]* [^\n]*"', re.MULTILINE)
_NO_CHARSET, _NO_LANGUAGE = re.compile("charset=CHARSET"), re.compile(r'(?<=["n])Language: *(?=\\n)')
# Plural-Forms: how many forms there are, and which one a number takes, as an expression of C. Like gettext, no space
# before the equals signs.
_PLURALS = re.compile(r"nplurals=\s*([0-9]{1,2})\s*;\s*plural=\s*([^;]{1,1000})")
_NUMBERS = 1001
# A form for so few numbers may spell the number out ("one file"); gettext has the same limit.
_FEW = 5


class PoString(NamedTuple):
    """A string of a catalogue, in as many pieces as it was wrapped into."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class PoEntry:
    line: int
    start: int  # of the first keyword
    flags: re.Match[str] | None = None  # the comment that begins with "#,"
    previous: int = -1  # where the first comment that begins with "#|" stands
    fuzzy: bool = False
    context: PoString | None = None
    msgid: PoString | None = None
    plural: PoString | None = None
    forms: dict[int, PoString] = field(default_factory=dict)  # msgstr is form 0

    @property
    def is_header(self) -> bool:
        return self.msgid is not None and not self.msgid.text and self.context is None

    @property
    def translated(self) -> bool:
        return not self.fuzzy and all(form.text for form in self.forms.values())


class _Reader:
    """Walks through the tokens of a catalogue."""

    def __init__(self, text: str, name: str):
        self.text, self.name = text, name
        self._counted = 0, 1  # up to which character lines were counted, and the line there

    def error(self, at: int, problem: str) -> DocnmtError:
        remedy = "Correct the file at this line; msgfmt -c says more."
        return DocnmtError(f"{self.name}, line {self.line(at)}: {problem}\n  {remedy}")

    def line(self, at: int) -> int:
        counted, line = self._counted
        line += self.text.count("\n", counted, at)
        self._counted = at, line
        return line

    def entries(self) -> Iterator[PoEntry]:
        """Obsolete entries, which are comments, are not among them."""
        entry = PoEntry(0, 0)
        at = 1 if self.text.startswith("\ufeff") else 0
        empty: re.Match[str] | None = None  # a keyword without strings, if the last token was one
        while at < len(self.text):
            token = _TOKEN.match(self.text, at)
            if token is None:
                raise self.error(at, f"this is not a keyword, string or comment: {self.text[at : at + 20]!r}")
            at = token.end()
            if token["string"]:
                raise self.error(token.start(), "this string has no keyword before it")
            if token[0].isspace():
                continue
            if empty:
                break
            if entry.forms and token["keyword"] != "msgstr":
                yield self._checked(entry)
                entry = PoEntry(0, 0)
            if token["keyword"]:
                if token["keyword"] not in _KEYWORDS:
                    raise self.error(token.start(), f"unknown keyword {token['key'][:20]!r}")
                if token["strings"]:
                    self._add(entry, token)
                else:
                    empty = token
            elif entry.line:
                raise self.error(token.start(), "there is a comment inside an entry")
            else:
                _comment(entry, token)
        if empty:
            raise self.error(empty.start(), f"{empty['key']} has no string")
        if entry.line:
            yield self._checked(entry)

    def _add(self, entry: PoEntry, key: re.Match[str]) -> None:
        name = key["keyword"]
        if name == "domain":
            return
        text = ""  # appended to, since a list of tiny strings takes many times their size
        for string in _STRINGS.finditer(self.text, *key.span("strings")):
            text += _unescaped(string[0][1:-1])
        read = PoString(*key.span("strings"), text)
        if not entry.line:
            entry.line, entry.start = self.line(key.start()), key.start()
        if name == "msgstr":
            form = int(key["form"] or 0)
            twice = form in entry.forms
            entry.forms[form] = read
        else:
            attribute = {"msgctxt": "context", "msgid": "msgid", "msgid_plural": "plural"}[name]
            twice = getattr(entry, attribute) is not None
            setattr(entry, attribute, read)
        if twice:
            raise self.error(key.start(), f"{key['key']} occurs twice in one entry")

    def _checked(self, entry: PoEntry) -> PoEntry:
        if entry.msgid is None or not entry.forms:
            missing = "msgid" if entry.msgid is None else "msgstr"
            raise self.error(entry.start, f"this entry has no {missing}")
        return entry


def _comment(entry: PoEntry, token: re.Match[str]) -> None:
    comment = token["comment"]
    if comment.startswith("#~"):  # obsolete: the comments before were about it
        entry.flags, entry.previous, entry.fuzzy = None, -1, False
    elif comment.startswith("#,"):
        entry.flags = entry.flags or token
        entry.fuzzy = entry.fuzzy or "fuzzy" in (flag.strip() for flag in comment[2:].split(","))
    elif comment.startswith("#|") and entry.previous < 0:
        entry.previous = token.start()


def read_entries(text: str, name: str) -> list[PoEntry]:
    return list(_Reader(text, name).entries())


def decoded(data: bytes, name: str) -> tuple[str, str]:
    """A catalogue as text, and its encoding, which is in the header."""
    found = re.search(rb"Content-Type:[^\n]{0,100}?charset=([\w.:-]+)", data[:20_000])
    encoding = found[1].decode() if found and found[1] != b"CHARSET" else "utf-8"
    try:
        if not _CHARSET.fullmatch(encoding.lower()):
            raise LookupError(encoding)
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocnmtError(
            f"{name}, line {line}: byte 0x{data[error.start]:02X} is not valid {encoding}, the charset in the header\n"
            "  Correct the charset in the header, or convert the file: msgconv -t UTF-8."
        ) from None
    except (LookupError, UnicodeError):
        raise DocnmtError(
            f"{name}: unknown charset {encoding[:40]} in the header\n  Convert the file: msgconv -t UTF-8."
        ) from None


def header_fields(entries: list[PoEntry]) -> dict[str, str]:
    """What the header says, by name in lower case."""
    header = next((entry for entry in entries if entry.is_header), None)
    lines = header.forms[min(header.forms)].text.split("\n") if header else []
    return {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


@dataclass(frozen=True, slots=True)
class PluralForms:
    count: int
    of_one: int | None = None  # the form for 1; None if unknown, or if there is only one form
    few: bool = False  # it is for few numbers: 1, or 0 and 1

    @classmethod
    def parse(cls, field: str) -> PluralForms | None:
        """None if the field is not filled in (templates have INTEGER and EXPRESSION in it)."""
        found = _PLURALS.search(field)
        if found is None or not int(found[1]):
            return None
        count = int(found[1])
        try:
            form_of = c2py(found[2])
            forms = [form_of(number) for number in range(_NUMBERS)]
        except (ValueError, ArithmeticError):
            return cls(count)
        if count == 1 or not 0 <= forms[1] < count:
            return cls(count)
        return cls(count, forms[1], forms.count(forms[1]) <= _FEW)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return chr(int(code[1:], 16)) if code[0] == "x" and len(code) > 1 else _ESCAPES.get(code, code)


def literal(text: str, room: int, wrap: bool, newline: str) -> str:
    """A string as the catalogue writes it: on one line if it has that `room`, else in lines that end at line breaks.

    With `wrap` lines that are too long are broken at spaces, too.
    """
    lines = [f'"{line.translate(_WRITTEN)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    if len(lines) == 1 and (not wrap or columns(lines[0]) <= room):
        return lines[0]
    if wrap:
        room = WIDTH - len('""')
        lines = [f'"{part}"' for line in lines for part in filled(_PIECE.findall(line[1:-1]), room, room)]
    return newline.join(['""', *lines])


# ---- catalogues as documents ----

# The segments are the msgids, in the order of the file. Those already translated are kept and read as context. A
# translation that equals the message is not written: without one, gettext shows the message itself.


def read(data: bytes, name: str, languages: tuple[str, str]) -> SplicedFile:
    text, encoding = decoded(data, name)
    catalogue = _Catalogue(text, name, languages[1])

    def encoded(text: str) -> bytes:
        try:
            return text.encode(encoding)
        except UnicodeEncodeError as error:
            raise DocnmtError(
                f"{name}: the translation needs {text[error.start]!r}, which the catalogue's charset "
                f"{encoding} lacks\n  Convert the file first: msgconv -t UTF-8."
            ) from None

    return SplicedFile(data, text, name, catalogue.places, encoded)


class _Catalogue:
    def __init__(self, text: str, name: str, language: str):
        self._text, self._name, self._language = text, name, language
        self._header = header = next((entry for entry in _Reader(text, name).entries() if entry.is_header), None)
        fields = header_fields([header] if header else [])
        check_language(name, fields.get("language", ""), language, "target")
        self._forms = PluralForms.parse(fields.get("plural-forms", ""))
        self._newline = "\r\n" if "\r\n" in text else "\n"
        # After the header: many programs do not wrap its Plural-Forms.
        start = max(string.end for string in header.forms.values()) if header else 0
        self._wrap = _LONG_LINE.search(text, start) is None

    def places(self) -> Iterator[Place | Change]:
        if self._header:
            yield from self._header_changes(self._header)
        for entry in _Reader(self._text, self._name).entries():
            if not entry.is_header:
                yield self._place(entry)

    def _place(self, entry: PoEntry) -> Place:
        assert entry.msgid is not None
        # Without Plural-Forms gettext uses no plurals, and the number of forms is unknown.
        translate = not entry.translated and (self._forms is not None or entry.plural is None)
        strings = (entry.msgid, entry.plural) if entry.plural else (entry.msgid,)
        messages = [message(string.text, translate=translate) for string in strings]

        def changes(*translations: Segment) -> Iterable[Change]:
            left = iter(translations)
            new = [each.written(list(islice(left, len(each.segments)))) for each in messages]
            unchanged = entry.translated or new == [each.text for each in messages]
            return () if unchanged else self._entry_changes(entry, new)

        return Place(entry.start, [segment for each in messages for segment in each.segments], changes)

    def _entry_changes(self, entry: PoEntry, new: list[str]) -> Iterator[Change]:
        if not entry.fuzzy and entry.flags:
            yield Change(entry.flags.start(), entry.flags.start() + 2, ("#, fuzzy,",))
        elif not entry.fuzzy:
            at = entry.previous if entry.previous >= 0 else entry.start
            yield Change(at, at, (f"#, fuzzy{self._newline}",))
        count = self._forms.count if self._forms and entry.plural else 0
        end = entry.start
        for number, string in entry.forms.items():
            if count and number >= count and not string.text and number:
                yield Change(end, string.end, ())  # a form of the template that this language does not have
            elif entry.fuzzy or not string.text:  # else this form has been translated
                yield Change(string.start, string.end, (self._form(entry, new, number),))
            end = string.end
        for number in range(count):
            if number not in entry.forms:
                yield Change(end, end, (f"{self._newline}msgstr[{number}] {self._form(entry, new, number)}",))

    def _form(self, entry: PoEntry, new: list[str], number: int) -> str:
        """The translation of msgid for the form that 1 takes, else that of msgid_plural, as a literal."""
        singular, keyword = True, "msgstr "
        if entry.plural and entry.msgid:
            keyword = f"msgstr[{number}] "
            singular = number == (self._forms.of_one if self._forms else 0)
            # "one file" is wrong for 21, which takes the same form as 1 in many languages.
            if singular and self._forms and not self._forms.few:
                singular = _placeholders(entry.msgid.text) == _placeholders(entry.plural.text)
        return literal(new[0 if singular else 1], WIDTH - len(keyword), self._wrap, self._newline)

    def _header_changes(self, header: PoEntry) -> Iterator[Change]:
        """The language, and in a template the charset, without which the translation cannot be read."""
        string = header.forms[min(header.forms)]
        if found := _NO_CHARSET.search(self._text, string.start, string.end):
            yield Change(*found.span(), ("charset=UTF-8",))
        if self._language and (found := _NO_LANGUAGE.search(self._text, string.start, string.end)):
            yield Change(*found.span(), (f"Language: {self._language}",))


def _placeholders(text: str) -> int:
    return text.count("%") + text.count("{")
