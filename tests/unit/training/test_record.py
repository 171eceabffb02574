"""The record of a run: what is kept of it when a run that was killed goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docnmt.base.progress import Progress
from docnmt.training.checkpoint import Disk, Record, read_record

DISK = Disk(Progress(quiet=True), lambda: False)


def write(folder: Path, updates: range) -> str:
    record = Record(folder, 0, DISK)
    for update in updates:
        record.metrics("train", update, loss=1 / update, note="é")
        record.speed(update, seconds=0.5)
    return (folder / "metrics.jsonl").read_text(encoding="utf-8")


def test_what_is_written_can_be_read(tmp_path):
    write(tmp_path, range(1, 4))
    lines = read_record(tmp_path / "metrics.jsonl")
    assert lines == [{"kind": "train", "update": n, "loss": 1 / n, "note": "é"} for n in (1, 2, 3)]
    assert [line["update"] for line in read_record(tmp_path / "speed.jsonl")] == [1, 2, 3]


def test_what_the_machine_adds_is_kept_apart(tmp_path):
    assert "seconds" not in write(tmp_path, range(1, 4))


@pytest.mark.parametrize("update", [0, 1, 5, 9, 10, 20])
def test_lines_beyond_the_update_are_cut(tmp_path, update):
    whole = write(tmp_path, range(1, 11))
    Record(tmp_path, update, DISK)
    kept = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")
    assert whole.startswith(kept)
    assert len(kept.splitlines()) == min(update, 10)
    assert len(read_record(tmp_path / "speed.jsonl")) == min(update, 10)


def test_cut_anywhere_and_continued_it_is_the_same_to_the_byte(tmp_path):
    """A kill may leave half a line, whole lines without the checkpoint, or a line without its end."""
    whole = write(tmp_path, range(1, 6))
    path = tmp_path / "metrics.jsonl"
    for length in range(len(whole.encode()) + 1):
        path.write_bytes(whole.encode()[:length])
        done = sum(1 for line in path.read_bytes().split(b"\n") if line.endswith(b"}"))
        record = Record(tmp_path, done, DISK)
        for update in range(done + 1, 6):
            record.metrics("train", update, loss=1 / update, note="é")
        assert path.read_text(encoding="utf-8") == whole


def test_floats_come_back_as_they_were(tmp_path):
    value = 0.1 + 0.2
    Record(tmp_path, 0, DISK).metrics("train", 1, loss=value, tiny=5e-324)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    Record(tmp_path, 1, DISK)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert read_record(tmp_path / "metrics.jsonl")[0]["loss"] == value


def test_no_record_yet(tmp_path):
    assert read_record(tmp_path / "metrics.jsonl") == []
    Record(tmp_path, 3, DISK)
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_line_is_json(tmp_path):
    for line in write(tmp_path, range(1, 3)).splitlines():
        assert json.loads(line)["kind"] == "train"


@pytest.mark.parametrize(
    "odd", [b"[1]\n", b"3\n", b'{"kind": "train"}\n', b'{"update": "4"}\n', b"[" * 100_000 + b"\n"]
)
def test_what_is_no_line_of_a_run_ends_the_record(tmp_path, odd):
    whole = write(tmp_path, range(1, 4))
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(odd)
    assert len(read_record(tmp_path / "metrics.jsonl")) == 3
    Record(tmp_path, 3, DISK)
    assert (tmp_path / "metrics.jsonl").read_text(encoding="utf-8") == whole
