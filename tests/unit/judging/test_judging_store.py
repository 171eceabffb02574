"""Judgements are kept: through crashes, from several judges at once, with every change of mind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.judging.store import Place, Store
from tests.judging_samples import make_sample

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "j.sqlite", make_sample())
    yield made
    made.close()


def test_what_was_said_is_there_when_the_file_is_opened_again(store, tmp_path):
    store.enter("Anna")
    store.judge("Anna", Place(0, 1), "first")
    again = Store(tmp_path / "j.sqlite")
    assert again.sample == make_sample()
    assert again.choices("Anna") == {Place(0, 1): "first"}
    again.close()


def test_the_last_word_counts_and_the_others_stay(store, tmp_path):
    store.enter("Anna")
    for choice in ("first", "equal", "second"):
        store.judge("Anna", Place(0, 0), choice)
    store.judge("Anna", Place(0, 1), "equal")
    assert store.choices("Anna") == {Place(0, 0): "second", Place(0, 1): "equal"}
    changed, kept = store.judgements()
    assert (changed.choice, changed.revisions, kept.revisions) == ("second", 2, 0)
    assert datetime.fromisoformat(changed.time) <= datetime.fromisoformat(kept.time)
    rows = (
        sqlite3.connect(tmp_path / "j.sqlite").execute("SELECT choice, time FROM judgement ORDER BY number").fetchall()
    )
    assert [choice for choice, _ in rows] == ["first", "equal", "second", "equal"]
    assert all(datetime.fromisoformat(time).tzinfo for _, time in rows)


def test_the_better_system_is_the_one_that_stood_there(store):
    firsts = store.first_systems(store.enter("Anna")[0])
    assert set(firsts) == {0, 1}
    for document, first in enumerate(firsts):
        for choice, better in (("first", first), ("second", 1 - first), ("equal", None)):
            store.judge("Anna", Place(document, 0), choice)
            assert store.judgements()[document].better == better


def test_judges_are_told_apart_by_name_whatever_its_case_and_spaces(store):
    assert store.enter("  Anna   Maria ") == ("Anna Maria", True)
    assert store.enter("anna maria") == ("Anna Maria", False)
    assert store.enter("Jose\u0301")[0] == store.enter("José")[0]
    store.judge("ANNA MARIA", Place(0, 0), "equal")
    assert store.choices("Anna Maria") and not store.choices("José")
    assert store.first_systems("ANNA maria") == store.first_systems("Anna Maria")
    assert store.secret("anna MARIA") and store.secret("Ben") is None
    assert store.enter("An\u200bna\u00ad Maria") == ("Anna Maria", False), "they look the same"


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "=1+1", "@me", "-", "a\x00b", "a\ud800"])
def test_names_that_are_none(store, name):
    with pytest.raises(DocnmtError, match="cannot be a judge's name"):
        store.enter(name)


def test_a_verdict_of_a_stranger_or_about_nothing_is_not_stored(store):
    store.enter("Anna")
    for name, place, choice in (
        ("Ben", Place(0, 0), "equal"),
        ("Anna", Place(0, 9), "equal"),
        ("Anna", Place(0, 0), "?"),
    ):
        with pytest.raises(sqlite3.IntegrityError):
            store.judge(name, place, choice)
    assert store.judgements() == []
    store.judge("Anna", Place(0, 0), "equal")  # nothing is left open by what failed
    assert len(store.judgements()) == 1


# ---- crashes and crowds ----

WRITER = """
import sys
from docnmt.judging.store import Place
from docnmt.judging.store import Store
from tests.judging_samples import make_sample
store = Store(sys.argv[1], make_sample())
store.enter("Anna")
for number in range(10**9):
    store.judge("Anna", store.sample.questions[number % len(store.sample.questions)], ("first", "second")[number % 2])
    print(number, flush=True)
"""


def start(path: Path, script: str = WRITER) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)], env=environment, text=True, stdout=subprocess.PIPE
    )


def test_what_was_acknowledged_survives_kill_9(tmp_path):
    path = tmp_path / "j.sqlite"
    before = 0
    for _ in range(2):  # the second time on what the first crash left behind
        process = start(path)
        told = [process.stdout.readline() for _ in range(25)]
        os.kill(process.pid, signal.SIGKILL)
        told += process.stdout.readlines()
        process.wait()
        acknowledged = sum(line.endswith("\n") for line in told)
        assert acknowledged >= 25
        store = Store(path)
        rows = sqlite3.connect(path).execute("SELECT number, choice FROM judgement ORDER BY number").fetchall()
        assert len(rows) - before in (acknowledged, acknowledged + 1)  # one may be stored but not told
        assert [choice for _, choice in rows[before:]] == [
            ("first", "second")[n % 2] for n in range(len(rows) - before)
        ]
        assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
        before = len(rows)
        store.close()


def test_a_process_killed_before_it_wrote_the_sample_leaves_a_store_that_can_be_made(tmp_path):
    path = tmp_path / "j.sqlite"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    store = Store(path, make_sample())
    assert store.sample == make_sample()
    store.close()


def test_a_sample_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "j.sqlite"
    monkeypatch.setattr("docnmt.judging.store._now", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Store(path, make_sample())
    monkeypatch.undo()
    store = Store(path, make_sample())
    assert store.sample == make_sample()
    store.close()


def test_many_judges_at_once_through_two_connections(store, tmp_path):
    other = Store(tmp_path / "j.sqlite", make_sample())
    places = store.sample.questions
    failures: list[Exception] = []

    def judge(number: int) -> None:
        used = (store, other)[number % 2]
        try:
            name, _ = used.enter(f"Judge {number}")
            for k, place in enumerate(places):
                used.judge(name, place, ("first", "equal", "second")[(number + k) % 3])
        except Exception as error:  # shown below: a thread's own would be lost
            failures.append(error)

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = store.judgements()
    assert len(found) == 8 * len(places)
    for number in range(8):
        said = [judgement.choice for judgement in found if judgement.judge == f"Judge {number}"]
        assert said == [("first", "equal", "second")[(number + k) % 3] for k in range(len(places))]
    other.close()


# ---- other files ----


def refused(path: Path, *sample) -> str:
    with pytest.raises(DocnmtError) as error:
        Store(path, *sample)
    return str(error.value)


def test_a_store_goes_on_only_with_its_own_sample(store, tmp_path):
    path = tmp_path / "j.sqlite"
    Store(path, make_sample()).close()
    for other in (make_sample(seed=2), make_sample((4, 3))):
        assert "another sample" in refused(path, other)


def test_files_that_are_no_stores_stay_as_they_are(tmp_path):
    assert "no such file" in refused(tmp_path / "none.sqlite")
    text = tmp_path / "text.tsv"
    text.write_text("a\tb\tc\n" * 100, encoding="utf-8")
    other = tmp_path / "other.sqlite"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE mine (x)")
    database.close()
    for path in (text, other):
        before = path.read_bytes()
        assert f"{path}: " in refused(path)
        assert f"{path}: " in refused(path, make_sample())
        assert path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.sqlite", "text.tsv"]
