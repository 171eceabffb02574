"""Sentences end where a reader says they do; nothing is lost; and no text takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.text.sentences import LONGEST, abbreviations, split, words_of

# "|" stands where a sentence begins.
SPLIT = {
    "fr": (
        "M. Dupont est là. |Mme Curie aussi. |Mlle Rose et MM. Paul et Jean viennent.",
        "C'est M. Le Pen. |Le Dr. Roux arrive. |Voir p. 12 et art. 5. |Fin.",
        "Il dit « Bonjour. » |Puis il part. |« Quoi ? » dit-il. |« Non ! » |Elle partit.",
        "Ah ! quel homme. |Et toi ? |Moi… |Rien... |Je ne sais pas.",
        "En 52 av. J.-C. |Il mourut. |Tolkien, J. R. R. Tolkien, écrit. |J.-J. Rousseau aussi.",
        "L'art. 3 est long. |L'art. |Les gens. |Des fruits, etc. |Il mange.",
        "Ça vaut 3.14 ou 3,14 € environ. |Version 2.0. |Suite.",
    ),
    "en": (
        "See e.g. Smith et al. (2018). |It costs 3.14 dollars. |Visit https://a.b/c?d=e.F! |Now.",
        "Dr. Who met Mr. Bean and Mrs. Jones at 5 p.m. |He left... |Then he came.",
        '"Stop!" he said. |"Go." |(See fig. 2.) |Next one. |[Really?] |Yes!!',
        "I live in the U.S. |He lives in the U.K. Parliament. |John F. Kennedy Jr. was here.",
        "No. 5 is alive. |He said no. |Then it ended. |Acme Inc. announced it. |Write to a.b@c.example. |Ok?",
        "1. Open it. |2. Close it. |... and more",
        "One line\n|another line\t|a third\n\n|the last.\n",
    ),
    "de": (
        "Am 3. Mai kam z.B. Dr. Müller. |Er sagte: „Ja.“ |Dann ging er.",
        "Der 1. FC Köln, d. h. der Verein, z. B. Herr Maier. |Das war 1999. |Der Mann. |»Ja.« |Er ging.",
        "Hr. Bauer und Fr. Huber wohnen in Nr. 5. |Sie lesen usw. |Er bzw. Anna kommt.",
    ),
    "es": ("¿Qué? |¡No! |El Sr. López y la Sra. Ruiz viven en EE. UU. |El resto no. |Véase pág. 3.",),
    "it": ("Il sig. Rossi e il dott. Bianchi. |La S.p.A. Fiat, ecc. |Il resto. |Che cosa? |Ecco!",),
    "pt": ("O Sr. Silva e a Dra. Lima. |Veja pág. 3. |Eles foram. |Não!",),
    "nl": ("Dhr. Jansen en mevr. De Vries, bijv. Anna. |Hij ging. |Zie blz. 5. |Wat?",),
    "ru": (
        "А. С. Пушкин родился в 1799 г. в Москве. |Он жил на ул. Арбат. |И т. д. |Он умер.",
        "Это см. рис. 5. |Да! |Нет? |Г-н Иванов пришёл.",
    ),
    "zh": (
        "他说：“你好。我走了。”然后他走了。|真的？！|是的。",
        "真的!|我不信。|“你好。”他说。|（见图。）|下一句。|他……走了。",
        "价格是3.14元。|请看https://a.b/c?d=e。|好！",
    ),
    "ja": ("「はい。行きます。」と言った。|そして終わった。|本当？|『ええ。』 |はい！",),
    "hi": ("यह है। |वह है।|ठीक?",),
    "ar": ("مرحبا؟ |نعم. |لا!",),
    "el": ("Τι κάνεις; |Καλά. |Εσύ;",),
    "": ("Hello there. |World. |E. coli grows. |Is it? |Yes.",),
}


@pytest.mark.parametrize(
    ("language", "marked"), [(language, text) for language, texts in SPLIT.items() for text in texts]
)
def test_where_sentences_end(language, marked):
    assert split(marked.replace("|", ""), language) == marked.split("|")


def test_a_language_may_have_a_region():
    for name in ("fr-FR", "fr_CA", "FR"):
        assert split("M. Dupont vient. Il part.", name) == ["M. Dupont vient. ", "Il part."]


@pytest.mark.parametrize("language", sorted(abbreviations()))
def test_no_abbreviation_ends_a_sentence_before_a_name(language):
    for word in words_of(language).always:
        text = f"Xxxx {word}. Zzzzz"
        assert split(text, language) == [text], word


WORDS = [
    "Mot",
    "mot",
    "M",
    "Dr",
    "e.g",
    "U.S",
    "12",
    "3.14",
    ".",
    "!",
    "?",
    "…",
    "...",
    "。",
    "！",
    "」",
    "「",
    "“",
    "”",
    "«",
    "»",
    "(",
    ")",
    '"',
    "'",
    "你好",
    "http://a.b/c.D",
    "%s",
    "-",
    ";",
]
PIECES = st.lists(st.sampled_from([*WORDS, " ", "  ", "\n", "\t", "\u00a0", "\r\n"]), max_size=40).map("".join)


@given(st.one_of(st.text(max_size=200), PIECES), st.sampled_from([*SPLIT, "xx"]))
def test_nothing_is_lost_and_no_piece_is_empty(text, language):
    pieces = split(text, language)
    assert "".join(pieces) == text
    assert all(pieces)


@given(PIECES, st.sampled_from(["fr", "de", "zh"]))
def test_what_is_to_stay_whole_stays_whole(text, language):
    spans = [(at, min(at + 9, len(text))) for at in range(3, len(text), 12)]
    ends = set()
    at = 0
    for piece in split(text, language, spans):
        at += len(piece)
        ends.add(at)
    assert not any(start < end < stop for end in ends for start, stop in spans)


def test_a_text_without_an_end_is_cut_at_spaces_or_anywhere():
    for text in ("mot, " * 2000, "mot " * 2000, "你" * 5000, "x" * 5000):
        pieces = split(text, "fr")
        assert "".join(pieces) == text and len(pieces) > 1
        assert max(map(len, pieces)) <= LONGEST
    assert all(piece.endswith(", ") for piece in split("mot, " * 2000, "fr"))


@pytest.mark.parametrize(
    "unit",
    ["Il vient. ", "1. ", ".", "a", "“。", " ", "(. ", ". »", '?"', "?»", "「", "他说：“你好。”", "\n", "M. ", "?)?"],
)
def test_time_grows_with_the_length_and_no_faster(unit):
    started = time.process_time()
    text = unit * (200_000 // len(unit))
    assert "".join(split(text, "fr")) == text
    assert time.process_time() - started < 4
