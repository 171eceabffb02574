"""What the command line says to those who ask it, and to those who mistype."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pkgutil import resolve_name

import pytest

from docnmt.cli.parsing import VerbParser, parser


def verbs(of: VerbParser | None = None) -> Iterator[VerbParser]:
    """Every verb and every job of one."""
    of = of or parser()
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield verb
                yield from verbs(verb)
    yield from of.jobs.values()


@pytest.mark.parametrize("verb", list(verbs()), ids=lambda verb: verb.prog)
def test_the_help_of_every_verb_ends_with_examples_that_it_understands(verb):
    assert verb.examples
    assert verb.format_help().endswith(f"  {verb.examples[-1]}\n")
    for example in verb.examples:
        assert example.startswith(verb.prog)
        words = shlex.split(re.split(" [<>] ", example)[0])[1:]
        if words[-1] != "--help":
            assert callable(resolve_name(f"docnmt.cli.{parser().parse_args(words).run}"))


def test_every_verb_is_looked_at():
    assert {"docnmt demo", "docnmt corpus align", "docnmt contrast make", "docnmt serve"} <= {v.prog for v in verbs()}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["trian", "x.toml"], "unknown value 'trian'. Did you mean 'train'?"),
        (["corpus", "inspct"], "unknown value 'inspct'. Did you mean 'inspect'?"),
        (["train", "x.toml", "--step", "documnt"], "unknown value 'documnt'. Did you mean 'document'?"),
        (["qqq"], "unknown value 'qqq'. Choose from demo, "),
    ],
)
def test_what_is_mistyped_gets_a_suggestion(typed, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args(typed)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
