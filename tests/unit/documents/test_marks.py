"""Marks find their words in the translation; none is lost, and pairs stay pairs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.documents.marks import project, words_of
from docnmt.documents.placeholders import find
from docnmt.documents.segment import Mark


def read(marked: str) -> tuple[str, list[Mark]]:
    """`Hello <b>big</b> world*`: tags are pairs, stars stand alone."""
    text, marks, pairs, at = "", [], {}, 0
    while at < len(marked):
        if marked[at] == "*":
            marks.append(Mark(len(text), "*"))
        elif marked[at] == "<":
            end = marked.index(">", at)
            name, closing = marked[at + 1 : end].lstrip("/"), marked[at + 1] == "/"
            marks.append(Mark(len(text), marked[at : end + 1], pairs.setdefault(name, len(pairs) + 1), closing))
            at = end
        else:
            text += marked[at]
        at += 1
    return text, marks


def write(text: str, placed: list[Mark]) -> str:
    pieces, end = [], 0
    for mark in placed:
        pieces += [text[end : mark.at], mark.code]
        end = mark.at
    return "".join([*pieces, text[end:]])


def links(source: str, target: str, *pairs: str):
    """`big:grand` ties the words."""
    found = []
    for one, other in (pair.split(":") for pair in pairs):
        a, b = source.index(one), target.index(other)
        found.append(((a, a + len(one)), (b, b + len(other))))
    return found


@pytest.mark.parametrize(
    ("marked", "target", "pairs", "expected"),
    [
        ("the <b>black</b> cat*.", "le chat noir.", ("black:noir", "cat:chat"), "le chat* <b>noir</b>."),
        ("<b>the black cat.</b>", "noir le chat.", (), "<b>noir le chat.</b>"),
        ("<b>the black cat</b>.", "le chat noir.", (), "<b>le chat noir</b>."),
        ("« <b>Oui</b> »", "“Yes”", (), "“<b>Yes</b>”"),
        (
            "<a><b>one two</b></a> three",
            "TROIS un deux",
            ("one:un", "two:deux", "three:TROIS"),
            "TROIS <a><b>un deux</b></a>",
        ),
        ("<i>A</i> <b>B</b>", "乙甲", ("A:甲", "B:乙"), "<b>乙</b><i>甲</i>"),
        ("one <a>*</a>two", "un deux", ("one:un", "two:deux"), "un <a>*</a>deux"),
        ("one <b>two*</b> three", "un deux trois", ("one:un", "two:deux", "three:trois"), "un <b>deux*</b> trois"),
        ("*one two*", "deux un", ("one:un", "two:deux"), "*deux un*"),
        ("one two</b> three", "deux un trois", ("one:un", "two:deux", "three:trois"), "deux un</b> trois"),
        ("one <b>two three", "un trois deux", ("one:un", "two:deux", "three:trois"), "un <b>trois deux"),
        ("one <b>two three four</b> five", "1 4 x 2 5", ("one:1", "two:2", "four:4", "five:5"), "1 <b>4 x 2</b> 5"),
        (
            "un<b>believ</b>able story",
            "histoire incroyable",
            ("unbelievable:incroyable", "story:histoire"),
            "histoire <b>incroyable</b>",
        ),
    ],
)
def test_marks_stand_at_their_words(marked, target, pairs, expected):
    source, marks = read(marked)
    assert write(target, project(source, target, marks, links(source, target, *pairs))) == expected


def test_without_links_the_place_in_the_sentence_tells():
    source, marks = read("one two three <b>four</b> five")
    assert write("UN DEUX TROIS QUATRE CINQ", project(source, "UN DEUX TROIS QUATRE CINQ", marks)) == (
        "UN DEUX TROIS <b>QUATRE</b> CINQ"
    )


def test_words():
    text = "l'été: 你好 ok_1 हिन्दी {name}s %s"
    assert [text[a:b] for a, b in words_of(text)] == [
        "l",
        "'",
        "été",
        ":",
        "你",
        "好",
        "ok_1",
        "हिन्दी",
        "{name}",
        "s",
        "%s",
    ]


def test_no_mark_comes_to_stand_inside_a_placeholder():
    target = "{first} %(count)d <br/>"
    for at in range(12):
        places = [mark.at for mark in project("un deux trois", target, [Mark(at, "*")])]
        assert not any(start < place < end for place in places for start, end in find(target))


TEXT = st.lists(st.sampled_from(["le", "chat", "noir", "、", "你", ".", ",", "«"]), max_size=8).map(" ".join)


@st.composite
def marks_in(draw, text: str) -> list[Mark]:
    """Marks in any order, pairs nested or crossing, some with only one of two."""
    codes: list[tuple[int, bool]] = []
    for pair in range(1, draw(st.integers(0, 4)) + 1):
        codes += [(pair, False), (pair, True)]
    codes += [(0, False)] * draw(st.integers(0, 3))
    codes = draw(st.permutations(codes))
    seen: set[int] = set()
    ordered = []
    for pair, closing in codes:  # of a pair the opening one comes first
        ordered.append((pair, pair in seen if pair else closing))
        seen.add(pair)
    if ordered and draw(st.booleans()):
        ordered.pop(draw(st.integers(0, len(ordered) - 1)))
    places = sorted(draw(st.integers(0, len(text))) for _ in ordered)
    return [
        Mark(at, f"{n}", pair, closing) for n, (at, (pair, closing)) in enumerate(zip(places, ordered, strict=True))
    ]


@given(st.data(), TEXT, TEXT)
def test_every_mark_comes_out_once_in_order_and_pairs_do_not_turn_round(data, source, target):
    marks = data.draw(marks_in(source))
    spans = st.tuples(st.integers(0, len(source)), st.integers(0, len(source))).map(lambda s: (min(s), max(s)))
    others = st.tuples(st.integers(0, len(target)), st.integers(0, len(target))).map(lambda s: (min(s), max(s)))
    placed = project(source, target, marks, data.draw(st.lists(st.tuples(spans, others), max_size=6)))
    assert sorted(int(mark.code) for mark in placed) == list(range(len(marks)))
    for mark in placed:
        old = marks[int(mark.code)]
        assert (mark.pair, mark.closing) == (old.pair, old.closing)
    ats = [mark.at for mark in placed]
    assert ats == sorted(ats) and all(0 <= at <= len(target) for at in ats)
    seen: set[int] = set()
    whole = {mark.pair for mark in marks if not mark.closing} & {mark.pair for mark in marks if mark.closing}
    for mark in placed:
        if mark.pair in whole:
            assert mark.closing == (mark.pair in seen)
            seen.add(mark.pair)


@given(st.data(), TEXT)
def test_an_unchanged_sentence_keeps_its_marks(data, source):
    marks = data.draw(marks_in(source))
    assert project(source, source, marks) == marks


@given(TEXT.filter(bool), TEXT.filter(bool))
def test_what_covers_all_covers_all_again(source, target):
    marks = [Mark(0, "<b>", 1), Mark(len(source), "</b>", 1, True)]
    assert [mark.at for mark in project(source, target, marks)] == [0, len(target)]


def test_many_marks_in_a_sentence():
    source, target = "mot " * 200, "word " * 220
    marks = [Mark(n // 50, str(n)) for n in range(30_000)]
    nested = [Mark(3, "", n) for n in range(1, 3000)] + [Mark(9, "", n, True) for n in range(2999, 0, -1)]
    started = time.process_time()
    assert len(project(source, target, marks)) == 30_000
    assert len(project(source, target, nested)) == len(nested)
    assert time.process_time() - started < 6
