"""Plain text comes back byte for byte; a line stays a line, and wrapped paragraphs are wrapped again."""

from __future__ import annotations

import codecs
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.segment import Segment
from docnmt.documents.text import read, wrap
from docnmt.text.scripts import columns

NOBODY = ("", "")
PROSE = (
    "Le vieil homme avait posé sa valise au bord de la route, et regardait passer les voitures sans rien dire. Il "
    "attendait depuis le matin. Personne ne s'était arrêté, car il pleuvait trop fort pour que l'on vît quelqu'un."
)


def texts(data: str) -> list[str]:
    return [segment.text for segment in read(data.encode(), "a.txt", NOBODY).segments]


def translated(data: str, change=str.upper) -> str:
    file = read(data.encode(), "a.txt", NOBODY)
    return file.write([Segment(change(segment.text)) for segment in file.segments]).decode()


ENCODINGS = (
    (b"", "utf-8"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LINES = st.lists(
    st.sampled_from(["mot", "Une phrase.", " ", "  deux mots", "- item", "> cité", "12", "你好。", "é" * 50, "\t"])
)


@given(st.lists(st.tuples(LINES.map(" ".join), st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))), st.integers(0, 3))
def test_unchanged_segments_give_the_same_bytes(lines, encoding):
    text = "".join(line + end for line, end in lines)
    mark, name = ENCODINGS[encoding]
    data = mark + text.encode(name)
    file = read(data, "a.txt", NOBODY)
    assert file.write(file.segments) == data
    upper = file.write([Segment(segment.text.upper()) for segment in file.segments])
    assert upper[len(mark) :].decode(name).split() == text.upper().split()


@given(st.text(max_size=300))
def test_any_text_comes_back(text):
    if "\0" not in text:
        file = read(text.encode(), "a.txt", NOBODY)
        assert file.write(file.segments) == text.encode()


def test_a_line_stays_a_line():
    data = "Titre\n\nUne phrase par ligne.\r\n  Une autre, bien plus longue que la première.\n\tEncore une\n\n12\nFin"
    assert texts(data) == [
        "Titre",
        "Une phrase par ligne.",
        "Une autre, bien plus longue que la première.",
        "Encore une",
        "Fin",
    ]
    assert translated(data) == data.upper()


def test_the_marks_of_lists_and_mail_are_no_text():
    data = "- pain\n* lait\n> cité\n— Bonjour, dit-il.\n"
    assert texts(data) == ["pain", "lait", "cité", "Bonjour, dit-il."]
    assert translated(data) == data.upper()


@pytest.mark.parametrize("width", [50, 72, 79])
@pytest.mark.parametrize(("first", "prefix"), [("", ""), ("   ", ""), ("    ", "    "), ("> ", "> "), ("- ", "  ")])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_wrapped_paragraph_is_one_segment_and_is_wrapped_again(width, first, prefix, ending):
    lines = textwrap.wrap(PROSE, width, initial_indent=first, subsequent_indent=prefix)
    data = f"Titre{ending}{ending}" + ending.join(lines) + f"{ending}{ending}Fin{ending}"
    assert texts(data) == ["Titre", PROSE, "Fin"]
    longer = translated(data, lambda text: f"{text} {text}")
    body = longer.split(ending)[2:-3]
    assert len(body) > len(lines) and max(map(len, body)) <= max(map(len, lines))
    assert all(line.startswith(prefix) for line in body[1:]) and body[0].startswith(first)
    assert (
        " ".join(line.removeprefix(prefix) for line in body).replace(first, "", bool(first)).split()
        == f"{PROSE} {PROSE}".split()
    )


def test_lines_that_end_as_sentences_do_are_not_joined():
    lines = ["Il vient ici tous les jours de la semaine.", "Il repart le soir venu, quand il fait noir."] * 3
    assert texts("\n".join(lines)) == lines
    quoted = ["Il a dit au vieil homme : « Bonjour, Monsieur !\u00a0»", "Puis rien"]
    assert texts("\n".join(quoted)) == quoted
    assert texts("\n".join(quoted).replace("\u00a0", " ")) == [quoted[0].replace("\u00a0", " "), quoted[1]]


def test_words_cut_at_a_hyphen_stay_whole_and_chinese_needs_no_space():
    cut = "Il faut que chacun y mette du sien, c'est-\nà-dire que tout le monde y travaille un peu plus\nqu'avant"
    assert "c'est-à-dire" in texts(cut)[0]
    chinese = "他把旧箱子放在路边看着汽车一辆一辆地开过去什么话\n也没有说因为雨下得太大了谁也看不见他就这样等了一\n整天"
    assert texts(chinese) == [chinese.replace("\n", "")]
    again = translated(chinese, lambda text: text[::-1])
    assert max(columns(line) for line in again.split("\n")) <= columns(chinese.split("\n")[0])


@given(st.text(alphabet="ab é你好。", max_size=80), st.integers(1, 30), st.integers(1, 30))
def test_wrapping_loses_nothing(text, first, width):
    lines = wrap(text.strip(), first, width)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"Bonjour\ncaf\xe9\n", "line 2: byte 0xE9 is not valid UTF-8"),
        ("ab".encode("utf-16-le"), "NUL bytes"),
        (codecs.BOM_UTF16_LE + b"a\0b", "UTF-16"),
        (b"PK\x03\x04\0\0", "NUL bytes"),
    ],
)
def test_what_is_no_text(data, said):
    with pytest.raises(DocnmtError) as error:
        read(data, "a.txt", NOBODY)
    assert said in str(error.value) and "a.txt" in str(error.value) and "\n  " in str(error.value)


@pytest.mark.parametrize("unit", ["mot ", "mot\n", "\n", " ", "> ", "- ", "x" * 79 + "\n", "é" * 60 + "\n", "\r"])
def test_time_grows_with_the_length_and_no_faster(unit):
    data = unit * (200_000 // len(unit))
    started = time.process_time()
    file = read(data.encode(), "a.txt", NOBODY)
    file.write([Segment(segment.text + "x") for segment in file.segments])
    assert time.process_time() - started < 4
