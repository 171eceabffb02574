"""Accuracy on context-dependent words, and wrong contexts on purpose."""

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.demo import ContextWord, generate
from docnmt.demo.run import accuracy, is_right
from docnmt.document import Document
from docnmt.evaluation.test_sets import shuffled

LAWYER = ContextWord(1, "sense", 1, "lawyer", ("avocado",))
HE = ContextWord(2, "pronoun", 2, "He", ("It", "She"))


@pytest.mark.parametrize(
    ("word", "translation", "right"),
    [
        (LAWYER, "The lawyer is ready.", True),
        (LAWYER, "The avocado is ready.", False),
        (LAWYER, "The lawyer eats an avocado.", False),
        (LAWYER, "The lawyers are ready.", False),
        (HE, "Of course, he left.", True),
        (HE, "The house is big.", False),
        (HE, "Of course, she left.", False),
    ],
)
def test_a_word_is_right_as_a_whole_word_without_a_wrong_one(word, translation, right):
    assert is_right(word, translation) is right


def test_accuracy_counts_both_kinds_of_words():
    words = {("d", 1): [LAWYER], ("d", 2): [HE]}
    sentences = [
        ("d", 0, "The trial begins.", "The trial begins."),
        ("d", 1, "The lawyer is ready.", "The avocado is ready."),
        ("d", 2, "He left.", "He stayed."),
    ]
    found = accuracy(words, sentences)
    assert (found.words.right, found.words.total) == (1, 2)
    assert (found.other_words.right, found.other_words.total) == (3 + 3 + 0, 3 + 3 + 1)
    assert found.of("sense").percent == 0 and found.of("pronoun").percent == 100
    assert found.of(1).percent == 0 and found.of(2).percent == 100
    assert found.chance == pytest.approx(100 * (1 / 2 + 1 / 3) / 2)


def test_the_references_of_the_demo_corpus_are_right():
    test = generate(60, 3)["test"]
    words = {(d.document.id, w.position): [w] for d in test for w in d.words}
    sentences = [(d.document.id, i, t, t) for d in test for i, t in enumerate(d.document.target)]
    found = accuracy(words, sentences)
    assert found.words.percent == found.other_words.percent == 100


def test_shuffled_contexts_come_from_other_documents_and_fit_in_length():
    documents = [Document(str(n), tuple(f"{n}-{i}" for i in range(n + 1))) for n in range(6)]
    foreign = shuffled(documents, seed=1)
    assert [len(d) for d in foreign] == [len(d) for d in documents]
    for own, other in zip(documents, foreign, strict=True):
        assert not set(own.sentences) & set(other.sentences)
    assert shuffled(documents, seed=1) == foreign != shuffled(documents, seed=2)
    with pytest.raises(DocnmtError, match="other documents"):
        shuffled(documents[:1], seed=1)
