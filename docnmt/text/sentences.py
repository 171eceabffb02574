"""Where sentences end. Nothing is lost: the pieces, put together, are the text.

A mark ends a sentence if it does not follow an abbreviation, an initial or the number of a list item, and if a sentence
seems to begin after it. In doubt it does not: two sentences as one are translated better than one as two.
"""

from __future__ import annotations

import functools
import re
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from docnmt.text.scripts import EAST_ASIAN, LETTER, primary

LONGEST = 1000  # characters of a sentence; a longer one is cut where it does the least harm

# Chinese, Japanese and others, where no space has to follow the end of a sentence.
_FULL = "。！？｡︒।॥။።፧៕"
_OPENING = "\"'“‘„‚«‹»([{¿¡「『（【《〈*_–—-"  # what may come before the first word of a sentence
_LINE = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"

# Line breaks and tabs always end a sentence; otherwise marks do, with closing signs and the space after them.
_CLOSING = {"": "”’»", "de": "“‘«»”’", "cs": "“‘«»”’", "sk": "“‘«»”’", "sl": "“‘«»”’", "da": "“«»”’"}
_ENDS = r"""
    (?P<line>[{line}]\s*)
  | (?P<full>[{full}][{full}!?….]*) (?P<shut>[”’"'」』）】》〉〕］｝)\]]*) (?P<gap>[^\S{line}]*)
  | (?<![.!?…؟۔։;]) (?P<mark>[.!?…؟۔։;]++)
    (?:{spaced}[)\]}}"'{closing}」』）*_])*+
    (?=(?P<space>[^\S{line}]+)|(?P<wide>[{wide}]))
"""
_WORD = re.compile(r"""[^\s"'“‘„‚«‹»(\[{¿¡「『（【《〈’/]+$""")
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.-?)*+[^\W\d_]\Z")  # "J", "J.-C", "U.S", "z.B"
_FIRST = re.compile(r"[^\W_]+")
_ROMAN = re.compile(r"[IVXLC]+\b")
_QUOTES = {"“": "”", "「": "」", "『": "』", "《": "》"}
_QUOTE = re.compile("[“「『《”」』》]")
_LONGEST_QUOTE = 200
# Places to cut a sentence that is too long, the best first: after a mark and a space, after a wide mark, at a space.
_CUTS = tuple(map(re.compile, (r"[;:,—–.!?)]\s+(?=\S)", "[，、；：—…]+", r"(?<!\s)\s+(?=\S)")))


class Words(NamedTuple):
    """Words that tell whether a full stop ends a sentence; abbreviations.toml explains each list."""

    always: frozenset[str]
    often: frozenset[str]
    numbered: frozenset[str]
    starters: frozenset[str]
    ordinals: bool


@functools.cache
def abbreviations() -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / "abbreviations.toml").read_text(encoding="utf-8"))


@functools.cache
def words_of(language: str) -> Words:
    common = abbreviations()["any"]
    own = abbreviations().get(language, {})
    always, often, numbered = (
        frozenset(common[name].split()) | frozenset(own.get(name, "").split())
        for name in ("always", "often", "numbered")
    )
    return Words(always, often, numbered, frozenset(own.get("starters", "").split()), bool(own.get("ordinals")))


def split(text: str, language: str = "", whole: Sequence[tuple[int, int]] = ()) -> list[str]:
    """The sentences of a text, each with the space after it. `whole` lists spans not to be cut, in order."""
    ends = []
    start = 0
    for end in _boundaries(text, primary(language)):
        if _inside(end, whole):
            continue
        ends += [*_cuts(text, start, end, whole), end]
        start = end
    if start < len(text):
        ends += [*_cuts(text, start, len(text), whole), len(text)]
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@functools.cache
def _ends(language: str) -> re.Pattern[str]:
    closing = _CLOSING.get(language, _CLOSING[""])
    spaced = "" if "«" in closing else rf"[^\S{_LINE}]?[»›]|"  # "Oui. »", but in German it opens
    pattern = _ENDS.format(line=_LINE, full=_FULL, wide=EAST_ASIAN, closing=closing, spaced=spaced)
    if language != "el":  # the Greek question mark
        pattern = pattern.replace("։;", "։")
    return re.compile(pattern, re.VERBOSE)


def _boundaries(text: str, language: str) -> list[int]:
    ends: list[int] = []
    start, letter = 0, -1  # of the current sentence, and where its first letter is
    quotes = _Quotes(text)
    for found in _ends(language).finditer(text):
        end = found.end()
        if not found["line"]:
            if letter < start:
                first = LETTER.search(text, start)
                letter = first.start() if first else len(text)
            if letter > found.start():  # "1.", "...": nothing yet
                continue
            if found["full"]:
                if not _ends_full(text, found, quotes, start):
                    continue
            elif found["wide"]:
                # "真的!我" but not "a.我" nor "……"
                if language not in ("zh", "ja") or found["mark"][-1] not in "!?" or quotes.open_at(end, start):
                    continue
            else:
                end = found.end("space")
                if not _ends_spaced(text, found, start, end, words_of(language)):
                    continue
            if end == len(text) or text[end] in _LINE:  # ends there, with the line
                continue
        ends.append(end)
        start = end
    return ends


def _ends_full(text: str, found: re.Match[str], quotes: _Quotes, start: int) -> bool:
    """After a mark that needs no space: not inside quotes, nor after quotes if the sentence continues after them."""
    end = found.end()
    if quotes.open_at(end, start):
        return False
    spoken = found["shut"] and found["shut"][-1] not in "）)］】"
    return not spoken or bool(found["gap"]) or end == len(text) or text[end] in _OPENING or text[end] in _LINE


class _Quotes:
    """Whether wide quotes are open at a position. Positions have to be queried in order."""

    def __init__(self, text: str):
        self.text, self.at, self.stack = text, 0, list[str]()

    def open_at(self, place: int, start: int) -> bool:
        begin = max(self.at, start)
        if start > self.at:
            self.stack.clear()  # a quote that was abandoned with the previous sentence
        for found in _QUOTE.finditer(self.text, begin, place):
            if found[0] in _QUOTES:
                self.stack.append(_QUOTES[found[0]])
            elif self.stack and self.stack[-1] == found[0]:
                self.stack.pop()
        self.at = max(place, self.at)
        # A quote that does not close soon, or at all, must not swallow the text.
        return bool(self.stack) and self.text.find(self.stack[0], place, place + _LONGEST_QUOTE) >= 0


def _ends_spaced(text: str, found: re.Match[str], start: int, following: int, words: Words) -> bool:
    """Whether a sentence ends at a mark with a space after it; `following` is where the next one would begin."""
    while following < len(text) and (text[following] in _OPENING or text[following].isspace()):
        following += 1
        if following - found.end() > 64:
            break
    next_word = _FIRST.match(text, following)
    if next_word is None:
        return True
    begins = next_word[0]
    if begins[0].islower():
        return False
    at = found.start("mark")
    if found["mark"] != "." or at == start:
        return True
    word = _WORD.search(text[max(start, at - 24) : at])
    before = word[0].strip("-–—") if word else ""
    # A single letter with a full stop is the next initial: "А. С. Пушкин"
    starter = begins.lower() in words.starters and not text.startswith(".", next_word.end())
    folded = before.lower()
    if found.end() - at > 1 and not starter:  # something closed after it: "(etc.) Next" ends, "(Dr.) Who" is rare
        return True
    if folded in words.always:
        return False
    if folded in words.numbered and (begins[0].isdigit() or _ROMAN.match(begins)):
        return False
    if folded in words.often or _INITIALS.match(before):
        return starter
    if before.isdecimal() and len(before) <= 3 and words.ordinals:
        return starter
    return True


def _inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    found = bisect_right(spans, (place, -1)) - 1
    return found >= 0 and spans[found][0] < place < spans[found][1]


def _cuts(text: str, start: int, end: int, whole: Sequence[tuple[int, int]]) -> list[int]:
    """Where to cut a sentence that is too long: in the second half of the maximum length, else at its end."""
    cuts = []
    while end - start > LONGEST:
        limit = start + LONGEST
        for pattern in _CUTS:
            places = [found.end() for found in pattern.finditer(text, start + LONGEST // 2, limit)]
            places = [place for place in places if not _inside(place, whole)]
            if places:
                start = places[-1]
                break
        else:
            start = limit
        cuts.append(start)
    return cuts
