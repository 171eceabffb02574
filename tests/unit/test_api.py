"""What somebody finds who types `import docnmt`."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys

import pytest

import docnmt
from docnmt import DocnmtError, Document, Glossary, ParallelDocument, Translator
from docnmt.decoding.translator import Options
from tests.builders import loaded_model, parallel_documents

METHODS = ("translate", "translate_nbest", "translate_text", "translate_documents", "score")


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(loaded_model())


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    (document,) = parallel_documents([4], 7)
    return list(document.source)


def test_completion_shows_what_there_is_and_nothing_else():
    assert {"load", "Translator", "Document", "Glossary", "translate_file"} <= set(dir(docnmt))
    assert [name for name in dir(docnmt) if name in ("Any", "TYPE_CHECKING", "annotations")] == []
    assert [name for name in dir(docnmt) if not hasattr(docnmt, name)] == []


def test_importing_it_costs_no_torch():
    code = "import sys, docnmt; dir(docnmt); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "function", [*(getattr(Translator, name) for name in METHODS), docnmt.load, docnmt.translate_file]
)
def test_help_tells_how_to_call(function):
    assert inspect.getdoc(function)
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert "Unpack" not in pydoc.render_doc(function)


def test_a_translator_says_what_it_is(translator):
    assert repr(translator) == "<Translator fr-en: transformer, attention context, previous=2, on cpu>"


def test_plain_text_keeps_its_paragraphs(translator, sentences):
    one, two, three = (sentence.rstrip(" .!?").capitalize() for sentence in sentences[:3])
    text = f"{one}. {two}!\n\n  - {three}\n"
    pieces = [f"{one}.", f"{two}!", three]
    expected = [translation.strip() for translation in translator.translate(pieces)]
    assert translator.translate_text(text) == f"{expected[0]} {expected[1]}\n\n  - {expected[2]}\n"
    assert translator.translate_text("") == "" and translator.translate_text("  \n") == "  \n"


def test_nbest_is_returned_as_such(translator, sentences):
    found = translator.translate_nbest(sentences, 3)
    assert [len(each) for each in found] == [3] * len(sentences)
    assert [each[0] for each in found] == translator.translate(sentences)


def test_a_glossary_may_be_a_dict(translator, sentences):
    word = sentences[0].split()[0]
    found = translator.translate(sentences, glossary={word: "Zzyzx"})
    assert found == translator.translate(sentences, glossary=Glossary.of({word: "Zzyzx"}))
    assert "Zzyzx" in found[0]


@pytest.mark.parametrize("wrong", ["terms.tsv", [("a", "b")], {"a": 3}, {"": "b"}])
def test_what_is_no_glossary_is_refused(translator, wrong):
    with pytest.raises(DocnmtError, match=r"\n  \S"):
        translator.translate(["le chat"], glossary=wrong)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda t: t.translate("Bonjour"), "not a str\n  Write .* or translate_text"),
        (lambda t: t.translate_nbest("Bonjour", 2), "not a str\n  Write .* or translate_text"),
        (lambda t: t.translate(None), "not a NoneType\n  Write .* or translate_text"),
        (lambda t: t.translate(["Bonjour", None]), "sentence 2 is not a string: None"),
        (lambda t: t.translate_text(["Bonjour"]), "translate_text takes a string\n  For a list"),
        (lambda t: t.translate(["le chat"], previous="Bonjour"), "list of sentences, not 'Bonjour'\n  Write previous="),
        (lambda t: t.translate(["le chat"], previous=[3]), "previous: sentence 1 is not a string: 3"),
        (lambda t: t.translate(["le chat"], previous=iter(["x"])), "previous must be a list of sentences, not <"),
        (lambda t: t.translate(["le", "\ud800 chat"]), r"half a character in '\\ud800 chat'\n"),
        (lambda t: t.translate_text("\ud800 chat"), "half a character in"),
        (lambda t: t.translate(["le chat"], beam="4"), "beam: '4' is not a whole number"),
        (lambda t: t.translate(["le chat"], beam=True), "beam: True is not a whole number"),
        (lambda t: t.translate(["le chat"], context=False), 'context: False is not a context\n.* or "off"'),
        (lambda t: t.translate(["le chat"], context=2), "context: 2 is not a context"),
        (lambda t: t.translate_nbest(["le chat"], 0), "0 translations per sentence are not possible"),
        (lambda t: list(t.translate_documents(["le chat"])), "not a document: 'le chat'\n  Write Document"),
        (lambda t: docnmt.load(3), "the path of a model folder, not 3"),
        (lambda t: Document("a", ["x", 3]), "document a: sentences: sentence 2 is not a string: 3"),
        (lambda t: Document("a", b"Bonjour"), "document a: sentences is a single string, b'Bonjour'"),
        (lambda t: Document("a", "Bonjour"), "document a: sentences is a single string, 'Bonjour'\n  Give a list"),
        (lambda t: ParallelDocument("a", ("x",), "y"), "document a: target is a single string, 'y'"),
    ],
)  # fmt: skip
def test_a_string_is_refused_where_sentences_are_asked_for_and_the_other_way_round(translator, call, said):
    with pytest.raises(DocnmtError, match=said):
        call(translator)


def test_documents_take_lists():
    assert Document("a", ["x", "y"]) == Document("a", ("x", "y"))
    assert hash(ParallelDocument("a", ["x"], ["y"])) == hash(ParallelDocument("a", ("x",), ("y",)))


@pytest.mark.parametrize("alpha", [1e300, float("inf"), float("nan"), -1.0])
def test_a_length_penalty_that_no_length_survives(alpha):
    with pytest.raises(DocnmtError, match="length_penalty"):
        Options(length_penalty=alpha)


def test_options_are_those_of_the_recipe_and_more(translator):
    assert vars(translator.options).items() >= vars(translator.card.decoding).items()
