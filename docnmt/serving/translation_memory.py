"""Sentence pairs as a translation memory, which every tool for translators reads."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from docnmt.version import __version__

_CONTROLS = dict.fromkeys((*range(32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)), " ")  # XML has none of them


def tmx(pairs: Iterable[tuple[str, str, str]], languages: tuple[str, str]) -> bytes:
    """TMX 1.4, a unit a pair, in order. A pair is the name of its document, the source and its translation."""
    units = []
    for document, *texts in pairs:
        variants = "".join(
            f"<tuv xml:lang={quoteattr(language)}><seg>{_written(text)}</seg></tuv>"
            for language, text in zip(languages, texts, strict=True)
        )
        units.append(f'<tu><prop type="x-document">{_written(document)}</prop>{variants}</tu>\n')
    header = (
        f'<header creationtool="docnmt" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
        f'o-tmf="docnmt" adminlang="en" srclang={quoteattr(languages[0])} datatype="plaintext"/>'
    )
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n{header}\n<body>\n'
    return f"{start}{''.join(units)}</body>\n</tmx>\n".encode()


def _written(text: str) -> str:
    return escape(text.translate(_CONTROLS))
