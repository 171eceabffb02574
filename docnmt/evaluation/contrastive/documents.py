"""The documents a contrastive set was taken from: where its contexts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, CorpusFiles, Flaw, InputFile, Line
from docnmt.corpus.read import read_corpus

KEPT = 20  # sentences of context on either side: more than any antecedent needs, far less than a film has


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some sentences of a document; `first` is the position of the first of them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    first: int


@dataclass(frozen=True)
class _Text:
    """A document whose lines may be flawed: only those that are needed have to be good."""

    id: str
    source: Sequence[Line]
    target: Sequence[Line]
    files: tuple[str, str]

    def excerpt(self, segment: int) -> Excerpt:
        first, end = max(0, segment - KEPT - 1), segment + KEPT + 2
        source, target = (
            tuple(legible(line, file, number, self.id) for number, line in enumerate(lines[first:end], first + 1))
            for lines, file in zip((self.source, self.target), self.files, strict=True)
        )
        return Excerpt(source, target, first)


def legible(line: Line, file: str, number: int, document: str = "") -> str:
    """A line with spaces for its control characters: subtitles have some, and nobody mends a public set."""
    if not isinstance(line, Flaw):
        return line
    if line.kind != "control character":
        raise BadInput(line.kind, line.problem, line.remedy, file=file, document=document, line=number)
    return line.text.replace("\ufffd", " ")


def excerpts(
    where: Sequence[str], wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]
) -> dict[tuple[str, int], Excerpt]:
    """What stands around segments, given as document id -> segment numbers; by (id, number).

    `where` is a folder with a file a document and language (ID.en, ID.de, in whatever sub-folder), or a corpus in one
    file or two. Documents are held one at a time.
    """
    if len(where) == 1 and Path(where[0]).is_dir():
        texts = _from_folder(Path(where[0]), wanted, languages)
    else:
        texts = _from_corpus(where, wanted, languages)
    found = {}
    for text in texts:
        for segment in wanted[text.id]:
            found[text.id, segment] = text.excerpt(segment)
    for name, segments in wanted.items():
        if (name, segments[0]) not in found:
            raise DocnmtError(f"{', '.join(where)}: no document {name}\n  Give the documents the set was made from.")
    return found


def _from_folder(folder: Path, wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]) -> Iterator[_Text]:
    paths = {path.name: path for path in folder.rglob("*") if path.is_file()}
    for name in wanted:
        for stem in _names(name):
            sides = [paths.get(f"{stem}.{language}") for language in languages]
            if all(sides):
                yield _read(name, str(sides[0]), str(sides[1]))
                break
        else:
            raise DocnmtError(
                f"{folder}: no files {_names(name)[-1]}.{languages[0]} and .{languages[1]}, for document {name}\n"
                "  Lay the documents out as the set's own script does, with the model's languages as endings."
            )


def _read(name: str, source: str, target: str) -> _Text:
    sides: list[list[Line]] = []
    for path in (source, target):
        with InputFile(path) as file:
            sides.append(list(file.lines(MAX_CHARACTERS)))
    if len(sides[0]) != len(sides[1]):
        raise DocnmtError(
            f"{source} and {target}: {len(sides[0]):,} and {len(sides[1]):,} lines\n"
            "  Both sides of a document have a line for each segment."
        )
    return _Text(name, sides[0], sides[1], (source, target))


def _from_corpus(
    where: Sequence[str], wanted: Mapping[str, Sequence[int]], languages: tuple[str, str]
) -> Iterator[_Text]:
    if len(where) > 2:
        raise DocnmtError("--context-from takes a folder, or a corpus of one file or two\n  Name one or two.")
    files = CorpusFiles(path=where[0]) if len(where) == 1 else CorpusFiles(source=where[0], target=where[1])
    known = {other: name for name in wanted for other in reversed(_names(name))}
    for document in read_corpus(files, languages=languages):
        if document.id in known:
            yield _Text(known[document.id], document.source, document.target, (str(files), str(files)))


def _names(name: str) -> list[str]:
    """A document's id as the set has it, and without the ending that ContraPro leaves on it (`_.de`)."""
    return list(dict.fromkeys((name, name.rpartition(".")[0] or name)))
