"""EPUB books: the title, the pages in reading order, then the tables of contents."""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple
from urllib.parse import unquote

from docnmt.base.errors import DocnmtError
from docnmt.documents.archive import MAX_ENTRIES, Archive, PackageText
from docnmt.documents.html import Page, Reader, read_page
from docnmt.documents.html_tokens import Token, attributes, names, tokens
from docnmt.documents.segment import Change, Place, Room, SplicedFile

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# These only protect fonts from being copied; the text of the book is not encrypted.
_OBFUSCATIONS = names("http://www.idpf.org/2008/embedding http://ns.adobe.com/pdf/enc#RC")
_PAGES = names("application/xhtml+xml text/html text/x-oeb1-document")
_NCX = "application/x-dtbncx+xml"
_ATTRIBUTES = names("algorithm full-path id href media-type properties idref")


class _Item(NamedTuple):
    """A file of the book as its package lists it."""

    path: str
    kind: str
    properties: frozenset[str]


def read(data: bytes, name: str, languages: tuple[str, str]) -> PackageText:
    files = Archive(data, name)
    if _CONTAINER not in files:
        raise DocnmtError(f"{name}: not an EPUB book: {_CONTAINER} is missing\n  Give the file the right extension.")
    _refuse_encrypted(files, name)
    package = _package_path(files, name)
    opened = _List(files[package], f"{name}: {package}", files.room)
    items, spine = _listed(opened, package)
    parts = {package: opened.texts(("dc:title",), languages, language="dc:language")}
    contents = [item for item in items if "nav" in item.properties or item.kind == _NCX]
    for item in [*spine, *contents]:
        if item.path in parts:
            continue
        if item.path not in files:
            problem = f"{item.path} is listed in the book but is missing from the file"
            raise DocnmtError(f"{name}: {problem}\n  Open the book in an EPUB editor and save it again.")
        place = f"{name}: {item.path}"
        if item.kind == _NCX:
            parts[item.path] = _List(files[item.path], place, files.room).texts(("text", "ncx:text"), languages)
        elif item.kind in _PAGES:
            parts[item.path] = read_page(files[item.path], place, languages, xml=True, room=files.room)
    return PackageText(data, parts, main=package)


class _List(Page):
    """One of the book's lists, as tags and texts: in real books they are not always well-formed XML."""

    def __init__(self, data: bytes, name: str, room: Room | None = None):
        super().__init__(data, name, xml=True)
        self._room = room

    def _tokens(self) -> Iterator[Token]:
        return tokens(self.text, self.name, xml=True)

    def tags(self, *wanted: str) -> Iterator[tuple[str, dict[str, str]]]:
        """The opening tags of these names, without their prefixes, and their attributes."""
        for token in self._tokens():
            name = token.name.rpartition(":")[2]
            if token.kind == "open" and name in wanted:
                found = attributes(self.text, token, _ATTRIBUTES)
                yield name, {key: html.unescape(attribute.value) for key, attribute in found.items()}

    def texts(self, wanted: Sequence[str], languages: tuple[str, str], language: str = "") -> SplicedFile:
        """The texts of these elements as segments; the first element `language` names the language of the book."""

        def places() -> Iterator[Place | Change]:
            reader = Reader(self.text, self.name, True, self.encoding, languages)
            for content in self._contents(wanted):
                yield from reader.read(content.start, content.end)
            for content in islice(self._contents((language,)), 1):
                if languages[1]:
                    yield Change(content.start, content.end, (languages[1],))

        return self.file(places, self._room)

    def _contents(self, wanted: Sequence[str]) -> Iterator[Token]:
        for token, content in pairwise(self._tokens()):
            if token.kind == "open" and token.name in wanted and content.kind == "text":
                yield content


def _refuse_encrypted(files: Mapping[str, bytes], name: str) -> None:
    if _ENCRYPTION in files:
        methods = _List(files[_ENCRYPTION], f"{name}: {_ENCRYPTION}").tags("encryptionmethod")
        if any(found.get("algorithm") not in _OBFUSCATIONS for _, found in methods):
            raise DocnmtError(
                f"{name}: the book is copy-protected (DRM), so its text cannot be read\n"
                "  Ask the seller for a copy without protection."
            )


def _package_path(files: Mapping[str, bytes], name: str) -> str:
    roots = _List(files[_CONTAINER], f"{name}: {_CONTAINER}").tags("rootfile")
    path = next((found["full-path"] for _, found in roots if "full-path" in found), "")
    if path not in files:
        raise DocnmtError(
            f"{name}: the book's package file is missing: {path or 'it is not named'}\n  The file is damaged."
        )
    return path


def _listed(package: _List, path: str) -> tuple[list[_Item], list[_Item]]:
    """All files of the book, and those to read, in order."""
    items: dict[str, _Item] = {}
    order: list[str] = []
    for tag, found in package.tags("item", "itemref"):
        if max(len(items), len(order)) == MAX_ENTRIES:
            problem = f"it lists more than {MAX_ENTRIES:,} files"
            raise DocnmtError(f"{package.name}: {problem}\n  Books never have this many.")
        if tag == "itemref":
            order.append(found.get("idref", ""))
        elif "id" in found and "href" in found:
            href = unquote(found["href"].partition("#")[0])
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), href))
            items[found["id"]] = _Item(target, found.get("media-type", ""), names(found.get("properties", "")))
    return list(items.values()), [items[idref] for idref in order if idref in items]
