"""gettext catalogues: messages without a finished translation get one, nothing else changes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import docnmt.decoding.excerpts
from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import translate_bytes
from docnmt.documents import read_document
from docnmt.documents.placeholders import without
from docnmt.documents.po import PluralForms, literal, read_entries
from docnmt.documents.segment import Segment
from tests.fake_translator import Fake, backwards

RUSSIAN = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
HEADER = r"""# Somebody's catalogue.
msgid ""
msgstr ""
"Project-Id-Version: shop\n"
"PO-Revision-Date: 2020-01-01 00:00+0000\n"
"Last-Translator: Nobody <n@example.org>\n"
"Language-Team: none\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: PLURALS\n"
"""
BODY = r"""
#. Said by the shop keeper.
#: shop.c:12
#, c-format
msgid "Cannot open %s\n"
msgstr ""

#: shop.c:20
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#, fuzzy
#| msgid "Shut the door"
msgid "Close the door"
msgstr "Fenster zu"

#, c-format
msgid "one basket"
msgid_plural "%d baskets"
msgstr[0] ""
msgstr[1] ""

msgid ""
"\n"
"A line that was wrapped by hand because it had become too long for the screen\n"
"and that goes on <b>here</b>.\n"
"  -h\tshow \"help\" &amp; leave\n"
msgstr ""

#~ msgid "An old one"
#~ msgstr "Ein altes"
"""
FRENCH = "nplurals=2; plural=(n > 1);"


def catalogue(body: str = BODY, plurals: str = FRENCH) -> bytes:
    return (HEADER.replace("PLURALS", plurals + r"\n" if plurals else r"\n").replace(r"\n\n", r"\n") + body).encode()


def louder(text: str) -> str:
    """Upper case, placeholders left alone: what a translator that keeps them might give."""
    return re.sub(r"(%\w)|([^%]+)", lambda found: found[1] or found[2].upper(), text)


def translated(
    data: bytes, say: Callable[[str], str] = louder, languages: tuple[str, str] = ("en", "fr"), name: str = "x.po"
) -> str:
    file = read_document(data, name, languages)
    new = [replace(s, text=say(s.text)) if s.translate else s for s in file.segments]
    return file.write(new).decode()


def entry(text: str, msgid: str) -> str:
    """The entry with this first line of its msgid."""
    return next(block for block in re.split(r"\n\s*\n", text) if f'msgid "{msgid}' in block)


def texts(segments: Sequence[Segment]) -> list[str]:
    return [segment.text for segment in segments]


VARIANTS = {
    "plain": lambda data: data,
    "BOM": lambda data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "mixed ends": lambda data: data.replace(b"\n", b"\r\n", 20),
    "no last newline": lambda data: data.rstrip(b"\n"),
    "latin": lambda data: data.decode().replace("UTF-8", "ISO-8859-1").encode("latin-1"),
    "template": lambda data: data.replace(b"UTF-8", b"CHARSET").replace("Ö".encode(), b"O"),
    "two strings a line": lambda data: data + b'\nmsgid "a" "b c"\nmsgstr\n"" ""\n',
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_unchanged_segments_leave_the_bytes(variant: str) -> None:
    data = VARIANTS[variant](catalogue())
    file = read_document(data, "x.po")
    assert file.segments
    assert file.write(file.segments) == data


def test_a_catalogue_in_another_language_is_not_filled() -> None:
    data = catalogue().replace(b"Language: \\n", b"Language: de\\n")
    with pytest.raises(DocnmtError, match=r"x.po: its target language is de, but the model's is fr\n"):
        read_document(data, "x.po", ("en", "fr"))
    assert read_document(data, "x.po", ("en", "de")).segments


def test_segments_are_the_messages_in_order() -> None:
    segments = read_document(catalogue(), "x.po").segments
    assert texts(segments) == [
        "Cannot open %s",
        "Open",
        "Close the door",
        "one basket",
        "%d baskets",
        "A line that was wrapped by hand because it had become too long for the screen and that goes on here.",
        'show "help" & leave',
    ]
    assert [s.text for s in segments if not s.translate] == ["Open"]


def test_what_is_translated_and_what_stays() -> None:
    new = translated(catalogue())
    assert entry(new, "Cannot open").splitlines()[2:] == [
        "#, fuzzy, c-format",
        r'msgid "Cannot open %s\n"',
        r'msgstr "CANNOT OPEN %s\n"',
    ]
    assert 'msgstr "Öffnen"' in new
    assert entry(new, "Close").splitlines()[-1] == 'msgstr "CLOSE THE DOOR"'
    assert entry(new, "Close").count("fuzzy") == 1
    assert new.endswith('#~ msgid "An old one"\n#~ msgstr "Ein altes"\n')
    assert '"Language: fr\\n"' in new
    wrapped = new[new.index('"A LINE') :]
    assert wrapped.startswith(
        '"A LINE THAT WAS WRAPPED BY HAND BECAUSE IT HAD BECOME TOO LONG FOR THE SCREEN\\n"\n'
        '"AND THAT GOES ON <b>HERE</b>.\\n"\n'
        '"  -h\\tSHOW \\"HELP\\" &amp; LEAVE\\n"\n'
    )


def test_nothing_but_translations_flags_and_language_changes() -> None:
    def rest(text: str) -> list[str]:
        lines = [line.replace(" fuzzy,", "").replace("Language: fr", "Language: ") for line in text.splitlines()]
        return [line for line in lines if not line.startswith(("msgstr", '"', "#, fuzzy"))]

    assert rest(translated(catalogue())) == rest(catalogue().decode())


@pytest.mark.parametrize(
    ("plurals", "expected"),
    [
        (FRENCH, ["ONE BASKET", "%d BASKETS"]),
        ("nplurals=1; plural=0;", ["%d BASKETS"]),
        ("nplurals=2; plural=(n != 1);", ["ONE BASKET", "%d BASKETS"]),
        ("nplurals=2; plural=(n == 1);", ["%d BASKETS", "ONE BASKET"]),
        # 21 takes the form of 1: without the number it would be wrong.
        (RUSSIAN, ["%d BASKETS"] * 3),
        # gettext takes none where the header does not tell how they are chosen.
        ("nplurals=INTEGER; plural=EXPRESSION;", ["", ""]),
        ("nplurals = 2 ; plural = n>1;", ["", ""]),
        ("", ["", ""]),
    ],
)
def test_plural_forms_are_filled(plurals: str, expected: list[str]) -> None:
    lines = [line for line in translated(catalogue(plurals=plurals)).splitlines() if line.startswith("msgstr[")]
    assert lines == [f'msgstr[{number}] "{text}"' for number, text in enumerate(expected)]


def test_singular_with_its_number_serves_the_form_of_one() -> None:
    body = '\nmsgid "%d basket"\nmsgid_plural "%d baskets"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    lines = [line for line in translated(catalogue(body, RUSSIAN)).splitlines() if line.startswith("msgstr[")]
    assert lines == ['msgstr[0] "%d BASKET"', 'msgstr[1] "%d BASKETS"', 'msgstr[2] "%d BASKETS"']


@pytest.mark.parametrize("label", ["_Open", "Save _as", "E&xit", "&Close"])
def test_the_key_of_a_label_is_a_mark(label: str) -> None:
    data = catalogue(f'\nmsgid "{label}"\nmsgstr ""\n')
    (segment,) = read_document(data, "x.po").segments
    assert segment.text.replace(" ", "").isalpha() and segment.marks[0].code in "_&"
    assert f'msgstr "{label.upper()}"' in translated(data)


@pytest.mark.parametrize(
    "text", ["AT&T", "a snake_case word", "_two_ words", "Drag&Drop", "this & that", "_" + "long " * 20]
)
def test_other_signs_are_no_keys(text: str) -> None:
    (segment,) = read_document(catalogue(f'\nmsgid "{text.strip()}"\nmsgstr ""\n'), "x.po").segments
    assert (segment.text, segment.marks) == (text.strip(), ())


def test_a_form_somebody_translated_is_kept() -> None:
    body = '\nmsgid "%d basket"\nmsgid_plural "%d baskets"\nmsgstr[0] "%d panier"\nmsgstr[1] ""\n'
    new = translated(catalogue(body))
    assert 'msgstr[0] "%d panier"\nmsgstr[1] "%d BASKETS"' in new


@pytest.mark.parametrize(
    ("field", "ones", "count"),
    [
        (FRENCH, {0, 1}, 2),
        (RUSSIAN, {n for n in range(200) if n % 10 == 1 and n % 100 != 11}, 3),
        ("nplurals=2; plural=n!=1;", {1}, 2),
        ("nplurals=3; plural=n==1 ? 0 : n==0 || (n%100 > 0 && n%100 < 20) ? 1 : 2;", {1}, 3),
    ],
)
def test_plural_expressions(field: str, ones: set[int], count: int) -> None:
    forms = PluralForms.parse(field)
    assert forms and (forms.count, forms.of_one, forms.few) == (count, 0, len(ones) < 3)


@pytest.mark.parametrize(
    "field", ["nplurals=2; plural=" + "(" * 900 + "n", "nplurals=2; plural=n$1;", "nplurals=2; plural=n n"]
)
def test_plural_expressions_that_cannot_be_read_tell_the_count_alone(field: str) -> None:
    assert PluralForms.parse(field) == PluralForms(2, None, False)


def test_a_template_gets_language_and_charset() -> None:
    data = VARIANTS["template"](catalogue())
    new = translated(data, lambda text: "É" + text, name="x.pot")
    assert "charset=UTF-8" in new and '"Language: fr\\n"' in new


def test_windows_line_ends_go_into_what_is_added() -> None:
    new = translated(VARIANTS["CRLF"](catalogue(plurals=RUSSIAN)))
    assert "\n" not in new.replace("\r\n", "")


def test_long_translations_are_wrapped_as_the_file_is() -> None:
    long = '\nmsgid "short"\nmsgstr ""\n'
    new = translated(catalogue(long), lambda text: "un mot et encore un autre " * 8)
    assert max(map(len, new.splitlines())) <= 79
    unwrapped = long + f'\nmsgid "{"words and words " * 10}"\nmsgstr ""\n'
    new = translated(catalogue(unwrapped), lambda text: "un mot et encore un autre " * 8)
    assert max(map(len, entry(new, "short").splitlines())) > 150


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=200), st.booleans())
def test_any_string_is_read_as_it_was_written(text: str, wrap: bool) -> None:
    written = f"msgid {literal(text, 73, wrap, chr(10))}\nmsgstr {literal(text, 72, wrap, chr(10))}\n"
    (read,) = read_entries(written, "x.po")
    assert read.msgid and read.msgid.text == read.forms[0].text == text


words = st.sampled_from(
    ["Open", "the %s", "<b>file</b>", "l'été", "50 %", "&amp;", "{n}", "\n", "\t", "  ", "\n\n", "保存"]
)
strings = st.lists(words, max_size=8).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(strings, st.booleans(), strings, st.sampled_from(["", "#, fuzzy\n", "#: a.c:1\n"])), max_size=6)
)
def test_generated_catalogues(entries: list[tuple[str, bool, str, str]]) -> None:
    def line(keyword: str, text: str) -> str:
        return f"{keyword} {literal(text, 72, True, chr(10))}\n"

    body = "".join(
        f"\n{comment}{line('msgctxt', str(n))}{line('msgid', 'x' + source)}{line('msgstr', target if done else '')}"
        for n, (source, done, target, comment) in enumerate(entries)
    )
    data = catalogue(body)
    file = read_document(data, "x.po", ("en", "fr"))
    assert file.write(file.segments) == data
    new = read_entries(file.write([replace(s, text=f"« {s.text} »") for s in file.segments]).decode(), "x.po")
    old = read_entries(data.decode(), "x.po")
    for before, after in zip(old[1:], new[1:], strict=True):
        assert before.msgid and after.msgid and before.msgid.text == after.msgid.text
        assert before.context and after.context and before.context.text == after.context.text
        text = after.forms[0].text
        if before.translated:
            assert text == before.forms[0].text and not after.fuzzy
        elif text:
            source = before.msgid.text
            assert after.fuzzy
            assert text.startswith("\n") == source.startswith("\n") and text.endswith("\n") == source.endswith("\n")
            assert sorted(re.findall(r"</?b>|\n", text)) == sorted(re.findall(r"</?b>|\n", source))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'msgid "a"\nmsgid "b"\nmsgstr ""\n', "x.po, line 2: msgid occurs twice in one entry"),
        (b'msgid "a"\n\n# c\nmsgid "b"\nmsgstr ""\n', "x.po, line 3: there is a comment inside an entry"),
        (b'msgstr "a"\n', "x.po, line 1: this entry has no msgid"),
        (b'msgid "a"\n', "x.po, line 1: this entry has no msgstr"),
        (b'\n"a"\n', "x.po, line 2: this string has no keyword"),
        (b'msgid "a\nmsgstr ""\n', "x.po, line 1: this is not a keyword, string or comment"),
        (b"PK\x03\x04", "x.po, line 1: this is not a keyword, string or comment"),
        (b'message "a"', "x.po, line 1: unknown keyword 'message'"),
        (b"msgid\nmsgstr", "x.po, line 1: msgid has no string"),
        (b'msgid "caf\xe9"\nmsgstr ""\n', "x.po, line 1: byte 0xE9 is not valid utf-8"),
        (b'msgid ""\nmsgstr "Content-Type: text/plain; charset=nonsense\\n"\n', "x.po: unknown charset nonsense"),
    ],
)
def test_broken_catalogues_are_named(data: bytes, message: str) -> None:
    with pytest.raises(DocnmtError, match=re.escape(message)):
        read_document(data, "x.po")


def test_a_character_the_charset_has_not_is_an_error() -> None:
    with pytest.raises(DocnmtError, match="ISO-8859-1 lacks"):
        translated(VARIANTS["latin"](catalogue()), lambda text: "保存")


def test_a_large_catalogue_is_read_in_linear_time() -> None:
    data = catalogue("".join(f'\nmsgid "Message {n} of many"\nmsgstr ""\n' for n in range(15_000)))
    file = read_document(data, "x.po")
    assert len(file.segments) == 15_000
    assert len(file.write([replace(s, text="x" + s.text) for s in file.segments])) > len(data)


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
@pytest.mark.parametrize("plurals", [FRENCH, RUSSIAN, "nplurals=1; plural=0;", ""])
@pytest.mark.parametrize("say", [str.upper, backwards, lambda text: without(text).upper()])
def test_gettext_accepts_the_result(
    plurals: str, say: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of messages in which the order of the values is that of the placeholders."""
    monkeypatch.setattr(docnmt.decoding.excerpts, "align", lambda translator, pairs: [[] for _ in pairs])
    body = BODY + '\n#, c-format\nmsgid "%s line %d has %5.2f errors"\nmsgstr ""\n'
    body += '\n#, python-brace-format\nmsgid "From {} to {name} and {}"\nmsgstr ""\n'
    lines = HEADER.splitlines(keepends=True)
    data = catalogue(body, plurals) if plurals else ("".join(lines[:-1]) + body).encode()
    (tmp_path / "x.po").write_bytes(translate_bytes(Fake(say, ("en", "fr")), data, "x.po"))
    command = ["msgfmt", "-c", "--use-fuzzy", "-o", str(tmp_path / "x.mo"), str(tmp_path / "x.po")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_parser_reads_the_same() -> None:
    polib = pytest.importorskip("polib")
    new = {e.msgid: e for e in polib.pofile(translated(catalogue()))}
    assert new["Cannot open %s\n"].msgstr == "CANNOT OPEN %s\n" and new["Cannot open %s\n"].fuzzy
    assert new["one basket"].msgstr_plural == {0: "ONE BASKET", 1: "%d BASKETS"}
    assert new["An old one"].obsolete and new["An old one"].msgstr == "Ein altes"


@pytest.mark.parametrize("charset", ["idna", "punycode", "unicode_escape", "undefined", "utf-7", "x-user", "latin-99"])
def test_charsets_that_no_catalogue_has(charset: str) -> None:
    with pytest.raises(DocnmtError, match=f"x.po: unknown charset {charset} in the header\n  Convert"):
        read_document(catalogue().replace(b"charset=UTF-8", f"charset={charset}".encode()), "x.po")
