"""Sentences of many documents in one batch come out as those of each document alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.decoding.translator import Translator
from docnmt.document import ContextSpec
from docnmt.serving.excerpts import one_by_one, translate_excerpts, whole
from docnmt.serving.requests import TextsAsked
from docnmt.serving.texts import translate_html
from tests.builders import parallel_documents
from tests.every_system import briefly_trained
from tests.serving_fakes import described


@pytest.fixture
def translator() -> Translator:
    return Translator(briefly_trained("attention"))


def texts(found) -> list[str]:
    return [sentence.text for excerpt in found for sentence in excerpt]


@pytest.mark.parametrize("name", ["attention", "concat-2-to-2", "han", "cache"])
@pytest.mark.parametrize("context", [True, False])
def test_a_batch_changes_nothing(name, context):
    translator = Translator(briefly_trained(name))
    info = described(name, "", translator)
    documents = [list(document.source) for document in parallel_documents([4, 1, 5], seed=11)]
    alone = [translator.translate(document, context=None if context else "off") for document in documents]
    assert len({text for document in alone for text in document}) > 5, "too much alike to prove anything"
    if context and info.in_order:
        excerpts = [whole(document) for document in documents]
    else:
        seen = info.context if context else ContextSpec(0, 0)
        excerpts = [excerpt for document in documents for excerpt in one_by_one(document, seen)]
    expected = [text.strip() for each in alone for text in each]
    assert texts(translate_excerpts(translator, excerpts, context, 1)) == expected


def test_some_systems_need_whole_documents_and_some_do_not():
    in_order = {name: described(name, "", Translator(briefly_trained(name))).in_order for name in ("attention", "han")}
    assert in_order == {"attention": False, "han": True}


@given(st.lists(st.text(max_size=2), max_size=9), st.integers(0, 3), st.integers(0, 3))
def test_an_excerpt_is_the_sentence_and_what_it_sees(sentences, previous, following):
    excerpts = list(one_by_one(sentences, ContextSpec(previous, following)))
    assert [excerpt.sentences[excerpt.places[0]] for excerpt in excerpts] == sentences
    for n, excerpt in enumerate(excerpts):
        assert list(excerpt.sentences) == sentences[max(0, n - previous) : n + 1 + following]


def test_placeholders_survive_in_all_alternatives(translator):
    sentence = "le chat cherche %s."  # the model has never seen one
    ((found,),) = translate_excerpts(translator, [whole([sentence])], True, 3)
    assert len(found.texts) == len(found.scores) == 3
    assert all(text.count("%s") == 1 for text in found.texts)
    assert len({text.replace("%s", "") for text in found.texts}) > 1


def test_what_has_no_words_stays_as_it_is(translator):
    ((first, second),) = translate_excerpts(translator, [whole(["12 %", "https://a.example/le"])], True, 2)
    assert (first.texts, second.texts) == (("12 %",), ("https://a.example/le",))


def test_html_has_its_tags_at_its_words_in_all_alternatives(translator):
    texts = ["<p>le <b>chat</b> voit la mer.</p>", "<i>rien</i>"]
    asked = TextsAsked(True, [], None, texts, True, "html", 1)
    ranked = translate_html(translator, asked, 2)
    assert len(ranked) == 2
    for paragraph, word in ranked:
        assert paragraph.startswith("<p>") and paragraph.count("<b>") == paragraph.count("</b>") == 1
        assert word.startswith("<i>") and word.endswith("</i>")
    context_off = translate_html(translator, replace(asked, context=False), 1)
    assert len(context_off) == 1
