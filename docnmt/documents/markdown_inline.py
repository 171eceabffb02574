"""Markdown inside a line: emphasis, links, code and the rest with their places, as CommonMark reads them."""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from docnmt.documents.html import LEFT_ALONE
from docnmt.documents.inline import ADDRESS, TEMPLATE, Piece, plain
from docnmt.documents.markdown_blocks import INLINE_TAG, label
from docnmt.documents.segment import MAX_IN_PARAGRAPH, TooManyMarks

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_NEXT = re.compile(
    rf"(?P<escape>\\[{re.escape(PUNCTUATION)}])"
    r"|(?P<broken>(?:\\|(?<! ) {2,}+)\n)|(?P<newline>\n)"
    r"|(?P<ticks>`+)|(?P<delimiters>\*+|_+|~+)|(?P<bracket>!?\[)|(?P<closing>\])"
    rf"|(?P<entity>{_ENTITY})"
    r"|(?P<opaque><[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w.-]{1,255}>"
    rf"|{TEMPLATE.pattern}|\{{[:#.][^{{}}\n]{{0,200}}\}}"
    r"|\$\$[^$\n]{1,500}\$\$|\$(?=\S)(?=[^$\n]{0,200}[\\^_{}=]|[^$\s]{1,20}\$)[^$\n]{1,200}(?<=\S)\$(?!\d)"
    r"|(?<![\w:]):[a-z][a-z0-9_+-]{1,40}:(?![\w:]))"
    rf"|(?P<address>{ADDRESS.pattern})"
    r"|(?P<less><)"
)
_TICKS = re.compile("`+")
_TITLE = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)", re.DOTALL)
_ANGLED = re.compile(r"<(?:[^<>\n\\]|\\.)*+>")
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999})\]", re.DOTALL)
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
# How these begin and end; tags are matched separately.
_DECLARATIONS = (("<!-->", ""), ("<!--->", ""), ("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">"))


@dataclass(slots=True)
class _Delimiters:
    """A run of `*`, `_` or `~`. Closing emphasis takes some from its left, opening emphasis from its right."""

    start: int  # of those not taken yet
    end: int
    opens: bool
    closes: bool
    length: int
    closing: list[Piece] = field(default_factory=list)
    opening: list[Piece] = field(default_factory=list)  # the last one first

    @property
    def count(self) -> int:
        return self.end - self.start


class _Bracket(NamedTuple):
    start: int
    image: bool
    item: int  # its number among the items
    delimiters: int  # how many runs of them are before it


class Inside(NamedTuple):
    """A text inside a mark: the pieces of an alternative text, or a title, from quote to quote."""

    pieces: tuple[Piece, ...]
    title: tuple[int, int] | None = None


class Line:
    """A text without the markers of its containers, parsed: its `pieces`, and the texts `inside` its marks."""

    def __init__(self, content: str, labels: frozenset[str], start: int = 0):
        self._content, self._labels = content, labels
        self._items: list[Piece | _Delimiters] = []
        self._delimiters: list[_Delimiters] = []
        self._brackets: list[_Bracket] = []
        self._inactive = 0  # how many of the open brackets are before a link: they cannot become a link around it
        self._pairs = 0
        self._ticks: dict[int, list[int]] = defaultdict(list)
        self._absent: set[str] = set()  # endings that are known not to follow
        for run in _TICKS.finditer(content):
            self._ticks[len(run[0])].append(run.start())
        self.inside: list[Inside] = []
        self._scan(start)
        self._emphasize(0)
        self.pieces = tags_paired(content, self._expanded(0))

    def _scan(self, position: int) -> None:
        while found := _NEXT.search(self._content, position):
            self._text(position, found.start())
            position = self._read(found)
            if len(self._items) > 2 * MAX_IN_PARAGRAPH:  # checked while reading: they take many times their size
                raise TooManyMarks(self._content[:40])
        self._text(position, len(self._content))

    def _read(self, found: re.Match[str]) -> int:
        """Reads what was found and returns where it ends."""
        start, end = found.span()
        match found.lastgroup:
            case "escape":
                self._items.append(Piece(start, end, found[0][1]))
            case "broken":
                self._items.append(Piece(start, end, breaks=True, code=found[0]))
            case "newline":
                self._items.append(Piece(start, end, " "))
            case "entity":
                character = html.unescape(found[0])
                self._items.append(Piece(start, end, "" if character == "\xad" else character))
            case "address":
                self._text(start, end)
            case "opaque":
                self._items.append(Piece(start, end, wide=True))
            case "ticks":
                return self._code(start, end)
            case "less":
                return self._html(start)
            case "delimiters":
                self._add_delimiters(start, end)
            case "bracket":
                items, delimiters = len(self._items), len(self._delimiters)
                self._brackets.append(_Bracket(start, found[0] == "![", items, delimiters))
                self._text(start, end)
            case "closing":
                return self._close_bracket(start)
        return end

    def _text(self, start: int, end: int) -> None:
        self._items += plain(self._content, start, end)

    def _mark(self, start: int, end: int, pair: int = 0, wide: bool = False, breaks: bool = False) -> Piece:
        return Piece(start, end, code=one_line(self._content, start, end), pair=pair, wide=wide, breaks=breaks)

    def _code(self, start: int, end: int) -> int:
        same = self._ticks[end - start]
        following = bisect_right(same, start)
        if following == len(same):
            self._text(start, end)
            return end
        close = same[following] + end - start
        self._items.append(self._mark(start, close, wide=True))
        return close

    def _html(self, start: int) -> int:
        end = start + 1
        for opening, closing in _DECLARATIONS:
            if self._content.startswith(opening, start) and closing not in self._absent:
                found = self._content.find(closing, start + len(opening))
                if found >= 0:
                    end = found + len(closing)
                else:
                    self._absent.add(closing)
                break
        else:
            if tag := INLINE_TAG.match(self._content, start):
                end = tag.end()
        if end == start + 1:
            self._text(start, end)
            return end
        name = TAG_NAME.match(self._content, start)
        kind = name[1].lower() if name else ""
        self._items.append(self._mark(start, end, breaks=kind == "br", wide=kind in ("img", "input")))
        return end

    def _add_delimiters(self, start: int, end: int) -> None:
        character = self._content[start]
        before = self._content[start - 1] if start else " "
        after = self._content[end] if end < len(self._content) else " "
        if character == "~" and end - start > 2:
            self._text(start, end)
            return
        left = not after.isspace() and (not _is_punctuation(after) or before.isspace() or _is_punctuation(before))
        right = not before.isspace() and (not _is_punctuation(before) or after.isspace() or _is_punctuation(after))
        opens = left and (character != "_" or not right or _is_punctuation(before))
        closes = right and (character != "_" or not left or _is_punctuation(after))
        run = _Delimiters(start, end, opens, closes, end - start)
        self._items.append(run)
        self._delimiters.append(run)

    def _emphasize(self, bottom: int) -> None:
        """Pairs the delimiters from the one with the number `bottom` on."""
        openers: list[_Delimiters] = []
        searched: dict[tuple[str, bool, int], int] = {}  # no opener for these up to this place
        for run in self._delimiters[bottom:]:
            character = self._content[run.start]
            key = character, run.opens, run.length % 3
            while run.closes and run.count:
                at = len(openers) - 1
                while at >= 0 and openers[at].start > searched.get(key, -1):
                    if self._content[openers[at].start] == character and _fit(openers[at], run, character):
                        break
                    at -= 1
                else:
                    searched[key] = openers[-1].start if openers else -1
                    break
                del openers[at + 1 :]
                opener = openers[at]
                taken = run.count if character == "~" else 2 if min(opener.count, run.count) >= 2 else 1
                self._pairs += 1
                opener.end -= taken
                opener.opening.append(Piece(opener.end, opener.end + taken, pair=self._pairs))
                run.start += taken
                run.closing.append(Piece(run.start - taken, run.start, pair=self._pairs, closing=True))
                if not opener.count:
                    openers.pop()
            if run.opens and run.count:
                openers.append(run)
        del self._delimiters[bottom:]

    def _expanded(self, first: int) -> list[Piece]:
        pieces: list[Piece] = []
        for item in self._items[first:]:
            if isinstance(item, Piece):
                pieces.append(item)
                continue
            pieces += item.closing
            if item.count:
                pieces.append(Piece(item.start, item.end, self._content[item.start : item.end]))
            pieces += reversed(item.opening)
        return pieces

    def _close_bracket(self, at: int) -> int:
        if not self._brackets:
            self._text(at, at + 1)
            return at + 1
        bracket = self._brackets.pop()
        active = bracket.image or len(self._brackets) >= self._inactive
        self._inactive = min(self._inactive, len(self._brackets))
        first = bracket.start + 1 + bracket.image
        inside = self._content[first:at] if at - first <= 1000 else ""
        if inside.startswith("^") and len(inside) > 1 and not bracket.image and not re.search(r"\s", inside):
            self._fold(bracket, at + 1)
            return at + 1
        found = self._target(at + 1, inside) if active else None
        if found is None:
            self._text(at, at + 1)
            return at + 1
        end, code, title = found
        self._emphasize(bracket.delimiters)
        if bracket.image:
            self.inside.append(Inside(tuple(self._expanded(bracket.item + 1))))
            self._fold(bracket, end)
        else:
            self._pairs += 1
            self._items[bracket.item] = self._mark(bracket.start, first, pair=self._pairs)
            self._items.append(Piece(at, end, code=code, pair=self._pairs, closing=True))
            self._inactive = len(self._brackets)
        if title:
            self.inside.append(Inside((), title))
        return end

    def _fold(self, bracket: _Bracket, end: int) -> None:
        """Makes everything from the bracket on one mark."""
        del self._items[bracket.item :]
        del self._delimiters[bracket.delimiters :]
        self._items.append(self._mark(bracket.start, end, wide=True))

    def _target(self, at: int, inside: str) -> tuple[int, str, tuple[int, int] | None] | None:
        """For a link whose text ends before `at`: where it ends, how its end is written, and where its title is."""
        if self._content.startswith("(", at) and (found := self._destination(at + 1)):
            end, title = found
            return end, self._content[at - 1 : end].replace("\n", " "), title
        if (reference := _LABEL.match(self._content, at)) and reference[1].strip():
            if label(reference[1]) in self._labels:
                return reference.end(), "]" + reference[0].replace("\n", " "), None
            return None
        if label(inside) in self._labels:
            # The text is translated but the label must not be, so it now has to be written out.
            return reference.end() if reference else at, f"][{' '.join(inside.split())}]", None
        return None

    def _destination(self, at: int) -> tuple[int, tuple[int, int] | None] | None:
        at = self._after_space(at)
        if angled := _ANGLED.match(self._content, at):
            at = angled.end()
        elif self._content.startswith("<", at):
            return None
        else:
            depth = 0
            while at < len(self._content) and self._content[at] > " ":
                if self._content[at] == "\\" and self._content[at + 1 : at + 2] in PUNCTUATION:
                    at += 1
                elif self._content[at] == "(":
                    depth += 1
                elif self._content[at] == ")":
                    depth -= 1
                if depth < 0 or depth > 32:
                    break
                at += 1
            if depth > 0:
                return None
        title = None
        space = self._after_space(at)
        if space > at and (found := _TITLE.match(self._content, space)):
            title = found.span()
            space = self._after_space(found.end())
        return (space + 1, title) if self._content.startswith(")", space) else None

    def _after_space(self, at: int) -> int:
        found = _SPACE.match(self._content, at)
        return found.end() if found else at


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _fit(opener: _Delimiters, closer: _Delimiters, character: str) -> bool:
    if character == "~":
        return opener.count == closer.count
    either = opener.closes or closer.opens
    return not (either and (opener.length + closer.length) % 3 == 0 and (opener.length % 3 or closer.length % 3))


# ---- HTML tags in the line ----

TAG_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
_FURTHEST = 50  # how many tags to look back for a partner


def one_line(content: str, start: int, end: int) -> str:
    """How to write a mark that goes over several lines in one; empty for a mark that is on one line."""
    return content[start:end].replace("\n", " ") if "\n" in content[start:end] else ""


def tags_paired(content: str, pieces: Sequence[Piece]) -> list[Piece]:
    """HTML tags that belong together become pairs, and elements that are not translated single marks."""
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
                    result[first].pair = piece.pair = pairs
                    piece.closing = True
                    pairs -= 1
        result.append(piece)
    return result
