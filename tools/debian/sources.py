"""The sources of the corpus: what packages they are in, under what licence, and how text is got out of them.

In the name of a package `{language}` stands for the language's own; names with a bar between them are one package under
its names in several releases, the newest first.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from docnmt.base.errors import DocnmtError
from tools.debian.blocks import Texts, align_by_name
from tools.debian.games import Wesnoth
from tools.debian.html_pages import parse_html
from tools.debian.languages import Language
from tools.debian.libreoffice_help import parse_libreoffice
from tools.debian.manual_pages import parse_man
from tools.debian.packages import Files
from tools.debian.pages import Pages
from tools.debian.xml_help import parse_xml


class Extractor(Protocol):
    def wants(self, path: str, language: Language) -> bool:
        """Whether a file of a package is needed, for English and a language."""

    def documents(self, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
        """Names of documents, each with all of its English texts in order and their translations."""


@dataclass(frozen=True)
class Source:
    name: str
    domain: str  # "games" or "manuals"
    licence: str
    packages: tuple[str, ...]
    extractor: Extractor
    multilingual: bool = False  # some packages have all languages, though others have one

    def packages_of(self, languages: list[Language]) -> list[tuple[str, ...]]:
        """For each package its names, of which one is enough."""
        filled = [
            name.format(language=language.package)
            for name in self.packages
            for language in (languages if "{language}" in name else languages[:1])
        ]
        return [tuple(names.split("|")) for names in dict.fromkeys(filled)]


_HELP = tomllib.loads(Path(__file__).with_name("help_packages.toml").read_text(encoding="utf-8"))
_CAMPAIGNS = "data did dm dw ei httt l low nr sof sota sotbe thot trow tsg ttb utbs"
_LISTS = re.compile(  # indexes, tables of contents and the whole manual on one page
    r"genindex|search|(^|/)index-|glossary-index|/ix\d|bi01|(^|/)developers-reference$|quickreference|sitemap|directives$"
    r"|bk01-toc"
)
_DEBIAN_DOCS = {
    "handbook/": r"usr/share/doc/debian-handbook/html/(?P<language>[^/]+)/(?P<page>[^/]+)\.html",
    "install/": r"usr/share/doc/installation-guide-amd64/(?P<language>[^/]+)/(?P<page>[^/]+)\.html",
    "reference/": r"usr/share/debian-reference/(?P<page>[^/.]+)\.(?P<language>[^/.]+)\.html",
    "faq/": r"usr/share/doc/debian/FAQ/(?:[^/]+/)?(?P<page>[^/.]+)\.(?P<language>[^/.]+)\.html",
    "devref/": r"usr/share/developers-reference/(?:(?P<language>[^/]+)/)?(?P<page>[^/]+)\.html",
    "maint/": r"usr/share/doc/maint-guide[^/]*/html/(?P<page>[^/.]+)\.(?P<language>[^/.]+)\.html",
}


def _in(pattern: str) -> dict[str, re.Pattern[str]]:
    return {"": re.compile(pattern)}


SOURCES = (
    Source(
        "libreoffice-help",
        "manuals",
        "MPL-2.0",
        ("libreoffice-help-en-us", "libreoffice-help-{language}"),
        Pages(
            parse_libreoffice,
            _in(r"usr/share/libreoffice/help/(?P<language>[^/]+)/text/(?P<page>.+)\.html"),
            align=align_by_name,
        ),
    ),
    Source(
        "gnome-help",
        "manuals",
        "CC-BY-SA-3.0, GFDL-1.1+, GPL-2+ (each program's own)",
        tuple(_HELP["gnome"].split()),
        Pages(
            parse_xml,
            _in(r"usr/share/help/(?P<language>[^/]+)/(?P<page>.+)\.(?:page|docbook|xml)"),
            re.compile(r"legal|(^|/)(?:l?gpl|fdl)/"),
        ),
    ),
    Source(
        "debian-docs",
        "manuals",
        "GPL-2+ (handbook: also CC-BY-SA-3.0)",
        (
            "debian-handbook",
            "installation-guide-amd64",
            "debian-reference-en",
            "debian-reference-{language}",
            "debian-faq",
            "debian-faq-{language}",
            "developers-reference",
            "developers-reference-{language}",
            "maint-guide",
            "maint-guide-{language}",
        ),
        Pages(parse_html, {prefix: re.compile(pattern) for prefix, pattern in _DEBIAN_DOCS.items()}, _LISTS),
        multilingual=True,
    ),
    Source(
        "kde-docs",
        "manuals",
        "GFDL-1.2+, GPL-2+ (each program's own)",
        tuple(_HELP["kde"].split()),
        Pages(parse_xml, _in(r"usr/share/doc/HTML/(?P<language>[^/]+)/(?P<page>.+)\.docbook")),
    ),
    Source(
        "gimp-help",
        "manuals",
        "GFDL-1.2+",
        ("gimp-help-en", "gimp-help-{language}"),
        Pages(parse_html, _in(r"usr/share/gimp/[\d.]+/help/(?P<language>[^/]+)/(?P<page>.+)\.html"), _LISTS),
    ),
    Source(
        "apache-docs",
        "manuals",
        "Apache-2.0",
        ("apache2-doc",),
        Pages(parse_html, _in(r"usr/share/doc/apache2-doc/manual/(?P<language>[^/]+)/(?P<page>.+)\.html"), _LISTS),
    ),
    Source(
        "manpages",
        "manuals",
        "GPL-2+, GPL-3+, BSD, Linux-man-pages-copyleft (each page's own)",
        ("manpages", "manpages-dev", "manpages-{language}", "manpages-{language}-dev"),
        Pages(parse_man, _in(r"usr/share/man/(?:(?!man\d)(?P<language>[^/]+)/)?(?P<page>man\w+/[^/]+?)(?:\.gz)?")),
    ),
    Source(
        "wesnoth",
        "games",
        "GPL-2+",
        tuple(
            "|".join(f"wesnoth-{version}-{part}" for version in ("1.18", "1.16", "1.14")) for part in _CAMPAIGNS.split()
        ),
        Wesnoth(),
    ),
)


def chosen_sources(only: str) -> list[Source]:
    """All, or those whose names begin with one of the given ones."""
    if not only:
        return list(SOURCES)
    chosen = []
    for name in filter(None, map(str.strip, only.split(","))):
        fitting = [source for source in SOURCES if source.name.startswith(name)]
        if not fitting:
            known = ", ".join(source.name for source in SOURCES)
            raise DocnmtError(f"--only {name}: there is no such source\n  There are: {known}.")
        chosen += fitting
    return [source for source in SOURCES if source in chosen]
