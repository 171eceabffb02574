"""Games: story and dialogue in the order of the scenarios, their translations in gettext's compiled catalogues (.mo).

Catalogues are read for their messages alone: the rule for plurals in them is not evaluated.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.debian.blocks import Texts, names, tidy
from tools.debian.languages import Language
from tools.debian.packages import Files
from tools.debian.pages import text_of

_MAGIC = 0x950412DE  # of a catalogue

_DATA = re.compile(
    r"usr/share/games/wesnoth/[\d.]+/data/(?P<page>(?:.*/)?(?:campaigns|multiplayer/scenarios|core/units|core/encyclopedia"
    r"|tutorial)/.*)\.cfg"
)
_TOKEN = re.compile(
    r'#textdomain\s+(?P<domain>\S+)|^\s*#(?!\s*po)[^\n]*|(?P<key>[a-z_0-9]+)\s*=\s*(?=_|$)|_\s*"(?P<text>(?:[^"]|"")*)"'
    r'|"(?:[^"]|"")*"',
    re.MULTILINE,
)
_KEYS = names("message story note description text summary tooltip reason")
_HINT = re.compile(r"^[a-z _A-Z]{2,30}\^")  # for translators, before the message
_MARKUP = re.compile(r"</?(?:i|b|big|small|span|ref|header|bold|italic|format|img|jump)\b[^>]*>")


@dataclass(frozen=True)
class Wesnoth:
    """The Battle for Wesnoth, a catalogue for each campaign."""

    def wants(self, path: str, language: Language) -> bool:
        return _DATA.fullmatch(path) is not None or is_catalogue(path, language)

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        domains = catalogues(files, language)
        for path in sorted(files):
            if found := _DATA.fullmatch(path):
                texts: Texts = []
                for domain, message in dict.fromkeys(_messages(text_of(files[path]))):
                    texts += paragraphs(message, domains.get(domain, {}).get(message, ""), _shown, r"\n\n")
                yield found["page"], texts


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """What is said and told, each with its text domain."""
    domain, key = "wesnoth", ""
    for found in _TOKEN.finditer(text):
        domain, key = found["domain"] or domain, found["key"] or key
        if found["text"] is not None and key in _KEYS:
            yield domain, found["text"].replace('""', '"')


def _shown(text: str) -> str:
    return tidy(_MARKUP.sub("", _HINT.sub("", text)).replace("—", " — "))


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


def read_catalogue(raw: bytes) -> dict[str, str]:
    """Messages and their translations, the singular of those that have a plural; nothing of a file that is damaged."""
    order = next((order for order in "<>" if len(raw) >= 28 and struct.unpack(f"{order}I", raw[:4])[0] == _MAGIC), "")
    if not order:
        return {}
    count, originals, translations = struct.unpack(f"{order}3I", raw[8:20])
    messages: dict[str, str] = {}
    try:
        for number in range(count):
            sides = []
            for table in (originals, translations):
                length, start = struct.unpack_from(f"{order}2I", raw, table + 8 * number)
                if start + length > len(raw):
                    return {}
                sides.append(raw[start : start + length].split(b"\0")[0].decode())
            messages[sides[0]] = sides[1]
    except (struct.error, UnicodeDecodeError):
        return {}
    messages.pop("", None)  # the header
    return messages


def catalogues(files: Files, language: Language) -> dict[str, dict[str, str]]:
    """The catalogues of a language by their domains: `.../fr/LC_MESSAGES/wesnoth.mo`."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(files):
        if is_catalogue(path, language):
            found.setdefault(path.rsplit("/", 1)[-1].removesuffix(".mo"), {}).update(read_catalogue(files[path]))
    return found


def is_catalogue(path: str, language: Language) -> bool:
    parts = path.split("/")
    return path.endswith(".mo") and len(parts) > 2 and any(map(language.is_called, parts[-3:-1]))
