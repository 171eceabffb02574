"""Systems that have been trained for a moment translate, score and come back from a folder, document by document."""

from __future__ import annotations

import pytest
import torch

from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.model_folder import load_model, save_model, weights_of
from tests.builders import make_store, parallel_documents
from tests.every_system import ALL, briefly_trained

NAMES = (
    "han",
    "han-encoder",
    "concat-2-to-1",
    "concat-2-to-2",
    "cache-without-topics",
    "continuous-cache",
)
every_name = pytest.mark.parametrize("name", NAMES)
remembering = pytest.mark.parametrize("name", ["han", "cache-without-topics", "continuous-cache"])


def documents(sizes=(4, 1, 0, 3), seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


@every_name
def test_documents_together_are_as_each_alone(name):
    translator = Translator(briefly_trained(name))
    found = texts(translator.translate_documents(documents()))
    assert [len(document) for document in found] == [4, 1, 0, 3]
    assert len({text for document in found for text in document}) > 3, "too much alike to prove anything"
    assert found == [translator.translate(document) for document in documents()]
    assert found == texts(translator.translate_documents(documents(), batch_tokens=1))


@every_name
def test_another_context_changes_translations_and_scores(name):
    translator = Translator(briefly_trained(name))
    pairs, others = parallel_documents([5], 7), parallel_documents([5], 8)
    (right,), (wrong,), (none,) = (
        list(translator.score(pairs, **options)) for options in ({}, {"context_from": others}, {"context": "none"})
    )
    for other in (wrong, none):
        assert right[0].log_probabilities == pytest.approx(other[0].log_probabilities, abs=1e-4)  # it has none anyhow
        assert all(abs(a.total - b.total) > 1e-4 for a, b in zip(right[1:], other[1:], strict=True))
    found = translator.translate_documents(documents([5]), nbest=3, context_from=documents([5], seed=8))
    plain = translator.translate_documents(documents([5]), nbest=3)
    scores = [[sentence.scores for sentence in next(d).sentences] for d in (found, plain)]
    assert scores[0][0] == pytest.approx(scores[1][0], abs=1e-5)
    assert all(a != pytest.approx(b, abs=1e-5) for a, b in zip(scores[0][1:], scores[1][1:], strict=True))


@every_name
def test_a_sentence_after_what_was_said_before_is_as_in_the_document(name):
    """Systems that need their own translations of the sentences before make them anew."""
    translator = Translator(briefly_trained(name))
    (document,) = documents([6])
    whole = translator.translate(document)
    said = document.sentences
    assert whole != [translator.translate([sentence])[0] for sentence in said], "no context is used"
    assert whole == [translator.translate([said[k]], previous=said[:k])[0] for k in range(6)]
    assert whole[2:] == translator.translate(said[2:], previous=said[:2])
    for context in ("off", "none"):
        alone = translator.translate(said[3:], context=context)
        assert translator.translate(said[3:], previous=said[:3], context=context) == alone


def rows(packed) -> list[list[int]]:
    return [part.tolist() for part in packed.tokens.split(packed.segments.lengths.tolist())]


@remembering
def test_it_remembers_the_last_translations_in_order_and_none_of_another_document(name, monkeypatch):
    loaded, seen = briefly_trained(name), {}
    k = loaded.card.context.previous

    def recording(model, source, context, **options):
        found = beam_search(model, source, context, **options)
        ends = context.counts.cumsum(0).tolist()
        for sentence, begin, end, best in zip(rows(source), [0, *ends], ends, found, strict=False):
            seen[tuple(sentence)] = rows(context.source)[begin:end], rows(context.target)[begin:end], best[0].tokens
        return found

    monkeypatch.setattr("docnmt.decoding.translator.beam_search", recording)
    given = documents([5, 3])
    list(Translator(loaded).translate_documents(given))
    for document in given:
        ids = [[*sentence, loaded.source.eos] for sentence in loaded.source.encode(document.sentences)]
        written = [[loaded.target.bos, *seen[tuple(sentence)][2]] for sentence in ids]
        for i, sentence in enumerate(ids):
            sources, translations, _ = seen[tuple(sentence)]
            assert sources == (ids[max(0, i - k) : i] or [[loaded.source.bos]])
            assert translations == (written[max(0, i - k) : i] or [[loaded.target.bos]])


@pytest.mark.parametrize("name", [*NAMES, "cache"])
def test_a_model_folder_comes_back_to_the_bit(name, tmp_path):
    loaded, system = briefly_trained(name), ALL[name].system
    if system.learn is not None:
        system.learn(loaded.model, make_store(tmp_path / "store", parallel_documents([4, 6, 5])), loaded.target)
    save_model(tmp_path / "model", weights_of(loaded.model), loaded.card, loaded.source, loaded.target, {})
    again = load_model(tmp_path / "model")
    assert type(again.model) is type(loaded.model) and again.card == loaded.card
    theirs = weights_of(again.model)
    assert all(torch.equal(value, theirs[name]) for name, value in weights_of(loaded.model).items())
    (document,) = documents([3])
    assert Translator(again).translate(document) == Translator(loaded).translate(document)
