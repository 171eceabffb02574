"""The sources of the corpus, listed in sources.toml, and how their texts are found in packages."""

from __future__ import annotations

import re
import struct
import tomllib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docnmt.base.errors import DocnmtError
from tools.debian.packages import MAX_FILE, Files
from tools.debian.pages import (
    Texts,
    align,
    align_by_name,
    parse_html,
    parse_libreoffice,
    parse_man,
    parse_xml,
    tidy,
)

# ---- Languages, as packages call them: in their names, in folders, in file names ----

ENGLISH = "en"
_USUAL = {"zh": "cn", "en": "us"}  # the region that a code without one stands for


@dataclass(frozen=True)
class Language:
    code: str  # as asked for, in lower case: "fr", "zh", "pt_br"

    @property
    def package(self) -> str:
        """How names of packages end: libreoffice-help-fr, -zh-cn, -pt-br."""
        base, _, region = self.code.partition("_")
        region = region or (_USUAL.get(base, "") if base != ENGLISH else "")
        return f"{base}-{region}" if region else base

    def is_called(self, name: str) -> bool:
        """Whether a folder or a part of a file name is this language's: fr, fr_FR, fr-FR; C for English."""
        plain = re.split("[.@]", name.lower().replace("-", "_"))[0]
        if "_" in self.code:
            return plain == self.code
        usual = f"{self.code}_{_USUAL.get(self.code, self.code)}"
        return plain in (self.code, usual) or (self.code == ENGLISH and plain == "c")


def parse_pair(text: str) -> tuple[Language, Language]:
    """`fr-en`, `en-de`, `pt_BR-en`"""
    codes = text.lower().split("-")
    if len(codes) != 2 or not all(re.fullmatch(r"[a-z]{2,3}(_[a-z]{2,4})?", code) for code in codes):
        raise DocnmtError(
            f"--languages {text}: not a pair of languages\n"
            "  Write source and target with a hyphen between them, a region with an underscore: fr-en, en-zh, pt_BR-en."
        )
    if codes[0] == codes[1]:
        raise DocnmtError(f"--languages {text}: the same language twice\n  Name two.")
    return Language(codes[0]), Language(codes[1])


@dataclass(frozen=True)
class Source(ABC):
    name: str
    domain: str  # "games" or "manuals"
    licence: str
    packages: str  # with spaces between them
    multilingual: bool = False

    @abstractmethod
    def wants(self, path: str, language: Language) -> bool:
        """Whether a file of a package is needed, for English and a language."""

    @abstractmethod
    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        """Names of documents, each with all of its English texts in order and their translations."""

    def has(self, language: Language, packages: Container[str]) -> bool:
        """Whether there is a package of the language, if each has its own."""
        own = [name.format(language=language.package) for name in self.packages.split() if "{language}" in name]
        return not own or any(name in packages for name in own)

    def packages_of(self, languages: list[Language]) -> list[tuple[str, ...]]:
        """For each package its alternative names."""
        filled = [
            name.format(language=language.package)
            for name in self.packages.split()
            for language in (languages if "{language}" in name else languages[:1])
        ]
        return [tuple(names.split("|")) for names in dict.fromkeys(filled)]


# ---- Manuals: the same pages in every language ----


# Indexes, tables of contents and the whole manual on one page.
_LISTS = (
    r"genindex|search|(^|/)index-|glossary-index|/ix\d|bi01|(^|/)developers-reference$|quickreference|sitemap|directives$"
    r"|bk01-toc"
)
_PARSERS = {"html": parse_html, "xml": parse_xml, "libreoffice": parse_libreoffice, "man": parse_man}


@dataclass(frozen=True)
class Manual(Source):
    """Where pages are: each pattern has groups `page` and `language` (none: English); its key goes before the page."""

    pages: Mapping[str, str] = field(default_factory=dict)
    parser: str = ""
    left_out: str = "(?!)"  # pages that are no running text

    def wants(self, path: str, language: Language) -> bool:
        place = self._place(path)
        return place is not None and (Language(ENGLISH).is_called(place[0]) or language.is_called(place[0]))

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        """The pages that are there in English and in the language, each with all of its English blocks."""
        found: dict[Language, dict[str, str]] = {Language(ENGLISH): {}, language: {}}
        for path in files:
            if place := self._place(path):
                for side, pages in found.items():
                    if side.is_called(place[0]):
                        pages[place[1]] = path
        english, foreign = found.values()
        put_beside = align_by_name if self.parser == "libreoffice" else align
        for page in sorted(english.keys() & foreign.keys()):
            sides = [_PARSERS[self.parser](text_of(files[side[page]])) for side in (english, foreign)]
            if texts := put_beside(*sides):
                yield page, texts

    def _place(self, path: str) -> tuple[str, str] | None:
        """Language and page of a file."""
        for prefix, pattern in self.pages.items():
            if found := re.fullmatch(pattern, path):
                page = f"{prefix}{found['page']}"
                is_list = self.parser == "html" and re.search(_LISTS, page)
                return None if is_list or re.search(self.left_out, page) else (found["language"] or ENGLISH, page)
        return None


def text_of(raw: bytes) -> str:
    """The text of a file, decompressed if needed; "" if it cannot be read."""
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = zlib.decompressobj(wbits=31).decompress(raw, MAX_FILE)
        except zlib.error:
            return ""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


# ---- The Battle for Wesnoth: story and dialogue in the order of the scenarios, a catalogue for each campaign ----

_SCENARIO = re.compile(
    r"usr/share/games/wesnoth/[\d.]+/data/(?P<page>(?:.*/)?(?:campaigns|multiplayer/scenarios|core/units|core/encyclopedia"
    r"|tutorial)/.*)\.cfg"
)
_TOKEN = re.compile(
    r'#textdomain\s+(?P<domain>\S+)|^\s*#(?!\s*po)[^\n]*|(?P<key>[a-z_0-9]+)\s*=\s*(?=_|$)|_\s*"(?P<text>(?:[^"]|"")*)"'
    r'|"(?:[^"]|"")*"',
    re.MULTILINE,
)
_TOLD = ("message", "story", "note", "description", "text", "summary", "tooltip", "reason")
_HINT = re.compile(r"^[a-z _A-Z]{2,30}\^")  # for translators, before the message
_MARKUP = re.compile(r"</?(?:i|b|big|small|span|ref|header|bold|italic|format|img|jump)\b[^>]*>")
_MAGIC = 0x950412DE  # of gettext's compiled catalogues (.mo)


class Wesnoth(Source):
    def wants(self, path: str, language: Language) -> bool:
        return _SCENARIO.fullmatch(path) is not None or _is_catalogue(path, language)

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        domains = catalogues(files, language)
        for path in sorted(files):
            if found := _SCENARIO.fullmatch(path):
                texts: Texts = []
                for domain, message in dict.fromkeys(_messages(text_of(files[path]))):
                    texts += paragraphs(message, domains.get(domain, {}).get(message, ""))
                yield found["page"], texts


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Stories and dialogue, each message with its text domain."""
    domain, key = "wesnoth", ""
    for found in _TOKEN.finditer(text):
        domain, key = found["domain"] or domain, found["key"] or key
        if found["text"] is not None and key in _TOLD:
            yield domain, found["text"].replace('""', '"')


def paragraphs(english: str, foreign: str) -> Texts:
    """The paragraphs of a message beside their translations; one pair if the two sides are not divided alike."""
    sides = [[text for part in side.split("\n\n") if (text := _shown(part))] for side in (english, foreign)]
    if not sides[1]:
        return [(text, "") for text in sides[0]]
    if len(sides[0]) != len(sides[1]):
        return [(_shown(english), _shown(foreign))]
    return list(zip(*sides, strict=True))


def _shown(text: str) -> str:
    return tidy(_MARKUP.sub("", _HINT.sub("", text)).replace("—", " — "))


def catalogues(files: Files, language: Language) -> dict[str, dict[str, str]]:
    """The catalogues of a language by their domains: `.../fr/LC_MESSAGES/wesnoth.mo`."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(files):
        if _is_catalogue(path, language):
            found.setdefault(Path(path).stem, {}).update(read_catalogue(files[path]))
    return found


def _is_catalogue(path: str, language: Language) -> bool:
    parts = path.split("/")
    return path.endswith(".mo") and len(parts) > 2 and any(map(language.is_called, parts[-3:-1]))


def read_catalogue(raw: bytes) -> dict[str, str]:
    """Messages and their translations, the singular of those that have a plural; nothing of a file that is damaged.

    Python's own reader would also evaluate the rule for plurals that stands in the file.
    """
    messages: dict[str, str] = {}
    try:
        order = "<" if struct.unpack_from("<I", raw)[0] == _MAGIC else ">"
        magic, _, count, *tables = struct.unpack_from(f"{order}5I", raw)
        for number in range(count if magic == _MAGIC else 0):
            sides = []
            for table in tables:
                length, start = struct.unpack_from(f"{order}2I", raw, table + 8 * number)
                sides.append(struct.unpack_from(f"{length}s", raw, start)[0].split(b"\0")[0].decode())
            messages[sides[0]] = sides[1]
    except (struct.error, UnicodeDecodeError):
        return {}
    messages.pop("", None)  # the header
    return messages


# ---- The list of sources ----

_LISTED = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
SOURCES = tuple(Manual(**entry) if "pages" in entry else Wesnoth(**entry) for entry in _LISTED["source"])


def chosen_sources(only: str) -> list[Source]:
    """All, or those whose names begin with one of the given ones."""
    prefixes = [name.strip() for name in only.split(",") if name.strip()] or [""]
    for name in prefixes:
        if not any(source.name.startswith(name) for source in SOURCES):
            known = ", ".join(source.name for source in SOURCES)
            raise DocnmtError(f"--only {name}: there is no such source\n  There are: {known}.")
    return [source for source in SOURCES if source.name.startswith(tuple(prefixes))]
