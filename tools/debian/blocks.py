"""Blocks of a page (paragraphs, titles, cells) and the same page's in another language, put beside each other."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from docnmt.corpus.clean import similar_size

SHORTEST_RUN = 4  # blocks of the same kinds in a row, for them to be taken as each other's translations
_ALIKE = 0.9  # of a run's blocks must be of similar size
_RATIO = 2.0
MAX_BLOCKS = 20_000  # of a page: comparing takes longer than in proportion

_INVISIBLE = re.compile("[\u200b\u200e\u200f\ufeff\u00ad]")

Texts = list[tuple[str, str]]  # of each block in its order: English, and the translation or ""


class Block(NamedTuple):
    kind: str  # what tells it apart: its tag, or a name that it has in every language
    text: str


def names(text: str) -> frozenset[str]:
    """Of elements or keys, listed with spaces between them."""
    return frozenset(text.split())


def tidy(text: str) -> str:
    """In one line and one form, without characters that nobody sees."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", text)).split())


def align(english: Sequence[Block], foreign: Sequence[Block]) -> Texts:
    """Translations by the order of kinds; where the orders differ, by runs in which they agree."""
    kinds = [[block.kind for block in side] for side in (english, foreign)]
    if kinds[0] == kinds[1]:
        return [(left.text, right.text) for left, right in zip(english, foreign, strict=True)]
    found = [""] * len(english)
    if max(map(len, kinds)) <= MAX_BLOCKS:
        for i, j, length in difflib.SequenceMatcher(None, kinds[0], kinds[1], autojunk=False).get_matching_blocks():
            run = list(zip(english[i : i + length], foreign[j : j + length], strict=True))
            alike = sum(similar_size(left.text, right.text, _RATIO) for left, right in run)
            if length >= SHORTEST_RUN and alike >= _ALIKE * length:
                found[i : i + length] = [right.text for _, right in run]
    return [(block.text, text) for block, text in zip(english, found, strict=True)]


def align_by_name(english: Sequence[Block], foreign: Sequence[Block]) -> Texts:
    """Translations by names that blocks have in every language."""
    named = {block.kind: block.text for block in reversed(foreign)}
    firsts = {block.kind: block for block in reversed(english)}
    return [(block.text, named.get(block.kind, "")) for block in english if firsts[block.kind] is block]
