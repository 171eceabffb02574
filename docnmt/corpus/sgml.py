"""Tagged test and training sets: NIST SGML, IWSLT XML, WMT XML and IWSLT `train.tags` files."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from docnmt.base.lines import Flaw, InputFile, Line, find_flaw
from docnmt.corpus.rows import Reading, Row, Side, Want, rows_of
from docnmt.text.scripts import primary

# ---- Tags, and the text of the requested elements ----

# Tagged files are rarely well-formed (tags in any case, attributes without quotes, bare `&`, stray control characters),
# so they are not given to an XML parser: a small tokenizer takes tags and text as they come. It expands no entities but
# the built-in ones, so a file cannot blow up in memory.

# No real tag, comment or declaration is longer.
MAX_TAG = 1 << 20

# The next token of a text; no match means that more of the text is needed to tell.
_TOKEN = re.compile(
    r"""
    (?P<text>[^<]+)
    | <!--.*?-->
    | <!\[CDATA\[(?P<cdata>.*?)\]\]>
    | (?P<entity><!ENTITY)
    | <![a-z][^>[]*[>[]  # a declaration, as far as the [ of an inner subset: those in it are seen one by one
    | <\?[^>]*>          # SGML has no second question mark
    | <(?P<closing>/?)(?P<name>[a-z][^\s/<>"']*+)
      # A quote that is not closed before the next tag is an ordinary character.
      (?P<rest>(?:"[^"<]*+"|'[^'<]*+'|[^<>"']|"(?=[^"<]*<)|'(?=[^'<]*<))*+)>
    | (?P<bare><)(?!/?\Z|!.{0,6}\Z|!--|!\[CDATA\[|![a-z]|\?|/?[a-z][^<]*\Z)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE | re.ASCII,
)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))")
_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")
_SPACES = re.compile(r"[ \t\r\n]+")


class Tag(NamedTuple):
    name: str  # lower case
    closing: bool
    empty: bool  # <x/>
    attributes: dict[str, str]
    line: int


class TokenError(Exception):
    """The markup cannot be parsed any further."""

    def __init__(self, kind: str, problem: str, line: int):
        super().__init__(problem)
        self.kind, self.problem, self.line = kind, problem, line


def decode_references(text: str) -> str:
    """Decodes `&amp;` and the like; unknown references stay as they are."""
    return _REFERENCE.sub(_decoded, text) if "&" in text else text


def _decoded(reference: re.Match[str]) -> str:
    name = reference[1]
    if not name.startswith("#"):
        return html.unescape(reference[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # Control characters are kept, to be reported later; html.unescape would silently drop them.
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def tokens(file: InputFile) -> Iterator[Tag | str]:
    """Tags and the text between them, in pieces, with references still encoded."""
    buffer, line = "", 1
    for chunk in file.chunks():
        buffer += chunk
        position = 0
        while found := _TOKEN.match(buffer, position):
            position = found.end()
            if found["text"]:
                yield found["text"]
            elif found["bare"]:
                yield "&lt;"
            elif found["cdata"]:
                yield found["cdata"].replace("&", "&amp;")
            elif found["entity"]:
                raise TokenError("entity declaration", "the file declares an entity", line)
            elif found["name"]:
                attributes = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(found["rest"])}
                yield Tag(found["name"].lower(), bool(found["closing"]), found["rest"].endswith("/"), attributes, line)
            line += found[0].count("\n")
        buffer = buffer[position:]
        if len(buffer) > MAX_TAG:
            raise TokenError("long line", f"a tag is longer than {MAX_TAG:,} characters", line)
    if buffer:
        raise TokenError("bad markup", "the file ends in the middle of a tag", line)


class Text(NamedTuple):
    """The text of an element, on one line, or what is wrong with it."""

    element: Tag
    content: Line


def elements(
    file: InputFile,
    reading: Reading,
    texts: Container[str],
    *,
    ends: Container[str] = (),
    codes: Container[str] = (),
    aside: Container[str] = (),
    sgml: bool = False,
) -> Iterator[Tag | Text]:
    """All tags of a file but those inside `texts`: elements that are yielded whole, when they end.

    A tag of `ends` ends a text, too; without an end tag of its own a text is kept in SGML and dropped elsewhere.
    What is in `codes` is not part of a text, and what is in elements `aside` is skipped. If the markup cannot be
    parsed any further, this is reported and reading ends.
    """
    text: Tag | None = None
    pieces: list[str] = []
    size = inside_codes = inside_aside = 0
    try:
        for token in tokens(file):
            if isinstance(token, str):
                # References make text at most ten times longer (&#x10FFFF;); beyond that it is too long in any case.
                if text and not inside_codes and not inside_aside and size <= 10 * reading.limit:
                    pieces.append(token)
                    size += len(token)
                continue
            step = 0 if token.empty else -1 if token.closing else 1
            if token.name in aside:
                inside_aside = max(0, inside_aside + step)
            elif token.name in ends:
                inside_aside = 0
            if inside_aside:
                continue
            if token.name in texts or token.name in ends:
                if text and (sgml or (token.closing and token.name == text.name)):
                    yield Text(text, _one_line(pieces, reading.limit))
                text, pieces, size, inside_codes = None, [], 0, 0
                if token.name in ends:
                    yield token
                elif token.empty:
                    yield Text(token, "")
                elif not token.closing:
                    text = token
            elif token.name in codes:
                inside_codes = max(0, inside_codes + step)
            elif not text:
                yield token
    except TokenError as error:
        remedy = "Close the tag, or remove it." if error.kind == "long line" else ""
        reading.bad(error.kind, error.problem, file=file.name, line=error.line, remedy=remedy)


def _one_line(pieces: list[str], limit: int) -> Line:
    text = _SPACES.sub(" ", decode_references("".join(pieces))).strip(" ")
    return find_flaw(text, limit) or text


# ---- Languages and ids of documents ----


def same_language(tag: str, wanted: str) -> bool:
    """`fr` is the language of `fr`, `fr-FR` and `FR_ca`; if either is unknown, any will do."""
    return not wanted or not tag or primary(tag) == primary(wanted)


def _open_document(file: InputFile, tag: Tag, key: str, seen: set[str], reading: Reading) -> Side | None:
    """Starts a document, if it has an id and the id is new."""
    name = decode_references(tag.attributes.get(key) or tag.attributes.get("id", "")).strip()
    side = Side(file.name, name, tag.line)
    if not name or find_flaw(name, 1_000):
        reading.bad("unknown document", f"this document has no {key}", file=file.name, line=tag.line)
    elif is_new(side, seen, reading):
        return side
    return None


def is_new(side: Side, seen: set[str], reading: Reading) -> bool:
    """Whether the id is new; if not, that is reported."""
    if side.id in seen:
        side.bad("repeated document", "an earlier document has the same id", reading)
        return False
    seen.add(side.id)
    return True


# ---- NIST SGML and IWSLT XML: sets of documents, each in one language ----

_SETS = ("srcset", "refset", "tstset")


class _Version(NamedTuple):
    """Identifies a translation. One refset may hold several translations of a document, distinguished by sysid; or each
    may have a refset of its own."""

    kind: str = ""  # of the set
    number: int = 0  # of the set
    system: str = ""


def _versions(file: InputFile, reading: Reading) -> Iterator[tuple[_Version, Side]]:
    """All documents in all their versions."""
    seen: defaultdict[_Version, set[str]] = defaultdict(set)
    version = _Version()
    side: Side | None = None
    for found in elements(file, reading, ("seg",), ends=("doc", *_SETS), sgml=True):
        if isinstance(found, Text):
            if side:
                side.add(found.content, found.element.line)
        elif found.name == "doc":
            if side:
                yield version, side
            side = None
            if not found.closing:
                version = version._replace(system=found.attributes.get("sysid", ""))
                # A source has no versions: the same document in two srcsets is one too many.
                once = _Version("srcset") if version.kind == "srcset" else version
                side = _open_document(file, found, "docid", seen[once], reading)
        elif found.name in _SETS:
            if found.closing and side:
                break
            if not found.closing:
                version = _Version(found.name, version.number + 1)
    if side:
        side.bad("bad markup", "the document has no end", reading)


def set_sides(file: InputFile, reading: Reading) -> Iterator[Side]:
    """The documents of all sets that are of the same kind as the first, each in its first version."""
    kind = ""
    seen: set[str] = set()
    for version, side in _versions(file, reading):
        kind = kind or version.kind
        if version.kind == kind and side.id not in seen:
            seen.add(side.id)
            yield side


def read_sets(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    """One file per side, such as a srcset and a refset."""
    return _rows_by_id(set_sides(source, reading), set_sides(target, reading), reading)


def _rows_by_id(sources: Iterable[Side], targets: Iterable[Side], reading: Reading) -> Iterator[Row]:
    for ours, theirs in paired_by_id(sources, targets, reading):
        yield from rows_of(ours, [theirs], reading)


def paired_by_id(sources: Iterable[Side], targets: Iterable[Side], reading: Reading) -> Iterator[tuple[Side, Side]]:
    """Pairs the documents of two files; only those out of step are held until their partner is read."""
    waiting: tuple[dict[str, Side], dict[str, Side]] = {}, {}
    for sides in zip_longest(sources, targets):
        for side, own in zip(sides, waiting, strict=True):
            if side is not None:
                own[side.id] = side
        for side in sides:
            if side is not None and side.id in waiting[0] and side.id in waiting[1]:
                yield waiting[0].pop(side.id), waiting[1].pop(side.id)
    for lonely, other in zip(waiting, ("target", "source"), strict=True):
        for side in lonely.values():
            side.bad("unknown document", f"there is no such document on the {other} side", reading)


def read_set_translations(file: InputFile, reading: Reading) -> Iterator[Row]:
    """All translations of each document, with its source if there is one: tstsets of translations, else refsets.

    A file with only a srcset also holds translations, under another name.
    """
    versions: defaultdict[_Version, dict[str, Side]] = defaultdict(dict)
    for version, side in _versions(file, reading):
        versions[version][side.id] = side
    kinds = {version.kind for version in versions}
    preferred = ("tstset", "refset") if reading.want is Want.TRANSLATIONS else ("refset", "tstset")
    kind = next((kind for kind in (*preferred, "srcset") if kind in kinds), "")
    chosen = [sides for version, sides in versions.items() if version.kind == kind]
    sources: dict[str, Side] = {}
    for version, sides in versions.items():
        if version.kind == "srcset" != kind:
            sources |= sides
    for name in dict.fromkeys(name for sides in chosen for name in sides):
        yield from rows_of(sources.get(name), [sides[name] for sides in chosen if name in sides], reading)


# ---- WMT XML: source, references and translations of a document in one file ----


def read_wmt_xml(file: InputFile, reading: Reading) -> Iterator[Row]:
    """`<src>` with the first `<ref>` of each document; with all of its `<ref>` or `<hyp>` if these are wanted."""
    tag = "hyp" if reading.want is Want.TRANSLATIONS else "ref"
    for document, sides in _wmt_documents(file, reading):
        sources, targets = sides["src"][:1], sides[tag]
        if not sources and not reading.for_scoring:
            missing = "src"
        elif not targets and reading.want is not Want.SOURCE:
            missing = tag
        else:
            count = {Want.SOURCE: 0, Want.PAIRS: 1}.get(reading.want, len(targets))
            yield from rows_of(sources[0] if sources else None, targets[:count], reading)
            continue
        language = reading.languages[missing != "src"]
        document.bad(
            "unequal sides", f"the document has no <{missing}>" + (f" in {language}" if language else ""), reading
        )


def _wmt_documents(file: InputFile, reading: Reading) -> Iterator[tuple[Side, dict[str, list[Side]]]]:
    """Each document (its id and line) and its sides by tag, in the wanted languages."""
    seen: set[str] = set()
    document: Side | None = None
    side: Side | None = None
    sides: dict[str, list[Side]] = {}
    for found in elements(file, reading, ("seg",), ends=("doc", "src", "ref", "hyp"), sgml=True):
        if isinstance(found, Text):
            if side:
                side.add(found.content, found.element.line)
        elif found.name == "doc":
            if document:
                yield document, sides
            document = None if found.closing else _open_document(file, found, "id", seen, reading)
            side, sides = None, {"src": [], "ref": [], "hyp": []}
        elif document and found.name in sides:
            wanted = reading.languages[found.name != "src"]
            side = None
            if not found.closing and same_language(found.attributes.get("lang", ""), wanted):
                side = Side(file.name, document.id, found.line)
                sides[found.name].append(side)
    if document:
        document.bad("bad markup", "the document has no end", reading)


# ---- IWSLT train.tags: lines, with the talks' headings in tags ----

_TALK_TAGS = "doc url talkid keywords speaker title description reviewer translator transcript date transcriber editor"
_TALK_LINE = re.compile(rf"\s*<(/?)({'|'.join(_TALK_TAGS.split())})\b[^>]*>([^<]*)")
_TALK_STARTS = ("doc", "url", "talkid")


def talk_sides(file: InputFile, reading: Reading) -> Iterator[Side]:
    """The talks of a `train.tags` file: untagged lines are sentences, and a heading after sentences starts a talk."""
    talks = 1
    talk = Side(file.name, f"{file.stem}:1", 1)
    for number, line in enumerate(file.lines(reading.limit), 1):
        heading = _TALK_LINE.match(line.text if isinstance(line, Flaw) else line)
        if heading is None:
            talk.add(line if isinstance(line, Flaw) else line.strip(), number)
        elif heading[2] in _TALK_STARTS and not heading[1]:
            if any(talk.lines):
                yield talk
                talks += 1
            if talk.lines:
                talk = Side(file.name, f"{file.stem}:{talks}", number)
            if heading[2] == "talkid" and heading[3].strip():
                talk.id = heading[3].strip()
    if any(talk.lines):
        yield talk


def read_talks(source: InputFile, target: InputFile, reading: Reading) -> Iterator[Row]:
    # Talks without ids are numbered, and their names must not depend on the name of the file.
    target.stem = source.stem
    return _rows_by_id(talk_sides(source, reading), talk_sides(target, reading), reading)
