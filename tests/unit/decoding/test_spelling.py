"""Pieces write what the vocabulary's owner decodes; a text is written in all ways that lead to its end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.decoding.spelling import Spelling
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


TOY = Spelling([b"", b" ", b" a", b"a", b"ab", b"b", b"bc", b" ab"])


@given(text=st.text(" abc", min_size=1, max_size=6).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_ways(text):
    def leads_on(written: bytes, place: int) -> bool:
        """A piece fits there, and after it others write the rest, the last of them maybe more."""
        rest = text[place:]
        if not written or not rest.startswith(written):
            return bool(written) and written.startswith(rest)
        place += len(written)
        return place == len(text) or any(leads_on(other, place) for other in TOY.written)

    for place, pieces in enumerate(TOY.ways(text)):
        assert sorted(pieces) == [n for n, written in enumerate(TOY.written) if leads_on(written, place)]


@pytest.mark.parametrize(("prefix", "expected"), [("le", b" le"), ("le ", b" le "), ("le  chat\n", b" le chat ")])
def test_a_beginning_is_normalised_but_for_the_space_at_its_end(prefix, expected):
    assert SPELLING.normalised(prefix) == expected


def test_a_beginning_stays_as_it_was_given():
    pieces = subwords().encode(["le chat voit"])[0]
    assert SPELLING.begin_with("le\u00a0chat", pieces, "le chat voit") == "le\u00a0chat voit"
    assert SPELLING.begin_with(" le  ", pieces, "le chat voit") == " le  chat voit"
