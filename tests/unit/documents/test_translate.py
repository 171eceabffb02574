"""A file through a translator: sentence by sentence, with what must stay, in the context of the whole file."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import docnmt.decoding.excerpts
import docnmt.documents.translate as translation
from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import translate_bytes, translate_file
from docnmt.documents import KINDS
from docnmt.documents.placeholders import counts, without
from docnmt.documents.segment import Mark, Segment
from docnmt.documents.translate import FileSentences, Sentence, Sentences, Translated, joined
from tests.fake_translator import Fake, backwards


@pytest.fixture(autouse=True)
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docnmt.decoding.excerpts, "align", lambda translator, pairs: [[] for _ in pairs])


def text(data: str, say: Callable[[str], str], languages=("fr", "en"), file="a.txt", **settings) -> str:
    return translate_bytes(Fake(say, languages, **settings), data.encode(), file).decode()


# ---- sentences ----


def sentences_of(segment: Segment, language: str) -> list[Sentence]:
    return list(Sentences([segment], language, "a.txt"))


def test_sentences_of_a_segment():
    segment = Segment("  Il vient.  M. Roux part ! 12.  ")
    found = sentences_of(segment, "fr")
    assert [(s.gap, s.text, s.translate) for s in found] == [
        ("  ", "Il vient.", True),
        ("  ", "M. Roux part !", True),
        (" ", "12.", False),
    ]
    other = joined(segment, [(s, Translated(s.text.upper())) for s in found], ("fr", "en"))
    assert other.text == "  IL VIENT.  M. ROUX PART ! 12.  "
    assert sentences_of(Segment("  "), "fr") == []
    kept = sentences_of(Segment("Déjà traduit.", translate=False), "fr")
    assert [s.translate for s in kept] == [False]


PARTS = st.lists(
    st.sampled_from(["Un mot.", "M. Roux", "12", " ", "  ", "Ah !", "%s", "<b>", "你好。", "\n", "Fin"]), max_size=8
)


@given(PARTS.map("".join), st.data())
def test_an_unchanged_segment_is_the_same(words, data):
    places = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=6)))
    pairs = [(0, False)] * len(places)
    for n in range(0, len(places) - 1, 2):
        if data.draw(st.booleans()):
            pairs[n], pairs[n + 1] = (n + 1, False), (n + 1, True)
    marks = tuple(Mark(at, str(n), *pair) for n, (at, pair) in enumerate(zip(places, pairs, strict=True)))
    segment = Segment(words, marks)
    for languages in (("fr", "en"), ("zh", "en"), ("fr", "zh")):
        sentences = sentences_of(segment, languages[0])
        shared = [mark.code for s in sentences for mark in (*s.between, *s.marks)]
        assert sorted(shared) == sorted(mark.code for mark in marks) or not sentences
        same = [(s, Translated(s.text, s.marks)) for s in sentences]
        assert joined(segment, same, languages) == segment
        other = joined(segment, [(s, Translated("X" + s.text, s.marks)) for s in sentences], languages)
        assert sorted(mark.code for mark in other.marks) == sorted(mark.code for mark in marks)
        assert [mark.at for mark in other.marks] == sorted(mark.at for mark in other.marks)
        opened = set()
        for mark in other.marks:
            if mark.pair:
                assert mark.closing == (mark.pair in opened)
                opened.add(mark.pair)


def test_a_pair_over_several_sentences():
    segment = Segment("Un deux. Trois quatre. Cinq.", (Mark(3, "<b>", 1), Mark(14, "</b>", 1, True), Mark(22, "*")))
    sentences = sentences_of(segment, "fr")
    assert [[mark.code for mark in s.marks] for s in sentences] == [["<b>"], ["</b>", "*"], []]
    done = [(s, Translated(f"{s.text}{s.text}", s.marks)) for s in sentences]
    assert [mark.code for mark in joined(segment, done, ("fr", "en")).marks] == ["<b>", "</b>", "*"]


# ---- separators ----


def test_separators_stay_and_languages_without_spaces_get_and_lose_them():
    assert text("Un.  Deux. Trois.\n\n  Quatre.\n", str.upper) == "UN.  DEUX. TROIS.\n\n  QUATRE.\n"
    assert text("你好。再见。\n", lambda s: {"你好。": "Hello.", "再见。": "Bye."}[s], ("zh", "en")) == "Hello. Bye.\n"
    assert text("Hello. Bye.\n", lambda s: {"Hello.": "你好。", "Bye.": "再见。"}[s], ("en", "zh")) == "你好。再见。\n"
    assert text("Un.\tDeux.", lambda s: s + "x", ("fr", "zh")) == "Un.x\tDeux.x"


@given(
    st.lists(st.sampled_from(["Une phrase. ", "你好。", "M. Roux vient ! ", "\n", "\r\n\r\n", "12 ", "%s "])).map(
        "".join
    )
)
def test_an_identity_translation_changes_nothing(data):
    for languages in (("fr", "en"), ("zh", "en"), ("en", "ja")):
        assert text(data, lambda s: s, languages) == data


# ---- contexts and blocks ----


def book(sentences: int) -> str:
    return "".join(f"Phrase numéro {n} du livre.\n" for n in range(sentences))


@pytest.mark.parametrize(("previous", "following"), [(2, 0), (0, 0), (1, 2)])
def test_context_runs_on_across_blocks_and_nothing_is_decoded_twice(monkeypatch, previous, following):
    data = book(23)
    whole = Fake(str.upper, previous=previous, following=following)
    assert translate_bytes(whole, data.encode(), "a.txt").decode() == data.upper()
    monkeypatch.setattr(translation, "BLOCK", 5)
    parts = Fake(str.upper, previous=previous, following=following)
    assert translate_bytes(parts, data.encode(), "a.txt").decode() == data.upper()
    assert parts.asked == whole.asked and len(whole.asked) == 23


def test_a_system_that_remembers_is_given_sentences_to_remember(monkeypatch):
    monkeypatch.setattr(translation, "BLOCK", 5)
    fake = Fake(str.upper, remembers=True)
    assert translate_bytes(fake, book(12).encode(), "a.txt").decode() == book(12).upper()
    assert all(len(context) == 2 for sentence, context in fake.asked if "numéro 5 " in sentence)


class Kept:
    """A file of segments of which some are not to be translated."""

    def __init__(self, *segments: Segment):
        self.segments = segments

    def write(self, translations):
        return "|".join(segment.text for segment in translations).encode()


def test_what_is_not_to_be_translated_is_context_only(monkeypatch):
    file = Kept(Segment("Un."), Segment("Déjà là.", translate=False), Segment("Deux."))
    monkeypatch.setattr(translation, "read_document", lambda *_: file)
    fake = Fake(str.upper)
    assert translate_bytes(fake, b"", "a.txt") == "UN.|Déjà là.|DEUX.".encode()
    assert fake.asked == [("Un.", ()), ("Deux.", ("Un.", "Déjà là."))]


def test_options_go_to_the_translator(monkeypatch):
    seen = []
    fake = Fake(str.upper)
    original = fake.translate_documents
    fake.translate_documents = lambda documents, **named: seen.append(named) or original(documents, **named)
    translate_bytes(fake, b"Un.", "a.txt", beam=7, context="off")
    assert (seen[0]["options"].beam, seen[0]["options"].context) == (7, "off")


def test_no_words_for_a_sentence_leave_it_as_it_is():
    assert text("Un. Deux. Trois.", lambda s: "" if s == "Deux." else s.upper()) == "UN. Deux. TROIS."


# ---- placeholders ----

LOSSES: dict[str, Callable[[str], str]] = {
    "loses them": lambda s: without(s).upper(),
    "loses some": lambda s: s.replace("%s", "").replace("{name}", "{nom}"),
    "changes case": str.upper,
    "doubles them": lambda s: f"{s} {s}",
    "makes them up": lambda s: f"{without(s)} %d {{x}}",
    "turns words round": backwards,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "sentence",
    [
        "Bonjour %s, vous avez %(count)d messages de {name}.",
        "{name} est <b>ici</b> et voit %s.",
        "Voir https://a.example/b?c=d pour %s et %s encore.",
        "Ligne une\\nLigne deux &amp; fin de {0}{1}.",
    ],
)
def test_placeholders_survive_any_translator(loss, sentence):
    found = text(f"{sentence}\n", LOSSES[loss])
    assert counts(found) == counts(sentence), found
    assert found.endswith("\n") and found.count("\n") == 1


def test_lost_placeholders_go_back_to_their_words():
    assert (
        text("Bonjour %s, voici {name} pour vous.", lambda s: without(s).upper())
        == "BONJOUR %s, VOICI {name} POUR VOUS."
    )


@pytest.mark.parametrize("name", ["{n, number}", "{ d , date, short}", "{n}", "%d"])
def test_a_placeholder_keeps_its_spaces(name):
    """That of ICU's messages, with a format, too."""
    kept = text(
        '{"a": "Il reste {0} jours"}'.replace("{0}", name),
        lambda words: words.upper().replace(name.upper(), name),
        file="x.json",
    )
    assert kept == '{"a": "IL RESTE {0} JOURS"}'.replace("{0}", name)


def test_a_sentence_of_placeholders_alone_is_not_translated():
    fake = Fake(str.upper)
    assert translate_bytes(fake, b"%s {name}\n\nOui %s\n", "a.txt") == b"%s {name}\n\nOUI %s\n"
    assert [sentence.strip() for sentence, _ in fake.asked] == ["Oui %s", "Oui"]


WORDS = st.lists(
    st.sampled_from(["Le", "mot", "vient", ",", "%s", "%s", "{name}", "<b>", "</b>", "&amp;", "\\n", "$VAR", "%%"]),
    min_size=1,
)


@given(WORDS, st.sampled_from([" ", ""]), st.sampled_from(sorted(LOSSES)))
def test_no_placeholder_is_ever_lost(words, space, loss):
    sentence = space.join(words)
    found = text(sentence, LOSSES[loss])
    assert all(found.count(code) >= count for code, count in counts(sentence).items()), found


# ---- files ----


def test_from_file_to_file(tmp_path):
    path, out = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes("\ufeffUn.\r\nDeux.".encode())
    translate_file(Fake(str.upper), path, out)
    assert out.read_bytes() == "\ufeffUN.\r\nDEUX.".encode()
    with pytest.raises(DocnmtError, match="would overwrite"):
        translate_file(Fake(str.upper), path, path)
    (tmp_path / "link.txt").symlink_to(path)
    with pytest.raises(DocnmtError, match="would overwrite this file"):
        translate_file(Fake(str.upper), path, tmp_path / "link.txt")


def said(call: Callable[[], object]) -> str:
    with pytest.raises(DocnmtError) as error:
        call()
    assert "\n  " in str(error.value)
    return str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    fake, out = Fake(str.upper), tmp_path / "out.txt"
    assert "no such file" in said(lambda: translate_file(fake, tmp_path / "no.txt", out))
    (tmp_path / "folder.txt").mkdir()
    assert "is a folder" in said(lambda: translate_file(fake, tmp_path / "folder.txt", out))
    os.mkfifo(tmp_path / "pipe.txt")
    assert "not a regular file" in said(lambda: translate_file(fake, tmp_path / "pipe.txt", out))
    with open(tmp_path / "huge.txt", "wb") as file:
        file.truncate(2 << 30)  # takes no room on the disk, and must take none in memory
    assert "larger than 256 MB" in said(lambda: translate_file(fake, tmp_path / "huge.txt", out))
    assert ".xyz" in said(lambda: translate_bytes(fake, b"", "a.xyz"))
    assert not out.exists()


@pytest.mark.parametrize("name", sorted({f"a{suffix}" for suffix in KINDS}))
@given(data=st.binary(max_size=200))
def test_bytes_that_are_nothing_give_an_error_or_come_back(name, data):
    """Whatever the kind: never anything but an error for people."""
    try:
        FileSentences(data, name, ("fr", "en"))
    except DocnmtError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            pytest.skip(f"{name} is not read here")
        return
    assert translate_bytes(Fake(lambda s: s), data, name) == data


def test_a_mark_alone_between_two_sentences_keeps_its_space():
    segment = Segment("Il part.  Elle vient.", (Mark(9, "<code>"),))
    pieces = sentences_of(segment, "fr")
    told = joined(segment, [(s, Translated(s.text.upper())) for s in pieces], ("fr", "en"))
    assert (told.text, told.marks) == ("IL PART.  ELLE VIENT.", (Mark(9, "<code>"),))


def test_a_mark_inside_a_pair_that_opens_between_sentences_stays_inside():
    marks = (Mark(9, "<b>", 1), Mark(10, "<code>"), Mark(22, "</b>", 1, closing=True))
    first, second = sentences_of(Segment("Il part.   Elle vient.", marks), "fr")
    assert first.marks == () and second.between == ()
    assert [mark.code for mark in second.marks] == ["<b>", "<code>", "</b>"]
