"""The tags and texts of an HTML page with their places, as a browser would find them, and where elements end."""

from __future__ import annotations

import codecs
import re
from array import array
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.documents.segment import MAX_NAMES

# ---- tags and texts ----

# Nothing is corrected and no entity is expanded: a page that is not well-formed is taken as it is.


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MARKUP = re.compile(r"<(?=[A-Za-z!?]|/.)", re.DOTALL)
_TAG = re.compile(
    r"""</?([A-Za-z][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+|(?=>)))*+>""",
)
_TAG_NAME = re.compile(r"</?[^\s/>]*+")
_ATTRIBUTE = re.compile(r"""([^\s/>=]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?""")
_COMMENT_END = re.compile(r"--!?>")
# Between these tags nothing is markup.
_RAW = names("script style textarea title xmp iframe noembed noframes")
_FOREIGN = names("svg math")  # XML in any page
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}

# How a browser reads the encodings that pages declare; others are refused.
_ENCODINGS = {
    "cp1252": "ascii us-ascii latin1 latin-1 iso-8859-1 iso8859-1 cp1252 windows-1252 x-cp1252 l1",
    "cp1254": "iso-8859-9 latin5 windows-1254 cp1254",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms932",
    "gb18030": "gb2312 gbk gb18030 x-gbk chinese",
    "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 utf-16 utf-16le utf-16be",  # a page that says so in ASCII is not UTF-16
    "euc_jp": "euc-jp x-euc-jp",
    "big5hkscs": "big5 big5-hkscs",
    "koi8_r": "koi8-r koi8",
    "koi8_u": "koi8-u",
}
_ENCODING = {label: encoding for encoding, labels in _ENCODINGS.items() for label in labels.split()}
_ENCODING |= {f"iso-8859-{n}": f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
_ENCODING |= {f"windows-{n}": f"cp{n}" for n in (1250, 1251, 1253, 1255, 1256, 1257, 1258)}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(
    rb"""<meta\b[^>]{0,300}?charset\s*=\s*["']?\s*([\w:.-]+)|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]+)""",
    re.IGNORECASE,
)
_OTHER_KINDS = ((b"%PDF-", "a PDF"), (b"PK\x03\x04", "a zip archive"), (b"\xd0\xcf\x11\xe0", "an old Office file"))


class Token(NamedTuple):
    kind: str  # text, cdata (text with nothing escaped), open, close, raw (content left alone), other (a comment...)
    start: int
    end: int
    name: str = ""  # of a tag, in lower case; of pictures and formulas without the prefix that XML may give them
    empty: bool = False  # <x/>


class Tokens(Iterator[Token]):
    """Tokens one after the other, of which the next can be seen before. They are not held: there may be one for every
    three bytes."""

    def __init__(self, found: Iterator[Token]):
        self._found = found
        self._seen: deque[Token] = deque()

    def __next__(self) -> Token:
        return self._seen.popleft() if self._seen else next(self._found)

    def next(self, count: int) -> list[Token]:
        """The next ones, which are still to come."""
        self._seen.extend(islice(self._found, max(0, count - len(self._seen))))
        return list(islice(self._seen, count))

    def skip_to(self, last: Token, count: int) -> Token:
        """Leaves out as many; returns the last of them, `last` if there are none."""
        return deque(chain((last,), islice(self, count)), maxlen=1).pop()


class Attribute(NamedTuple):
    """Where the value of an attribute is, with its quotes if it has any."""

    start: int
    end: int
    quote: str
    value: str  # as written, without quotes


def decode(data: bytes, name: str) -> tuple[bytes, str, str]:
    """Byte order mark, text and encoding of a page. Bytes that cannot be decoded stay in it as lone surrogates."""
    for magic, kind in _OTHER_KINDS:
        if data.startswith(magic):
            raise DocnmtError(f"{name}: not an HTML page but {kind}\n  Give the file the right extension.")
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return mark, _decoded(data[len(mark) :], encoding, name), encoding
    if declared := _DECLARED.search(data, 0, 4096):
        label = (declared[1] or declared[2]).decode("ascii").lower()
        if label not in _ENCODING:
            raise DocnmtError(f"{name}: the page declares the unknown encoding {label}\n  Save it as UTF-8.")
        return b"", _decoded(data, _ENCODING[label], name), _ENCODING[label]
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return b"", _decoded(data, "cp1252", name), "cp1252"
    return b"", _decoded(data, "utf-8", name), "utf-8"


def _decoded(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding, "strict" if encoding.startswith("utf-16") else "surrogateescape")
    except UnicodeDecodeError as error:
        raise DocnmtError(f"{name}: not valid {encoding.upper()} ({error})\n  Save the page as UTF-8.") from error
    if "\0" in text:
        raise DocnmtError(f"{name}: not an HTML page: it contains NUL bytes\n  Give the file the right extension.")
    if text.encode(encoding, "surrogateescape") != data:
        raise DocnmtError(f"{name}: not valid {encoding.upper()}, although the page declares it\n  Save it as UTF-8.")
    return text


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def attributes(text: str, tag: Token, wanted: Container[str]) -> dict[str, Attribute]:
    """The wanted attributes of a tag by their names in lower case; the first of two with the same name counts."""
    found: dict[str, Attribute] = {}
    name = _TAG_NAME.match(text, tag.start)
    assert name
    for part in _ATTRIBUTE.finditer(text, name.end(), tag.end - 1):
        if part[1].lower() not in wanted:
            continue
        raw = part[2] or ""
        quote = raw[0] if raw[:1] in ('"', "'") else ""
        start, end = part.span(2) if part[2] else (part.end(), part.end())
        found.setdefault(part[1].lower(), Attribute(start, end, quote, raw[1:-1] if quote else raw))
    return found


def tokens(text: str, name: str, xml: bool, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of a page, one after the other without a gap. In `xml`, <x/> is closed and CDATA is text."""
    end = len(text) if end is None else end
    foreign = 0  # how deep inside pictures and formulas, which are XML in any page
    while start < end:
        markup = _MARKUP.search(text, start, end)
        at = markup.start() if markup else end
        if at > start:
            yield Token("text", start, at)
        if not markup:
            return
        token = _markup_at(text, at, end, name, xml or foreign > 0)
        yield token
        start = token.end
        if token.name in _FOREIGN and not token.empty:
            foreign = max(0, foreign + (1 if token.kind == "open" else -1))
        if token.kind == "open" and token.name in _RAW and not foreign and not (xml and token.empty):
            found = _RAW_END[token.name].search(text, start, end)
            close = found.start() if found else end
            if close > start:
                yield Token("text" if token.name == "title" and found else "raw", start, close)
            start = close


def _markup_at(text: str, start: int, end: int, name: str, xml: bool) -> Token:
    if text.startswith("<!--", start):
        if text.startswith((">", "->"), start + 4):
            return Token("other", start, text.index(">", start) + 1)
        found = _COMMENT_END.search(text, start + 4, end)
        return Token("other", start, found.end() if found else end)
    if xml and text.startswith("<![CDATA[", start):
        return Token("cdata", start, _after(text, "]]>", start, end))
    following = text[start + 1]
    if following == "?":
        closing = "?>" if xml or text.startswith(("<?php", "<?="), start) else ">"
        return Token("other", start, _after(text, closing, start, end))
    if following == "!":
        return _declaration_at(text, start, end, name)
    if following == "/" and not (text[start + 2].isascii() and text[start + 2].isalpha()):
        return Token("other", start, _after(text, ">", start, end))
    found = _TAG.match(text, start, end)
    if found is None:
        line = line_of(text, start)
        raise DocnmtError(f"{name}, line {line}: this tag lacks its > or its closing quote\n  Add what is missing.")
    kind = "close" if following == "/" else "open"
    local = found[1].lower().rpartition(":")[2]
    spelt = local if local in _FOREIGN else found[1].lower()
    return Token(kind, start, found.end(), spelt, text[found.end() - 2] == "/")


def _declaration_at(text: str, start: int, end: int, name: str) -> Token:
    close = _after(text, ">", start, end)
    subset = text.find("[", start, close)
    if text[start : start + 9].upper() == "<!DOCTYPE" and subset >= 0:
        close = _after(text, "]", start, end)
        if "<!entity" in text[start:close].lower():
            line = line_of(text, start)
            raise DocnmtError(f"{name}, line {line}: the DOCTYPE declares entities\n  Replace them with their text.")
        close = _after(text, ">", close, end)
    return Token("other", start, close)


def _after(text: str, closing: str, start: int, end: int) -> int:
    found = text.find(closing, start, end)
    return found + len(closing) if found >= 0 else end


# ---- elements: where each one ends, even if no tag says so ----

VOID = names("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
# Elements that end a line of text; all others are inside it.
BLOCKS = names(
    "address article aside base blockquote body button caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe label "
    "legend li link main menu meta nav noframes noscript ol optgroup option p pre script search section select style "
    "summary table tbody td template textarea tfoot th thead title tr ul xmp"
)
_NOT_IN_P = BLOCKS - names(
    "base button iframe label link meta noscript option optgroup script select style template textarea title"
)
# For elements whose closing tag may be left out: which open ones they end, and across which elements they do not.
_ENDS = (
    ("li", "li", "ul ol menu dir table"),
    ("dt dd", "dt dd", "dl table"),
    ("td th", "td th", "table"),
    ("tr", "tr", "table"),
    ("thead tbody tfoot", "tr thead tbody caption colgroup", "table"),
    ("option", "option", "select"),
    ("optgroup", "option optgroup", "select"),
)
_ENDED_BY = {name: (names(ended), names(walls)) for tags, ended, walls in _ENDS for name in tags.split()}


class _Open:
    """The open elements. Every query takes constant time, however deep they are nested; and as numbers
    in arrays they take little memory."""

    def __init__(self, ends: array[int], page: str) -> None:
        self._ends, self._page = ends, page
        self._names: list[str] = []
        self._tokens = array("I")  # that opened them
        self._depths: dict[str, array[int]] = defaultdict(partial(array, "I"))  # of a name, the innermost last
        self._blocks = array("I")

    def add(self, name: str, token: int) -> None:
        self._depths[name].append(len(self._names))
        if len(self._depths) > MAX_NAMES:
            problem = f"its elements have more than {MAX_NAMES:,} names"
            raise DocnmtError(f"{self._page}: {problem}\n  No page needs that many, so it is not read.")
        if name in BLOCKS:
            self._blocks.append(len(self._names))
        self._names.append(name)
        self._tokens.append(token)

    def depth(self, *names: str) -> int:
        """The depth of the innermost open element with one of these names; -1 if there is none."""
        return max((depths[-1] for name in names if (depths := self._depths.get(name))), default=-1)

    def below_block(self, depth: int) -> bool:
        return bool(self._blocks) and self._blocks[-1] > depth

    def end(self, depth: int, at: int) -> int:
        """Ends the element at this depth, and all in it, before the token `at`; returns the token that opened it."""
        while True:
            name, token = self._names.pop(), self._tokens.pop()
            self._depths[name].pop()
            if name in BLOCKS:
                self._blocks.pop()
            self._ends[token] = at
            if len(self._names) == depth:
                return token

    def end_all(self, at: int) -> None:
        if self._names:
            self.end(0, at)


def match(tokens: Iterable[Token], name: str, xml: bool) -> tuple[array[int], array[int]]:
    """Two arrays by the number of a tag. The first has, for an opening tag, the number of the token after its element.
    The second has a tag's partner: for an opening one the number of the closing one, for a closing one that of the
    opening one plus 1; 0 for a tag without a partner."""
    ends, partners = array("I"), array("I")
    elements = _Open(ends, name)
    for number, token in enumerate(tokens):
        ends.append(0)
        partners.append(0)
        tag = token.name
        if token.kind == "open":
            if not xml:
                _end_implied(elements, tag, number)
            empty = token.empty and (xml or tag in _FOREIGN or elements.depth(*_FOREIGN) >= 0)
            if empty or tag in VOID:
                ends[number] = number + 1
            else:
                elements.add(tag, number)
        elif token.kind == "close":
            depth = elements.depth(tag)
            # An inline closing tag does not end the block that it is in.
            if depth >= 0 and (tag in BLOCKS or not elements.below_block(depth)):
                opening = elements.end(depth, number)
                ends[opening] = number + 1
                partners[opening], partners[number] = number, opening + 1
    elements.end_all(len(ends))
    return ends, partners


def _end_implied(elements: _Open, name: str, number: int) -> None:
    if name in _ENDED_BY:
        siblings, walls = _ENDED_BY[name]
        wall = elements.depth(*walls)
        while (depth := elements.depth(*siblings)) > wall:
            elements.end(depth, number)
    if name in _NOT_IN_P and (depth := elements.depth("p")) > elements.depth("table", "button", "template", "svg"):
        elements.end(depth, number)
