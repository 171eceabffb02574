"""Many files in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

import docnmt.decoding.excerpts
import docnmt.documents.translate
from docnmt.base.progress import Progress
from docnmt.decoding.jobs import FileJob, translate_files
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
