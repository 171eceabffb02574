"""Reading and writing take work by the size of a file, whatever is in it; and memory within limits that are stated."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re._parser import SubPattern, parse  # type: ignore[import-not-found]
from types import FrameType
from typing import Any

import pytest

import docnmt.documents
import docnmt.text
from docnmt.base.errors import DocnmtError
from docnmt.documents import read_document
from docnmt.documents.html_tokens import attributes, match, tokens
from docnmt.documents.segment import MAX_IN_PARAGRAPH, Room, Segment
from docnmt.documents.translate import FileSentences
from tests.heavy_files import HOSTILE, ORDINARY
from tests.office_files import docx, odt, zipped

ROOT = Path(__file__).parents[3]
SMALL = 1_600  # bytes: a square shows at twice as much, and the many shapes take no long time
CASES = [(kind, shape) for kind, shapes in HOSTILE.items() for shape in shapes]


# Methods of texts that go through all of a text.
THROUGH = frozenset(
    ["casefold", "count", "decode", "encode", "isascii", "lower", "replace", "rstrip", "split", "splitlines", "strip"]
)


class Steps:
    """Counts lines that are run and calls of what is written in C; those that go through all of a text count as one
    for every 16 characters of it."""

    def __init__(self) -> None:
        self.count = 0

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += 1
        return self._line

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self.count += 1
            text = getattr(argument, "__self__", None)
            if isinstance(text, str | bytes) and argument.__name__ in THROUGH:
                self.count += len(text) // 16

    def __enter__(self) -> Steps:
        self._before = sys.gettrace(), sys.getprofile()
        sys.settrace(self._line)
        sys.setprofile(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before[0])
        sys.setprofile(self._before[1])


def steps(data: bytes, name: str) -> int:
    """Of reading it into sentences, and of writing it with all of them changed."""
    with Steps() as counted:
        try:
            file = FileSentences(data, name, ("fr", "en"))
            segments = [replace(s, text="x" + s.text) if s.translate else s for s in file.file.segments]
            file.file.write(segments)
        except DocnmtError:
            pass
    return counted.count


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_twice_the_size_is_twice_the_work(kind: str, shape: str) -> None:
    make = HOSTILE[kind][shape]
    steps(make(500), f"a.{kind}")  # what is imported and compiled the first time
    once, twice = (steps(make(size), f"a.{kind}") for size in (SMALL, 2 * SMALL))
    assert twice < 2.6 * once + 2_000, (once, twice)


# ---- limits ----


def test_a_small_archive_that_unpacks_to_much() -> None:
    """43 KB that took 1.3 GB once."""
    paragraph = "<w:p><w:r><w:t>a</w:t></w:r></w:p>"
    bomb = docx(paragraph * 200_000)
    assert len(bomb) < 50_000
    with pytest.raises(DocnmtError, match="would unpack to"):
        read_document(bomb, "a.docx")


def test_text_in_an_archive_has_a_limit_and_pictures_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docnmt.documents.archive.MAX_TEXT", 20_000)
    data = odt("<text:p>Un mot.</text:p>")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        files: dict[str, bytes | str] = {name: archive.read(name) for name in archive.namelist()}
    with_picture = zipped({**files, "Pictures/a.png": bytes(range(256)) * 4_000})
    assert [segment.text for segment in read_document(with_picture, "a.odt").segments] == ["Un mot."]
    with pytest.raises(DocnmtError, match="its text unpacks to more than"):
        read_document(odt("<text:p>Un mot.</text:p>" * 1_000), "a.odt")


@pytest.mark.parametrize("kind", ["docx", "odt", "xliff", "html", "md", "srt", "po", "json"])
def test_a_paragraph_of_too_many_pieces_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("segment", "xml", "html", "markdown_inline", "subtitles", "messages"):
        monkeypatch.setattr(f"docnmt.documents.{module}.MAX_IN_PARAGRAPH", 500)
    shapes = {"docx": "looks", "odt": "spans", "xliff": "inline", "html": "pairs", "md": "stars"}
    with pytest.raises(
        DocnmtError, match=r"more than 500 (tags|tags or lines|elements) in (one|the) (paragraph|cue).*\n  Split"
    ):
        read_document(HOSTILE[kind][shapes.get(kind, "tags")](60_000), f"a.{kind}")


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_files_of_tiny_pieces_are_refused_while_they_are_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docnmt.documents.segment._ANYWAY", 100)
    shape = {"txt": "letters", "md": "headings", "html": "paragraphs", "epub": "paragraphs", "docx": "paragraphs"}
    shape |= {"odt": "paragraphs", "xliff": "units", "po": "messages", "json": "strings", "srt": "cues", "vtt": "cues"}
    monkeypatch.setattr("docnmt.documents.segment._BYTES", 200)
    with pytest.raises(DocnmtError, match="too many sentences, tags or messages for a file of this size"):
        FileSentences(HOSTILE[kind][shape[kind]](60_000), f"a.{kind}", ("fr", "en"))
    assert FileSentences(ORDINARY[kind](3_000), f"a.{kind}", ("fr", "en"))


HELD = {  # megabytes that a file of 600 KB took once
    "md": {
        "stars and lines": 400,
        "cells": 49,
        "rows": 100,
        "lazy lines": 100,
        "addresses": 250,
        "columns": 80,
        "comments": 28,
    },
    "po": {"spaces": 140, "strings": 31},
    "json": {"tags": 51, "numbers": 22},
    "txt": {"letters": 54},
    "html": {"cells": 27},
    "srt": {"lines": 42, "dialogue": 45, "blank lines": 25},
}
READ = """\
import sys
from docnmt.base.errors import DocnmtError
from docnmt.documents.translate import FileSentences
from tests.heavy_files import HOSTILE, ORDINARY

def megabytes(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) >> 10

kind, shape = sys.argv[1:]
FileSentences(ORDINARY[kind](1000), f"a.{kind}", ("fr", "en"))
data = HOSTILE[kind][shape](600_000)
before = megabytes("VmRSS")
try:
    FileSentences(data, f"a.{kind}", ("fr", "en"))
except DocnmtError:
    pass
print(megabytes("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize(("kind", "shape"), [(kind, shape) for kind, shapes in HELD.items() for shape in shapes])
def test_little_is_held_while_a_file_is_read(kind: str, shape: str) -> None:
    """In a process of its own: what the engine of regular expressions takes is no memory of Python's."""
    command = [sys.executable, "-c", READ, kind, shape]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < min(40 if kind == "md" else 14, 0.7 * HELD[kind][shape])


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Those of the readers, by their names."""
    for package in (docnmt.documents, docnmt.text):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                several = value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else (value,)
                yield from ((f"{found.name}.{name}", one) for one in several if isinstance(one, re.Pattern))


def takes_back(parsed: Iterable[Any]) -> bool:
    """Whether it repeats more than a character without end and remembers each turn, to take it back: a possessive
    quantifier (`*+`) remembers none."""
    for operation, argument in parsed:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            _, most, repeated = argument
            single = len(repeated) == 1 and repeated[0][0] in (sre.IN, sre.LITERAL, sre.NOT_LITERAL, sre.ANY)
            if most == sre.MAXREPEAT and not single:
                return True
        inside = argument if isinstance(argument, tuple | list) else [argument]
        branches = [part for parts in inside if isinstance(parts, list) for part in parts]
        if any(takes_back(part) for part in (*inside, *branches) if isinstance(part, SubPattern)):
            return True
    return False


def test_no_pattern_remembers_every_turn_of_a_repetition() -> None:
    """A string of 1 MB took 240 MB in one that did."""
    assert takes_back(parse(r"a(?:b|(?:[^c]|\\.)*)")) and not takes_back(parse(r"a(?:b|(?:[^c]|\\.)*+)*+[^d]*"))
    found = list(patterns())
    assert len(found) > 80
    assert [name for name, pattern in found if takes_back(parse(pattern.pattern, pattern.flags))] == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("txt", ["emoji"]),
        ("html", ["dense", "names", "closing names", "attribute names"]),
        ("json", ["emoji", "keys of numbers"]),
        ("epub", ["pages"]),
        ("docx", ["attribute names"]),
    ],
)
def test_the_densest_files_take_at_most_12_times_their_size(kind: str, shapes: list[str], tmp_path: Path) -> None:
    """All of them took more once. Of two sizes the difference counts, without what any file takes."""
    for shape in shapes:
        taken = []
        for size in (1_000_000, 2_000_000):
            (tmp_path / "file").write_bytes(HOSTILE[kind][shape](size))
            command = [sys.executable, "benchmarks/reading.py", "--one", kind, str(tmp_path / "file")]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            taken.append(json.loads(done.stdout))
        more = taken[1]["memory"] - taken[0]["memory"]
        assert more < 12 * (taken[1]["bytes"] - taken[0]["bytes"]), shape


def test_the_pages_of_a_book_have_one_room_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docnmt.documents.segment._ANYWAY", 5_000)
    make = HOSTILE["epub"]["pages"]
    assert len(read_document(make(30_000), "a.epub").segments) == 1 + 4_000
    with pytest.raises(DocnmtError, match=r"^a\.epub: too many sentences"):
        read_document(make(100_000), "a.epub")


@pytest.mark.parametrize(("kind", "shape"), [("html", "names"), ("docx", "names"), ("docx", "attribute names")])
def test_files_of_nothing_but_names_are_refused(kind: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("html_tokens", "xml"):
        monkeypatch.setattr(f"docnmt.documents.{module}.MAX_NAMES", 500)
    with pytest.raises(DocnmtError, match=r"have more than 500 names\n  No (page|document) needs that many"):
        read_document(HOSTILE[kind][shape](10_000), f"a.{kind}")


def test_names_that_were_never_opened_and_attributes_that_nobody_reads_are_not_kept() -> None:
    found = match(tokens("</x1></x2><p a1=b a2=c title='Un mot'>", "a.html", xml=False), "a.html", xml=False)
    assert [list(numbers) for numbers in found] == [[0, 0, 3], [0, 0, 0]]
    (tag,) = tokens("<p a1=b a2=c title='Un mot'>", "a.html", xml=False)
    assert list(attributes("<p a1=b a2=c title='Un mot'>", tag, {"title", "alt"})) == ["title"]


def test_a_tag_that_does_not_end_is_refused_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docnmt.documents.xml._MAX_TAG", 100_000)
    with pytest.raises(DocnmtError, match="line 2: a tag or comment of more than"):
        read_document(HOSTILE["docx"]["attribute names"](300_000), "a.docx")


def test_sentences_are_made_when_they_are_asked_for() -> None:
    """Held as objects, they took more than all else."""
    file = FileSentences(b"Un mot. Deux mots.\n\nTrois.\n", "a.txt", ("fr", "en"))
    assert [sentence.text for sentence in file.sentences] == ["Un mot.", "Deux mots.", "Trois."]
    first = file.sentences[0]
    assert file.sentences[-1].text == "Trois." and file.sentences[0] == first and file.sentences[0] is not first
    with pytest.raises(IndexError):
        file.sentences[3]


def test_a_paragraph_of_too_many_sentences_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docnmt.documents.segment._ANYWAY", 100)
    with pytest.raises(DocnmtError, match=r"a\.txt: too many sentences"):
        FileSentences(b"Un. " * 200, "a.txt", ("fr", "en"))


def test_room_counts_marks_and_characters() -> None:
    room = Room("a.x")
    room.add(Segment("a" * 1_000_000))
    with pytest.raises(DocnmtError, match=r"a\.x: more than 1,000,000 characters in the paragraph 'aaa"):
        room.add(Segment("a" * 1_000_001))
    assert MAX_IN_PARAGRAPH == 50_000


def test_deep_lists_of_markdown_are_text_below_a_hundred() -> None:
    file = read_document(b"- " * 150 + b"mot\n", "a.md")
    (segment,) = file.segments
    assert segment.text == "- " * 50 + "mot"
    assert file.write(file.segments) == b"- " * 150 + b"mot\n"
