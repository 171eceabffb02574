"""Pieces write what the vocabulary's owner decodes, and a text is split into pieces that write it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.decoding.phrases import Spelling
from tests.builders import lines, subwords

SPELLING = Spelling.of(subwords())
TEXTS = st.text(st.sampled_from([*"lechat voit,.é½猫 😀"]), min_size=1, max_size=12)


@given(ids=st.lists(st.integers(3, len(subwords()) - 1), max_size=12))
@settings(max_examples=200, deadline=None)
def test_pieces_write_what_is_decoded(ids):
    (decoded,) = subwords().decode([ids])
    written = SPELLING.text(ids).decode(errors="replace")
    if not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in written):
        # Of bytes that make no character each is one to the one and several may be one to the other.
        assert decoded.replace("\ufffd", "").lstrip(" ") == written.replace("\ufffd", "").lstrip(" ")


@given(text=TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_split_text_is_the_text(text):
    for whole in (text.encode(), b" " + text.encode()):
        assert SPELLING.text(SPELLING.split(whole)) == whole


def test_a_split_text_is_in_the_owners_pieces():
    for line in lines(20, seed=5):
        if line == line.strip() and "  " not in line:
            assert SPELLING.split(b" " + line.encode()) == subwords().encode([line])[0]
    bracketed = subwords().encode(["(chat"])[0]
    bare = SPELLING.split(b"chat")
    assert bracketed[-len(bare) :] == bare


def test_what_no_piece_writes():
    toy = Spelling([b"", b" a", b"b"])
    assert toy.split(b" abb") == [1, 2, 2]
    assert toy.split(b"a") is None and toy.split(b" ac") is None
    assert toy.longest_piece(b"c") is None


def test_bytes_that_are_words_too_are_written_as_words():
    toy = Spelling([b"a", b"x", b"a"])
    assert toy.split(b"a") == [2]
