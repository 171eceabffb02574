"""Text and markup as a segment and back: nothing lost, pairs nested, spaces where they were."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.documents.inline import Passage, Piece, folded, nested, partners, passage_of, plain, trim
from docnmt.documents.messages import paired, with_marks
from docnmt.documents.segment import Change, Mark, Segment, Splice
from docnmt.documents.xliff import with_breaks
from tests.office_files import moved


def pieces_in(spelling: str) -> list[Piece]:
    """`(` and `)` are a pair, `<` and `>` a loose one, `*` stands alone, `|` parts words; the rest is text."""
    found = []
    opened: list[int] = []
    for at, sign in enumerate(spelling):
        if sign not in "()*|<>":
            found.append(Piece(at, at + 1, sign))
            continue
        piece = Piece(at, at + 1, code=sign, wide=True, gap=sign == "|")
        if sign == "(":
            opened.append(at + 1)
            piece.pair, piece.wide = at + 1, False
        elif sign == ")":
            piece.pair, piece.closing, piece.wide = opened.pop() if opened else 99, True, False
        found.append(piece.tied({"<": "loose", ">": "/loose"}.get(sign, "")))
    return found


def written(passage: Passage, translation: Segment) -> str:
    return "".join(piece if isinstance(piece, str) else piece.code for piece in passage.pieces(translation))


SPELLINGS = st.text("ab *|", max_size=8).flatmap(
    lambda text: st.builds(
        lambda i, j, k, m: _around(_around(text, *sorted((i, j)), "()"), *sorted((k, m)), "<>"),
        *(st.integers(0, len(text) + 2) for _ in range(4)),
    )
)


def _around(text: str, start: int, end: int, signs: str) -> str:
    return text[:start] + signs[0] + text[start:end] + signs[1] + text[end:]


@given(spelling=SPELLINGS)
@settings(max_examples=300, deadline=None)
def test_unchanged_segments_are_written_as_they_were(spelling: str) -> None:
    passage = Passage(pieces_in(spelling))
    result = written(passage, passage.segment)
    assert "".join(result.split()) == "".join(spelling.split())
    if not {" ", "|"} & set(spelling):
        assert result == spelling


@given(spelling=SPELLINGS, data=st.data())
@settings(max_examples=300, deadline=None)
def test_marks_are_written_once_and_nested_wherever_they_go(spelling: str, data: st.DataObject) -> None:
    passage = Passage(pieces_in(spelling))
    [translation] = data.draw(moved([passage.segment], words="xy "))
    result = written(passage, translation)
    for sign in "()<>*|":
        assert result.count(sign) == spelling.count(sign)
    assert result.index("(") < result.index(")") and result.index("<") < result.index(">")
    text = "".join(sign for sign in result if sign not in "()<>*|")
    assert "".join(text.split()) == "".join(translation.text.split())


def test_pairs_that_cross_are_nested_and_those_that_touch_stay_apart() -> None:
    passage = Passage(pieces_in("(a)(b)"))
    first, first_end, second, second_end = passage.segment.marks

    def with_places(*places: int) -> str:
        marks = [replace(m, at=at) for m, at in zip((first, first_end, second, second_end), places, strict=True)]
        return written(passage, Segment("abcdef", tuple(sorted(marks, key=lambda mark: mark.at))))

    assert with_places(0, 3, 3, 6) == "(abc)(def)"
    assert with_places(0, 4, 2, 6) == "(ab(cd))ef"
    assert with_places(3, 6, 0, 3) == "(abc)(def)"
    assert with_places(4, 1, 6, 5) == "a(bcd)e(f)"


def test_a_break_reads_as_a_space_and_takes_it_along() -> None:
    passage = Passage(pieces_in("one|two | |x"))
    assert passage.segment.text == "one two  x"
    assert written(passage, passage.segment) == "one|two | |x"
    first, *rest = passage.segment.marks
    assert written(passage, Segment("un deux trois", (replace(first, at=7), *(replace(m, at=13) for m in rest)))) == (
        "un deux|trois||"
    )
    # Where there is no space at its place, none is taken.
    assert written(passage, Segment("un deux", (replace(first, at=1), *(replace(m, at=7) for m in rest)))) == (
        "u|n deux||"
    )


def test_spaces_collapse_across_marks() -> None:
    passage = Passage(pieces_in(" a  ( \n b )  c "), collapse=True)
    assert passage.segment.text == "a b c"
    assert written(passage, passage.segment) == " a (b )c "
    # But not across something that is seen.
    assert Passage(pieces_in("a * b"), collapse=True).segment.text == "a  b"


def test_marks_around_all_text_are_left_out() -> None:
    def trimmed(spelling: str) -> str:
        first, last = trim(pieces_in(spelling))
        return spelling[first:last]

    assert trimmed(" *(* a(b)c*) |") == "a(b)c"
    assert trimmed("(a)(b)") == "(a)(b)"
    assert trimmed("<(a)>*") == "a"
    assert trimmed("<a>b") == "<a>b"
    assert trimmed("* (|) ") == ""
    assert trimmed("(*)a(b|)*") == "a(b|)"
    assert trimmed("*(<)a>b*") == "(<)a>b"
    assert trimmed("") == ""


def test_lone_halves_stand_alone() -> None:
    assert partners(pieces_in("a)b<")) == {}
    assert [mark.pair for mark in Passage(pieces_in("a)b<c")).segment.marks] == [0, 0]


def test_line_ends_become_marks_with_their_indentation() -> None:
    pieces = [Piece(0, 1, text) for text in ("one ", "\n", "  two", "\n\n", "three")]
    found = list(with_breaks(pieces))
    assert [(piece.text, piece.code) for piece in found] == [
        ("one", ""),
        (None, " \n  "),
        ("two", ""),
        (None, "\n\n"),
        ("three", ""),
    ]
    passage = Passage(found)
    assert passage.segment.text == "one two three"
    assert written(passage, passage.segment) == "one \n  two\n\nthree"


def test_other_marks_are_refused() -> None:
    passage = Passage(pieces_in("a*b"))
    with pytest.raises(ValueError, match="marks were lost"):
        list(passage.pieces(Segment("x")))


@pytest.mark.parametrize(
    ("content", "at", "found"),
    [
        (("le ", None, " mot"), 4, "the # word"),
        (("le mot ", None, "."), 3, "the # word"),
        (("le mot", None, "."), 8, "the word#"),  # a note's number touches its word
        (("le ", None, None, " mot"), 4, "the ## word"),
        (("le ", None, " ", None, " mot"), 4, "the # # word"),
    ],
)
def test_a_mark_that_touched_no_word_touches_none(content, at, found):
    passage = Passage([Piece(0, 0, text, wide=True) for text in content])
    translation = Segment("the word", tuple(replace(mark, at=at) for mark in passage.segment.marks))
    assert "".join(piece if isinstance(piece, str) else "#" for piece in passage.pieces(translation)) == found
    assert "".join(p if isinstance(p, str) else "#" for p in passage.pieces(passage.segment)) == "".join(
        text or "#" for text in content
    )


def test_a_pair_without_text_is_one_mark() -> None:
    text = "<a><i/></a>x<b>y</b>"
    pieces = [Piece(0, 3, pair=1), Piece(3, 7, wide=True), Piece(7, 11, pair=1, closing=True), Piece(11, 12, "x")]
    pieces += [Piece(12, 15, pair=2), Piece(15, 16, "y"), Piece(16, 20, pair=2, closing=True)]
    found = folded(text, pieces)
    assert [text[piece.start : piece.end] for piece in found] == ["<a><i/></a>", "x", "<b>", "y", "</b>"]
    assert found[0].wide and not found[0].pair


def test_spaces_around_a_text_stay_outside() -> None:
    text = "  one \xad two\n"
    passage = passage_of(text, list(plain(text, 0, len(text))))
    assert passage is not None
    assert passage.segment.text == "one two" and text[passage.start : passage.all[-1].end] == "one \xad two"


def test_changes_are_made_inside_of_what_others_copy() -> None:
    outer = Change(2, 8, ["(", (5, 8), (2, 5), ")"])
    inner = Change(3, 4, ["x"])
    end = Change(10, 10, ["!"])
    splice = Splice("0123456789", [end, inner, outer])
    assert splice.whole() == "01(5672x4)89!"
    assert splice.part(0, 2) == "01" and Splice("0123456789", [inner]).part(2, 5) == "2x4"
    assert Splice("0123456789", []).whole() == "0123456789"


# ---- the order of marks ----


def test_tags_find_their_partners() -> None:
    codes = ["<b>", "<i>", "</i>", "<br/>", "</b>", "</u>", "<i>"]
    marks = paired(Mark(n, code) for n, code in enumerate(codes))
    assert [(mark.pair, mark.closing) for mark in marks] == [
        (2, False),
        (1, False),
        (1, True),
        (0, False),
        (2, True),
        (0, False),
        (0, False),
    ]


@st.composite
def moved_marks(draw: st.DrawFn) -> tuple[str, list[Mark]]:
    """Pairs and single marks at any places, in any order, closing ones before opening ones, too."""
    text = draw(st.text("ab ", max_size=12))
    place = st.integers(0, len(text))
    pairs = draw(st.integers(0, 5))
    marks = [Mark(draw(place), f"<{n}>", n) for n in range(1, pairs + 1)]
    marks += [Mark(draw(place), f"</{n}>", n, closing=True) for n in range(1, pairs + 1)]
    marks += [Mark(draw(place), f"<x{n}/>") for n in range(draw(st.integers(0, 3)))]
    return text, draw(st.permutations(marks))


@given(moved_marks())
def test_marks_are_nested_and_never_lost(case: tuple[str, list[Mark]]) -> None:
    text, marks = case
    written = with_marks(text, marks, str.upper)
    codes = re.findall("<[^>]*>", written)
    assert sorted(codes) == sorted(mark.code for mark in marks)
    assert re.sub("<[^>]*>", "", written) == text.upper()
    open_tags: list[str] = []
    for code in codes:
        if code.startswith("</"):
            assert open_tags.pop() == code[2:-1]
        elif not code.endswith("/>"):
            open_tags.append(code[1:-1])
    assert not open_tags


@given(moved_marks())
def test_marks_stay_in_the_order_of_their_places(case: tuple[str, list[Mark]]) -> None:
    places = [mark.at for mark in nested(case[1])]
    assert places == sorted(places)
