"""Many files in one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import docnmt.decoding.excerpts
import docnmt.decoding.jobs as jobs
import docnmt.documents.translate
from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.decoding.jobs import Done, FileJob, Order, translate_files
from docnmt.documents import read_document
from tests.fake_translator import Fake


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To tell how many sentences there are, and to translate them."""
    opened: list[str] = []

    def noted(data, name, languages):
        opened.append(Path(name).name)
        return read_document(data, name, languages)

    monkeypatch.setattr(docnmt.documents.translate, "read_document", noted)
    monkeypatch.setattr(docnmt.decoding.excerpts, "align", lambda translator, pairs: [[] for _ in pairs])
    files = {"a.html": "<p>Un <b>mot</b>.</p>", "b.txt": "Un chat dort."}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    paths = {str(tmp_path / name): tmp_path / f"new-{name}" for name in files}
    fake = Fake(str.upper)
    translate_files(FileJob(fake, fake.options), paths, "", Progress(quiet=True))
    assert opened == list(files)
    assert (tmp_path / "new-a.html").read_text() == "<p>UN <b>MOT</b>.</p>"
    assert (tmp_path / "new-b.txt").read_text() == "UN CHAT DORT."


def test_files_that_are_translated_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order they come back: as if they had been translated here, and what failed there is told here. The
    process there loads the model once; the blocks of a file stay until all files are done."""
    fake, loaded, seen = Fake(str.upper), [], []
    monkeypatch.setattr(jobs, "load", lambda *which: loaded.append(which) or fake)
    monkeypatch.setattr(jobs, "_TRANSLATORS", {})
    order = Order("models/a", "a", "cpu", fake.options, "")

    def share_out(files: Mapping[str, Path]) -> Iterator[Done]:
        (tmp_path / "gone.txt").unlink()
        for path, out in reversed(files.items()):
            try:
                yield Done(path, *jobs._translate_elsewhere(order, path, out))
            except DocnmtError as error:
                yield Done(path, error=error)
            seen.append(sorted(file.name for file in (tmp_path / "out").iterdir()))

    (tmp_path / "out").mkdir()
    for name in ("one.txt", "gone.txt", "two.txt"):
        (tmp_path / name).write_text(f"Un chat dort, {name[:-4]}.")
    paths = {str(tmp_path / name): tmp_path / "out" / name for name in ("one.txt", "gone.txt", "two.txt")}
    with pytest.raises(DocnmtError, match="1 of 3 files could not be translated"):
        translate_files(FileJob(fake, fake.options, "a"), paths, "", Progress(quiet=True), share_out)
    assert loaded == [("models/a", "cpu")]
    assert seen == [["two.txt", "two.txt.parts"]] * 2 + [["one.txt", "one.txt.parts", "two.txt", "two.txt.parts"]]
    found = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert found == {"one.txt": "UN CHAT DORT, ONE.", "two.txt": "UN CHAT DORT, TWO."}


def test_a_file_that_was_begun_elsewhere_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a task does that is started again because its machine died: with the blocks that are missing."""
    monkeypatch.setattr("docnmt.decoding.files.BLOCK", 2)
    asked: list[str] = []

    def dies_at_three(sentence: str) -> str:
        if not asked.count("Trois.") and sentence == "Trois.":
            asked.append(sentence)
            raise KeyboardInterrupt
        asked.append(sentence)
        return sentence.upper()

    fake = Fake(dies_at_three)
    monkeypatch.setattr(jobs, "_TRANSLATORS", {"a": fake})
    order, text, out = Order("models/a", "a", "cpu", fake.options, "text"), tmp_path / "a.fr", tmp_path / "b.en"
    text.write_text("Un.\n\nDeux.\n\nTrois.\n\nQuatre.\n")
    with pytest.raises(KeyboardInterrupt):
        jobs._translate_elsewhere(order, str(text), out)
    parts, _ = jobs._translate_elsewhere(order, str(text), out)
    assert out.read_text() == "UN.\n\nDEUX.\n\nTROIS.\n\nQUATRE.\n" and parts.parent.name == "b.en.parts"
    assert asked.count("Un.") == 1
