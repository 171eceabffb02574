"""Concatenated sentences in use: a trained model translates, scores, chooses and is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.data.packing import make_batch, pack
from docnmt.decoding.beam import beam_search
from docnmt.decoding.scoring import Choice
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT, Document, ParallelDocument
from docnmt.evaluation.context_gain import context_gain, translation_quality
from docnmt.evaluation.context_report import Figures, context_gain_page
from docnmt.evaluation.context_trace import gate_by_layer
from docnmt.evaluation.contrastive import judge, target_contexts
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.contrastive_report import notes
from docnmt.evaluation.test_sets import NONE, REPEATED, SHUFFLED, TRUE, TestSet, shuffled
from docnmt.model.transformer import DecoderState
from docnmt.training.parallel import Group
from docnmt.training.validation import Validator
from tests.builders import (
    BOS,
    EOS,
    lines,
    logits_of,
    make_store,
    parallel_documents,
    random_sentences,
)
from tests.every_system import briefly_trained

SIZES = (4, 1, 3, 2)


NAMES = ("concat-2-to-1", "concat-2-to-2")


@pytest.fixture(params=NAMES)
def translator(request) -> Translator:
    return Translator(briefly_trained(request.param))


def documents(sizes=SIZES, seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


def rows(packed) -> list[list[int]]:
    return [part.tolist() for part in packed.tokens.split(packed.segments.lengths.tolist())]


# ---- the model ----


def test_word_by_word_is_as_all_at_once():
    translator = Translator(briefly_trained("concat-2-to-2"))
    model, rule = translator.model, translator.rule()
    ids, translations = (random_sentences(4, 300, seed, shortest=3) for seed in (1, 2))
    neighbours = [rule.around(ids, i, translations) for i in range(4)]
    sources = [[*rule.source(*pair), EOS] for pair in zip(ids, neighbours, strict=True)]
    targets = [rule.target(*pair) for pair in zip(translations, neighbours, strict=True)]
    for source, target in zip(sources, targets, strict=True):
        whole = logits_of(model, make_batch([source], None, [target], BOS, EOS))
        state = DecoderState(model, model.encode(pack([source])), 1)
        with torch.no_grad():
            steps = torch.cat([state.logits(torch.tensor([word])) for word in [BOS, *target]])
        torch.testing.assert_close(steps, whole, atol=1e-4, rtol=1e-4)


def test_validation_counts_each_sentences_own_pieces(translator, tmp_path):
    pairs = parallel_documents((4, 3, 5), seed=9)
    dev = make_store(tmp_path / "dev", pairs)
    model = briefly_trained(NAMES[translator.card.context.translate_previous])
    options = {"decode": True, "beam": 1, "batch_tokens": 400, "group": Group()}
    test = TestSet("Dev", pairs, [[sentence for d in pairs for sentence in d.target]])
    found = Validator(model, dev, test, translator.rule(), **options).validate()
    for loss, context in ((found.loss, None), (found.loss_without_context, NO_CONTEXT)):
        scores = [s for document in translator.score(pairs, context=context) for s in document]
        pieces = sum(len(s.pieces) for s in scores)
        assert pieces == sum(len(ids) + 1 for d in pairs for ids in translator.target.encode(d.target))
        assert loss == pytest.approx(-sum(s.total for s in scores) / pieces, abs=1e-4)
    assert abs(found.loss - found.loss_without_context) > 1e-3


# ---- translating ----


def test_what_is_decoded_and_what_is_kept(translator, monkeypatch):
    calls = []

    def breaking(model, source, context, **options):
        """Beam search by a model that writes a break after three pieces."""
        assert context is None
        found = beam_search(model, source, context, **options)
        found = [[replace(h, tokens=(*h.tokens[:3], BOS, *h.tokens[3:])) for h in best] for best in found]
        calls.append(list(zip(rows(source), found, strict=True)))
        return found

    monkeypatch.setattr("docnmt.decoding.translator.beam_search", breaking)
    (document,) = documents([6])
    kept = translator.translate(document, options=replace(translator.options, batch_tokens=100_000))
    assert len(calls) == 1, "no sentence waits for another"
    written = {tuple(source): best[0] for source, best in calls[0]}
    ids = translator.source.encode(document.sentences)
    for i, text in enumerate(kept):
        tokens = written[(*ids[i - 1], BOS, *ids[i], EOS) if i else (*ids[i], EOS)].tokens
        assert len(tokens) > 4
        own = tokens[4:] if translator.card.context.translate_previous and i else tokens
        assert translator.target.decode([own]) == [text]


def test_none_and_off_are_the_sentence_alone(translator):
    alone = [[translator.translate([sentence])[0] for sentence in d.sentences] for d in documents()]
    for context in ("none", "off"):
        assert texts(translator.translate_documents(documents(), context=context)) == alone
    assert texts(translator.translate_documents(documents())) != alone
    with pytest.raises(DocnmtError, match="only uses sentences before the current one"):
        translator.translate(["a"], context="previous=1,following=1")


def test_a_long_sentence_in_parts_after_a_long_one(translator):
    long = " ".join(lines(12, seed=3))
    with pytest.warns(UserWarning, match="parts"):
        found = translator.translate([long, long, "", "le chat aime rien."])
    assert len(found) == 4 and found[2] == "" and all(found[i] for i in (0, 1, 3))


# ---- scoring ----


def score_by_hand(translator: Translator, document: ParallelDocument, i: int, other: ParallelDocument) -> list[float]:
    """Log-probabilities of sentence i after the one before it in another document."""
    encode, write = translator.source.encode, translator.target.encode
    (source,), (target,) = encode([document.source[i]]), write([document.target[i]])
    read, written = source, target
    if i:
        read = [*encode([other.source[i - 1]])[0], BOS, *source]
        if translator.card.context.translate_previous:
            written = [*write([other.target[i - 1]])[0], BOS, *target]
    with torch.no_grad():
        logits = logits_of(translator.model, make_batch([[*read, EOS]], None, [written], BOS, EOS))
    values = logits.log_softmax(1)[torch.arange(len(written) + 1), torch.tensor([*written, EOS])]
    return values[len(written) - len(target) :].tolist()


@pytest.mark.parametrize("foreign", [False, True])
def test_scores_are_those_of_the_sentences_own_pieces(translator, foreign):
    pairs = parallel_documents(SIZES, 7)
    others = parallel_documents(SIZES, 8) if foreign else pairs
    for document, other, scores in zip(
        pairs, others, translator.score(pairs, context_from=others if foreign else None), strict=True
    ):
        for i, score in enumerate(scores):
            assert score.log_probabilities == pytest.approx(score_by_hand(translator, document, i, other), abs=1e-4)
            assert "".join(score.pieces[:-1]).replace("▁", " ").strip() == document.target[i]
            assert score.pieces[-1] == "</s>"


def test_contexts_for_scoring_need_translations_where_these_are_seen(translator):
    pairs, others = parallel_documents([3], 7), documents([3], 8)
    if translator.card.context.translate_previous:
        with pytest.raises(DocnmtError, match=r"document document-8-0: .*\n  Give a ParallelDocument"):
            next(translator.score(pairs, context_from=others))
    else:
        both = (next(translator.score(pairs, context_from=c)) for c in (others, parallel_documents([3], 8)))
        assert next(both) == next(both)


# ---- choices ----


def test_a_choice_scores_as_its_sentence_does_in_the_whole_document(translator):
    pairs = parallel_documents([5, 1, 3], seed=11)
    whole = [score for document in translator.score(pairs) for score in document]
    choices = []
    for d in pairs:
        for i in range(len(d)):
            candidates = [d.target[i], "rien"]
            choices.append(Choice(Document(d.id, d.source), i, candidates, [d.target[:i], d.target[:i]]))
    for scores, expected in zip(translator.score_choices(choices), whole, strict=True):
        assert scores[0].pieces == expected.pieces
        assert scores[0].log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4)


def test_a_choice_without_the_translations_that_are_needed(translator):
    document = documents([3])[0]
    choice = Choice(document, 2, ["a", "b"])
    if translator.card.context.translate_previous:
        with pytest.raises(DocnmtError, match=r"sentence 3: .*preceding sentences\n  .*Choice.before"):
            list(translator.score_choices([choice]))
    else:
        list(translator.score_choices([choice]))
    for context, position in (("none", 2), ("off", 2), (None, 0)):
        assert len(next(translator.score_choices([choice._replace(position=position)], context=context))) == 2


def item(document: ParallelDocument, position: int, length: int = 1, gold: bool = True) -> Item:
    scored = slice(position, position + length)
    return Item(
        document.id,
        "test",
        document.source[scored],
        document.target[scored],
        (("rien",) * length,),
        previous=document.source[:position],
        previous_target=document.target[:position] if gold else (),
    )


def test_a_contrastive_item_with_gold_context(translator):
    (document,) = parallel_documents([6], seed=4)
    (scores,) = translator.score([document])
    one, two = judge(translator, [item(document, 3), item(document, 2, 3)], None)
    assert one.scores[0] == pytest.approx(scores[3].total, abs=1e-3)
    # In a passage the candidate itself is what stands before its later sentences.
    assert two.scores[0] == pytest.approx(sum(score.total for score in scores[2:5]), abs=1e-3)
    wrong = ParallelDocument("d", document.source[:5], (*document.target[:2], "rien", "rien", "rien"))
    (scores,) = translator.score([wrong])
    assert two.scores[1] == pytest.approx(sum(score.total for score in scores[2:5]), abs=1e-3)


def test_where_a_set_has_no_target_context_the_model_makes_its_own():
    translator = Translator(briefly_trained("concat-2-to-2"))
    (document,) = parallel_documents([6], seed=4)
    bare = item(document, 3, gold=False)
    (own,) = target_contexts(translator, [bare], None)
    assert own == ("", "", translator.translate([document.source[2]])[0])
    (scores,) = translator.score([ParallelDocument("d", document.source[:4], (*own, document.target[3]))])
    assert judge(translator, [bare], None)[0].scores[0] == pytest.approx(scores[3].total, abs=1e-3)
    assert target_contexts(translator, [bare], "none") == [()]
    assert target_contexts(Translator(briefly_trained("concat-2-to-1")), [bare], None) == [()]
    gold = item(document, 3)
    assert notes([gold, bare], True) == [
        "This model sees the set's gold target context, not its own translations.",
        "Items without target context, for which the model translated the previous sentences: 1.",
    ]
    assert notes([bare]) == []


# ---- what context is worth ----


def test_gains_are_those_of_scores_under_each_context(translator):
    pairs = parallel_documents((4, 1, 3, 6), seed=11)
    gain = context_gain(translator, pairs)
    expected = {
        TRUE: translator.score(pairs),
        NONE: translator.score(pairs, context=NO_CONTEXT),
        SHUFFLED: translator.score(pairs, context_from=shuffled(pairs, 1)),
    }
    if not translator.card.context.translate_previous:  # else it would read the answer
        again = [ParallelDocument(d.id, (s, s), (t, t)) for d in pairs for s, t in zip(d.source, d.target, strict=True)]
        repeated = ([scores[1]] for scores in translator.score(again))
        alone = translator.score(pairs, context=NO_CONTEXT)
        first = [not i for d in pairs for i in range(len(d))]
        flat = [score for document in alone for score in document]
        expected[REPEATED] = [
            [none if begins else scores[0]] for begins, none, scores in zip(first, flat, repeated, strict=True)
        ]
    assert list(gain.log_probabilities) == list(expected)
    for name, scored in expected.items():
        theirs = [score.log_probabilities for document in scored for score in document]
        for ours, values in zip(gain.log_probabilities[name], theirs, strict=True):
            assert ours == pytest.approx(values, abs=1e-5)
    begins = gain.position == 0
    for over in list(expected)[1:]:
        assert not gain.totals(over)[begins].any() and gain.totals(over)[~begins].all()


def test_the_figures_and_the_page_are_made(translator):
    pairs = parallel_documents((4, 3), seed=11)
    gain, quality = context_gain(translator, pairs), translation_quality(translator, pairs)
    assert {len(found) for found in quality.translations.values()} == {7}
    figures = Figures(gain, quality, gate_by_layer(translator, pairs))
    overall = figures.overall()
    assert ("not scored" in overall.markdown()) is translator.card.context.translate_previous
    page = context_gain_page("names", translator, pairs, figures)
    assert "lacks the paper's context attention" in page
    assert quality.translations[REPEATED] != quality.translations[NONE]
