"""The Battle for Wesnoth: story and dialogue in the order of the scenarios, a catalogue for each campaign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docnmt.corpora.debian.blocks import Texts, names, tidy
from docnmt.corpora.debian.catalogues import catalogues, is_catalogue
from docnmt.corpora.debian.game_texts import paragraphs
from docnmt.corpora.debian.languages import Language
from docnmt.corpora.debian.packages import Files
from docnmt.corpora.debian.pages import text_of

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
