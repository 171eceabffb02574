"""Pieces put together into words again."""

from hypothesis import given
from hypothesis import strategies as st

from docnmt.text.scripts import words
from tests.builders import lines, subwords


def texts(*pieces: str) -> list[str]:
    return [word.text for word in words(pieces)]


def test_a_space_begins_a_word():
    assert texts("▁the", "▁av", "oc", "ado") == ["the", "avocado"]
    assert [word.spaced for word in words(["▁a", "b", ".", "▁c"])] == [True, False, True]


def test_punctuation_stands_apart_but_not_inside_a_word():
    assert texts("▁(", "it", "▁does", "n", "'", "t", ")", ".") == ["(", "it", "doesn't", ")."]
    assert texts("▁", "«", "▁oui", "▁", "»") == ["«", "oui", "»"]
    assert texts("▁...") == ["..."]
    assert texts("▁", "5", "%") == ["5", "%"]


def test_bytes_are_read_as_characters():
    snowman = [f"<0x{byte:02X}>" for byte in "☃".encode()]
    assert texts("▁na", "<0xC3>", "<0xAF>", "ve", "▁", *snowman) == ["naïve", "☃"]
    assert texts("▁a", "<0xE2>", "<0x98>", "b") == ["a�b"]  # half a character
    assert texts("▁a", "<0xFF>", "<0x41>") == ["a�A"]  # none at all
    assert [(word.begin, word.end) for word in words(["▁x", *snowman, "▁y"])] == [(0, 1), (1, 4), (4, 5)]


def test_scripts_without_spaces_give_a_word_a_piece():
    assert texts("▁你", "好", "世界", "。") == ["你", "好", "世界", "。"]
    assert texts("▁", "你", "好", "De", "bian", "<0xE4>", "<0xBD>", "<0xA0>") == ["你", "好", "Debian", "你"]


PIECES = st.sampled_from(
    ["▁", "▁a", "b", ".", "▁«", "'", "<0xE4>", "<0xBD>", "<0xA0>", "<0x0A>", "你", "▁a▁b", "<unk>"]
)


@given(st.lists(PIECES, max_size=12))
def test_every_piece_is_in_one_word(pieces):
    found = words(pieces)
    assert [place for word in found for place in range(word.begin, word.end)] == list(range(len(pieces)))


def test_words_spell_the_sentence():
    sub = subwords("target")
    for line, ids in zip(lines(20, seed=3), sub.encode(lines(20, seed=3)), strict=True):
        found = words(sub.pieces(ids))
        assert "".join(f" {word.text}" if word.spaced else word.text for word in found).strip() == line
