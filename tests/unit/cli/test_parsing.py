from __future__ import annotations

import pytest

from docnmt.cli import parsed


@pytest.mark.parametrize(
    "words",
    [
        ["translate", "model", "a.docx", "b.md", "-o", "out"],
        ["translate", "model", "-o", "out", "a.docx", "b.md"],
        ["translate", "-o", "out", "model", "a.docx", "b.md"],
    ],
)
def test_files_may_stand_before_and_after_options(words):
    options = parsed(words)
    assert (options.model, options.files, options.output) == ("model", ["a.docx", "b.md"], "out")


@pytest.mark.parametrize(
    ("words", "unknown"),
    [(["translate", "model", "-o", "out", "a.docx", "--colour"], "a.docx --colour"), (["quantize", "a", "b"], "b")],
)
def test_what_no_verb_knows_is_refused(words, unknown, capsys):
    with pytest.raises(SystemExit):
        parsed(words)
    assert f"unrecognized arguments: {unknown}" in capsys.readouterr().err
