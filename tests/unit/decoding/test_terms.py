"""Glossaries: what is read, what is refused, where terms are found, and what a run says of them."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.decoding.phrases import Phrase
from docnmt.decoding.terms import LONGEST_TERM, Glossary, Term, TermCheck, UnmetTerm


def read(tmp_path, content: str | bytes) -> Glossary:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Glossary.read(path)


def glossary(*terms: tuple[str, str]) -> Glossary:
    return Glossary(tuple(Term(*term) for term in terms))


def found(terms: Glossary, sentence: str) -> list[str]:
    """The text of the sentence where a term is found, with the translation."""
    return [f"{sentence[begin:end]}={term.target}" for term, (begin, end) in terms.found_in(sentence)]


# ---- reading ----


def test_a_file_is_read(tmp_path):
    terms = read(tmp_path, "# comment\n\ncarte mère\tmotherboard\r\n  Bureau \t Desktop  app \nchat\tcat\n")
    assert terms.terms == (Term("carte mère", "motherboard"), Term("Bureau", "Desktop app"), Term("chat", "cat"))


def test_a_byte_order_mark_is_no_part_of_a_term(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfchat\tcat\n").terms == (Term("chat", "cat"),)


def test_a_term_given_twice_in_the_same_way_is_one(tmp_path):
    assert len(read(tmp_path, "chat\tcat\nchien\tdog\nchat\tcat\n").terms) == 2


def test_accents_are_the_same_however_they_are_put_together(tmp_path):
    terms = read(tmp_path, "e\u0301te\u0301\tsummer\n")
    assert terms.terms == (Term("\u00e9t\u00e9", "summer"),)
    assert [term.target for term, _ in terms.found_in("l'e\u0301te\u0301 dernier")] == ["summer"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("chat\tcat\nchien dog\n", "line 2: no tab"),
        ("chat\tcat\tnoun\n", "line 1: 3 columns"),
        ("chat\t \n", "line 1: the translation is empty"),
        ("\n\tcat\n", "line 2: the term is empty"),
        ("chat\tcat\n# x\nchat\tkitty\n", "line 3: 'chat' is translated as 'kitty' here and as 'cat' in line 1"),
        (f"chat\t{'x' * (LONGEST_TERM + 1)}\n", f"line 1: the translation has {LONGEST_TERM + 1} characters"),
        ("x" * 10_000 + "\n", "line 1: more than"),
        ("", "contains no terms"),
        ("# nothing\n\n", "contains no terms"),
        (b"chat\tc\xe2t\n", "line 1: byte 0xE2"),
        ("chat\tc\x07at\n", "line 1: control character"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    with pytest.raises(DocnmtError) as error:
        read(tmp_path, content)
    assert "terms.tsv" in str(error.value) and message in str(error.value)
    assert "\n  " in str(error.value)  # what to do


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DocnmtError, match="no such file"):
        Glossary.read(tmp_path / "none.tsv")


# ---- finding ----


def test_small_letters_are_found_in_any_case_and_capitals_as_they_are():
    terms = glossary(("bureau", "desk"), ("US", "America"), ("Pomme", "Apple"), ("élan", "moose"))
    assert found(terms, "Bureau BUREAU bureau") == ["Bureau=desk", "BUREAU=desk", "bureau=desk"]
    assert found(terms, "us US Us") == ["US=America"]
    assert found(terms, "La pomme et la Pomme.") == ["Pomme=Apple"]
    assert found(terms, "ÉLAN") == ["ÉLAN=moose"]


def test_the_one_written_so_comes_before_the_one_in_small_letters():
    terms = glossary(("bureau", "desk"), ("Bureau", "Desktop"))
    assert found(terms, "le Bureau et le bureau, BUREAU") == ["Bureau=Desktop", "bureau=desk", "BUREAU=desk"]


def test_whole_words_only():
    terms = glossary(("chat", "cat"))
    assert found(terms, "château, achat, chats, chat's, (chat) chat-huant") == ["chat=cat"] * 3
    assert found(glossary(("c++", "C plus plus")), "en C++ et c++11") == ["C++=C plus plus", "c++=C plus plus"]
    assert found(glossary((".net", "dot net")), "le .NET") == [".NET=dot net"]


def test_the_longest_counts_and_none_inside_another():
    terms = glossary(("carte", "map"), ("carte mère", "motherboard"), ("mère", "mother"), ("carte mère du chat", "x"))
    assert found(terms, "la carte mère, la carte, la mère") == ["carte mère=motherboard", "carte=map", "mère=mother"]
    assert found(terms, "carte mère du chaton") == ["carte mère=motherboard"]


def test_each_occurrence_counts():
    terms = glossary(("chat", "cat"))
    phrases = terms.phrases("Chat et chat")
    assert phrases == (Phrase("cat", "chat", (0, 4)), Phrase("cat", "chat", (8, 12)))
    assert terms.phrases("chien") == ()
    assert terms.phrases("") == ()


def test_spaces_and_apostrophes_of_any_kind():
    terms = glossary(("carte mère", "motherboard"), ("aujourd'hui", "today"), ("d’accord", "agreed"))
    assert found(terms, "carte  mère, carte\u00a0mère") == ["carte  mère=motherboard", "carte\u00a0mère=motherboard"]
    assert found(terms, "Aujourd’hui aujourd'hui") == ["Aujourd’hui=today", "aujourd'hui=today"]
    assert found(terms, "d'accord") == ["d'accord=agreed"]


def test_scripts_without_spaces_have_no_words():
    terms = glossary(("猫", "cat"), ("熊猫", "panda"), ("API", "interface"))
    assert found(terms, "我喜欢熊猫和猫的API。") == ["熊猫=panda", "猫=cat", "API=interface"]


def test_marks_of_patterns_are_nothing_but_marks():
    terms = glossary(("a.c", "x"), ("(b)", "y"))
    assert found(terms, "abc a.c (b)") == ["a.c=x", "(b)=y"]


def test_a_large_glossary_is_quick():
    terms = glossary(*((f"mot{n} composé", f"word {n}") for n in range(20_000)))
    sentences = [f"voici le mot{n} composé, et un autre mot" for n in range(2_000)]
    begin = time.perf_counter()
    assert all(len(terms.found_in(sentence)) == 1 for sentence in sentences)
    assert time.perf_counter() - begin < 10


def test_glossaries_are_equal_by_their_terms_and_compared_quickly():
    """A queue has one as a key, and asks for it with each sentence."""
    one, same, other = ({f"mot {n}": f"word {n + more}" for n in range(1_000)} for more in (0, 0, 1))
    one, same, other = Glossary.of(one), Glossary.of(same), Glossary.of(other)
    assert one == same and hash(one) == hash(same) and one != other and hash(one) != hash(other)
    assert Glossary.of({"a": "b"}) != Glossary.of({"b": "a"}) and one != "a glossary"
    started = time.process_time()
    for _ in range(1_000):
        assert {same: 1}[one] == 1
    assert time.process_time() - started < 0.1


def test_thousands_of_accents_on_a_letter_are_refused_before_they_are_sorted():
    started = time.process_time()
    with pytest.raises(DocnmtError, match="the term has 300,001 characters"):
        Glossary.of({"e" + "\u0301\u0323" * 150_000: "a"})
    assert time.process_time() - started < 1


def test_a_glossary_is_told_by_its_terms():
    # Work that was begun with one glossary is not gone on with under another: options are compared by their content.
    one, other = glossary(("chat", "cat")), glossary(("chat", "kitty"))
    one.found_in("chat")
    assert asdict(one)["terms"] == ({"source": "chat", "target": "cat"},)
    assert one != other and one == glossary(("chat", "cat"))


# ---- what became of them ----


def checked() -> TermCheck:
    check = TermCheck()
    check.note("d", "le chat", "a cat", 1, ())
    check.note("d", "le chien et le chat", "a cat", 2, (Phrase("dog", "chien", (3, 8)),))
    check.note("d", "rien", "nothing", 0, ())
    return check


def test_terms_are_counted_and_those_unmet_told():
    check = checked()
    assert check.found == 3
    assert check.unmet == [UnmetTerm("d", "le chien et le chat", "a cat", "chien", "dog")]
    assert check.summary() == "glossary: 2 of 3 terms met"


def test_notes_go_from_one_process_to_another():
    first, second = checked(), checked()
    noted = json.loads(json.dumps(first.take()))
    assert first == TermCheck()
    second.give(noted)
    assert second.found == 6 and len(second.unmet) == 2
    first.give(noted)
    assert first == checked()
