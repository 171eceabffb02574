"""What newcomers type first is in the demo's language."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

import docnmt
from docnmt.demo import EXAMPLES, generate
from tests.demo_language import meanings

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "docs" / "tutorial.md",)


def test_the_language_has_all_that_the_corpus_says():
    for demo in generate(60, seed=9)["train"][:3]:
        for source, target in zip(demo.document.source, demo.document.target, strict=True):
            assert target in meanings(source)


@pytest.mark.parametrize("sentence", ["Le procès commence demain.", "L'avocat est prêt.", "Bonjour."])
def test_and_nothing_else(sentence):
    assert meanings(sentence) == set()


def test_the_examples_are_one_sentence_in_two_contexts():
    court, table = EXAMPLES
    assert court.source[1] == table.source[1] and court.target[1] != table.target[1]
    assert meanings(court.source[1]) == {court.target[1], table.target[1]}
    for example in EXAMPLES:
        assert meanings(example.source[0]) == {example.target[0]}


def test_they_were_not_trained_on():
    trained = {sentence for demo in generate(4500, seed=1)["train"] for sentence in demo.document.source}
    assert EXAMPLES[0].source[1] not in trained


def given(code: str) -> list[str]:
    """The sentences that a piece of Python gives to a translator."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    methods = ("translate", "translate_text", "translate_nbest")
    chosen = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in methods]
    values = [node.value for c in chosen for a in c.args for node in ast.walk(a) if isinstance(node, ast.Constant)]
    return [s for text in values if isinstance(text, str) for s in re.split(r"(?<=\.)\s+", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_in_the_demos_language(page):
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S))
    assert given(code)
    assert [sentence for sentence in given(code) if not meanings(sentence)] == []


def test_so_is_what_help_says():
    examples = doctest.DocTestParser().get_examples(docnmt.__doc__ or "")
    for example in examples:
        said = re.findall(r"[A-Z][^.]+\.", example.want)
        for sentence, translation in zip(given(example.source), said, strict=True):
            assert translation in meanings(sentence)
    assert sum(bool(given(example.source)) for example in examples) >= 2
