"""Text files that are not in UTF-8: read as if they were, and written back in their own encoding.

Subtitles from before UTF-8 was common do not say which encoding they are in; the source language tells which one was
usual for it. That is a guess, so the user is told. For other files the user has to name the encoding.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import byte_order_mark
from docnmt.documents.segment import kind_of
from docnmt.text.scripts import primary

# Kinds of files that do not state their encoding.
TEXT_KINDS = ("text", "markdown", "json_strings", "subtitles")

# The Windows encoding for a language; in this order, if there are two.
_USUAL = {
    "cp1252": "af br ca da de en es et eu fi fo fr ga gl id is it lb ms nb nl nn no oc pt sq sv sw",
    "cp1250": "bs cs hr hu pl ro sk sl",
    "cp1251": "be bg kk ky mk mn ru sr tg tt uk",
    "cp1253": "el",
    "cp1254": "az tr",
    "cp1255": "he yi",
    "cp1256": "ar fa ps ur",
    "cp1257": "lt lv",
    "cp1258": "vi",
    "cp874": "th",
    "gb18030": "zh",
    "cp932": "ja",
    "cp949": "ko",
}
_BY_LANGUAGE = {language: encoding for encoding, languages in _USUAL.items() for language in languages.split()}
_TRADITIONAL = ("zh-hant", "zh-tw", "zh-hk", "zt", "yue")


class TextEncoding(NamedTuple):
    name: str
    guessed: bool = False

    def __str__(self) -> str:
        return f"{self.name} (guessed)" if self.guessed else self.name


class Recoded(NamedTuple):
    """A file as UTF-8, and the way back."""

    original: bytes
    utf8: bytes  # or the original, if its reader can decode it
    encoding: TextEncoding | None  # None: the file states it

    def written(self, translation: bytes) -> bytes:
        """In the original's encoding; in UTF-8 if that lacks some of the characters."""
        if translation == self.utf8:
            return self.original
        if self.utf8 is self.original or self.encoding is None:
            return translation
        try:
            return translation.decode().encode(self.encoding.name)
        except UnicodeEncodeError:
            return translation


def recoded(data: bytes, name: str, language: str, asked: str = "") -> Recoded:
    """`asked` is the encoding that the user names; a byte order mark in the file overrides it."""
    kind = kind_of(name)
    if kind not in TEXT_KINDS:
        if asked:
            problem = f"a file of this kind states its own encoding, so {asked} cannot be chosen"
            raise DocnmtError(f"{name}: {problem}\n  Leave the encoding out.")
        return Recoded(data, data, None)
    if marked := byte_order_mark(data)[1]:
        return Recoded(data, data, TextEncoding(marked))
    if asked:
        known = _known(asked, name)
        return Recoded(data, _decoded(data, known, name).encode(), TextEncoding(known))
    try:
        data.decode()
        return Recoded(data, data, TextEncoding("UTF-8"))
    except UnicodeDecodeError:
        usual = _usual(language) if kind == "subtitles" else ""
        encoding = TextEncoding(usual, guessed=True) if usual else TextEncoding("UTF-8")
        return Recoded(data, _decoded(data, encoding.name, name).encode(), encoding)


def _usual(language: str) -> str:
    written = language.replace("_", "-").lower()
    return "big5" if written.startswith(_TRADITIONAL) else _BY_LANGUAGE.get(primary(language), "")


def _known(asked: str, name: str) -> str:
    try:
        "".encode(asked)  # some codecs, such as base64, are not for text
        return codecs.lookup(asked).name
    except (LookupError, ValueError):
        problem = f"unknown encoding {asked!r}"
        raise DocnmtError(
            f"{name}: {problem}\n  Use the name of an encoding, such as cp1252, gb18030 or big5."
        ) from None


def _decoded(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocnmtError(
            f"{name}, line {line}: byte 0x{data[error.start]:02X} is not valid {encoding}\n"
            "  Give the file's encoding, such as cp1252, with docnmt translate --encoding or with the field "
            "encoding of the API; or save the file as UTF-8."
        ) from None
    except ValueError:  # UTF-7 and the like
        raise DocnmtError(f"{name}: the file is not valid {encoding}\n  Give the file's actual encoding.") from None
