"""`document.choices`: a loss between the words of a class, where one of them is the target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, DocumentStepConfig, Recipe
from docnmt.data.batches import Examples
from docnmt.data.focus import BALANCED, Choices, Lessons
from docnmt.data.packing import Choice
from docnmt.model.base import choice_loss
from docnmt.training.two_step import _check_document_step
from tests.builders import make_model, make_store, parallel_documents, random_batch, small_subwords, subwords

CLASSES = ["his,her,its", "him, her, it"]


@pytest.fixture(scope="module")
def english():
    text = ["his her its him it", "His Her Its", "the herd of hers", "it is his; he gave it to her"] * 20
    return small_subwords(text, 330)


def shown(choices: Choices, choice: Choice) -> list[list[str]]:
    words = [row[there].tolist() for row, there in zip(choice.words, choice.there, strict=True)]
    return [[choices.words.written[piece] for piece in row] for row in words]


def test_a_word_is_told_from_those_of_its_classes_as_it_is_written(english):
    choices = Choices(CLASSES, 2.0, english)
    targets = english.encode(["Its herd gave it his", "the herd", "her"])
    choice = choices.of(targets)
    tokens = [piece for target in targets for piece in (*target, english.eos)]
    assert [tokens[row] for row in choice.rows.tolist()] == choice.words[:, 0].tolist(), "the right word is the first"
    found = {row[0]: set(row[1:]) for row in shown(choices, choice)}
    assert found == {
        " Its": {" His", " Her"},
        " it": {" him", " her"},
        " his": {" her", " its"},
        " her": {" his", " its", " him", " it"},
    }


def test_where_there_is_nothing_to_choose_nothing_is_added(english):
    choice = Choices(CLASSES, 2.0, english).of(english.encode(["the herd", "of hers"]))
    assert len(choice.rows) == 0
    assert float(choice_loss(torch.randn(9, 4), torch.randn(len(english), 4), choice)) == 0


def some_choice(weight: float = 3.0) -> Choice:
    words = torch.tensor([[5, 7, 9], [4, 6, 0]])
    return Choice(
        torch.tensor([2, 6]), words, torch.tensor([[True] * 3, [True, True, False]]), torch.full((2,), weight)
    )


def test_its_loss_is_that_of_a_vocabulary_of_the_class_alone():
    states, weight = torch.randn(8, 16, requires_grad=True), torch.randn(11, 16, requires_grad=True)
    log_p = [(states[row] @ weight[words].T).log_softmax(0)[0] for row, words in ((2, [5, 7, 9]), (6, [4, 6]))]
    torch.testing.assert_close(choice_loss(states, weight, some_choice()), -3 * sum(log_p))


def test_it_does_not_teach_to_write_more_of_these_words():
    """Along the direction that makes all words of a class more probable alike it has no slope."""
    logits = torch.randn(8, 11, requires_grad=True)
    loss = choice_loss(logits, torch.eye(11), some_choice())  # states that are their own logits
    (slope,) = torch.autograd.grad(loss, logits)
    assert slope.abs().max() > 0.1
    torch.testing.assert_close(slope.sum(1), torch.zeros(8), atol=1e-6, rtol=0)
    assert not slope[[0, 1, 3, 4, 5, 7]].any()


def test_in_a_models_loss_it_is_added_and_what_is_reported_stays():
    model, batch = make_model(), random_batch(5)
    loss, log_p = model.loss(batch, 0.1)
    with_choice, again = model.loss(replace(batch, choice=some_choice()), 0.1)
    torch.testing.assert_close(with_choice - loss, choice_loss(model(batch), model.softmax.weight, some_choice()))
    assert torch.equal(log_p, again)


def test_balanced_the_words_of_a_class_count_for_the_same_in_all(english):
    """Each as often as it is in the text: then no word is the better guess where nothing is known."""
    often = {" his": 60, " her": 25, " its": 35}
    counts = np.zeros(len(english), np.int64)
    choices = Choices(["his,her,its"], 2.0, english, counts)
    pieces = {text: choices.words.written.index(text) for text in often}
    for text, piece in pieces.items():
        counts[piece] = often[text]
    targets = english.encode([text.strip() for text, times in often.items() for _ in range(times)])
    choice = choices.of(targets)
    totals = [float(choice.weights[choice.words[:, 0] == piece].sum()) for piece in pieces.values()]
    assert totals == pytest.approx([80, 80, 80]), "two times 120 choices, in three parts"
    rare = Choices(["his,her,its"], 2.0, english, np.where(counts == 25, 1, counts))
    assert rare.weight_of(pieces[" her"]) == 2 * BALANCED, "a word that is hardly there does not outweigh all else"


def test_batches_have_the_choices_of_their_sentences(tmp_path):
    store = make_store(tmp_path / "store", parallel_documents([9, 4]))
    choices = Choices(["re,ri,un,une"], 2.0, subwords("target"))
    given = Examples([store], subwords("source"), subwords("target"), None, lessons=Lessons(choices=choices))
    batch = given.batch([4, 0, 7])
    assert len(batch.choice.rows) > 0
    assert torch.equal(batch.target_out[batch.choice.rows], batch.choice.words[:, 0])
    assert Examples([store], subwords("source"), subwords("target"), None).batch([4]).choice is None


def test_it_is_asked_for_by_the_recipe():
    step = DocumentStepConfig(choices=("re,ri",))
    given = Lessons.of(step, subwords("source"), subwords("target"), None, None).choices
    assert given.weight == 5.0 and given.counts is None


def test_a_system_without_such_a_loss_says_so():
    recipe = Recipe(context=ContextConfig(kind="cache"), document=DocumentStepConfig(choices=("re,ri",)))
    with pytest.raises(DocnmtError, match="choices"):
        _check_document_step(recipe)
