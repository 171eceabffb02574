"""The terms of a glossary are in the translations, in every kind of system."""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from dataclasses import replace

import pytest
import sentencepiece

from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.context import Neighbours
from docnmt.data.subwords import Subwords
from docnmt.decoding import terms as binding_module
from docnmt.decoding import translator as translator_module
from docnmt.decoding.beam import beam_search
from docnmt.decoding.phrases import Phrase, missing
from docnmt.decoding.terms import Glossary, Term, substitute
from docnmt.decoding.translator import Translator
from docnmt.decoding.units import SENTENCE_RULE, UnitMaker
from docnmt.document import Document
from docnmt.model_folder import LoadedModel, ModelCard
from tests.builders import lines, loaded_model, make_model, parallel_documents, subwords
from tests.every_system import briefly_trained


@pytest.fixture
def translator() -> Translator:
    return Translator(loaded_model())


def documents(sizes=(3, 1, 0, 4), seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


# ---- what is searched for ----


def test_what_is_there_already_is_not_searched_for(translator, monkeypatch):
    (document,) = documents([4])
    free = translator.translate(document)
    bound = []

    def recording(*arguments, constraints=None, **options):
        bound.append(constraints)
        return beam_search(*arguments, constraints=constraints, **options)

    monkeypatch.setattr(translator_module, "beam_search", recording)
    monkeypatch.setattr(binding_module, "FOREIGN", math.inf)
    there = Glossary(
        tuple(Term(source, text.split()[0]) for source, text in zip(document.sentences, free, strict=True))
    )
    assert translator.translate(document, glossary=there) == free
    assert translator.terms.found == 4
    assert bound == [None] * len(bound) and bound
    translator.translate(document, glossary=Glossary((Term(document.sentences[0], "ABC"),)))
    (constraints,) = [each for each in bound if each is not None]
    assert len(constraints.trackers) == 1


def test_all_of_an_n_best_list_have_the_phrases(translator):
    (document,) = documents([6])
    (found,) = translator.translate_documents([document], glossary=TERMS, nbest=3)
    assert check_terms([found], [document])
    for source, sentence in zip(document.sentences, found.sentences, strict=True):
        assert len(sentence.texts) > 1 and not any(missing(TERMS.phrases(source), text) for text in sentence.texts)


@pytest.mark.parametrize("batch_tokens", [1, 90, 100_000])
def test_windows_and_batches_change_nothing(translator, monkeypatch, batch_tokens):
    terms = Glossary((Term("chat", "kettok"), Term("la mer", "zea"), Term("ville", "A")))
    expected = [translator.translate(document, glossary=terms) for document in documents()]
    monkeypatch.setattr(Translator, "WINDOW", 3)
    assert texts(translator.translate_documents(documents(), glossary=terms, batch_tokens=batch_tokens)) == expected


# ---- glossaries ----

TERMS = Glossary((Term("chat", "kettok"), Term("la mer", "zea"), Term("livre", "Beech 4"), Term("rien", "nüx")))


def check_terms(found, sources) -> int:
    count = 0
    for document, source in zip(found, sources, strict=True):
        for sentence, text in zip(document.sentences, source.sentences, strict=True):
            phrases = TERMS.phrases(text)
            count += len(phrases)
            assert sentence.unmet == () and missing(phrases, sentence.text) == []
    return count


@pytest.mark.parametrize("foreign", [-math.inf, 10.0, math.inf], ids=["all put in", "some", "all searched for"])
def test_terms_come_out(translator, monkeypatch, foreign):
    monkeypatch.setattr(binding_module, "FOREIGN", foreign)
    found = list(translator.translate_documents(documents([6, 5]), glossary=TERMS))
    assert check_terms(found, documents([6, 5])) > 6


@pytest.mark.parametrize("system", ["concat-2-to-1", "concat-2-to-2", "continuous-cache", "hierarchical"])
def test_terms_in_other_systems(system):
    translator = Translator(briefly_trained(system))
    sources = documents([4, 3])
    found = list(translator.translate_documents(sources, glossary=TERMS))
    check_terms(found, sources)
    assert any(sentence.text for document in found for sentence in document.sentences)
    nothing = texts(translator.translate_documents(sources, glossary=Glossary((Term("xyz", "abc"),))))
    assert nothing == texts(translator.translate_documents(sources))


def test_terms_of_a_long_sentence_go_to_its_parts(translator):
    long = "ma soeur aime le pain, " + " ".join(line.replace("chat", "pain") for line in lines(10, seed=3))
    source = long + " le chat voit la mer."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = translator.translate_documents([Document("d", (source,))], glossary=TERMS)
    (sentence,) = found.sentences
    assert sentence.unmet == () and missing(TERMS.phrases(source), sentence.text) == []
    assert sentence.text.lower().find("kettok") > len(sentence.text) / 2


def test_a_part_of_a_long_sentence_has_the_phrases_whose_source_begins_there():
    (source,) = subwords().decode(subwords().encode([" ".join(lines(3, seed=3))]))
    phrases = [Phrase("x", word.group(), word.span()) for word in re.finditer(r"\S+", source)]
    with pytest.warns(UserWarning, match="parts"):
        units = UnitMaker(subwords(), 9, SENTENCE_RULE).units(
            Document("d", (source,)), 0, subwords().encode([source])[0], Neighbours(), phrases
        )
    assert len(units) > 2
    for unit, text in zip(units, subwords().decode([unit.source[:-1] for unit in units]), strict=True):
        assert [phrase.source for phrase in unit.phrases] == text.split()


# ---- what cannot be met ----


@functools.cache
def without_bytes() -> Translator:
    """Sub-words that cannot write letters they have not seen."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines(100)),
        model_writer=model,
        model_type="bpe",
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    few = Subwords(model.getvalue())
    context = ContextConfig(kind="none")
    made = make_model(context=context, source_words=len(few), target_words=len(few))
    return Translator(LoadedModel(made, ModelCard(made.model_config, context, DecodingConfig(), "fr", "fr"), few, few))


def test_what_cannot_be_spelt_is_told():
    terms = Glossary((Term("chat", "Ωmega"), Term("le", "gare"), Term("mer", "gare")))
    document = Document("d", ("le chat", "la mer", "rien"))
    (found,) = without_bytes().translate_documents([document], glossary=terms, nbest=2)  # nothing is put in these
    assert [sentence.unmet for sentence in found.sentences] == [(Phrase("Ωmega", "chat", (3, 7)),), (), ()]
    assert all("gare" in sentence.text.lower() for sentence in found.sentences[:2])


def test_a_term_that_cannot_be_spelt_is_put_in():
    terms = Glossary((Term("chat", "Ωmega ½"), Term("mer", "gare")))
    (found,) = without_bytes().translate_documents([Document("d", ("le chat", "la mer"))], glossary=terms)
    assert "Ωmega ½" in found.sentences[0].text and "gare" in found.sentences[1].text.lower()
    assert [sentence.unmet for sentence in found.sentences] == [(), ()]


# ---- putting phrases in ----


def put_in(text: str, links: str, *phrases: Phrase) -> str | None:
    """Links as source-target, in words of the text: "0-2 1-2"; the source's words have two characters and a space."""
    words, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        words.append((place, place + len(word)))
    pairs = [tuple(map(int, pair.split("-"))) for pair in links.split()]
    return substitute(text, [((3 * s, 3 * s + 2), words[t]) for s, t in pairs], phrases)


def term(text: str, word: int, words: int = 1) -> Phrase:
    return Phrase(text, "xx", (3 * word, 3 * (word + words) - 1))


def test_a_phrase_takes_the_place_of_the_words_linked_to_it():
    assert put_in("Click the red button", "0-0 1-1 2-3 3-2", term("knob", 2)) == "Click the red knob"
    two = put_in("Click the red button", "0-0 1-1 2-3 3-2", term("knob", 2), term("pink", 3))
    assert two == "Click the pink knob"
    assert put_in("Click the red button", "0-2 1-3", term("thing", 0, words=2)) == "Click the thing"


def test_of_words_apart_the_longest_row_goes():
    assert put_in("a big red of fox", "0-1 0-2 0-4", term("knob", 0)) == "a knob of fox"


def test_marks_stay():
    assert put_in("the red , button .", "0-1 0-2 0-4", term("knob", 0)) == "the knob , button ."


def test_at_the_beginning_it_has_a_capital():
    assert put_in("Buttons are red", "0-0 1-1 2-2", term("knobs", 0)) == "Knobs are red"


def test_what_has_its_place_stays():
    # The same term twice in the source, one of them right already.
    text = put_in("a knob and a button", "0-1 1-4", term("knob", 0), term("knob", 1))
    assert text == "a knob and a knob"


def test_without_a_place_nothing_is_put_in():
    assert put_in("Click the red button", "0-0", term("knob", 2)) is None
    assert put_in("Click the red knob", "0-0", term("knob", 2)) == "Click the red knob"  # it is there of itself
    # Two phrases for one word.
    assert put_in("Click the red button", "0-3 1-3", term("knob", 0), term("switch", 1)) is None


def test_what_is_put_in_is_what_later_sentences_see(monkeypatch):
    # In a system that reads its own translations a term that was put in is one of the words before.
    monkeypatch.setattr(binding_module, "FOREIGN", -math.inf)
    translator = Translator(briefly_trained("continuous-cache"))
    (document,) = documents([4])
    (found,) = translator.translate_documents([document], glossary=TERMS)
    assert check_terms([found], [document])
    texts = [sentence.text.strip() for sentence in found.sentences]  # such a model may write a space at the end
    assert texts == translator.target.decode(translator.target.encode(texts))


def test_options_carry_the_glossary(translator):
    translator.options = replace(translator.options, glossary=TERMS)
    (document,) = documents([4])
    assert translator.translate(document) == Translator(loaded_model()).translate(document, glossary=TERMS)
