"""Which tags of an HTML page belong together: where each element ends, also where no tag says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from docnmt.files.html_tokens import Token, names

VOID = names("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
# What ends a line of text; all other elements stand in it.
BLOCKS = names(
    "address article aside base blockquote body button caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe label "
    "legend li link main menu meta nav noframes noscript ol optgroup option p pre script search section select style "
    "summary table tbody td template textarea tfoot th thead title tr ul xmp"
)
_NOT_IN_P = BLOCKS - names(
    "base button iframe label link meta noscript option optgroup script select style template textarea title"
)
# Of the elements that need no closing tag: by which ones they are ended, and which ones keep these apart.
_LISTS = names("ul ol menu dir table")
_TABLE = frozenset({"table"})
_ENDED_BY: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "li": (("li",), _LISTS),
    "dt": (("dt", "dd"), frozenset({"dl", "table"})),
    "dd": (("dt", "dd"), frozenset({"dl", "table"})),
    "td": (("td", "th"), _TABLE),
    "th": (("td", "th"), _TABLE),
    "tr": (("tr",), _TABLE),
    "thead": (("tr", "thead", "tbody", "caption", "colgroup"), _TABLE),
    "tbody": (("tr", "thead", "tbody", "caption", "colgroup"), _TABLE),
    "tfoot": (("tr", "thead", "tbody", "caption", "colgroup"), _TABLE),
    "option": (("option",), frozenset({"select"})),
    "optgroup": (("option", "optgroup"), frozenset({"select"})),
}


class _Open:
    """The elements that are open. Every question about them takes the same time, however deep they are."""

    def __init__(self, ends: dict[int, int]) -> None:
        self._ends = ends
        self._stack: list[tuple[str, int]] = []
        self._depths: dict[str, list[int]] = defaultdict(list)  # of the open elements of a name, the innermost last
        self._blocks: list[int] = []

    def add(self, name: str, token: int) -> None:
        self._depths[name].append(len(self._stack))
        if name in BLOCKS:
            self._blocks.append(len(self._stack))
        self._stack.append((name, token))

    def depth(self, *names: str) -> int:
        """Of the innermost open element with one of these names, -1 if there is none."""
        return max((depths[-1] for name in names if (depths := self._depths[name])), default=-1)

    def below_block(self, depth: int) -> bool:
        return bool(self._blocks) and self._blocks[-1] > depth

    def end(self, depth: int, at: int) -> int:
        """Ends the element at this depth, and all in it, before the token `at`; gives the token that opened it."""
        while True:
            name, token = self._stack.pop()
            self._depths[name].pop()
            if name in BLOCKS:
                self._blocks.pop()
            self._ends[token] = at
            if len(self._stack) == depth:
                return token

    def end_all(self, at: int) -> None:
        if self._stack:
            self.end(0, at)


def match(tokens: Sequence[Token], xml: bool) -> tuple[dict[int, int], dict[int, int]]:
    """By the number of each opening tag, the number of the token after its element; and of its closing tag, if any."""
    ends: dict[int, int] = {}
    partners: dict[int, int] = {}
    elements = _Open(ends)
    for number, token in enumerate(tokens):
        name = token.name
        if token.kind == "open":
            if not xml:
                _end_implied(elements, name, number)
            if (xml and token.empty) or name in VOID or (token.empty and _is_foreign(elements, name)):
                ends[number] = number + 1
            else:
                elements.add(name, number)
        elif token.kind == "close":
            depth = elements.depth(name)
            # A closing tag in the line does not end the block in which it stands.
            if depth >= 0 and (name in BLOCKS or not elements.below_block(depth)):
                opening = elements.end(depth, number)
                ends[opening] = number + 1
                partners[opening] = number
    elements.end_all(len(tokens))
    return ends, partners


def _is_foreign(elements: _Open, name: str) -> bool:
    return name in ("svg", "math") or elements.depth("svg", "math") >= 0


def _end_implied(elements: _Open, name: str, number: int) -> None:
    if name in _ENDED_BY:
        siblings, walls = _ENDED_BY[name]
        wall = elements.depth(*walls)
        while (depth := elements.depth(*siblings)) > wall:
            elements.end(depth, number)
    if name in _NOT_IN_P and (depth := elements.depth("p")) > elements.depth("table", "button", "template", "svg"):
        elements.end(depth, number)
