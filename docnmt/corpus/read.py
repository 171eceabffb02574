"""Reading a corpus in whatever format it comes: formats are told by content, and read as a stream of documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from docnmt.base.errors import DocnmtError, OnBad, raise_bad
from docnmt.base.lines import MAX_CHARACTERS, STDIN, CorpusFiles, InputFile
from docnmt.corpus import ldc, tabular
from docnmt.corpus import memories as po
from docnmt.corpus import memories as tmx
from docnmt.corpus import memories as xliff
from docnmt.corpus import pairs as file_pairs
from docnmt.corpus import plain as text
from docnmt.corpus import sgml as markup
from docnmt.corpus.rows import Reading
from docnmt.document import Document, ParallelDocument

_T = TypeVar("_T")
_OneFileReader = Callable[[InputFile, Reading], Iterator[ParallelDocument]]
_TwoFileReader = Callable[[InputFile, InputFile, Reading], Iterator[ParallelDocument]]
_SourceReader = Callable[[InputFile, Reading], Iterator[Document]]

# Both sides in one file (`path`).
_ONE_FILE: dict[str, _OneFileReader] = {
    "tsv": tabular.read_tsv,
    "bars": tabular.read_bars,
    "jsonl": tabular.read_jsonl,
    "wmt-xml": markup.read_wmt_xml,
    "tmx": tmx.read_tmx,
    "xliff": xliff.read_xliff,
    "po": po.read_po,
}
# A file a side (`source` and `target`).
_TWO_FILES: dict[str, _TwoFileReader] = {
    "text": text.read_text,
    "sentences": text.read_sentences,
    "lines": text.read_document_lines,
    "nist-sgml": markup.read_sets,
    "iwslt-xml": markup.read_sets,
    "iwslt-tags": markup.read_talks,
    "files": file_pairs.read_file_pair,
}
RELEASE = "ldc"  # two folders
FORMATS: tuple[str, ...] = (*_TWO_FILES, *_ONE_FILE, RELEASE)


def _only_source(read: _OneFileReader) -> _SourceReader:
    def read_sources(file: InputFile, reading: Reading) -> Iterator[Document]:
        return (Document(document.id, document.source) for document in read(file, reading))

    return read_sources


_SOURCE: dict[str, _SourceReader] = {
    "text": text.read_text_source,
    "sentences": text.read_sentences_source,
    "lines": text.read_document_lines_source,
    "nist-sgml": markup.read_set_source,
    "iwslt-xml": markup.read_set_source,
    "iwslt-tags": markup.read_talks_source,
    "wmt-xml": markup.read_wmt_xml_source,
    "tsv": _only_source(tabular.read_tsv),
    "bars": _only_source(tabular.read_bars),
    "jsonl": _only_source(tabular.read_jsonl),
}

# How many lines at the beginning of a file must agree for it to count as columns.
_SAMPLE = 20
_CATALOGUE = re.compile(
    r'^msgid[ \t]+"[^\n]*"[ \t\r]*\n(?:"[^\n]*\n|msgid_plural[^\n]*\n)*msgstr(?:\[0\])?[ \t]+"', re.MULTILINE
)
_MARKUP = re.compile(r"<(tmx|xliff|dataset|mteval|srcset|refset|tstset|doc|url|talkid|keywords)\b", re.IGNORECASE)
_MARKUP_FORMATS = {
    "tmx": "tmx",
    "xliff": "xliff",
    "dataset": "wmt-xml",
    "mteval": "iwslt-xml",
    "srcset": "nist-sgml",
    "refset": "nist-sgml",
    "tstset": "nist-sgml",
    "url": "iwslt-tags",
    "talkid": "iwslt-tags",
    "keywords": "iwslt-tags",
}


def read_corpus(
    files: CorpusFiles,
    *,
    languages: tuple[str, str] = ("", ""),
    on_bad: OnBad = raise_bad,
    limit: int = MAX_CHARACTERS,
) -> Iterator[ParallelDocument]:
    """The documents of a corpus, one at a time."""
    return _read(files, Reading(languages, on_bad, limit))


def read_pairs(
    files: CorpusFiles,
    *,
    languages: tuple[str, str] = ("", ""),
    on_bad: OnBad = raise_bad,
    limit: int = MAX_CHARACTERS,
) -> Iterator[ParallelDocument]:
    """A sentence-level corpus: as `read_corpus`, but plain parallel files give each pair as a document of its own.

    So memory stays flat however long files without document marks are.
    """
    return _read(files, Reading(languages, on_bad, limit, pairs=True))


def read_source(
    path: str,
    *,
    format: str = "",
    language: str = "",
    on_bad: OnBad = raise_bad,
    limit: int = MAX_CHARACTERS,
) -> Iterator[Document]:
    """The source side alone, from a file or from standard input (`-`)."""
    _check_format(format, tuple(_SOURCE), path)
    reading = Reading((language, ""), on_bad, limit, source_only=True)
    with InputFile(path) as file:
        name = format or source_format(file)
        if name not in _SOURCE:
            raise DocnmtError(f"{path}: {name} is not read for its source side alone\n  Use one of {_listed(_SOURCE)}.")
        yield from _at_least_one(_SOURCE[name](file, reading), path)


def detect_source_format(path: str) -> str:
    """The format of a file with the source side; standard input is taken as plain text."""
    if path == STDIN:
        return "text"
    with InputFile(path) as file:
        return source_format(file)


def detect_format(files: CorpusFiles) -> str:
    """The format of a corpus, by how its files begin."""
    if ldc.is_release(files.source, files.target):
        return RELEASE
    with ExitStack() as stack:
        return _format_of(files, _open_sides(files, stack))


def _read(files: CorpusFiles, reading: Reading) -> Iterator[ParallelDocument]:
    with ExitStack() as stack:
        if files.swap:
            # Languages are then met the other way round, too.
            reading = replace(reading, languages=(reading.languages[1], reading.languages[0]))
        if ldc.is_release(files.source, files.target):
            documents = ldc.read_release(files.source, files.target, files.encoding, reading)
        else:
            sides = _open_sides(files, stack)
            documents = _documents(files, _format_of(files, sides), sides, reading, stack)
        if files.swap:
            documents = (ParallelDocument(d.id, d.target, d.source) for d in documents)
        if files.only:
            prefixes = tuple(prefix.strip() for prefix in files.only.split(",") if prefix.strip())
            documents = (d for d in documents if d.id.startswith(prefixes))
        where = f"{files} (only = {files.only!r})" if files.only else str(files)
        yield from _at_least_one(documents, where)


def _documents(
    files: CorpusFiles, name: str, sides: Sequence[InputFile], reading: Reading, stack: ExitStack
) -> Iterator[ParallelDocument]:
    if name in _ONE_FILE:
        return _ONE_FILE[name](sides[0], reading)
    if files.document_ids:
        return text.read_with_ids(sides[0], sides[1], stack.enter_context(InputFile(files.document_ids)), reading)
    if files.document_starts:
        return text.read_with_starts(sides[0], sides[1], stack.enter_context(InputFile(files.document_starts)), reading)
    if name == "text" and reading.pairs:
        name = "sentences"
    return _TWO_FILES[name](sides[0], sides[1], reading)


def _at_least_one(documents: Iterator[_T], name: str) -> Iterator[_T]:
    empty = True
    for document in documents:
        empty = False
        yield document
    if empty:
        raise _no_documents(name)


def _no_documents(name: str) -> DocnmtError:
    return DocnmtError(
        f"{name}: no documents\n  The corpus is empty, or nothing in it could be used: see what was skipped."
    )


def _open_sides(files: CorpusFiles, stack: ExitStack) -> list[InputFile]:
    paths = [files.path] if files.path else [files.source, files.target]
    if bool(files.path) == bool(files.source or files.target) or not all(paths):
        raise DocnmtError(
            f"a corpus needs one file or two, not {files}\n"
            "  Name path (one file with both sides), or source and target (a file a side)."
        )
    if files.document_ids and files.document_starts:
        raise DocnmtError(f"{files}: both document_ids and document_starts\n  Name one of them.")
    return [stack.enter_context(InputFile(path, files.encoding)) for path in paths]


def _format_of(files: CorpusFiles, sides: Sequence[InputFile]) -> str:
    name = files.format
    _check_format(name, FORMATS, str(files))
    if not name:
        name = _one_file_format(sides[0]) if files.path else _two_file_format(sides)
    if (name in _ONE_FILE) != bool(files.path):
        needed = "path (one file with both sides)" if name in _ONE_FILE else "source and target (a file a side)"
        raise DocnmtError(f"{files}: is {name}, which is read from {needed}\n  Name {needed}, or another format.")
    if (files.document_ids or files.document_starts) and name != "text":
        raise DocnmtError(
            f"{files}: document ids from another file go with plain text, not with {name}\n  Leave them out."
        )
    return name


def _check_format(name: str, known: Sequence[str], where: str) -> None:
    if name and name not in known:
        raise DocnmtError(f"{where}: unknown format {name!r}\n  Use one of {_listed(known)}.")


def _listed(names: Sequence[str] | dict[str, _SourceReader]) -> str:
    return ", ".join(names)


def _one_file_format(file: InputFile) -> str:
    head = file.head()
    if not head.strip():
        raise _no_documents(file.name)
    lines = _first_lines(head)
    if found := _markup_format(head) or _other_format(head):
        return found
    # Either separator may stand in a sentence by chance, so the one that fits more lines tells.
    tabs, bars = (sum(line.count(separator) == 2 for line in lines) for separator in ("\t", tabular.BARS))
    if not tabs and not bars:
        if lines and all(line.count("\t") == 1 for line in lines):
            problem = "two columns where TSV has three: document id, source, target"
            raise DocnmtError(f"{file.name}: {problem}\n  Add the document of each pair as its first column.")
        raise DocnmtError(
            f"{file.name}: cannot tell its format\n"
            f"  Name the format, one of {', '.join(_ONE_FILE)}; or, for plain text, name source and target files."
        )
    return "tsv" if tabs >= bars else "bars"


def _two_file_format(files: Sequence[InputFile]) -> str:
    kinds = [file_pairs.paired_kind(file.name) for file in files]
    if kinds[0] and kinds[0] == kinds[1]:
        return "files"
    heads = [file.head() for file in files]
    if found := _markup_format(heads[0]):
        return found
    both = [_both_sides(head) for head in heads]
    if both[0] and both[0] == both[1]:  # whole lines with ids and tabs would pass for sentences
        raise DocnmtError(
            f"{files[0].name} and {files[1].name}: are {both[0]}, which has both sides in one file\n"
            "  Name one of them; or, if these are the two sides of a corpus, name the format: --format text."
        )
    return "lines" if all(text.SENTENCE_END in head for head in heads) else "text"


def _both_sides(head: str) -> str:
    """The format of a file that has three columns in each of its first lines, or is otherwise one with both sides."""
    lines = _first_lines(head)
    for name, separator in (("tsv", "\t"), ("bars", tabular.BARS)):
        if lines and all(line.count(separator) == 2 for line in lines):
            return name
    return _other_format(head)


def source_format(file: InputFile) -> str:
    head = file.head()
    lines = _first_lines(head)
    if found := _markup_format(head) or _other_format(head):
        return found
    if lines and all(tabular.BARS in line for line in lines):
        return "bars"
    # A tab or two in each line, after something: a document id. Plain text may hold a tab here and there.
    if lines and all(line.count("\t") in (1, 2) and line.partition("\t")[0].strip() for line in lines):
        return "tsv"
    return "lines" if text.SENTENCE_END in head else "text"


def _first_lines(head: str) -> list[str]:
    lines = head.split("\n")
    # The last line may be cut off by the end of the head.
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
    return _MARKUP_FORMATS[name]


def _other_format(head: str) -> str:
    if re.match(r'\s*\{\s*"', head):
        return "jsonl"
    return "po" if _CATALOGUE.search(head) else ""
