"""Text files as text: UTF-8, or UTF-16 or UTF-32 with a byte order mark, and back to the same bytes."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from docnmt.errors import DocnmtError

_MARKS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32-LE"),  # begins as UTF-16's does, so it comes first
    (codecs.BOM_UTF32_BE, "UTF-32-BE"),
    (codecs.BOM_UTF16_LE, "UTF-16-LE"),
    (codecs.BOM_UTF16_BE, "UTF-16-BE"),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    mark: bytes  # the byte order mark, which is no part of the text
    name: str

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.name)


def decoded(data: bytes, name: str) -> tuple[str, Encoding]:
    mark, encoding = next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "UTF-8"))
    try:
        return data[len(mark) :].decode(encoding), Encoding(mark, encoding)
    except UnicodeDecodeError as error:
        at = len(mark) + error.start
        line = data.count(b"\n", 0, at) + 1
        raise DocnmtError(
            f"{name}, line {line}: byte 0x{data[at]:02X} is not {encoding}\n"
            "  Convert the file: iconv -f OLD_ENCODING -t UTF-8."
        ) from None
