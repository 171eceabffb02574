"""What the page says about a word is what context-gain measures, at the places where the words stand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.decoding.translator import Translator
from docnmt.document import ParallelDocument
from docnmt.evaluation.context_gain import END, context_gain, target_words
from docnmt.serving import explain as module
from docnmt.serving.explain import aligned, explain
from tests.builders import loaded_model, parallel_documents
from tests.every_system import briefly_trained


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(loaded_model())


@pytest.fixture(scope="module")
def documents() -> list[ParallelDocument]:
    return parallel_documents((5, 4), seed=21)


def explained(translator: Translator, document: ParallelDocument, position: int) -> dict:
    return explain(translator, document.source, document.target, position)


def test_probabilities_are_those_of_context_gain(translator, documents):
    gain = context_gain(translator, documents)
    for position in range(5):
        found = explained(translator, documents[0], position)
        words = [word for word in target_words(gain.pieces[position]) if word.text != END]
        for name in ("true", "none"):
            values = gain.log_probabilities[name][position]
            summed = [values[word.begin : word.end].sum() for word in words]
            assert found["log"][name] == pytest.approx(summed, abs=1e-3)


def test_the_answer_is_written_where_the_model_is(translator, documents):
    document = documents[0]
    written = module.explained(translator, document.source, document.target, 2)
    assert json.loads(written) == json.loads(json.dumps(explained(translator, document, 2)))


def test_a_sentence_without_neighbours_gains_exactly_nothing(translator, documents):
    found = explained(translator, documents[0], 0)
    assert found["context"] == []
    assert found["log"]["true"] == found["log"]["none"]
    assert explained(translator, documents[0], 1)["log"]["true"] != found["log"]["none"]


def test_what_the_model_does_not_see_does_not_matter(translator, documents):
    """The page sends a window of the document: the answer is that for the whole."""
    document = documents[0]
    whole = explained(translator, document, 4)
    window = explain(translator, document.source[2:], document.target[2:], 2)
    assert window == whole
    assert [sentence["at"] for sentence in whole["context"]] == [-2, -1]
    assert ["".join(sentence["words"]).strip() for sentence in whole["context"]] == list(document.source[2:4])


def test_places_spell_the_words_as_browsers_count(translator):
    source, target = ("le chat 🐈 voit la mer.",) * 2, ("𝒳 la gare, rien 🐈 !",) * 2
    found = explain(translator, source, target, 1)
    for text, places in ((source[1], found["source"]), (target[1], found["target"])):
        units = text.encode("utf-16-le")
        words = [units[2 * begin : 2 * end].decode("utf-16-le") for begin, end in places]
        assert "".join(words) == text.replace(" ", "")
        assert not any(word != word.strip() for word in words)
    assert len(found["log"]["true"]) == len(found["target"])


def test_attention_is_shared_out_over_the_words_of_the_context(translator, documents):
    found = explained(translator, documents[0], 3)
    columns = sum(len(sentence["words"]) for sentence in found["context"]) + 1
    for side, rows in (("encoder", len(found["source"])), ("decoder", len(found["target"]) + 1)):
        weights, shares = np.array(found["attention"][side]), np.array(found["share"][side])
        layers = len(getattr(translator.model, side))
        assert weights.shape == (layers, rows, columns) and shares.shape == (layers, rows)
        assert weights.sum(axis=2) == pytest.approx(1, abs=0.02)
        assert (shares >= 0).all() and (shares <= 1).all() and 0 < shares.mean() < 1


def test_questions_that_have_no_answer(translator, documents):
    sentence_model = Translator(
        replace(loaded_model(), card=replace(loaded_model().card, context=ContextConfig("none")))
    )
    with pytest.raises(DocnmtError, match="a sentence model"):
        explained(sentence_model, documents[0], 1)
    long = " ".join(["le chat voit la mer"] * 20)
    with pytest.raises(DocnmtError, match="more than 40 pieces"):
        explain(translator, (long,), ("rien",), 0)


def test_words_that_belong_together(translator, documents):
    source, target = "𝒳 le chat voit la mer.", documents[0].target[0]
    links = aligned(translator, source, target)
    assert links
    ends = [len(text.encode("utf-16-le")) // 2 for text in (source, target)]
    for sides in links:
        assert all(0 <= begin < end <= last for (begin, end), last in zip(sides, ends, strict=True))
    assert {link[0] for link in links} & {(3, 5), (6, 10)}  # "le", "chat": one further than Python counts
    assert aligned(translator, "", "rien") == []


@pytest.mark.parametrize("name", ["han", "concat-2-to-2"])
def test_systems_without_attention_of_the_papers_kind_have_probabilities(name):
    translator = Translator(briefly_trained(name))
    (document,) = parallel_documents((5,), seed=21)
    found = explained(translator, document, 4)
    assert not any(found["attention"].values()) and not any(found["share"].values())
    assert len(found["log"]["true"]) == len(found["log"]["none"]) == len(found["target"])
    assert found["log"]["true"] != found["log"]["none"]
