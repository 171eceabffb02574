"""gettext's compiled catalogues (.mo), read for their messages alone: the rule for plurals in them is not evaluated."""

from __future__ import annotations

import struct

from docnmt.corpora.debian.languages import Language
from docnmt.corpora.debian.packages import Files

_MAGIC = 0x950412DE


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
