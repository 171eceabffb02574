"""Text and markup as a segment and back: nothing lost, pairs nested, spaces where they were."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.documents.passages import Atom, Passage, Role, partners, trim, with_breaks
from docnmt.documents.segment import Segment
from tests.office_files import moved


def atoms_in(spelling: str) -> list[Atom]:
    """`(` and `)` are a pair, `<` and `>` a loose one, `*` stands alone, `|` parts words; the rest is text."""
    roles = {"(": Role.OPEN, ")": Role.CLOSE}
    found = []
    for at, sign in enumerate(spelling):
        if sign in "()*|<>":
            link = {"<": "loose", ">": "/loose"}.get(sign, "")
            found.append(Atom(roles.get(sign, Role.ALONE), at, at + 1, sign, sign == "|", link))
        else:
            found.append(Atom(Role.TEXT, at, at + 1, sign))
    return found


def written(passage: Passage, translation: Segment) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in passage.atoms(translation))


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
    passage = Passage(atoms_in(spelling))
    result = written(passage, passage.segment)
    assert "".join(result.split()) == "".join(spelling.split())
    if not {" ", "|"} & set(spelling):
        assert result == spelling


@given(spelling=SPELLINGS, data=st.data())
@settings(max_examples=300, deadline=None)
def test_marks_are_written_once_and_nested_wherever_they_go(spelling: str, data: st.DataObject) -> None:
    passage = Passage(atoms_in(spelling))
    [translation] = data.draw(moved([passage.segment], words="xy "))
    result = written(passage, translation)
    for sign in "()<>*|":
        assert result.count(sign) == spelling.count(sign)
    assert result.index("(") < result.index(")") and result.index("<") < result.index(">")
    text = "".join(sign for sign in result if sign not in "()<>*|")
    assert "".join(text.split()) == "".join(translation.text.split())


def test_pairs_that_cross_are_nested_and_those_that_touch_stay_apart() -> None:
    passage = Passage(atoms_in("(a)(b)"))
    first, first_end, second, second_end = passage.segment.marks

    def with_places(*places: int) -> str:
        marks = [replace(m, at=at) for m, at in zip((first, first_end, second, second_end), places, strict=True)]
        return written(passage, Segment("abcdef", tuple(sorted(marks, key=lambda mark: mark.at))))

    assert with_places(0, 3, 3, 6) == "(abc)(def)"
    assert with_places(0, 4, 2, 6) == "(ab(cd))ef"
    assert with_places(3, 6, 0, 3) == "(abc)(def)"
    assert with_places(4, 1, 6, 5) == "a(bcd)e(f)"


def test_a_break_reads_as_a_space_and_takes_it_along() -> None:
    passage = Passage(atoms_in("one|two | |x"))
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
    passage = Passage(atoms_in(" a  ( \n b )  c "), collapse=True)
    assert passage.segment.text == "a b c"
    assert written(passage, passage.segment) == " a (b )c "
    # But not across something that is seen.
    assert Passage(atoms_in("a * b"), collapse=True).segment.text == "a  b"


def test_marks_around_all_text_are_left_out() -> None:
    def trimmed(spelling: str) -> str:
        first, last = trim(atoms_in(spelling))
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
    assert partners(atoms_in("a)b<")) == {}
    assert [mark.pair for mark in Passage(atoms_in("a)b<c")).segment.marks] == [0, 0]


def test_line_ends_become_marks_with_their_indentation() -> None:
    pieces = [Atom(Role.TEXT, 0, 1, text) for text in ("one ", "\n", "  two", "\n\n", "three")]
    found = list(with_breaks(pieces))
    assert [(atom.role, atom.text) for atom in found] == [
        (Role.TEXT, "one"),
        (Role.ALONE, " \n  "),
        (Role.TEXT, "two"),
        (Role.ALONE, "\n\n"),
        (Role.TEXT, "three"),
    ]
    passage = Passage(found)
    assert passage.segment.text == "one two three"
    assert written(passage, passage.segment) == "one \n  two\n\nthree"


def test_other_marks_are_refused() -> None:
    passage = Passage(atoms_in("a*b"))
    with pytest.raises(ValueError, match="other marks"):
        list(passage.atoms(Segment("x")))


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
    passage = Passage([Atom(Role.ALONE if text is None else Role.TEXT, 0, 0, text or "") for text in content])
    translation = Segment("the word", tuple(replace(mark, at=at) for mark in passage.segment.marks))
    assert "".join(piece if isinstance(piece, str) else "#" for piece in passage.atoms(translation)) == found
    assert "".join(p if isinstance(p, str) else "#" for p in passage.atoms(passage.segment)) == "".join(
        text or "#" for text in content
    )
