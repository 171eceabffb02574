"""Tiedemann and Scherrer (2017): what is read and written, what of it counts, and that the model is the sentence's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, Recipe
from docnmt.data.batches import Examples, epoch_batches
from docnmt.data.context import Neighbours
from docnmt.data.packing import make_batch, own_parts
from docnmt.document import NO_CONTEXT, ContextSpec, ParallelDocument
from docnmt.model.transformer import DocumentTransformer
from docnmt.systems.concat import SYSTEM, Prefixed, ToOne, ToTwo
from docnmt.training.two_step import _check_document_step
from tests.builders import (
    BOS,
    EOS,
    logits_of,
    make_store,
    model_config,
    parallel_documents,
    random_sentences,
    shake,
    subwords,
)

SIZES = (4, 1, 3, 2)
both = pytest.mark.parametrize("translate_previous", [False, True], ids=["2-to-1", "2-to-2"])


def concat(translate_previous: bool) -> ContextConfig:
    return ContextConfig(kind="concat", previous=1, translate_previous=translate_previous)


def one(previous: int = 1, max_tokens: int = 256) -> ToOne:
    return ToOne(ContextSpec(previous, 0), max_tokens, BOS, EOS)


def two(previous: int = 1, max_tokens: int = 256, target_bos: int = 7) -> ToTwo:
    return ToTwo(ContextSpec(previous, 0), max_tokens, BOS, EOS, target_bos, EOS)


# ---- what is read and written ----

DOCUMENT = [[10, 11], [12], [13, 14, 15]]
TRANSLATIONS = [[20], [21, 22], [23]]


def around(rule: ToOne, position: int) -> Neighbours:
    return rule.around(DOCUMENT, position, TRANSLATIONS)


def read_and_written(rule: ToOne) -> list[tuple[list[int], list[int]]]:
    return [
        (list(rule.source(DOCUMENT[i], around(rule, i))), list(rule.target(TRANSLATIONS[i], around(rule, i))))
        for i in range(3)
    ]


def test_two_to_one():
    expected = [[10, 11], [10, 11, BOS, 12], [12, BOS, 13, 14, 15]]
    assert read_and_written(one()) == list(zip(expected, TRANSLATIONS, strict=True))


def test_two_to_two_has_the_break_of_either_language():
    assert read_and_written(two(target_bos=7)) == [
        ([10, 11], [20]),
        ([10, 11, BOS, 12], [20, 7, 21, 22]),
        ([12, BOS, 13, 14, 15], [21, 22, 7, 23]),
    ]


def prefixed(previous: int = 1, max_tokens: int = 256) -> Prefixed:
    return Prefixed(ContextSpec(previous, 0), max_tokens, BOS, EOS)


def test_two_and_one_has_a_prefix_on_every_word_before_and_no_break():
    expected = [[10, 11], [~10, ~11, 12], [~12, 13, 14, 15]]
    assert read_and_written(prefixed()) == list(zip(expected, TRANSLATIONS, strict=True))
    assert read_and_written(prefixed(2))[2][0] == [~10, ~11, ~12, 13, 14, 15]
    assert read_and_written(prefixed(2, max_tokens=2))[2][0] == [~11, ~12, 13, 14, 15]


def test_a_word_with_the_prefix_is_a_word_of_its_own():
    """As the authors have it: a vocabulary in which every word stands twice, with the prefix and without."""
    words = 20
    torch.manual_seed(0)
    config = ContextConfig(kind="concat", previous=1, mark="prefix")
    model = shake(SYSTEM.model(model_config(), config, words, words)).eval()
    plain = DocumentTransformer(model_config(), ContextConfig(kind="none"), 2 * words, words).eval()
    weights = {name: p.detach() for name, p in model.sentence_parameters()}
    both = torch.cat([model.source_embedding.weight, model.context_embedding.weight]).detach()
    assert plain.load_weights(weights | {"source_embedding.weight": both}) == []
    rule, targets = prefixed(), TRANSLATIONS
    targets = [[t - 10 for t in target] for target in targets]
    sources = [[*rule.source(DOCUMENT[i], around(rule, i)), EOS] for i in range(3)]
    doubled = [[token if token >= 0 else words + ~token for token in source] for source in sources]
    found, wanted = (
        logits_of(m, make_batch(rows, None, targets, BOS, EOS)) for m, rows in ((model, sources), (plain, doubled))
    )
    torch.testing.assert_close(found, wanted)
    unmarked = [[token if token >= 0 else ~token for token in source] for source in sources]
    assert not torch.allclose(found, logits_of(model, make_batch(unmarked, None, targets, BOS, EOS)), atol=1e-2)


def test_at_first_a_prefix_changes_nothing(tmp_path):
    config = ContextConfig(kind="concat", previous=1, mark="prefix")
    model = shake(SYSTEM.model(model_config(), config, 20, 20)).eval()
    SYSTEM.learn(model, make_store(tmp_path / "s", parallel_documents([3])), subwords("target"))
    with_prefix, without = (make_batch([row], None, [[5]], BOS, EOS) for row in ([~7, ~8, 9, EOS], [7, 8, 9, EOS]))
    torch.testing.assert_close(logits_of(model, with_prefix), logits_of(model, without))


def test_prefixes_and_a_translation_of_what_stands_before_do_not_go_together():
    with pytest.raises(DocnmtError, match="break"):
        SYSTEM.rule(ContextConfig(kind="concat", mark="prefix", translate_previous=True))


def test_three_to_one_and_three_to_three():
    assert read_and_written(one(2))[2] == ([10, 11, BOS, 12, BOS, 13, 14, 15], [23])
    assert read_and_written(two(2))[2] == ([10, 11, BOS, 12, BOS, 13, 14, 15], [20, 7, 21, 22, 7, 23])


def test_more_sentences_before_have_a_break_each():
    assert read_and_written(two(2))[2] == ([10, 11, BOS, 12, BOS, 13, 14, 15], [20, 7, 21, 22, 7, 23])


def test_too_much_before_is_cut_at_the_far_end_and_the_sentence_never():
    found = read_and_written(two(2, max_tokens=4))
    assert found[2] == ([11, BOS, 12, BOS, 13, 14, 15], [7, 21, 22, 7, 23])
    assert read_and_written(one(max_tokens=2))[1] == ([11, BOS, 12], [21, 22])


@pytest.mark.parametrize("rule", [replace(one(), spec=NO_CONTEXT), replace(two(), spec=NO_CONTEXT)], ids=["1", "2"])
def test_without_context_a_sentence_stands_alone(rule):
    assert read_and_written(rule) == list(zip(DOCUMENT, TRANSLATIONS, strict=True))
    assert rule.context(around(rule, 2)) is None


def test_translations_are_for_training_and_scoring_not_for_decoding():
    assert two().sees_translations and not two().remembers
    assert not one().sees_translations and not one().remembers
    assert two().around(DOCUMENT, 2) == Neighbours([[12]], [], ())


@pytest.mark.parametrize(
    ("previous", "written", "own"),
    [
        (1, [20, 7, 21], [21]),
        (1, [20, 7, 21, 7, 22], [21, 7, 22]),  # one break too many: it is part of the sentence, and no text
        (1, [20, 21], [20, 21]),  # no break: nothing is lost
        (1, [20, 7], []),
        (1, [7, 21], [21]),
        (2, [20, 7, 21, 7, 22], [22]),
        (2, [20, 7, 22], [22]),
        (2, [22], [22]),
    ],
)
def test_what_follows_the_last_break_to_be_expected_is_kept(previous, written, own):
    rule = two(previous)
    assert list(rule.own(tuple(written), rule.around(DOCUMENT, 2))) == own


def test_where_no_break_is_to_be_expected_all_is_kept():
    assert two().own((20, 7, 21), around(two(), 0)) == (20, 7, 21)
    assert one().own((20, 7, 21), around(one(), 2)) == (20, 7, 21)
    assert subwords("target").decode([[300, BOS, 301]]) == subwords("target").decode([[300, 301]])


sentences = st.lists(st.lists(st.integers(10, 30), max_size=5), min_size=1, max_size=4)


@given(sentences, st.integers(0, 3))
def test_what_is_written_gives_back_the_sentence(document, previous):
    rule = two(previous)
    for i, sentence in enumerate(document):
        neighbours = rule.around(document, i, document)
        assert list(rule.own(rule.target(sentence, neighbours), neighbours)) == sentence


def test_what_concat_cannot_do_is_refused():
    with pytest.raises(
        DocnmtError, match=r"only uses sentences before the current one\n  Set the context's following to 0"
    ):
        ToOne(ContextSpec(1, 1), 256, BOS, EOS)
    with pytest.raises(DocnmtError, match=r"translate_previous needs a begin-of-sentence token.*\n  Set it to false"):
        two(target_bos=EOS)


# ---- examples for training ----


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    gap = ParallelDocument("gap", ("le chat", "", "la ville"), ("li chet", "", "le volli"))
    return [make_store(folder / "a", parallel_documents(SIZES)), make_store(folder / "b", [gap])]


RULES = [
    ToTwo(ContextSpec(previous, 0), max_tokens, BOS, EOS) for previous in (0, 1, 3) for max_tokens in (2, 9, 256)
] + [one(), one(2, 9)]


@pytest.mark.parametrize("foreign", [None, 1])
@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{type(r).__name__}-{r.spec.previous}-{r.max_tokens}")
def test_lengths_are_those_of_what_is_made(stores, rule, foreign):
    examples = Examples(stores, subwords("source"), subwords("target"), rule, foreign)
    pairs = np.flatnonzero(~examples.gaps)
    assert len(pairs) == len(examples) - 1
    batch = examples.batch(pairs)
    assert batch.context is None and not examples.context_lengths.any()
    assert batch.source.segments.lengths.tolist() == examples.source_lengths[pairs].tolist()
    assert batch.target_in.segments.lengths.tolist() == examples.target_lengths[pairs].tolist()
    plain = Examples(stores, subwords("source"), subwords("target"), None).batch(pairs)
    own = own_parts(batch.target_out, batch, examples.own_lengths[pairs].tolist())
    assert torch.equal(torch.cat(own), plain.target_out)
    assert examples.own_lengths[pairs].tolist() == plain.target_in.segments.lengths.tolist()


def rows(packed) -> list[list[int]]:
    return [part.tolist() for part in packed.tokens.split(packed.segments.lengths.tolist())]


def test_examples_are_those_of_each_document_alone(stores):
    examples = Examples(stores[:1], subwords("source"), subwords("target"), ToTwo(ContextSpec(1, 0), 256, BOS, EOS))
    batch = examples.batch(range(len(examples)))
    expected = []
    for document in parallel_documents(SIZES):
        source, target = subwords("source").encode(document.source), subwords("target").encode(document.target)
        for i in range(len(document)):
            before = [*source[i - 1], BOS] if i else []
            written = [*target[i - 1], BOS] if i else []
            expected.append(([*before, *source[i], EOS], [BOS, *written, *target[i]]))
    assert list(zip(rows(batch.source), rows(batch.target_in), strict=True)) == expected


def test_batches_of_an_epoch_go_by_source_length_where_targets_are_alike(stores):
    examples = Examples(stores, subwords("source"), subwords("target"), one())
    batches = epoch_batches(examples, 200, 1, 0)
    assert sorted(np.concatenate(batches).tolist()) == np.flatnonzero(~examples.gaps).tolist()
    padded = [len(batch) * int(examples.source_lengths[batch].max()) for batch in batches]
    assert sum(padded) < 1.6 * int(examples.source_lengths.sum())


# ---- the model ----


@both
def test_the_model_is_the_sentence_model_to_the_bit(translate_previous):
    sizes = (23, 19)
    made = shake(SYSTEM.model(model_config(), concat(translate_previous), *sizes)).eval()
    base = DocumentTransformer(model_config(), ContextConfig(kind="none"), *sizes).eval()
    assert base.load_weights(dict(made.named_parameters())) == [] and not list(made.document_parameters())
    assert made.context_config == concat(translate_previous)
    batch = make_batch(random_sentences(4, 23), None, random_sentences(4, 19, 1), BOS, EOS)
    assert torch.equal(logits_of(made, batch), logits_of(base, batch))


# ---- training it ----


@pytest.mark.parametrize("kind", ["concat", "attention"])
@pytest.mark.parametrize("freeze", [True, False])
@pytest.mark.parametrize("start", ["", "nothing"])
def test_freezing_all_there_is_is_refused(kind, freeze, start):
    step = replace(Recipe().document, freeze=freeze, start_from=start)
    recipe = Recipe(context=ContextConfig(kind=kind), document=step)
    if kind == "concat" and freeze and not start:
        with pytest.raises(DocnmtError, match=r'"concat" adds no parameters.*\n  Set document.freeze = false'):
            _check_document_step(recipe)
    else:
        _check_document_step(recipe)


def test_sentences_after_are_refused_before_any_step():
    with pytest.raises(DocnmtError, match="only uses sentences before the current one"):
        _check_document_step(Recipe(context=ContextConfig(kind="concat", following=1)))
    _check_document_step(Recipe(context=ContextConfig(kind="none", following=1)))
