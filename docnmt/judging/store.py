"""What is judged, and where judgements are kept: one SQLite file with the sample, the judges and all their judgements.

A judgement is on disk before the judge is shown the next sentence. Nothing is ever overwritten: whoever
changes their mind adds a row, and the last one counts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.corpus.read import read_source
from docnmt.evaluation.outputs import Output, References, read_outputs

# ---- What is judged: whole documents, drawn by a seed, and on which side each judge sees each system ----

_REMEDY = "Translate this source with both systems, or give the source that they translated."


@dataclass(frozen=True)
class JudgedDocument:
    """A document and what the two systems, in the order of the command line, made of it."""

    id: str
    source: tuple[str, ...]
    outputs: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Place:
    """Where a sentence stands: the number of its document in the sample and its own in the document, both from 0."""

    document: int
    position: int


@dataclass(frozen=True)
class Sample:
    """The documents that judges see, in this order."""

    systems: tuple[str, str]
    seed: int
    documents: tuple[JudgedDocument, ...]

    @cached_property
    def sentences(self) -> tuple[Place, ...]:
        return tuple(Place(k, i) for k, document in enumerate(self.documents) for i in range(len(document.source)))

    @cached_property
    def questions(self) -> tuple[Place, ...]:
        """The sentences that judges are asked about: all but those that both systems translate by the same words."""
        return tuple(place for place in self.sentences if not self.is_same(place))

    def texts(self, place: Place) -> tuple[str, str, str]:
        """A sentence and its two translations."""
        document = self.documents[place.document]
        one, other = document.outputs
        return document.source[place.position], one[place.position], other[place.position]

    def is_same(self, place: Place) -> bool:
        _, one, other = self.texts(place)
        return one.split() == other.split()


def read_sample(source: str, systems: tuple[str, str], documents: int = 20, seed: int = 1) -> Sample:
    """Draws whole documents of a source file and of its two translations; all, if there are no more
    than asked for.

    With the same seed a larger sample begins with the smaller one.
    """
    if documents < 1:
        raise DocnmtError(f"--documents {documents}: there is nothing to judge\n  Give 1 or more.")
    if seed < 0:
        raise DocnmtError(f"--seed {seed}: a seed cannot be negative\n  Give 0 or more.")
    test_set = _test_set(source)
    assert test_set.sources is not None
    outputs = _outputs(systems, test_set)
    drawn = []
    for number in np.random.default_rng(seed).permutation(len(test_set.ids))[:documents]:
        begin, end = (int(np.searchsorted(test_set.documents, number, side)) for side in ("left", "right"))
        one, other = (output.sentences[begin:end] for output in outputs)
        drawn.append(JudgedDocument(test_set.ids[number], test_set.sources[begin:end], (one, other)))
    sample = Sample((outputs[0].name, outputs[1].name), seed, tuple(drawn))
    if not sample.questions:
        raise DocnmtError(
            f"{systems[0]} and {systems[1]} have the same translations of all {len(sample.sentences):,} sentences, "
            "so there is nothing to judge\n  Give two systems that differ, or draw more --documents."
        )
    return sample


def _test_set(path: str) -> References:
    """The documents of the source, without references."""
    found = list(read_source(path))
    test_set = References(
        ids=tuple(document.id for document in found),
        documents=np.repeat(np.arange(len(found)), [len(document) for document in found]),
        texts=(),
        sources=tuple(sentence for document in found for sentence in document.sentences),
    ).without_gaps()
    if not len(test_set):
        raise DocnmtError(f"{path}: contains no sentences\n  Choose another file.")
    return test_set


def _outputs(paths: tuple[str, str], test_set: References) -> list[Output]:
    try:
        return read_outputs(paths, test_set)
    except BadInput as error:
        if error.kind != "unequal sides":
            raise
        problem = error.problem.replace("in the references", "in the source")
        raise BadInput(
            error.kind, problem, _REMEDY, file=error.file, document=error.document, line=error.line
        ) from None


def first_systems(seed: int, judge: str, documents: int) -> tuple[int, ...]:
    """For each document, which system (0 or 1) a judge sees first.

    A document's translations keep their places, so that each can be read as a text. Each system is
    first in half of the documents, so that a liking for one place favours neither.
    """
    letters = np.frombuffer(hashlib.sha256(judge.encode()).digest(), dtype="<u4")
    random = np.random.default_rng([seed, *map(int, letters)])
    halves = (np.arange(documents) + random.integers(2)) % 2
    return tuple(int(system) for system in random.permutation(halves))


# ---- Where judgements are kept ----

CHOICES = FIRST, EQUAL, SECOND = "first", "equal", "second"  # which of two translations, as they stood, is better
MAX_NAME = 60

_MARK = 0x646F634A  # tells our files from other databases: "docJ"
_SCHEMA = """
CREATE TABLE study (system_a TEXT NOT NULL, system_b TEXT NOT NULL, seed INTEGER NOT NULL, since TEXT NOT NULL);
CREATE TABLE sentence (
    document INTEGER NOT NULL, position INTEGER NOT NULL, document_id TEXT NOT NULL,
    source TEXT NOT NULL, translation_a TEXT NOT NULL, translation_b TEXT NOT NULL,
    PRIMARY KEY (document, position)
);
CREATE TABLE judge (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, since TEXT NOT NULL, secret TEXT NOT NULL DEFAULT ''
);
CREATE TABLE judgement (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    judge TEXT NOT NULL REFERENCES judge (key),
    document INTEGER NOT NULL, position INTEGER NOT NULL,
    first_system INTEGER NOT NULL CHECK (first_system IN (0, 1)),
    choice TEXT NOT NULL CHECK (choice IN ('first', 'equal', 'second')),
    time TEXT NOT NULL,
    FOREIGN KEY (document, position) REFERENCES sentence (document, position)
);
CREATE INDEX judgement_of ON judgement (judge, document, position);
"""


@dataclass(frozen=True)
class Judgement:
    """What a judge said last about a sentence."""

    judge: str
    place: Place
    first_system: int  # 0 or 1: the one that stood first
    choice: str
    time: str
    revisions: int

    @property
    def better(self) -> int | None:
        """The system found better; None for equal."""
        if self.choice == EQUAL:
            return None
        return self.first_system if self.choice == FIRST else 1 - self.first_system


class Store:
    """An open file of judgements; may be used from several threads, and by several processes at once."""

    def __init__(self, path: str | Path, sample: Sample | None = None):
        """Opens a file that is there; given a sample, goes on with the file of this sample or makes it."""
        if sample is None and not Path(path).is_file():
            raise DocnmtError(f"{path}: no such file\n  Give the file that was the --store of `docnmt judge`.")
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            self._check_ours(sample)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut, too
            self._database.execute("PRAGMA foreign_keys = ON")
            if sample is not None:
                with self._transaction() as database:
                    if _is_empty(database):
                        _write_sample(database, sample)
                    elif "secret" not in [row[1] for row in database.execute("PRAGMA table_info(judge)")]:
                        database.execute("ALTER TABLE judge ADD COLUMN secret TEXT NOT NULL DEFAULT ''")
            self.sample = self._read_sample()
            if sample is not None and (self.sample.seed, self.sample.documents) != (sample.seed, sample.documents):
                raise DocnmtError(
                    f"{path}: contains judgements of other texts, or of another sample\n"
                    "  Give the files, --documents and --seed it was started with, or choose another --store."
                )
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise DocnmtError(f"{path}: {error}\n  Give the file that was the --store of `docnmt judge`.") from None
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._database.close()

    # ---- what judges do ----

    def enter(self, name: str) -> tuple[str, bool]:
        """Lets a judge begin or go on: the name as it was written the first time, and whether this was the first."""
        clean = clean_name(name)
        with self._transaction() as database:
            row = judge_key(clean), clean, _now(), secrets.token_urlsafe(16)
            new = database.execute("INSERT OR IGNORE INTO judge VALUES (?, ?, ?, ?)", row).rowcount
            back = database.execute("UPDATE judge SET secret = ? WHERE key = ? AND secret = ''", (row[3], row[0]))
            (first_written,) = database.execute("SELECT name FROM judge WHERE key = ?", (judge_key(clean),)).fetchone()
        return str(first_written), bool(new or back.rowcount)

    def secret(self, name: str) -> str | None:
        """What only this judge knows; None for one who is not known, "" for one of an earlier
        version who has not been back yet."""
        rows = self._select("SELECT secret FROM judge WHERE key = ?", judge_key(name))
        return str(rows[0][0]) if rows else None

    def secrets(self) -> dict[str, str]:
        """Of all judges, by name, in the order in which they came."""
        return dict(self._select("SELECT name, secret FROM judge WHERE secret != '' ORDER BY rowid"))

    def first_systems(self, name: str) -> tuple[int, ...]:
        return first_systems(self.sample.seed, judge_key(name), len(self.sample.documents))

    def judge(self, name: str, place: Place, choice: str) -> None:
        """Returns once the judgement is on disk."""
        first = self.first_systems(name)[place.document]
        row = (judge_key(name), place.document, place.position, first, choice, _now())
        with self._transaction() as database:
            database.execute("INSERT INTO judgement VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)

    def choices(self, name: str) -> dict[Place, str]:
        """What a judge has said so far, by sentence."""
        rows = self._select(
            "SELECT document, position, choice FROM judgement WHERE judge = ? ORDER BY number", judge_key(name)
        )
        return {Place(document, position): choice for document, position, choice in rows}

    # ---- what came of it ----

    def judgements(self) -> list[Judgement]:
        """Those in force, judge by judge in the order in which they came, sentences in theirs."""
        # SQLite gives the other columns of the row that has the maximum.
        rows = self._select(
            "SELECT name, document, position, first_system, choice, time, count(*) - 1, max(number) "
            "FROM judgement JOIN judge ON judge = key GROUP BY judge, document, position "
            "ORDER BY judge.rowid, document, position"
        )
        return [Judgement(name, Place(k, i), first, choice, time, n) for name, k, i, first, choice, time, n, _ in rows]

    # ---- the database ----

    def _check_ours(self, sample: Sample | None) -> None:
        """Before anything is written: a file named by mistake stays as it is."""
        (mark,) = self._database.execute("PRAGMA application_id").fetchone()
        if mark != _MARK and not (sample is not None and _is_empty(self._database)):
            raise sqlite3.DatabaseError("not a file of judgements")

    def _select(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def _read_sample(self) -> Sample:
        ((name_a, name_b, seed),) = self._select("SELECT system_a, system_b, seed FROM study")
        rows = self._select(
            "SELECT document, document_id, source, translation_a, translation_b FROM sentence "
            "ORDER BY document, position"
        )
        documents = []
        for _, sentences in groupby(rows, key=lambda row: row[0]):
            _, ids, source, one, other = zip(*sentences, strict=True)
            documents.append(JudgedDocument(ids[0], source, (one, other)))
        return Sample((name_a, name_b), seed, tuple(documents))


def _is_empty(database: sqlite3.Connection) -> bool:
    """As a new file is, and that of a process killed before it had written the sample."""
    return database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _write_sample(database: sqlite3.Connection, sample: Sample) -> None:
    for statement in _SCHEMA.split(";"):
        database.execute(statement)
    database.execute("INSERT INTO study VALUES (?, ?, ?, ?)", (*sample.systems, sample.seed, _now()))
    for place in sample.sentences:
        row = (place.document, place.position, sample.documents[place.document].id, *sample.texts(place))
        database.execute("INSERT INTO sentence VALUES (?, ?, ?, ?, ?, ?)", row)
    database.execute(f"PRAGMA application_id = {_MARK}")


def clean_name(text: str) -> str:
    """A judge's name without needless spaces."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    # Anything else at the beginning might be taken for a formula by a spreadsheet that reads the
    # CSV.
    if (
        not name
        or not name[0].isalnum()
        or len(name) > MAX_NAME
        or re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", name)
    ):
        raise DocnmtError(
            f"{name[:MAX_NAME]!r} cannot be a judge's name\n"
            f"  Begin with a letter or a digit, and write at most {MAX_NAME} characters."
        )
    return name


def judge_key(name: str) -> str:
    """What names have in common that are the same judge's: all but capitals, and characters that nobody sees."""
    return "".join(each for each in clean_name(name).casefold() if unicodedata.category(each) != "Cf")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
