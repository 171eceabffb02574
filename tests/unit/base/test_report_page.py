"""Pages: one file, whole, with nothing to fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from docnmt.base.report import STYLE, Column, Table, page, write_page

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Nesting(HTMLParser):
    """Opens and closes; what is left open or closed out of turn is a fault."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def sample() -> Table:
    table = Table('A "title" <b> & more', (Column("name", text=True), Column("paper: <MT06>", paper=True)))
    table.add("<script>alert(1)</script>", "1 & 2")
    table.notes.append("case:lc|<x>")
    return table


def test_a_page_is_well_nested_and_says_what_it_is():
    text = page("Title", ["<p>one</p>", sample()], style="p { color: red; }", script="let x = 1")
    nesting = Nesting()
    nesting.feed(text)
    assert (nesting.open, nesting.faults) == ([], [])
    assert text.startswith("<!doctype html>\n") and '<meta charset="utf-8">' in text
    assert text.count("<h1>Title</h1>") == text.count("<title>Title</title>") == 1
    assert text.index("<p>one</p>") < text.index("<table>") < text.index("<script>let x = 1</script>")
    assert STYLE.read_text(encoding="utf-8") + "p { color: red; }" in text


def test_a_page_without_a_script_has_none():
    assert "<script" not in page("Title", [])


def test_text_is_text_and_not_markup():
    text = page('<i>title</i> & "more"', [sample()])
    assert "<i>" not in text and "<script>" not in text and "<b>" not in text and "<x>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "1 &amp; 2" in text


def test_a_page_fetches_nothing():
    text = page("Title", [sample()])
    assert not re.search(r"<link|<img|<iframe|@import|\bsrc=|url\(|https?:", text)


def test_pages_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_page(path, "one … é")
    write_page(str(path), "two … é")
    assert path.read_text(encoding="utf-8") == "two … é"
    with pytest.raises(UnicodeEncodeError):
        write_page(path, "half a page \ud800")
    assert path.read_text(encoding="utf-8") == "two … é"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
