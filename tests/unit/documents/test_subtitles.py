"""Subtitles: sentences are joined over cues and shared out again; timings, numbers, notes and marks stay."""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents import read_document
from docnmt.documents.segment import Segment
from docnmt.documents.subtitles import cut, read_cues
from docnmt.text.scripts import columns

SRT = """1
00:00:01,000 --> 00:00:03,000
Quand le train est arrivé à la gare,

2
00:00:03,100 --> 00:00:05,000
<i>il faisait</i> déjà nuit et personne
ne nous attendait. Je ne

3
00:00:05,100 --> 00:00:07,000
savais plus quoi faire.

4
00:00:08,000 --> 00:00:10,000
{\\an8}<i>- Oui.
- Non, c'est fini.</i>

12
00:00:10,000 --> 00:00:11,000
- Oui. - Non.

7
00:00:12,000 --> 00:00:11,500
♪ La la la ♪

8
00:00:13,000 --> 00:00:14,000
Monsieur M.

9
00:00:13,500 --> 00:00:15,000
Dupont est là & <b>ici</b>.

10
00:00:20,000 --> 00:00:21,000


11
00:00:22,000 --> 00:00:23,000
1984
"""
VTT = """WEBVTT - un titre

STYLE
::cue(.big) { color: red }

REGION
id:fred

NOTE
Une note, qui reste.
00:00:01.000 --> 00:00:03.000 aussi

intro
00:01.000 --> 00:03.000 line:0 align:start
<v Anna>Bonjour à <c.big>tous</c> &amp; à

00:03.000 --> 00:05.000
<v Anna>chacun.
<v Anne-Marie>Salut <00:04.000>les <00:04.500>amis.
"""
FILES = {"x.srt": SRT, "x.vtt": VTT}
VARIANTS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "BOM": lambda text: codecs.BOM_UTF8 + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "mixed ends": lambda text: text.replace("\n", "\r\n", 9).encode(),
    "UTF-16": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "UTF-16 the other way": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "UTF-32": lambda text: codecs.BOM_UTF32_LE + text.encode("utf-32-le"),
    "no last newline": lambda text: text.rstrip("\n").encode(),
    "no blank lines": lambda text: re.sub("\n+", "\n", text).encode(),
    "three blank lines": lambda text: text.replace("\n\n", "\n\n \n\n").encode(),
}


def cue(number: int, text: str, start: float | None = None) -> str:
    begin = number if start is None else start
    stamps = (f"00:{int(t) // 60:02}:{int(t) % 60:02},{round(t % 1 * 1000):03}" for t in (begin, begin + 0.9))
    return f"{number}\n{' --> '.join(stamps)}\n{text}\n\n"


def texts(data: str, name: str = "x.srt", language: str = "fr") -> list[str]:
    return [segment.text for segment in read_document(data.encode(), name, (language, "")).segments]


def translated(data: str, say: Callable[[str], str] = str.upper, name: str = "x.srt", language: str = "fr") -> str:
    file = read_document(data.encode(), name, (language, ""))
    return file.write([replace(segment, text=say(segment.text)) for segment in file.segments]).decode()


def shown(data: str) -> list[str]:
    """The text of each cue, lines joined."""
    blocks = [block.split("\n", 2) for block in data.strip().split("\n\n")]
    return [block[2].replace("\n", " ") if len(block) > 2 else "" for block in blocks]


# Without blank lines a .vtt file has no cues.
CASES = [(name, variant) for name in FILES for variant in VARIANTS if (name, variant) != ("x.vtt", "no blank lines")]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_unchanged_segments_leave_the_bytes(name: str, variant: str) -> None:
    data = VARIANTS[variant](FILES[name])
    file = read_document(data, name, ("fr", "en"))
    assert len(file.segments) >= 2
    assert file.write(file.segments) == data


def test_sentences_are_joined_and_speakers_are_not() -> None:
    assert texts(SRT) == [
        "Quand le train est arrivé à la gare, il faisait déjà nuit et personne ne nous attendait. "
        "Je ne savais plus quoi faire.",
        "Oui.",
        "Non, c'est fini.",
        "Oui.",
        "Non.",
        "La la la",
        "Monsieur M. Dupont est là & ici.",
    ]
    assert texts(VTT, "x.vtt") == ["Bonjour à tous & à chacun.", "Salut les amis."]


def test_translation_is_shared_out_near_its_words() -> None:
    new = translated(SRT)
    assert new[: new.index("\n\n4\n")].split("\n\n") == [
        "1\n00:00:01,000 --> 00:00:03,000\nQUAND LE TRAIN EST ARRIVÉ À LA GARE,",
        "2\n00:00:03,100 --> 00:00:05,000\n<i>IL FAISAIT</i> DÉJÀ NUIT ET\nPERSONNE NE NOUS ATTENDAIT.",
        "3\n00:00:05,100 --> 00:00:07,000\nJE NE SAVAIS PLUS QUOI FAIRE.",
    ]
    assert "{\\an8}<i>- OUI.\n- NON, C'EST FINI.</i>" in new
    assert "\n- OUI. - NON.\n" in new and "♪ LA LA LA ♪" in new and "\n1984\n" in new


def test_all_but_the_words_of_a_vtt_stays() -> None:
    new = translated(VTT, name="x.vtt")
    assert new.startswith(VTT[: VTT.index("<v Anna>")])
    assert "<v Anna>BONJOUR À <c.big>TOUS</c> &amp; À\n" in new
    assert "<v Anne-Marie>SALUT <00:04.000>LES <00:04.500>AMIS.\n" in new


def test_text_of_a_vtt_is_escaped() -> None:
    one = "WEBVTT\n\n00:01.000 --> 00:03.000\nUn mot.\n"
    assert "A &lt; B &amp; C --&gt; D" in translated(one, lambda text: "A < B & C --> D", name="x.vtt")
    # in an .srt file these are plain characters
    assert "A < B & C" in translated(cue(1, "Un mot."), lambda text: "A < B & C")


def test_times_inside_a_cue_stay_in_order() -> None:
    file = read_document(VTT.encode(), "x.vtt", ("fr", "en"))
    last = file.segments[-1]
    turned = replace(last, marks=tuple(replace(mark, at=len(last.text) - mark.at) for mark in reversed(last.marks)))
    new = file.write([*file.segments[:-1], replace(turned, text=last.text.upper())]).decode()
    assert new.index("<00:04.000>") < new.index("<00:04.500>")


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("Il est parti", "sans un mot.", True),
        ("Je viens avec", "Marie demain.", True),
        ("Voici M.", "Dupont.", True),
        ("Je voulais...", "...te parler.", True),
        ("Il est parti.", "Sans un mot.", False),
        ("Il dit « non ! »", "Et il part.", False),
        ("Je viens avec", "- Toi ?", False),
        ("Je viens avec", "{\\an8}UN PANNEAU", False),
        ("♪ La la", "♪ La lère ♪", False),
    ],
)
def test_where_a_sentence_goes_on(first: str, second: str, joined: bool) -> None:
    filler = "".join(cue(n, f"Une phrase {n}.", 10 * n) for n in range(10, 14))
    found = len(texts(cue(1, first) + cue(2, second) + filler)) - 4
    assert found == (1 if joined else 2)


def test_nothing_is_joined_over_a_pause_nor_without_full_stops() -> None:
    filler = "".join(cue(n, f"Une phrase {n}.", 10 * n) for n in range(10, 14))
    assert len(texts(cue(1, "Il est parti") + cue(2, "sans un mot.", 9) + filler)) == 6
    chinese = "".join(cue(n, text) for n, text in enumerate(("我们走吧", "你在哪里？", "我不知道", "好的"), 1))
    assert texts(chinese, language="zh") == ["我们走吧", "你在哪里？", "我不知道", "好的"]


def test_chinese_is_joined_without_a_space_and_cut_between_characters() -> None:
    data = cue(1, "我们昨天晚上在车站，") + cue(2, "等了三个小时。") + cue(3, "然后回家。")
    assert texts(data, language="zh")[0] == "我们昨天晚上在车站，等了三个小时。"
    new = shown(translated(data, lambda text: text.replace("我们", "他们"), language="zh"))
    assert "".join(new) == "他们昨天晚上在车站，等了三个小时。然后回家。"
    assert new[0] == "他们昨天晚上在车站，"


def test_long_lines_are_broken_near_the_middle() -> None:
    words = "Ceci est une phrase qui est bien trop longue pour une seule ligne."
    (line,) = (
        block.split("\n", 2)[2] for block in translated(cue(1, "Court."), lambda text: words).strip().split("\n\n")
    )
    parts = line.split("\n")
    assert " ".join(parts) == words and len(parts) == 2
    assert abs(len(parts[0]) - len(parts[1])) < 14 and max(map(len, parts)) <= 42
    # A file with longer lines of its own keeps to those.
    assert "\n".join(translated(cue(1, words)).split("\n")[2:]).strip() == words.upper()


@pytest.mark.parametrize("say", [lambda text: "", lambda text: "x", lambda text: " y  z "])
def test_short_translations_leave_cues_standing(say: Callable[[str], str]) -> None:
    new = translated(SRT, say)
    assert re.findall(r"^\d+\n.*-->.*", new, re.M) == re.findall(r"^\d+\n.*-->.*", SRT, re.M)
    assert sorted(re.findall(r"</?[ib]>", new)) == sorted(re.findall(r"</?[ib]>", SRT))


lines = st.sampled_from(
    [
        "Bonjour.",
        "il est <i>là</i>",
        "- Oui.",
        "<b>gras",
        "</b> fin",
        "♪ la ♪",
        "{\\an8}haut",
        "&amp; toi",
        "1984",
        "...",
        "我们走。",
        "<v A>dit",
        "-- non",
        "a -->",
        "- a. - B!",
    ]
)
cues = st.lists(st.tuples(st.lists(lines, max_size=3), st.floats(0, 100), st.floats(0, 3)), min_size=1, max_size=8)


@st.composite
def subtitles(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(["x.srt", "x.vtt"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    blocks = ["WEBVTT"] if name == "x.vtt" else []
    for text, start, length in draw(cues):
        stamps = (f"00:{int(t // 60):02}:{int(t % 60):02}.{int(t % 1 * 1000):03}" for t in (start, start + length))
        number = draw(st.sampled_from(["1", "7", ""]))
        blocks.append("\n".join([*([number] if number else []), " --> ".join(stamps), *text]))
    return name, ("\n\n".join(blocks) + "\n").replace("\n", newline)


@settings(max_examples=150, deadline=None)
@given(subtitles(), st.data())
def test_generated_files_lose_no_mark_and_no_word(case: tuple[str, str], data: st.DataObject) -> None:
    name, text = case
    file = read_document(text.encode(), name, ("fr", "en"))
    assert file.write(file.segments) == text.encode()

    def moved(segment: Segment) -> Segment:
        said = data.draw(
            st.sampled_from(["Un seul mot", "x", "que dire de plus, sinon que c'est long et encore long ?"])
        )
        places = sorted(data.draw(st.integers(0, len(said))) for _ in segment.marks)
        marks = data.draw(st.permutations(segment.marks))
        return Segment(said, tuple(replace(m, at=at) for m, at in zip(marks, places, strict=True)))

    new = [moved(segment) for segment in file.segments]
    written = file.write(new).decode()
    codes = r"</?[A-Za-z][^<>]*>|\{\\[^{}]*\}|♪|[^\s]+ --> [^\s]+"
    assert sorted(re.findall(codes, written)) == sorted(re.findall(codes, text))
    words = re.sub(r"\s+", "", re.sub(r"<[^<>]*>|\{\\[^{}]*\}|♪", "", written))
    at = 0
    for segment in new:
        for word in segment.text.split():
            at = words.index(word, at) + len(word)


@given(st.text("ab ,.。我们", max_size=60), st.lists(st.integers(0, 50), min_size=1, max_size=6))
def test_cuts_lose_nothing_and_are_between_words(text: str, shares: list[int]) -> None:
    parts = cut(text, shares)
    assert "".join(parts) == text and len(parts) == len(shares)
    for left, right in pairwise(parts):
        if left and right:
            assert left[-1] == " " or columns(left[-1]) == 2 or columns(right[0]) == 2


def test_cuts_are_in_proportion() -> None:
    parts = cut("un deux trois quatre cinq six sept huit neuf dix", [1, 2, 1])
    assert parts == ["un deux trois ", "quatre cinq six sept ", "huit neuf dix"]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"\nBonjour.\n", "x.srt", "x.srt, line 2: these are not subtitles"),
        (b"WEBVTT\n\nNOTE rien\n", "x.vtt", "x.vtt, line 1: these are not subtitles"),
        (b"", "x.srt", "x.srt, line 1: these are not subtitles"),
        (b"1\n00:00:01,000 --> 00:00:02,000\ncaf\xe9\n", "x.srt", "x.srt, line 3: byte 0xE9 is not valid UTF-8"),
        (b"PK\x03\x04 zip", "x.srt", "x.srt, line 1: these are not subtitles"),
    ],
)
def test_broken_files_are_named(data: bytes, name: str, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)):
        read_document(data, name)


@pytest.mark.parametrize(
    "data",
    [
        "".join(cue(n, "un mot et <i>un autre</i>") for n in range(3_000)),
        cue(1, "<i>- " * 60_000),
        cue(1, "mot {\\ < & " * 40_000),
        cue(1, "- Oui. - Non." * 20_000),
        "\n" * 300_000 + cue(1, "mot."),
    ],
    ids=["many cues", "open tags", "stray signs", "dashes", "blank lines"],
)
def test_hostile_files_take_linear_time(data: str) -> None:
    start = time.process_time()
    file = read_document(data.encode(), "x.srt", ("fr", "en"))
    file.write([replace(segment, text=segment.text + "!") for segment in file.segments])
    assert time.process_time() - start < 20


def test_a_mark_of_a_run_stays_in_its_cue() -> None:
    file = read_document(SRT.encode(), "x.srt", ("fr", "en"))
    first = file.segments[0]
    moved = replace(first, text=first.text.upper(), marks=tuple(replace(mark, at=0) for mark in first.marks))
    new = file.write([moved, *file.segments[1:]]).decode()
    assert "03,100 --> 00:00:05,000\n<i></i>IL FAISAIT" in new


SLIPS = [
    "00:00:02,000 --> 00:0003,000",
    "00:00:02,000 -->",
    "00:00:02,000 -> 00:00:03,000",
    "00:00:02,000 > 00:00:03,000",
    "00:00:02;000 --> 00:00:03;000",
    "0:00:02,000  --> 00;00:03,000",
    "00:00:02,000 – 00:00:03,000",
    "x0:00:02,000 --> 00:00:03,000",
    "00:00:02,0 00 --> 00:00:03,000",
    "--> 00:00:03,000",
    "00:00 :02,000 --> 00:00:03,000",
    "00 : 00 : 02,000 --> 00:00:03,000",
    "00:00:02,000 - -> 00:00:03,000",
    "00:00:02,000 -- > 00:00:03,000",
    "00:00:02,000 --x> 00:00:03,000",
    "00:00:02,00O --> 00:00:03,000",
    "00:00:02,000 --&gt; 00:00:03,000",
    "00:0002,000 -- 00:00:03,000",
    "00:00:02,000",
]


@pytest.mark.parametrize("slip", SLIPS)
def test_a_cue_with_a_slip_in_its_timing_stays_a_cue(slip: str) -> None:
    """Its text is not said in the cue before, and its timing is left as it is."""
    cues = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\nC'est le mot {word}.\n" for n, word in ((1, "un"), (3, "trois"))]
    text = f"{cues[0]}\n2\n{slip}\nC'est le mot deux.\n\n{cues[1]}"
    file = read_document(text.encode(), "x.srt")
    assert [segment.text for segment in file.segments] == [f"C'est le mot {n}." for n in ("un", "deux", "trois")]
    new = file.write([replace(segment, text="It is a word.") for segment in file.segments]).decode()
    assert new == re.sub("C'est le mot .*", "It is a word.", text)


@pytest.mark.parametrize(
    "line",
    [
        "A --> B",
        "=> 5",
        "Il est 12:30 -> midi",
        "5 > 3",
        "2019 - 2020",
        "00:00:07,000",
        "06 12 34 56 78 - 06 12 34 56 79",
    ],
)
def test_words_with_arrows_are_no_timings(line: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\nC'est dit :\n{line}\n"
    assert len(read_cues(text, "x.srt")) == 1
