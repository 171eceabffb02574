"""The continuous cache of Tu et al. (2018): its equations and its updates, word by word, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt.config import ContextConfig
from docnmt.data.context import Before
from docnmt.data.packing import make_batch
from docnmt.systems.continuous_cache import ContinuousCacheTransformer, fill_slots
from tests.builders import BOS, EOS, SOURCE_WORDS, TARGET_WORDS, model_config, random_sentences, shake, with_end


def make_cache(cache_words: int = 4) -> ContinuousCacheTransformer:
    context = ContextConfig(kind="continuous-cache", cache_words=cache_words)
    torch.manual_seed(0)
    return shake(ContinuousCacheTransformer(model_config(), context, SOURCE_WORDS, TARGET_WORDS)).eval()


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


class Reference:
    """The cache as it is told: one word after another."""

    def __init__(self, limit: int):
        self.limit, self.slots = limit, {}  # word -> (key, value), the least recently written first

    def add(self, word, key, value):
        if word in self.slots:
            old = self.slots.pop(word)
            key, value = (old[0] + key) / 2, (old[1] + value) / 2
        elif len(self.slots) == self.limit:
            del self.slots[next(iter(self.slots))]
        self.slots[word] = key, value


# ---- updates ----


@given(
    rows=st.lists(st.lists(st.integers(0, 5), max_size=14), min_size=1, max_size=4),
    limit=st.integers(1, 7),
)
def test_slots_after_any_words(rows, limit):
    longest = max(map(len, rows))
    words = torch.tensor([[-1] * (longest - len(row)) + row for row in rows]).view(len(rows), longest)
    tags, weights = fill_slots(words, limit)
    positions = np.eye(longest)
    for row, found, mixture in zip(words.tolist(), tags.tolist(), array(weights), strict=True):
        reference = Reference(limit)
        for at, word in enumerate(row):
            if word >= 0:
                reference.add(word, positions[at], positions[at])
        expected = list(reversed(reference.slots.items()))  # the latest first
        assert found == [word for word, _ in expected] + [-1] * (len(found) - len(expected))
        for n, (_, (key, _)) in enumerate(expected):
            np.testing.assert_allclose(mixture[n], key)
        assert not mixture[len(expected) :].any()


def test_slots_of_a_known_case():
    """Two slots: 3 is averaged into, 4 loses its slot to 5 and starts anew."""
    tags, weights = fill_slots(torch.tensor([[3, 4, 3, 5, 4]]), 2)
    assert tags.tolist() == [[4, 5]]
    assert weights.tolist() == [[[0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]]
    tags, weights = fill_slots(torch.tensor([[3, 4, 3, 3]]), 2)
    assert tags.tolist() == [[3, 4]]
    assert weights.tolist() == [[[0.25, 0, 0.25, 0.5], [0, 1, 0, 0]]]


# ---- the equations ----


def test_the_whole_model_is_its_base_with_the_equations_above_the_decoder():
    model = make_cache().double()
    sources, targets = with_end(random_sentences(3, SOURCE_WORDS)), random_sentences(3, TARGET_WORDS, 1)
    before = [
        Before([[BOS]], [[]]),
        Before(with_end(random_sentences(2, SOURCE_WORDS, 2)), [[4, 5, 4], [6, 7, 8, 5]]),
        Before(with_end(random_sentences(3, SOURCE_WORDS, 3)), [[9], [], [9, 10]]),
    ]
    batch = make_batch(sources, before, targets, BOS, EOS)
    u, v, w = (array(matrix.weight) for matrix in (model.context_u, model.context_v, model.context_w))
    torch.nn.init.normal_(model.context_bias)
    b, w_o = array(model.context_bias), array(model.softmax.weight)
    with torch.no_grad():
        found = model(batch).split(batch.target_in.segments.lengths.tolist())
        for source, history, target, states in zip(sources, before, targets, found, strict=True):
            cache = Reference(4)
            for past_source, words in zip(history.sources, history.translations, strict=True):
                past = make_batch([past_source], None, [words], BOS, EOS)
                s, c = map(array, model.decode(past.target_in, model.encode(past.source)))
                for i, word in enumerate(words):
                    towards = w_o[word] / np.linalg.norm(w_o[word])
                    cache.add(word, c[i], s[i] + np.linalg.norm(s[i]) * towards)  # the state at position i wrote word i
            alone = make_batch([source], None, [target], BOS, EOS)
            s, c = map(array, model.decode(alone.target_in, model.encode(alone.source)))
            expected = []
            for s_t, c_t in zip(s, c, strict=True):
                if cache.slots:
                    keys, values = (np.stack([slot[n] for slot in cache.slots.values()]) for n in range(2))
                    weights = np.exp(keys @ c_t)
                    m_t = weights / weights.sum() @ values
                    lam = 1 / (1 + np.exp(-(u @ s_t + v @ c_t + w @ m_t + b)))
                    s_t = (1 - lam) * s_t + lam * m_t
                expected.append(s_t)
            np.testing.assert_allclose(array(states), np.stack(expected), rtol=1e-4, atol=1e-4)


def test_the_latest_words_have_the_slots():
    model = make_cache(cache_words=3)
    histories = [Before([[BOS]], [[]]), Before([[5, EOS], [6, EOS]], [[4, 5], [6, 4, 7]]), Before([[5, EOS]], [[8, 8]])]
    batch = make_batch([[5, EOS]] * 3, histories, [[4]] * 3, BOS, EOS)
    slots = model.slots(batch.context)
    assert slots.words.tolist() == [[-1, -1, -1], [7, 4, 6], [8, -1, -1]]
    assert slots.keys.shape == slots.values.shape == (3, 3, 16)


def test_a_state_tells_which_of_two_even_words_it_became():
    model = make_cache()
    with torch.no_grad():
        rows = model.softmax.weight
        rows[5] = rows[4].flip(0)
        s = 5 * torch.nn.functional.normalize(rows[4] + rows[5], dim=0)  # even chances for both
        assert torch.allclose(*model.softmax(s)[[4, 5]], atol=1e-5)
        for word, other in ((4, 5), (5, 4)):
            logits = model.softmax(model.having_written(torch.tensor(word), s))
            assert logits[word] > logits[other] + 1e-2


def test_the_past_is_not_trained_through():
    """A word that stands only in the sentences before gets no gradient, though nothing is frozen."""
    model = make_cache()
    batch = make_batch([[5, 6, EOS]], [Before([[7, 8, EOS]], [[9]])], [[4, 5]], BOS, EOS)
    model.loss(batch)[0].backward()
    moved = model.source_embedding.weight.grad.abs().sum(1) > 0
    assert moved.nonzero().flatten().tolist() == [EOS, 5, 6]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_sees_the_changed_states(smoothing):
    model = make_cache()
    batch = make_batch([[5, 6, EOS]], [Before([[7, 8, EOS]], [[9, 4]])], [[4, 5]], BOS, EOS)
    log_p = model.softmax(model(batch)).log_softmax(1)
    right = log_p.gather(1, batch.target_out[:, None]).sum()
    expected = -(1 - smoothing) * right - smoothing * log_p.mean(1).sum()
    torch.testing.assert_close(model.loss(batch, smoothing)[0], expected, atol=1e-4, rtol=1e-5)
