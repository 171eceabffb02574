"""What must come through is found, taken out and put back, whatever becomes of the words around."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.documents.marks import project
from docnmt.documents.placeholders import counts, find, put_back, take_out, without
from docnmt.documents.segment import Mark

KEPT = ["%s", "%d", "%(name)s", "%1$s", "%-5.2f", "%%", "%@", "%count%", "{0}", "{name}", "{}", "{name!r:>10}", "{{x}}"]
KEPT += ["{{ user.name }}", "${var}", "${{ x }}", "$VAR", "$name", "$(HOME)", "#{a}", "%{b}", "<b>", "</b>", "<br/>"]
KEPT += [
    '<a href="x>y. Z">',
    "<!-- no -->",
    "&amp;",
    "&#160;",
    "&#xA0;",
    "https://a.example/b?c=d&e#f",
    "www.example.org/x",
]
KEPT += [
    "jo.doe+x@mail.example.org",
    "mailto:a@b.example",
    "\\n",
    "\\t",
    "\\u00e9",
    "C:\\new\\table",
    "@@x@@",
    "{% if x %}",
]
KEPT += ["$t(menu.open)", "{n, plural, one {# item} other {# {x} items}}"]


@pytest.mark.parametrize("text", KEPT)
def test_found_in_a_sentence(text):
    for sentence in (f"Voici {text} pour vous", f"({text})", text):
        assert [sentence[a:b] for a, b in find(sentence)] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Il reste 100 % de tout et 20 % d'eau",
        "a < b et c > d, 3 & 4, <3",
        "ça coûte $5 ou 5 $",
        "100%sûr",
        "{voir ci-dessous}",
        "l'addition à 12 h",
        "50%de",
        "tel: 0123",
    ],
)
def test_not_found_in_prose(text):
    assert find(text) == []


def test_an_address_ends_before_the_mark_that_ends_the_sentence():
    for text in (
        "Voir https://a.example/b.",
        "(https://a.example/b)",
        "访问https://a.example/b查看。",
        "https://a.example/b, puis",
    ):
        assert [text[a:b] for a, b in find(text)] == ["https://a.example/b"]


WORDS = st.lists(st.sampled_from(["Le", "mot", ",", "est", "là", "你好", "-", *KEPT]), min_size=1, max_size=12)


@given(
    WORDS,
    st.sampled_from([" ", "", "  "]),
    st.lists(st.sampled_from(["the", "word", "is", "."]), max_size=8),
    st.data(),
)
def test_taken_out_and_put_back_none_is_lost(words, space, other, data):
    text = space.join(words)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    marks = [Mark(at, f"[{n}]") for n, at in enumerate(places)]
    bare = take_out(text, marks)
    assert Counter(mark.code for mark in bare.marks if mark.code) == Counter(mark.code for mark in marks)
    assert all(0 <= mark.at <= len(bare.text) for mark in bare.marks)
    translation = " ".join(other)
    found, left = put_back(translation, project(bare.text, translation, bare.marks), bare)
    for code, count in counts(text).items():
        assert found.count(code) >= count
    rest = found
    for code in sorted(counts(text), key=len, reverse=True):
        rest = rest.replace(code, "")
    assert Counter(rest.split()) == Counter(other), "words are lost or doubled"
    assert sorted(mark.code for mark in left) == sorted(mark.code for mark in marks)
    assert [mark.at for mark in left] == sorted(mark.at for mark in left)
    assert all(mark.at <= len(found) for mark in left)


@given(st.text(max_size=60).filter(lambda text: find(text) == []), st.data())
def test_with_the_words_unchanged_they_come_back_to_their_places(text, data):
    """Of a sentence whose words stay, with one space on both sides."""
    words = [word for word in text.split() if word]
    at = data.draw(st.integers(0, len(words)))
    given_ = " ".join([*words[:at], "%(name)s", *words[at:]])
    if len(find(given_)) != 1:
        return
    bare = take_out(given_, [])
    assert put_back(bare.text, project(bare.text, bare.text, bare.marks), bare)[0] == given_


@pytest.mark.parametrize("pair", ["%s%s", "%ld%d", "{a}{b}", "%d%%"])
def test_two_that_touch_are_two(pair):
    assert len(find(f"mot {pair}")) == 2 and len(find(pair)) == 2


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("le mot %s %d", 4, "the %s %d word"),
        ("le mot %s%d.", 4, "the %s%d word"),
        ("%s le mot", 8, "the word %s"),
        ("le mot %s.", 3, "the %s word"),
        ("le mot%s", 8, "the word%s"),
    ],
)
def test_one_that_touched_no_word_touches_none(text, at, found):
    bare = take_out(text, [])
    assert put_back("the word", [replace(mark, at=at) for mark in bare.marks], bare)[0] == found


def test_made_up_ones_are_removed():
    assert without("the %s word {x}") == "the  word "


@pytest.mark.parametrize(
    "unit", ["a", "<a '", "{a,plural,", "%(", "<", "{{", "http://", "a.a@", "<!--", '<a"', "$A", "&a", "{%", "@@", "\\"]
)
def test_time_grows_with_the_length_and_no_faster(unit):
    started = time.process_time()
    find(unit * (200_000 // len(unit)) + "@")
    assert time.process_time() - started < 3
