from __future__ import annotations

import re

import pytest

from docnmt.cli import parsed
from docnmt.cli.parsing import parser

NAMES = re.findall(r"^    ([a-z-]+)\b", parser().format_help(), re.M)


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
    [
        (["translate", "model", "-o", "out", "a.docx", "-c"], "unrecognized arguments: a.docx -c"),
        (["quantize", "a", "b"], "unrecognized arguments: b"),
        (["translate", "model", "a.docx", "--bean", "2"], "unknown option '--bean'. Did you mean '--beam'?"),
        (["contrast", "make", "a", "-o", "b", "--languages", "fr-en", "--sed=1"], "'--sed=1'. Did you mean '--seed'?"),
    ],
)
def test_what_no_verb_knows_is_refused(words, unknown, capsys):
    with pytest.raises(SystemExit):
        parsed(words)
    assert unknown in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_is_read_without_the_others(name, capsys):
    helps = []
    for root in (parser(name), parser()):
        with pytest.raises(SystemExit):
            root.parse_args([name, "--help"])
        helps.append(capsys.readouterr().out)
    assert helps[0] == helps[1]
