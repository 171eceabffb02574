"""`docnmt translate --glossary`: terms come out in every way a file is translated, and the report says so."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from docnmt.decoding.jobs import FileJob
from docnmt.decoding.phrases import missing
from docnmt.decoding.terms import Glossary
from docnmt.decoding.translator import load
from tests.system.conftest import command

LINES = ["Le directeur est là.", "Ma soeur a vu le directeur hier.", "", "Je pense à mon oncle.", "Mon oncle dort."]
TERMS = "# two terms\ndirecteur\tmanagrix\noncle\tunclette\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text(TERMS, encoding="utf-8")
    return tmp_path


def check(sources: list[str], translations: list[str], folder: Path) -> None:
    terms = Glossary.read(folder / "terms.tsv")
    assert len(translations) == len(sources)
    for source, translation in zip(sources, translations, strict=True):
        assert missing(terms.phrases(source), translation) == []


def test_terms_on_standard_output_and_in_files(model, folder):
    asked = ("--glossary", folder / "terms.tsv", "--glossary-report", folder / "report.json")
    done = command("translate", model, folder / "in.txt", "--format", "text", *asked)
    assert done.code == 0, done.err
    check(LINES, done.lines, folder)
    assert "glossary: 4 of 4 terms met" in done.message
    assert json.loads((folder / "report.json").read_text()) == {"found": 4, "unmet": []}
    (folder / "report.json").unlink()
    into = command("translate", model, folder / "in.txt", "-o", folder / "out.txt", "--format", "text", *asked)
    assert into.code == 0, into.err
    assert (folder / "out.txt").read_text(encoding="utf-8").splitlines() == done.lines
    assert json.loads((folder / "report.json").read_text()) == {"found": 4, "unmet": []}
    laid_out = command("translate", model, folder / "in.txt", *asked)  # a text with a layout
    assert laid_out.code == 0 and "4 of 4 terms met" in laid_out.message
    check(LINES, laid_out.out.splitlines(), folder)


def test_a_run_that_goes_on_tells_of_all_terms(model, folder, monkeypatch):
    monkeypatch.setattr("docnmt.decoding.files.BLOCK", 1)
    translator = load(model, "cpu")
    options = replace(translator.options, glossary=Glossary.read(folder / "terms.tsv"))
    ticks = count(1)

    def stop_at_the_second(sentences: int) -> None:
        if next(ticks) == 2:
            raise KeyboardInterrupt

    path = str(folder / "in.txt")
    stopped = FileJob(translator, options, tick=stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        stopped.translate(path, stopped.open(path, "text"), folder / "out.txt")
    again = load(model, "cpu")
    job = FileJob(again, options)
    job.translate(path, job.open(path, "text"), folder / "out.txt")
    job.finish()
    assert again.terms.found == 4
    check(LINES, (folder / "out.txt").read_text(encoding="utf-8").splitlines(), folder)


def test_what_is_wrong_is_told_before_any_work(model, folder):
    (folder / "bad.tsv").write_text("oncle\tuncle\noncle\tauntie\n", encoding="utf-8")
    bad = command("translate", model, folder / "in.txt", "--glossary", folder / "bad.tsv")
    assert bad.code and "bad.tsv, line 2" in bad.message and not bad.out
    alone = command("translate", model, folder / "in.txt", "--glossary-report", folder / "report.json")
    assert alone.code and "--glossary" in alone.message
    nowhere = command(
        "translate", model, folder / "in.txt", "--glossary", folder / "terms.tsv", "--glossary-report", folder
    )
    assert nowhere.code and "is a folder" in nowhere.message
