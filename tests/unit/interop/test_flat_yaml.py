"""YAML as Marian writes it, read without types."""

from __future__ import annotations

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.interop.marian import read_settings, read_vocabulary


def test_pieces_are_text_whatever_yaml_makes_of_them():
    written = ["no", "on", "1", "~", r'"\""', '"\'"', "'it''s'", '"▁:"', '▁"', r'"\x85\u2028\\"', '""', ".:"]
    text = "".join(f"{piece}: {i}\n" for i, piece in enumerate(written))
    pieces = ["no", "on", "1", "~", '"', "'", "it's", "▁:", '▁"', "\x85\u2028\\", "", ".:"]
    assert read_vocabulary(text, "x.yml") == pieces


def test_a_piece_may_have_a_line_of_its_own():
    assert read_vocabulary('a: 0\n? "b:"\n: 1\n? ?\n: 2\n', "x.yml") == ["a", "b:", "?"]


def test_the_order_of_lines_does_not_matter():
    assert read_vocabulary("b: 1\na: 0\n", "x.yml") == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 0\na: 1\n", "line 2: the piece 'a' occurs twice"),
        ("a: 0\nb\n", "line 2: 'b' is not a piece"),
        ("a: 0\nb: x\n", "line 2: 'b: x' is not a piece"),
        ("a: 0\nb: 2\n", "1 is missing"),
        ("a: 0\nb: 0\n", "1 is missing or used twice"),
    ],
)
def test_what_is_no_vocabulary_is_told(text, said):
    with pytest.raises(DocnmtError) as error:
        read_vocabulary(text, "x.yml")
    assert str(error.value).startswith("x.yml") and said in str(error.value)


def test_settings_are_texts_and_lists_of_texts():
    text = '# written by Marian\na: no\nb-c:\n  - 1\n  - "x y"\nd:\n  []\ne: ""\nf: [1, 2]\ng:\n- z\nh:\n'
    found = read_settings(text, "x.yml")
    assert found == {"a": "no", "b-c": ["1", "x y"], "d": [], "e": "", "f": ["1", "2"], "g": ["z"], "h": ""}


@pytest.mark.parametrize("text", ["a: 1\nnothing\n", "a: 1\n  b: 2\n", "- 1\n", "{a: 1}\n"])
def test_what_is_no_setting_is_told_with_its_line(text):
    with pytest.raises(DocnmtError, match=r"x.yml, line \d: .* is not a setting"):
        read_settings(text, "x.yml")
