"""Reads corpora, references and translations in any format, detected by content; documents are streamed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from docnmt.base.errors import DocnmtError, OnBad, raise_bad
from docnmt.base.lines import MAX_CHARACTERS, STDIN, CorpusFiles, InputFile
from docnmt.config import DataConfig
from docnmt.corpus.rows import (
    BARS,
    SENTENCE_END,
    Reading,
    Row,
    Side,
    Want,
    documents_of,
    rows_of,
    translated_documents,
    unique_documents,
)
from docnmt.document import Document, ParallelDocument
from docnmt.documents.segment import kind_of

_T = TypeVar("_T")

_FORMATS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("formats.toml").read_text(encoding="utf-8")
)
FORMATS = tuple(_FORMATS)
RELEASE = "ldc"
_ONE_FILE = [name for name, entry in _FORMATS.items() if "both" in entry]
_SOURCE_ALONE = [name for name, entry in _FORMATS.items() if "side" in entry] + ["wmt-xml", "tsv", "bars", "jsonl"]
_TAGS = {tag: name for name, entry in _FORMATS.items() for tag in entry.get("tags", ())}
_EMPTY = "The corpus is empty, or nothing in it could be used"
# Kinds of document that do not come in pairs: plain text is read line by line, catalogues hold both sides.
_NOT_PAIRED = ("", "text", "po", "xliff")

# How many lines at the beginning of a file must agree for it to count as columns.
_SAMPLE = 20
_CATALOGUE = re.compile(
    r'^msgid[ \t]+"[^\n]*"[ \t\r]*\n(?:"[^\n]*\n|msgid_plural[^\n]*\n)*msgstr(?:\[0\])?[ \t]+"', re.MULTILINE
)
_XML = re.compile(r"\s*<(?:\?xml|!doctype)\b", re.IGNORECASE)
_MARKUP = re.compile(rf"<({'|'.join(_TAGS)}|doc)\b", re.IGNORECASE)


def read_corpus(
    files: CorpusFiles,
    *,
    languages: tuple[str, str] = ("", ""),
    on_bad: OnBad = raise_bad,
    limit: int = MAX_CHARACTERS,
    sentence_level: bool = False,
) -> Iterator[ParallelDocument]:
    """The documents of a corpus, one at a time. At sentence level plain parallel files and memories without document
    marks give each pair as a document of its own, so memory stays flat however long they are."""
    # If the sides are swapped, so are the languages in the file.
    reading = Reading(languages[::-1] if files.swap else languages, on_bad, limit, sentence_level=sentence_level)
    with ExitStack() as stack:
        documents = documents_of(_rows(files, reading, stack))
        if files.swap:
            documents = (ParallelDocument(d.id, d.target, d.source) for d in documents)
        if files.only:
            prefixes = tuple(prefix.strip() for prefix in files.only.split(",") if prefix.strip())
            documents = (d for d in documents if d.id.startswith(prefixes))
            why = "No document's name begins so, or nothing in such documents could be used"
            yield from _at_least_one(documents, f"{files} (only = {files.only!r})", why)
        else:
            yield from _at_least_one(documents, str(files))


def read_named(
    data: DataConfig, files: CorpusFiles, on_bad: OnBad, sentence_level: bool = False
) -> Iterator[ParallelDocument]:
    """A corpus that a recipe names, as its data section says."""
    limit = data.max_characters
    return read_corpus(files, languages=data.languages, on_bad=on_bad, limit=limit, sentence_level=sentence_level)


def read_source(path: str, *, format: str = "", on_bad: OnBad = raise_bad) -> Iterator[Document]:
    """Only the source side, from a file or from standard input (`-`)."""
    _check_format(format, FORMATS, path)
    reading = Reading(on_bad=on_bad, want=Want.SOURCE)
    with InputFile(path) as file:
        name = format or source_format(file)
        if name not in _SOURCE_ALONE:
            formats = ", ".join(_SOURCE_ALONE)
            raise DocnmtError(
                f"{path}: the format {name} already has both sides, so it is not translated\n"
                f"  Give the source alone, as one of {formats}."
            )
        documents = documents_of(_rows_of_file(file, name, reading))
        yield from _at_least_one((Document(document.id, document.source) for document in documents), path)


def read_rows(path: str, want: Want, language: str = "") -> list[Row]:
    """The references or translations of a file in a format that names documents, or of plain text; `language` is
    theirs. What cannot be used is an error."""
    reading = Reading(("", language), want=want)
    with InputFile(path) as file:
        return list(_rows_of_file(file, scored_format(file), reading))


def _reader(name: str, how: str) -> Callable[..., Iterator[Any]]:
    """The reader of a format that formats.toml names."""
    found: Callable[..., Iterator[Any]] = resolve_name(f"docnmt.corpus.{_FORMATS[name][how]}")
    return found


def _rows_of_file(file: InputFile, name: str, reading: Reading) -> Iterator[Row]:
    """The rows of a file that is read on its own."""
    if name in _ONE_FILE:
        return unique_documents(_reader(name, "both")(file, reading), file.name, reading)
    if reading.for_scoring and "versions" in _FORMATS[name]:
        return _reader(name, "versions")(file, reading)
    sides: Iterator[Side] = _reader(name, "side")(file, reading)
    if reading.for_scoring:
        return (row for side in sides for row in rows_of(None, [side], reading))
    return (row for side in sides for row in rows_of(side, [], reading))


def _rows(files: CorpusFiles, reading: Reading, stack: ExitStack) -> Iterator[Row]:
    if _is_release(files):
        return _reader(RELEASE, "folders")(files.source, files.target, files.encoding, reading)
    sides = _open_sides(files, stack)
    name = _format_of(files, sides)
    if name in _ONE_FILE:
        rows = _rows_of_file(sides[0], name, reading)
    elif told := files.document_ids or files.document_starts:
        marks = stack.enter_context(InputFile(told))
        read = _reader(name, "ids" if files.document_ids else "starts")
        rows = unique_documents(read(*sides, marks, reading), sides[0].name, reading)
    else:
        read = _reader("sentences" if name == "text" and reading.sentence_level else name, "pair")
        rows = read(*sides, reading)
    return translated_documents(rows) if "partly_translated" in _FORMATS[name] else rows


def _at_least_one(documents: Iterator[_T], name: str, why: str = _EMPTY) -> Iterator[_T]:
    empty = True
    for document in documents:
        empty = False
        yield document
    if empty:
        raise _no_documents(name, why)


def _no_documents(name: str, why: str = _EMPTY) -> DocnmtError:
    return DocnmtError(f"{name}: no documents found\n  {why}: see what was skipped.")


# ---- Which format it is, by how files begin ----


def detect_format(files: CorpusFiles) -> str:
    if _is_release(files):
        return RELEASE
    with ExitStack() as stack:
        return _format_of(files, _open_sides(files, stack))


def detect_source_format(path: str) -> str:
    """The format of a file with the source side; standard input is taken as plain text."""
    if path == STDIN:
        return "text"
    with InputFile(path) as file:
        return source_format(file)


def _is_release(files: CorpusFiles) -> bool:
    return bool(files.source and files.target) and Path(files.source).is_dir() and Path(files.target).is_dir()


def _open_sides(files: CorpusFiles, stack: ExitStack) -> list[InputFile]:
    paths = [files.path] if files.path else [files.source, files.target]
    if bool(files.path) == bool(files.source or files.target) or not all(paths):
        raise DocnmtError(
            f"a corpus needs one file or two, not {files}\n"
            "  Give path (one file with both sides), or source and target (one file per side)."
        )
    if files.document_ids and files.document_starts:
        raise DocnmtError(f"{files}: both document_ids and document_starts are given\n  Give only one of them.")
    return [stack.enter_context(InputFile(path, files.encoding)) for path in paths]


def _format_of(files: CorpusFiles, sides: Sequence[InputFile]) -> str:
    name = files.format
    _check_format(name, FORMATS, str(files))
    if not name:
        name = _one_file_format(sides[0]) if files.path else _two_file_format(sides)
    if name == RELEASE:  # two folders have been read by now
        raise DocnmtError(f"{files}: the format {name} needs two folders\n  Give source and target as folders.")
    if (name in _ONE_FILE) != bool(files.path):
        needed = "path (one file with both sides)" if name in _ONE_FILE else "source and target (one file per side)"
        raise DocnmtError(f"{files}: the format {name} needs {needed}\n  Give {needed}, or another format.")
    if (files.document_ids or files.document_starts) and name != "text":
        raise DocnmtError(f"{files}: a file of document ids goes with plain text, not with {name}\n  Leave it out.")
    return name


def _check_format(name: str, known: Sequence[str], where: str) -> None:
    if name and name not in known:
        raise DocnmtError(f"{where}: unknown format {name!r}\n  Use one of {', '.join(known)}.")


def _one_file_format(file: InputFile) -> str:
    head = file.head()
    if not head.strip():
        raise _no_documents(file.name)
    lines = _first_lines(head)
    if found := _markup_format(head) or _other_format(head):
        return found
    # Either separator may occur in a sentence, so the one that fits more lines decides.
    tabs, bars = (sum(line.count(separator) == 2 for line in lines) for separator in ("\t", BARS))
    if not tabs and not bars:
        if lines and all(line.count("\t") == 1 for line in lines):
            problem = "there are two columns, but TSV has three: document id, source, target"
            raise DocnmtError(f"{file.name}: {problem}\n  Add the document id of each pair as the first column.")
        raise DocnmtError(
            f"{file.name}: its format is not recognised\n"
            f"  Give the format, one of {', '.join(_ONE_FILE)}; for plain text, give a source and a target file."
        )
    return "tsv" if tabs >= bars else "bars"


def _two_file_format(files: Sequence[InputFile]) -> str:
    kinds = [kind_of(file.name.removesuffix(".gz")) for file in files]
    if kinds[0] not in _NOT_PAIRED and kinds[0] == kinds[1]:
        return "files"
    heads = [file.head() for file in files]
    markup = [_markup_format(head) for head in heads]
    if all(markup):
        return markup[0]
    # Otherwise tags, or lines with ids and tabs, would be read as sentences.
    for file, found in zip(files, markup, strict=True):
        if found:
            raise DocnmtError(
                f"{files[0].name} and {files[1].name}: only {file.name} is {found}\n"
                "  Give both sides in the same format; or, to read both as lines, give it: --format text."
            )
    for file, found in zip(files, map(_both_sides, heads), strict=True):
        if found:
            raise DocnmtError(
                f"{file.name}: this is {found}, which has both sides in one file, but there are two files\n"
                "  Give only one of them; or, if these are the two sides of a corpus, give the format: --format text."
            )
    return "lines" if all(SENTENCE_END in head for head in heads) else "text"


def _both_sides(head: str) -> str:
    """The format of a file that holds both sides: all of its first lines have three columns, or it is JSON or PO."""
    lines = _first_lines(head)
    for name, separator in (("tsv", "\t"), ("bars", BARS)):
        if lines and all(line.count(separator) == 2 for line in lines):
            return name
    return _other_format(head)


def source_format(file: InputFile) -> str:
    head = file.head()
    lines = _first_lines(head)
    if found := _markup_format(head) or _other_format(head):
        return found
    if _XML.match(head):
        raise DocnmtError(
            f"{file.name}: XML of an unknown kind\n"
            "  Export its texts as .po, .xliff or .json; or, to read each line as a sentence, give --format text."
        )
    if lines and all(BARS in line for line in lines):
        return "bars"
    # A tab or two in each line, after something: a document id. Plain text may hold a tab here and there.
    if lines and all(line.count("\t") in (1, 2) and line.partition("\t")[0].strip() for line in lines):
        return "tsv"
    return "lines" if SENTENCE_END in head else "text"


def scored_format(file: InputFile) -> str:
    """The format of references or translations."""
    name = source_format(file)
    lines = file.head().splitlines()
    # One bad row does not turn a table into plain text, where each row would be read as a translation.
    return "tsv" if name == "text" and 2 * sum("\t" in line for line in lines) > len(lines) else name


def _first_lines(head: str) -> list[str]:
    lines = head.split("\n")
    # The head may end in the middle of a line.
    complete = lines[:-1] if len(lines) > 1 else lines
    return [line for line in complete if line.strip()][:_SAMPLE]


def _markup_format(head: str) -> str:
    if not head.lstrip().startswith("<"):
        return ""
    found = _MARKUP.search(head)
    if found is None:
        return ""
    name = found[1].lower()
    if name == "doc":
        return "nist-sgml" if re.search(r"<seg\b", head, re.IGNORECASE) else "iwslt-tags"
    return _TAGS[name]


def _other_format(head: str) -> str:
    if re.match(r'\s*\{\s*"', head):
        return "jsonl"
    return "po" if _CATALOGUE.search(head) else ""
