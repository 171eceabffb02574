"""Scripts have one home: ranges of letters stand nowhere else, and what is asked of them is answered once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import docnmt
from docnmt.text.scripts import in_spaced_word, in_word, primary, script_of, unspaced

PACKAGE = Path(docnmt.__file__).parent
# From one letter beyond the Latin ones to another.
_RANGE = re.compile(r"[^\W\d_\u0000-\u024f]-[^\W\d_\u0000-\u024f]|\\u(?!0[0-2]|d[89a-f])[0-9a-f]{4}-\\u")


def ranges_in(path: Path) -> list[str]:
    strings = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    return [text for text in strings if isinstance(text, str) and _RANGE.search(text)]


def test_ranges_of_letters_stand_in_one_place() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if ranges_in(path)}
    assert found == {"text/scripts.py"}


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        ("字々〇ひカㄅกລမក", True),
        ("aéжع한א9_ .。", False),
    ],
)
def test_scripts_without_spaces(characters: str, expected: bool) -> None:
    assert {unspaced(character) for character in characters} == {expected}


def test_what_is_in_a_word() -> None:
    assert all(map(in_word, "aé9字_\u0301")) and not any(map(in_word, " .。-"))
    assert in_spaced_word("a") and in_spaced_word("9") and not in_spaced_word("字") and not in_spaced_word("")


@pytest.mark.parametrize(
    ("language", "letter"), [("ru", "ж"), ("zh-TW", "字"), ("ja", "ひ"), ("ko_KR", "한"), ("fr", "é"), ("", "e")]
)
def test_the_script_of_a_language(language: str, letter: str) -> None:
    assert script_of(language).match(letter)


@pytest.mark.parametrize(
    ("code", "language"), [("fr", "fr"), ("fr-CA", "fr"), ("zh_Hant-TW", "zh"), ("PT_br", "pt"), ("", ""), ("x-y", "x")]
)
def test_the_language_of_a_code(code: str, language: str) -> None:
    assert primary(code) == language
