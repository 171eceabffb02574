"""Parallel text as released by the Linguistic Data Consortium: a folder per language, one or more files per document.

    source/*.sgm  translation/*.sgm       SGML by document, as many <seg> on both sides (multiple-translation corpora
                                          have a folder per translator: name one of them)
    Chinese/*  English/*  alignment/*     the same, and a third folder that says which segments belong
                                          together: <... EnglishSegId="1" ChineseSegId="1 2">
    source/*.tdf  translation/*.eng.tdf   GALE: a segment per line, its fields separated by tabs

Files of the same name, apart from extensions, belong together. Chinese is in GB or Big5 in older releases and in UTF-8
in newer ones: if no encoding is given, it is detected for each file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import Flaw, InputFile, Line
from docnmt.corpus.rows import Reading, Row, Side, rows_of
from docnmt.corpus.sgml import Tag, Text, elements, is_new, paired_by_id

ALIGNMENT = "alignment"
TRANSCRIPT = 7  # the field of a TDF line that has the text
FIELDS = 13
CHINESE = ("gb18030", "big5")
# The commonest characters of Chinese text, simplified and traditional: wrongly decoded text has hardly any.
_COMMON = frozenset("的一是在不了有人我他中大上和年地到为以要国这来个们会时说对出为國這來個們會時說對")


def read_release(source: str, target: str, encoding: str, reading: Reading) -> Iterator[Row]:
    """The rows of two folders, file by file."""
    ours, theirs = _files(source), _files(target)
    if not ours.keys() & theirs.keys():
        raise DocnmtError(
            f"{source} and {target}: no file name occurs in both folders\n"
            f"  Give the two folders that contain the texts; these contain {_example(ours)} and {_example(theirs)}."
        )
    beside = Path(source).parent / ALIGNMENT
    alignments = _files(str(beside)) if beside.is_dir() else {}
    seen: set[str] = set()
    for name in ours | theirs:
        if name not in theirs or name not in ours:
            files, other = (ours, target) if name in ours else (theirs, source)
            problem = f"there is no file of this name in {other}"
            remedy = "Add the missing file, or remove this one."
            reading.bad("unknown document", problem, file=str(files[name]), remedy=remedy)
        else:
            links = _links(alignments[name], reading) if name in alignments else {}
            yield from _file_pair(ours[name], theirs[name], links, encoding, seen, reading)


def _files(folder: str) -> dict[str, Path]:
    """By name without extensions: `AFP.eng.tdf` and `AFP.tdf` belong together."""
    found: dict[str, Path] = {}
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith(".")):
        name = str(path.relative_to(folder).with_name(_stem(path)))
        if name in found:
            raise DocnmtError(
                f"{found[name]} and {path}: both are named {name}, apart from their extensions\n"
                "  Keep one kind of file in a folder; if there are several translators, give the folder of one."
            )
        found[name] = path
    return found


def _stem(path: Path) -> str:
    name = re.sub(r"\.(gz|sgml?|xml|tdf|txt|src|tgt|ref|su)(?=\.|$)", "", path.name, flags=re.IGNORECASE)
    return re.sub(r"[._-](eng?|chi|cmn|zho?|arb|ara?|english|chinese|cn)$", "", name, flags=re.IGNORECASE)


def _example(files: dict[str, Path]) -> str:
    return next(iter(files.values())).name if files else "nothing"


def _file_pair(
    source: Path, target: Path, links: dict[str, list[_Link]], encoding: str, seen: set[str], reading: Reading
) -> Iterator[Row]:
    sources, targets = (_sides(path, encoding, reading) for path in (source, target))
    if len(sources) == len(targets) == 1:  # one document per file: its id may be given on one side only
        targets[0].id = sources[0].id
    for ours, theirs in paired_by_id(sources, targets, reading):
        if not is_new(ours, seen, reading):
            continue
        gaps: set[int] = set()
        if links:
            ours, theirs = _joined(ours, theirs, links.get(ours.id) or links.get("", []))
            gaps = {i for i, pair in enumerate(zip(ours.lines, theirs.lines, strict=True)) if "" in pair}
        yield from rows_of(ours, [theirs], reading, gaps)


def _sides(path: Path, encoding: str, reading: Reading) -> list[Side]:
    with InputFile(str(path), encoding or detect_encoding(path)) as file:
        return list(_tdf(file, reading) if ".tdf" in path.name.lower() else _sgml(file, reading))


def _sgml(file: InputFile, reading: Reading) -> Iterator[Side]:
    """`<DOC docid="...">` or `<DOC><DOCID>...</DOCID>`, with `<seg>` in it; headlines are segments like all others."""
    side: Side | None = None
    for found in elements(file, reading, ("seg", "docid", "docno"), ends=("doc",), sgml=True):
        if isinstance(found, Tag):
            if found.name == "doc":
                if side:
                    yield side
                side = None if found.closing else Side(file.name, _document_id(found) or file.stem, found.line)
        elif side and found.element.name == "seg":
            side.add(found.content, found.element.line)
        elif side and isinstance(found.content, str) and found.content:
            side.id = found.content
    if side:
        side.bad("bad markup", "the document has no end tag", reading)


def _document_id(tag: Tag) -> str:
    return tag.attributes.get("docid") or tag.attributes.get("id") or ""


def _tdf(file: InputFile, reading: Reading) -> Iterator[Side]:
    """One document: the transcript of every line but the heading and those that begin with two semicolons."""
    side = Side(file.name, _stem(Path(file.name)), 1)
    for number, line in enumerate(file.lines(FIELDS * reading.limit), 1):
        text = line.text if isinstance(line, Flaw) else line
        if not text.strip() or text.startswith((";;", "file;unicode")):
            continue
        fields = text.split("\t")
        if len(fields) > TRANSCRIPT:
            side.add(line if isinstance(line, Flaw) else " ".join(fields[TRANSCRIPT].split()), number)
        else:
            problem = f"{len(fields)} fields, but TDF has {FIELDS}"
            reading.bad("bad markup", problem, file=file.name, document=side.id, line=number)
    if side.lines:
        yield side


# ---- Which segments belong together ----

# The segments of each language, numbered from 1; an empty list means that this language has no counterpart.
_Link = dict[str, list[int]]


def _links(path: Path, reading: Reading) -> dict[str, list[_Link]]:
    """The links of each document."""
    links: dict[str, list[_Link]] = {}
    document = ""
    with InputFile(str(path)) as file:
        for found in elements(file, reading, ()):
            if isinstance(found, Text) or found.closing:
                continue
            if found.name == "doc":
                document = _document_id(found)
            link = {
                key.removesuffix("segid"): [int(number) for number in re.findall(r"\d+", value)]
                for key, value in found.attributes.items()
                if key.endswith("segid")
            }
            if link:
                links.setdefault(document, []).append(link)
    return links


def _joined(source: Side, target: Side, links: list[_Link]) -> list[Side]:
    """Both sides with a line per link: several segments are joined, and what has no counterpart leaves a gap."""
    names = {name for link in links for name in link}
    others = sorted(names - {"english"}) or ["chinese"]
    languages = others[0], "english" if "english" in names else others[-1]  # English is the target of these releases
    joined = []
    for side, language in zip((source, target), languages, strict=True):
        new = Side(side.file, side.id, side.line)
        for link in links:
            chosen = [number - 1 for number in link.get(language, []) if 0 < number <= len(side.lines)]
            new.add(_one_line([side.lines[i] for i in chosen]), side.numbers[chosen[0]] if chosen else side.line)
        joined.append(new)
    return joined


def _one_line(lines: list[Line]) -> Line:
    flaw = next((line for line in lines if isinstance(line, Flaw)), None)
    return flaw or " ".join(str(line) for line in lines)


# ---- Encodings ----


def detect_encoding(path: Path) -> str:
    """The Chinese encoding in which a file reads most like Chinese; "" if it is UTF-8 or ASCII."""
    with InputFile(str(path)) as file:
        data = file.content()
    try:
        data.decode("utf-8-sig")
        return ""
    except UnicodeDecodeError:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return ""
    return max(CHINESE, key=lambda name: _likeness(data.decode(name, "replace")))


def _likeness(text: str) -> float:
    """The share of common characters among those outside ASCII; undecodable ones count against it."""
    foreign = [character for character in text if ord(character) > 127]
    common = sum(character in _COMMON for character in foreign) - 2 * foreign.count("\ufffd")
    return common / max(1, len(foreign))
