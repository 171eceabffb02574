"""JSON of strings: values are translated, keys and all else stay to the byte."""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.documents import read_document


def louder(text: str) -> str:
    return re.sub(r"(\{[^{}]*\})|([^{}]+)", lambda found: found[1] or found[2].upper(), text)


def translated(data: str | bytes, say: Callable[[str], str] = louder) -> str:
    file = read_document(data if isinstance(data, bytes) else data.encode(), "x.json")
    new = [replace(segment, text=say(segment.text)) if segment.translate else segment for segment in file.segments]
    return file.write(new).decode()


def texts(data: str) -> list[str]:
    return [segment.text for segment in read_document(data.encode(), "x.json").segments if segment.translate]


NASTY = {
    "empty object": "{}",
    "a number": " 12.50e+3 ",
    "a string": '"Bonjour à tous"',
    "an array": '["Un", "deux", ["trois"], {}, [], "", null]',
    "spaces": '\r\n{\t"a" :\r\n "Un",\n\n"b":[ "deux" , 1.0 ,true,-0 ] }\r\n',
    "duplicates": '{"a": "Un", "a": "deux", "b": "Un"}',
    "escapes": r'{"a\u0062\"": "\u00c9t\u00e9 \ud83d\ude00 \/ \\ \" \b\f\t", "half": "Un \ud800"}',
    "big number": '{"a": ' + "9" * 6000 + ', "b": "Un"}',
    "markup": '{"a": "Un <b>mot <i class=\\"x\\">ici</i></b><br> &amp; l&agrave; <0>x</0> < 3"}',
    "lines": '{"a": "Un\\n\\tdeux\\n  trois\\r\\n"}',
    "choice": '{"n": "Il y a {n, plural, =0 {rien} one {# chat} other {# chats}} ici"}',
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_unchanged_segments_leave_the_bytes(name: str, encoding: str) -> None:
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    data = mark + NASTY[name].encode(encoding)
    file = read_document(data, "x.json")
    assert file.write(file.segments) == data


values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(list(NASTY.values())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(values, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_generated_files(value: object, ascii_only: bool, indent: int | str | None) -> None:
    try:
        data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    except UnicodeEncodeError:
        return
    file = read_document(data, "x.json")
    assert file.write(file.segments) == data
    new = json.loads(file.write([replace(segment, text=segment.text + "!") for segment in file.segments]))

    def shape(value: object) -> object:
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items()}
        return [shape(inner) for inner in value] if isinstance(value, list) else isinstance(value, str) or value

    assert shape(new) == shape(json.loads(data))


def test_values_are_translated_and_keys_are_not() -> None:
    menu = '{"open file": "Open file", "sizes": ["Small", 2, {"x": "Very large"}]}'
    data = '{"menu": ' + menu + ', "link": "https://x.org/ab"}'
    assert json.loads(translated(data)) == {
        "menu": {"open file": "OPEN FILE", "sizes": ["SMALL", 2, {"x": "VERY LARGE"}]},
        "link": "https://x.org/ab",
    }


def test_texts_are_plain() -> None:
    assert texts(NASTY["markup"]) == ["Un mot ici & là x < 3"]
    assert texts('["On {d, date, long} at {t, time}, {who}"]') == ["On {d, date, long} at {t, time}, {who}"]
    assert texts(NASTY["lines"]) == ["Un", "deux", "trois"]
    assert texts('["12", "{name}", "%d: %s", "a@b.org", "--help"]') == []


def test_markup_and_entities_are_written_again() -> None:
    assert json.loads(translated(NASTY["markup"])) == {
        "a": 'UN <b>MOT <i class="x">ICI</i></b><br> &amp; LÀ <0>X</0> < 3'
    }
    assert json.loads(translated(NASTY["lines"])) == {"a": "UN\n\tDEUX\n  TROIS\r\n"}


def test_ascii_files_stay_ascii_and_slashes_escaped() -> None:
    new = translated(r'{"a": "\u00e9t\u00e9 <\/b>"}', lambda text: f"{text}ù/")
    assert new.isascii() and "\\u00f9\\/" in new and "<\\/b>" in new
    assert "ù" in translated('{"a": "Un"}', lambda text: text + "ù")


def test_chrome_messages_alone_are_translated() -> None:
    data = (
        '{"hello": {"message": "Hello $NAME$", "description": "A greeting", '
        '"placeholders": {"name": {"content": "$1", "example": "Some text"}}},\n "bye": {"message": "Good bye"}}'
    )
    assert texts(data) == ["Hello $NAME$", "Good bye"]
    # Where the layout is not Chrome's, these are keys like others.
    assert texts('{"form": {"message": "Message", "description": "Describe it"}, "x": "Text"}') == [
        "Message",
        "Describe it",
        "Text",
    ]


def test_metadata_of_arb_files_is_left_alone() -> None:
    about = '{"description": "Said first", "placeholders": {"n": {"type": "String"}}}'
    data = '{"@@locale": "en", "hi": "Hello", "@hi": ' + about + "}"
    assert texts(data) == ["Hello"]


@pytest.mark.parametrize(
    "text",
    [
        "You have {count, plural, =0 {no letters} one {# letter} other {# letters}} from {who}.",
        "{g, select, f {Her} other {Their}} dog has {n, plural, offset:1 one {# tail} other {# tails}}",
        "{place, selectordinal, one {#st} other {#th}} of {d, date, short}",
        "It's '{'{n, plural, one {a} other {b}}",
        "<b>{n, plural,\n  one {a &amp; b}\n  other {c}}</b>",
        "{n, plural, one {a}",
        "{n, plural, one {{n, plural, " * 30,
    ],
)
def test_choices_are_left_alone_and_read_as_context(text: str) -> None:
    data = json.dumps({"a": "First", "b": text, "c": "Last"})
    assert texts(data) == ["First", "Last"]
    kept = [segment.translate for segment in read_document(data.encode(), "x.json").segments]
    assert kept[0] and kept[-1] and len(kept) > 2 and not any(kept[1:-1])
    assert json.loads(translated(data)) == {"a": "FIRST", "b": text, "c": "LAST"}


def test_apostrophes_before_braces_are_doubled_in_icu_files() -> None:
    choice = "{n, plural, one {a # b} other {a # b}}"
    data = json.dumps({"a": "the {name}", "x": choice})
    assert json.loads(translated(data, lambda text: "l'{name}")) == {"a": "l''{name}", "x": choice}
    assert json.loads(translated('{"a": "the {name}"}', lambda text: "l'{name}")) == {"a": "l'{name}"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": "b",\n1}', "x.json, line 2: not valid JSON"),
        (b'{"a": "b"} // no', "x.json, line 1: not valid JSON: Extra data"),
        (b"", "x.json, line 1: not valid JSON"),
        (b'\n{"a": "\xe9"}', "x.json, line 2: byte 0xE9 is not valid UTF-8"),
        (b"[" * 200_000, "x.json: objects are nested too deep"),
        (b"PK\x03\x04\xff", "x.json, line 1"),
    ],
)
def test_broken_files_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)):
        read_document(data, "x.json")


def test_large_files_take_linear_time() -> None:
    data = json.dumps([{"text": "Word " * 50, "n": "<" * 100 + "{" * 100 + "&" * 100} for _ in range(2_000)])
    start = time.perf_counter()
    assert len(texts(data)) == 2_000
    assert time.perf_counter() - start < 20


def test_arb_tells_the_language_it_is_in_now() -> None:
    text = '{"@@locale": "fr", "title": "Bonjour", "@title": {"description": "Une salutation"}, "fr": "Le fr"}'
    file = read_document(text.encode(), "app_fr.arb", ("fr", "en-GB"))
    assert [segment.text for segment in file.segments] == ["Bonjour", "Le fr"]
    new = file.write([replace(segment, text="Hello") for segment in file.segments]).decode()
    assert new == text.replace('"fr", "title": "Bonjour"', '"en_GB", "title": "Hello"').replace("Le fr", "Hello")
    assert file.write(file.segments) == text.encode()
    other = read_document(text.replace('"fr",', '"de",', 1).encode(), "app.arb", ("fr", "en"))
    assert b'"de"' in other.write([replace(segment, text="Hello") for segment in other.segments])
