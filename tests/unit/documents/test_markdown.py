"""Markdown: what is not text comes back byte for byte, and what is written is read as what was meant."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents.markdown import read
from docnmt.documents.markdown_blocks import Blocks
from docnmt.documents.markdown_inline import Line
from docnmt.documents.segment import FileText, Segment
from tests.office_files import moved, shouted, texts

PAGE = """---
title: Left alone
---
# A *first* heading ##

Under a line
============

A paragraph that was **wrapped by** its
author with `code` and a [link](http://example.org/a_b "its title") and
an ![alt *text*](cat.png) and a note[^1].

> Quoted
> words\x20\x20
> after a break

- one
  - [ ] a task
    goes on
- see [ref], [it][ref] and [Other][]

| Head | 2 |
|------|:-:|
| a \\| b | `x` here |

    left = alone

```py
left = alone
```

<div align="center">
<b>Some</b> HTML <img src=x alt="a dog">
</div>

[ref]: http://example.org "left alone"
[other]: <x>

[^1]: What the note says

    and says.

> [!NOTE]
> A hint

1\\. No list, no \\*emphasis\\*, <kbd>Ctrl</kbd> <b>bold</b> <https://a.b> www.c.d/e_f
"""


def opened(text: str) -> FileText:
    return read(text.encode(), "a.md", ("en", "fr"))


def loud(text: str) -> str:
    return shouted(opened(text)).decode()


def written(text: str, *translations: str) -> str:
    page = opened(text)
    pairs = zip(page.segments, translations, strict=True)
    return page.write([replace(segment, text=new) for segment, new in pairs]).decode()


def test_what_is_read_and_in_which_order() -> None:
    assert texts(opened(PAGE)) == [
        "A first heading",
        "Under a line",
        "A paragraph that was wrapped by its author with  and a link and an  and a note.",
        "its title",
        "alt text",
        "Quoted words after a break",
        "one",
        "a task goes on",
        "see ref, it and Other",
        "Head",
        "a | b",
        "here",
        "Some HTML",
        "a dog",
        "What the note says",
        "and says.",
        "A hint",
        "1. No list, no *emphasis*,  bold  www.c.d/e_f",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_unchanged_segments_give_the_same_bytes(end: str) -> None:
    for text in (PAGE, PAGE.rstrip("\n"), "\ufeff" + PAGE):
        data = text.replace("\n", end).encode()
        page = read(data, "a.md", ("", ""))
        assert page.write(page.segments) == data
    wide = PAGE.encode("utf-16")
    assert (page := read(wide, "a.md", ("", ""))).write(page.segments) == wide


def test_the_translation_lands_where_the_text_was() -> None:
    new = loud(PAGE)
    for expected in (
        "---\ntitle: Left alone\n---\n# A *FIRST* HEADING ##\n",
        "UNDER A LINE\n============\n",
        "**WRAPPED BY** ITS",
        '[LINK](http://example.org/a_b "ITS TITLE")',
        "![ALT *TEXT*](cat.png)",
        "NOTE[^1].",
        "> QUOTED WORDS  \n> AFTER A BREAK\n",
        "  - [ ] A TASK\n    GOES ON\n- SEE [REF][ref], [IT][ref] AND [OTHER][Other]\n",
        "| HEAD | 2 |\n|------|:-:|\n| A \\| B | `x` HERE |\n",
        "\n    left = alone\n\n```py\nleft = alone\n```\n",
        '<b>SOME</b> HTML <img src=x alt="A DOG">\n',
        '[ref]: http://example.org "left alone"\n[other]: <x>\n',
        "[^1]: WHAT THE NOTE SAYS\n\n    AND SAYS.\n",
        "> [!NOTE]\n> A HINT\n",
        "1\\. NO LIST, NO \\*EMPHASIS\\*, <kbd>Ctrl</kbd> <b>BOLD</b> <https://a.b> WWW.C.D/E_F\n",
    ):
        assert expected in new


def test_the_structure_stays_for_another_parser() -> None:
    parser = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    parse = parser.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse

    def outline(text: str) -> list[str]:
        return [f"{token.type} {token.tag} {token.level}" for token in parse(text)]

    assert outline(loud(PAGE)) == outline(PAGE)


def test_paragraphs_are_wrapped_as_they_were() -> None:
    text = "> Some words that go on\n> and on, to here.\n\nOne line of many words that go on and on and on."
    new = loud(text + " " + "word " * 40)
    assert new.startswith("> SOME WORDS THAT GO ON\n> AND ON, TO HERE.\n\nONE LINE OF")
    assert new.count("\n") == 3
    longer = written("- a word here\r\n  and there", "one - two + three 1. four # five > six | seven == eight")
    assert max(map(len, longer.split("\r\n"))) < 30
    assert texts(opened(longer)) == ["one - two + three 1. four # five > six | seven == eight"]


@pytest.mark.parametrize(
    "new",
    [
        "*not* emphasis, nor _this_ nor **that**",
        "1. no list",
        "2) nor this",
        "- nor that",
        "# no heading",
        "> no quote",
        "a `tick` and a ``b",
        "[no](link) [nor] [ref] [this][ref] ![or]( this )",
        "[no]: definition",
        "[^1]: no note, nor [^1]",
        "[ ] no task",
        "<b>no tag</b> <!-- no comment --> <no@mail.de>",
        "&amp; &copy; &#65;",
        "2 * 3 * 4 and snake_case_word and a\\b and a\\*b",
        "~~not struck~~ ~nor~ this",
        "ends with a backslash \\",
        "a | b",
        "--- word",
        "::: word",
        "$x_1$ costs $5",
        "{#id} :smile: words",
        "=====",
        "no heading #",
        "!!! note",
        "www.example.org/a_b_c(d) and https://e.f/*g*",
    ],
)
@pytest.mark.parametrize(
    "place", ["{}\n\n[ref]: x", "# {}\n\n[ref]: x", "| {} |\n|--|\n\n[ref]: x", "- {}\n\n[ref]: x"]
)
def test_text_does_not_become_markup(place: str, new: str) -> None:
    result = written(place.format("word"), f"{new} W")
    assert result.endswith(place.partition("{}")[2])
    assert texts(opened(result)) == [f"{new} W"]


def test_ends_of_lines_do_not_become_markup() -> None:
    assert texts(opened(written("# word", "C #"))) == ["C #"]
    page = opened("a word  \nin two")
    new = page.write([Segment("word ---", (replace(page.segments[0].marks[0], at=5),))]).decode()
    assert texts(opened(new)) == ["word ---"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a***b*c** d", "abc d"),
        ("* a\n\n  b\n\n      code\n", "a"),
        ("word\n---\n", "word"),
        ("a\\\nb", "a b"),
        ("> a\nb", "a b"),
        ("!!! note\n    body\n", "body"),
        ("::: warning\nbody\n:::\n", "body"),
        ("text $x^2$ more", "text  more"),
        ("$$\nx words\n$$\nafter", "after"),
        ("{% note %}\nbody\n{% end %}", "body"),
        ("# Head {#id}", "Head"),
        ("[![alt](a)](b)", "alt"),
        ("a\tb\n\tc", "a b c"),
        ("-\n\n  word", "word"),
        ("1. a\n2. ```\n   code\n   ```", "a"),
        ("<details>\n<summary>word</summary>\n\n", "word"),
        ("<!-- a comment -->\nword", "word"),
        ("![a](b 'c d')", "a"),
        ("    code\n\tcode\n\nword", "word"),
        ("| a |\n| - |\n> word", "a"),
    ],
)
def test_what_a_reader_sees_first(text: str, expected: str) -> None:
    page = opened(text)
    assert texts(page)[0] == expected
    assert page.write(page.segments) == text.encode()


def test_emphasis_that_markdown_cannot_write_is_written_as_html() -> None:
    page = opened("a **word** here")
    inside, outside = page.segments[0].marks
    new = Segment("Donaudampf!schiff", (replace(inside, at=5), replace(outside, at=11)))
    assert page.write([new]).decode() == "Donau<strong>dampf!</strong>schiff"
    new = Segment("a good word", (replace(inside, at=1), replace(outside, at=7)))
    assert page.write([new]).decode() == "a **good** word"


def test_code_does_not_stick_to_a_word() -> None:
    page = opened("Run `make` to build.")
    (mark,) = page.segments[0].marks
    assert (
        page.write([Segment("Zum Bauen ausführen.", (replace(mark, at=19),))]) == "Zum Bauen ausführen `make`.".encode()
    )
    assert page.write([Segment("构建时运行它。", (replace(mark, at=5),))]) == "构建时运行`make`它。".encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"word\n\xff", "a.md, line 2: byte 0xFF is not valid UTF-8"),
        (b"a\0b", "a.md: not Markdown: it contains NUL bytes"),
    ],
)
def test_bad_files_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)):
        read(data, "a.md", ("", ""))


_SOURCES = (
    "Some **bold *and* more** [link _text_](x 'a title') ~~gone~~ and `code` ![a picture](y) here[^1]\n",
    "> Some **bold**\n> words and [one](x) or  \n> two [links](y), <https://a.b> too <!-- c --> and <b>tags</b>\n",
    "| a **b** | *c* `d` e |\n|---|---|\n| x [y](z) w | v |\n",
    "# A *b* [c][d]\n\n[d]: e\n",
)


@given(st.sampled_from(_SOURCES), st.data())
@settings(max_examples=200, deadline=None)
def test_marks_at_any_place_are_written_once_and_read_again(text: str, data: st.DataObject) -> None:
    page = opened(text)
    translations = data.draw(moved(page.segments, words="xyz *_`[]<>&|#~\\-1.é "))
    new = page.write(translations).decode()
    again = opened(new)
    assert sorted(map(_plain, again.segments)) == sorted(map(_plain, translations))
    assert _kinds(new) == _kinds(text)


def _plain(segment: Segment) -> str:
    return "".join(segment.text.split())


def _kinds(text: str) -> Counter[str]:
    """What kinds of marks there are; emphasis may be written in two ways."""
    blocks = Blocks(text)
    pieces: list[str] = []
    for block in list(blocks.read()):
        content = "\n".join(text[start:end] for start, end in block.lines)
        line = Line(content, frozenset(blocks.labels))
        marks = [*line.pieces, *(piece for inside in line.inside for piece in inside.pieces)]
        pieces += (content[piece.start : piece.end] for piece in marks if piece.text is None)
    return Counter(_TAGS.get(piece, piece[:2] if piece[0] in "!]" else piece) for piece in pieces)


_TAGS = {"*": "em", "_": "em", "**": "strong", "~~": "del", "  \n": "br"}
_TAGS |= {tag: name for name in _TAGS.values() for tag in (f"<{name}>", f"</{name}>")}


_PIECES = (
    "# |## |> |- |+ |* |1. |2) |    |\t|  |---|===|```|~~~|``|`|*|**|_|__|~~|[|]|](x)|](|![|[^1]|[^1]: |[a]: b|<b>|</b>"
    "|<div>|</div>|<!--|-->|<http://a.b>|&amp;|&|\\|\\*|{{x}}|$|$$|:::|!!! note|a|b|word|two words|é|!|:| |\n|\n\n|\r\n"
)
_FRAGMENTS = st.sampled_from([*_PIECES.split("|"), "|", "|---|\n", "| a | b |\n|---|---|\n"])


@given(st.lists(_FRAGMENTS, max_size=30))
@settings(max_examples=600, deadline=None)
def test_any_text_comes_back(fragments: list[str]) -> None:
    text = "".join(fragments)
    page = opened(text)
    assert page.write(page.segments) == text.encode()
    shouted(page)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 20_000,
        "some words\n" * 6_000,
        "[" * 10_000 + "]" * 10_000,
        "*a **a " * 3_000,
        "`" + "a``" * 4_000,
        "[a](" * 4_000,
        "![" * 4_000 + "](x)" * 4_000,
        "> " * 4_000 + "a",
        "- " * 2_000 + "a",
        "[a]: b\n" * 4_000,
        "<!-- " * 6_000,
        "|a" * 6_000 + "\n" + "|-" * 6_000 + "\n",
        "{" * 20_000,
        "$a" * 10_000,
        "***" * 4_000 + "`a\nb`" + "***" * 4_000,
        "<b>" * 6_000 + "</i>" * 6_000,
        "- a\n" * 2_000,
        "\\" * 40_000,
        "a_" * 10_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    start = time.process_time()
    page = opened(text)
    assert page.write(page.segments) == text.encode()
    shouted(page)
    assert time.process_time() - start < 10
