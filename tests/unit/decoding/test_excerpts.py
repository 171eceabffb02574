"""Sentences of many documents in one batch come out as those of each document alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.decoding.excerpts import Excerpt, translate_excerpts, whole
from docnmt.decoding.scoring import OFF
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT, ContextSpec
from docnmt.documents.translate import FileSentences
from tests.builders import parallel_documents
from tests.every_system import briefly_trained


@pytest.fixture
def translator() -> Translator:
    return Translator(briefly_trained("attention"))


def texts(found) -> list[str]:
    return [best.text for excerpt in found for best, *_ in excerpt.values()]


@pytest.mark.parametrize("name", ["attention", "concat-2-to-2", "han", "cache"])
@pytest.mark.parametrize("context", [True, False])
def test_a_batch_changes_nothing(name, context):
    translator = Translator(briefly_trained(name))
    rule = translator.rule(None)
    documents = [list(document.source) for document in parallel_documents([4, 1, 5], seed=11)]
    alone = [translator.translate(document, context=None if context else "off") for document in documents]
    assert len({text for document in alone for text in document}) > 5, "too much alike to prove anything"
    excerpts = [Excerpt.of_texts(document) for document in documents]
    if not (context and rule.remembers):
        seen = rule.spec if context else NO_CONTEXT
        excerpts = [excerpt for document in excerpts for excerpt in document.one_by_one(seen)]
    expected = [text.strip() for each in alone for text in each]
    options = replace(translator.options, context=None if context else OFF)
    assert texts(translate_excerpts(translator, options, excerpts)) == expected


def test_some_systems_need_whole_documents_and_some_do_not():
    in_order = {name: Translator(briefly_trained(name)).rule(None).remembers for name in ("attention", "han")}
    assert in_order == {"attention": False, "han": True}


@given(st.lists(st.text(max_size=2), max_size=9), st.integers(0, 3), st.integers(0, 3))
def test_an_excerpt_is_the_sentence_and_what_it_sees(sentences, previous, following):
    excerpts = list(Excerpt.of_texts(sentences).one_by_one(ContextSpec(previous, following)))
    assert [list(excerpt.wanted) for excerpt in excerpts] == [[n] for n in range(len(sentences))]
    for n, excerpt in enumerate(excerpts):
        assert excerpt.wanted[n].text == excerpt.sentences[n - excerpt.first] == sentences[n]
        assert list(excerpt.sentences) == sentences[max(0, n - previous) : n + 1 + following]


def test_placeholders_survive_in_all_alternatives(translator):
    sentence = "le chat cherche %s."  # the model has never seen one
    options = replace(translator.options, nbest=3)
    ((found,),) = (each.values() for each in translate_excerpts(translator, options, [Excerpt.of_texts([sentence])]))
    assert len(found) == 3
    assert all(each.text.count("%s") == 1 for each in found)
    assert len({each.text.replace("%s", "") for each in found}) > 1


def test_what_has_no_words_stays_as_it_is(translator):
    texts = ["12 %", "https://a.example/le"]
    (found,) = translate_excerpts(translator, replace(translator.options, nbest=2), [Excerpt.of_texts(texts)])
    assert [[each.text for each in ranked] for ranked in found.values()] == [[text] for text in texts]


def test_html_has_its_tags_at_its_words_in_all_alternatives(translator):
    data = b"<p>le <b>chat</b> voit la mer.</p><i>rien</i>"
    file = FileSentences(data, "q.html", ("fr", "en"))
    (found,) = translate_excerpts(translator, replace(translator.options, nbest=2), [whole(file.sentences)])
    assert [len(ranked) for ranked in found.values()] == [2, 2]
    for rank in range(2):
        paragraph, _, word = file.write(ranked[rank] for ranked in found.values()).decode().partition("</p>")
        assert paragraph.startswith("<p>") and paragraph.count("<b>") == paragraph.count("</b>") == 1
        assert word.startswith("<i>") and word.endswith("</i>")
