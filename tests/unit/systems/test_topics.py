"""Topics: what is counted, what EM finds, which words and which sentences go with a topic."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from docnmt.data.context import Before
from docnmt.data.packing import make_batch, pack_contexts
from docnmt.document import ParallelDocument
from docnmt.systems import cache as module
from docnmt.systems.cache import TOPICS, Topics, count_words, fit
from tests.builders import BOS, EOS, in_target_language, make_store, parallel_documents, subwords

FIELDS = {  # words of three subjects
    "sea": ["la mer", "un bateau", "le port", "une vague", "le marin"],
    "bread": ["le pain", "la farine", "un four", "le sel", "une table"],
    "rail": ["la gare", "un train", "le quai", "une voie", "le billet"],
}


def documents(count: int = 60, seed: int = 0) -> list[ParallelDocument]:
    """Each of one subject, every sentence with the same function words."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        field = list(FIELDS.values())[number % 3]
        source = tuple(
            f"notre chat voit {random.choice(field)}, et rien ne cherche {random.choice(field)}." for _ in range(12)
        )
        made.append(ParallelDocument(f"d{number}", source, in_target_language(source)))
    return made


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "store", documents())


@pytest.fixture
def learned(store) -> Topics:
    topics = Topics(len(subwords("source")), 12)
    topics.learn(store, len(subwords("target")))
    return topics


def test_words_of_documents_are_counted(tmp_path):
    store = make_store(tmp_path / "s", [*parallel_documents([3, 2]), ParallelDocument("empty", (), ())])
    for side in ("source", "target"):
        counts = count_words(store, side, len(subwords(side))).to_dense()
        assert counts.shape == (3, len(subwords(side)))
        for document, (first, end) in enumerate([(0, 3), (3, 5), (5, 5)]):
            words = [int(w) for i in range(first, end) for w in store.sentence(side, i)]
            assert counts[document].tolist() == np.bincount(words, minlength=len(subwords(side))).tolist()


def test_em_never_lowers_what_it_maximises(store, monkeypatch):
    """The likelihood with its prior, after each round more than after the one before."""
    counts = [count_words(store, side, len(subwords(side))) for side in ("source", "target")]

    def objective(belongs: torch.Tensor) -> float:
        log_prior = module.log_topics(belongs)
        by_topic, prior = log_prior.repeat(len(belongs), 1), module.PRIOR * log_prior.sum()
        for side in counts:
            of_topics = torch.sparse.mm(side.t(), belongs)
            log_p = module.log_words(of_topics)
            by_topic = by_topic + torch.sparse.mm(side, log_p)
            prior = prior + module.PRIOR * log_p[of_topics.sum(1) > 0].sum()
        return float(by_topic.logsumexp(1).sum() + prior)

    found = []
    for rounds in range(1, 8):
        monkeypatch.setattr(module, "ROUNDS", rounds)
        found.append(objective(fit(counts)))
    assert found[-1] > found[0]
    assert all(later >= earlier - 1e-6 * abs(earlier) for earlier, later in pairwise(found))


def test_documents_of_two_subjects_have_no_topic_in_common(store):
    counts = [count_words(store, side, len(subwords(side))) for side in ("source", "target")]
    belongs = fit(counts)
    torch.testing.assert_close(belongs.sum(1), torch.ones(60, dtype=torch.float64))
    of_subject = [set(belongs[subject::3].argmax(1).tolist()) for subject in range(3)]
    assert len(set.union(*of_subject)) == sum(map(len, of_subject))


def words_of(texts) -> set[int]:
    return {w for ids in subwords("target").encode(in_target_language(texts)) for w in ids}


@pytest.mark.parametrize("subject", range(3))
def test_a_sentence_gets_the_words_of_its_subject(learned, subject):
    source = subwords("source")
    phrases = list(FIELDS.values())[subject]
    sentence = [*source.encode([f"rien ne cherche {phrases[0]}, {phrases[1]}"])[0], EOS]
    read = make_batch([sentence], None, [[]], BOS, EOS).source
    (found,) = learned(read, pack_contexts([Before([[BOS]], [[]])], BOS))
    found = set(found[found >= 0].tolist())
    others = set.union(*(words_of(other) for other in FIELDS.values() if other is not phrases))
    only = words_of(phrases) - others
    everywhere = words_of(["notre chat voit, et rien ne cherche."]) - words_of(phrases)
    assert only and len(found & only) > len(only) / 2
    assert not found & (others - words_of(phrases))
    assert len(found & everywhere) < len(found) / 3


def test_the_sentences_before_tell_the_subject_too(learned):
    source = subwords("source")
    plain = make_batch([[*source.encode(["rien"])[0], EOS]] * 3, None, [[]] * 3, BOS, EOS).source
    befores = [[[*ids, EOS] for ids in source.encode(FIELDS[name])] for name in ("sea", "bread", "rail")]
    together = learned.topics(plain, pack_contexts([Before(b, [[]] * len(b)) for b in befores], BOS))
    assert len(set(together.tolist())) == 3
    for i, before in enumerate(befores):  # no batch mate has a say
        one = make_batch([[*source.encode(["rien"])[0], EOS]], None, [[]], BOS, EOS).source
        assert learned.topics(one, pack_contexts([Before(before, [[]] * len(before))], BOS)).tolist() == [together[i]]


def test_marks_tell_nothing(learned):
    assert learned.evidence[[BOS, EOS]].abs().max() < 1e-6 < learned.evidence.abs().max()


def test_the_same_documents_give_the_same_topics(store, learned):
    again = Topics(len(subwords("source")), 12)
    again.learn(store, len(subwords("target")))
    assert all(torch.equal(a, b) for a, b in zip(learned.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("sizes", [[1], [0, 3], [2, 2]])
def test_fewer_documents_than_topics(tmp_path, sizes):
    topics = Topics(len(subwords("source")), 12)
    topics.learn(make_store(tmp_path / "s", parallel_documents(sizes)), len(subwords("target")))
    assert all(p.isfinite().all() for p in topics.parameters())
    assert topics.words.shape == (TOPICS, 12) and topics.words.max() < len(subwords("target"))


def test_one_document_has_no_words_of_its_own(tmp_path):
    topics = Topics(len(subwords("source")), 12)
    topics.learn(make_store(tmp_path / "s", parallel_documents([5])), len(subwords("target")))
    assert (topics.words == -1).all()  # nothing to tell it from


def test_more_words_wanted_than_there_are(store):
    topics = Topics(len(subwords("source")), 1000)
    topics.learn(store, len(subwords("target")))
    for row in topics.words.tolist():
        there = [word for word in row if word >= 0]
        assert len(set(there)) == len(there) and set(row[len(there) :]) <= {-1}
