"""HTML tags in the line of a Markdown text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docnmt.files.html import LEFT_ALONE
from docnmt.files.runs import Piece

TAG_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
_FURTHEST = 50  # tags to look back for a partner


def one_line(content: str, start: int, end: int) -> str:
    """How a mark is spelt that stands in several lines; nothing for one that stands in one."""
    return content[start:end].replace("\n", " ") if "\n" in content[start:end] else ""


def tags_paired(content: str, pieces: Sequence[Piece]) -> list[Piece]:
    """HTML tags in the line made pairs where they belong together; elements that nobody translates made one mark."""
    result: list[Piece] = []
    waiting: list[tuple[str, int]] = []  # what is open: the name of a tag, or "" for Markdown's own
    pairs = -1  # apart from those of Markdown
    for piece in pieces:
        name = TAG_NAME.match(content, piece.start) if piece.text is None and content[piece.start] == "<" else None
        if piece.pair:
            if piece.closing:
                while waiting and waiting.pop()[0]:
                    pass
            else:
                waiting.append(("", 0))
        elif name and not content.startswith("</", piece.start):
            waiting.append((name[1].lower(), len(result)))
        elif name:
            kind = name[1].lower()
            at = len(waiting) - 1
            while at >= max(0, len(waiting) - _FURTHEST) and waiting[at][0] not in ("", kind):
                at -= 1
            if at >= 0 and waiting[at][0] == kind:
                first = waiting[at][1]
                del waiting[at:]
                if kind in LEFT_ALONE:
                    start = result[first].start
                    piece = Piece(start, piece.end, code=one_line(content, start, piece.end), wide=True)
                    del result[first:]
                else:
                    result[first] = result[first]._replace(pair=pairs)
                    piece = piece._replace(pair=pairs, closing=True)
                    pairs -= 1
        result.append(piece)
    return result
