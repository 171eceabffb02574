"""A new kind of XML file is a function and one registration: here one that is made up, from bytes to bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import ModuleType

import pytest

import docnmt.decoding.excerpts
from docnmt.decoding.files import translate_bytes
from docnmt.documents import KINDS, read_document
from docnmt.documents.outline import Inline, Outline
from docnmt.documents.segment import FileText, Place
from docnmt.documents.xml import (
    Element,
    XmlText,
    attribute_places,
    pieces_of,
    text_places,
    xml_file,
)
from tests.fake_translator import Fake
from tests.office_files import texts

# ---- the kind: recipes with steps, in which *loud* text, times, pictures and line breaks stand ----

_NAMESPACES = {"urn:recipes": "r"}
_INLINE = {"r:loud": Inline.AROUND, "r:br": Inline.GAP}


def read(data: bytes, name: str, languages: tuple[str, str]) -> FileText:
    xml = XmlText(data, name)
    outline = Outline(_NAMESPACES, _inline)
    return xml_file(xml, frozenset(("r:step",)), partial(_places, xml), outline)


def _inline(name: str, attributes: Mapping[str, str]) -> Inline:
    return _INLINE.get(name, Inline.ALONE)


def _places(xml: XmlText, step: Element) -> Iterator[Place]:
    def link(element: Element) -> str:
        key = element.attributes.get("id")
        return {"r:from": f"time {key}", "r:to": f"/time {key}"}.get(element.name, "")

    for element in step.walk():
        if element.name in ("r:step", "r:note"):  # a note stands in a step, and is read after it
            yield from text_places(pieces_of(element, _inline, link))
        elif element.name == "r:picture":
            yield from attribute_places(xml, element, "alt")


# ---- what it does ----

RECIPE = b"""<?xml version="1.0" encoding="UTF-8"?>
<!-- for four --><q:recipe xmlns:q='urn:recipes' kind="cake &amp; co">
 <q:step n='1'>Melt the <q:loud>butter &amp; sugar</q:loud><q:br/>slowly<q:note>Not
     the salt!</q:note>, <q:from id="a"/>ten<q:to id="a"/> minutes.
 </q:step>
 <q:step><q:picture alt='a round cake' src="x"/> Serve it <q:picture src="y"/>warm.</q:step>
 <q:step><![CDATA[Eat < all]]> of it.</q:step><q:step>200</q:step>
</q:recipe>
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("docnmt.documents.recipe")
    vars(module)["read"] = read
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(KINDS, ".recipe", "recipe")
    monkeypatch.setattr(docnmt.decoding.excerpts, "align", lambda translator, pairs: [[] for _ in pairs])


def test_what_is_read() -> None:
    assert texts(read_document(RECIPE, "a.recipe")) == [
        "Melt the butter & sugar slowly, ten minutes.",
        "Not the salt!",
        "a round cake",
        "Serve it warm.",
        "Eat < all of it.",
    ]


def test_an_identity_leaves_every_byte() -> None:
    assert translate_bytes(Fake(lambda text: text), RECIPE, "a.recipe") == RECIPE


def test_a_translation_lands_where_the_text_was_and_all_else_stays() -> None:
    expected = RECIPE.decode()
    for old, new in (
        ("Melt the", "MELT THE"),
        ("butter &amp; sugar", "BUTTER &amp; SUGAR"),
        ("slowly", "SLOWLY"),
        ("Not\n     the salt!", "NOT THE SALT!"),
        (">ten<", ">TEN<"),
        (" minutes.", " MINUTES."),
        ("a round cake", "A ROUND CAKE"),
        ("Serve it", "SERVE IT"),
        ("warm.", "WARM."),
        ("<![CDATA[Eat < all]]> of it.", "EAT &lt; ALL OF IT."),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert translate_bytes(Fake(str.upper), RECIPE, "a.recipe").decode() == expected


def test_marks_stay_whole_and_nested_when_words_change_places() -> None:
    new = translate_bytes(Fake(lambda text: " ".join(reversed(text.split()))), RECIPE, "a.recipe")
    before, after = read_document(RECIPE, "a.recipe"), read_document(new, "a.recipe")
    assert [len(segment.marks) for segment in after.segments] == [len(segment.marks) for segment in before.segments]
    assert sorted(" ".join(texts(after)).split()) == sorted(" ".join(texts(before)).split())
