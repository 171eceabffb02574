"""The cache of Kuang et al. (2017): its equations in NumPy, the loss on the mixture, what the cache holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.context import Before
from docnmt.data.packing import Batch, make_batch, pack_contexts
from docnmt.data.store import write_store
from docnmt.document import ParallelDocument
from docnmt.model import base as base_module
from docnmt.model.transformer import DecoderState
from docnmt.systems import cache as cache_module
from docnmt.systems.cache import CacheTransformer
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    model_config,
    random_sentences,
    shake,
    small_subwords,
    with_end,
)


def make_cache(cache_words: int = 5, topic_words: int = 0, **settings: object) -> CacheTransformer:
    context = ContextConfig(kind="cache", cache_words=cache_words, topic_words=topic_words)
    torch.manual_seed(0)
    model = CacheTransformer(model_config(**settings), context, SOURCE_WORDS, TARGET_WORDS)
    topics, model.context_topics = model.context_topics, None
    shake(model, 0)
    model.context_topics = topics
    return model.eval()


def some_batch(before: list[Before], seed: int = 0) -> Batch:
    count = len(before)
    sources, targets = random_sentences(count, SOURCE_WORDS, seed), random_sentences(count, TARGET_WORDS, seed + 1)
    return make_batch(with_end(sources), before, targets, BOS, EOS)


def before(*translations: list[int]) -> Before:
    return Before([[5, 6, EOS]] * max(1, len(translations)), list(translations) or [[]])


BEFORE = [before(), before([4, 7, 4]), before([9], [8, 9, 10, 11], [12, 13]), before([15], [3])]


# ---- the equations ----


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def softmax(x):
    x = np.exp(x - x.max())
    return x / x.sum()


def probabilities(model, batch, words: list[set[int]]) -> list[np.ndarray]:
    """p of each target position over the vocabulary, from the base's states, one position at a time."""
    with torch.no_grad():
        s, c = model.decode(batch.target_in, model.encode(batch.source))
    e = array(model.target_embedding.weight) * np.sqrt(model.model_config.width)
    inner, _, outer = model.context_gate
    lengths = batch.target_in.segments.lengths.tolist()
    found, sentence = [], np.repeat(np.arange(len(lengths)), lengths)
    for t, previous in enumerate(batch.target_in.tokens.tolist()):
        p = softmax(array(model.softmax.weight) @ array(s[t]))
        cache = sorted(words[sentence[t]])
        if cache:
            x = np.concatenate([array(s[t]), array(c[t]), e[previous]])
            query = array(model.context_query.weight) @ x + array(model.context_query.bias)
            key = array(model.context_key.weight)
            out = array(model.context_score.weight)[0]
            scores = [np.log(p[w]) + out @ np.tanh(query + key @ e[w]) for w in cache]
            hidden = np.tanh(array(inner.weight) @ x + array(inner.bias))
            a = 1 / (1 + np.exp(-(array(outer.weight) @ hidden + array(outer.bias))))
            p = a * p
            p[cache] += (1 - a) * softmax(np.array(scores))
        found.append(p)
    return found


CONTENTS = [set(), {4, 7}, {9, 10, 11, 12, 13}, {3, 15}]  # of BEFORE, the last five words


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_mixture(smoothing):
    model, batch = make_cache().double(), some_batch(BEFORE)
    expected = np.log(np.stack(probabilities(model, batch, CONTENTS)))
    right = expected[np.arange(len(expected)), batch.target_out.numpy()]
    loss, log_p = model.loss(batch, smoothing)
    np.testing.assert_allclose(array(log_p), right, rtol=1e-4, atol=1e-5)
    target = np.full_like(expected, smoothing / TARGET_WORDS)
    target[np.arange(len(expected)), batch.target_out.numpy()] += 1 - smoothing
    assert loss.item() == pytest.approx(-(target * expected).sum(), rel=1e-5)


def test_decoding_gives_the_logarithm_of_the_mixture():
    model, batch = make_cache().double(), some_batch(BEFORE)
    expected = probabilities(model, batch, CONTENTS)
    starts = [0, *batch.target_in.segments.lengths.cumsum(0).tolist()[:-1]]
    with torch.no_grad():
        state = DecoderState(model, model.encode(batch.source, batch.context), 1)
        found = array(state.logits(torch.full((4,), BOS))).astype(np.float64)
    np.testing.assert_allclose(np.exp(found), [expected[t] for t in starts], rtol=1e-4, atol=1e-7)


def test_slices_do_not_show(monkeypatch):
    """Neither in the loss nor in the derivative, with all parameters trained."""
    model, batch = make_cache(topic_words=3), some_batch(BEFORE)
    model.context_topics.words.random_(3, TARGET_WORDS)
    results = []
    for size in (base_module.SLICE, 1):
        monkeypatch.setattr(base_module, "SLICE", size)
        model.zero_grad()
        loss, log_p = model.loss(batch, 0.1)
        loss.backward()
        results.append([loss.detach(), log_p, *(p.grad for p in model.parameters() if p.requires_grad)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_a_word_that_the_cache_holds_can_become_likely():
    """Trained on sentences whose only word is the last one of the translation before, theta_s frozen."""
    model = make_cache(dropout=0.0).train()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)

    def batch(seed: int) -> Batch:
        words = np.random.default_rng(seed).integers(3, TARGET_WORDS, 16).tolist()
        return make_batch([[5, EOS]] * 16, [before([w]) for w in words], [[w] for w in words], BOS, EOS)

    for seed in range(60):
        optimiser.zero_grad()
        (model.loss(batch(seed))[0] / 32).backward()
        optimiser.step()
    unseen = batch(1000)
    with torch.no_grad():
        on, off = (
            model.eval().loss(b)[1][::2].exp().mean()
            for b in (unseen, Batch(unseen.source, unseen.target_in, unseen.target_out))
        )
    assert on > 0.8 and off < 0.3


# ---- what the cache holds ----


def contents(model: CacheTransformer, befores: list[Before]) -> list[list[int]]:
    batch = some_batch(befores)
    cache = model.cache(batch.source, batch.context)
    return [row[mask].tolist() for row, mask in zip(cache.words, cache.mask, strict=True)]


def test_first_in_first_out_and_each_word_once():
    model = make_cache(cache_words=3)
    found = contents(model, [before(), before([4]), before([4, 5]), before([4, 5], [4, 6]), before([7, 7], [8])])
    assert found == [[], [4], [4, 5], [4, 5, 6], [7, 8]]
    assert contents(model, [before([4, 5], [6, 7, 8, 9])]) == [[7, 8, 9]]


def test_stop_words_are_not_remembered():
    model = make_cache(cache_words=3)
    model.context_stop_words[[4, 9]] = True
    assert contents(model, [before([4]), before([5, 4, 6, 4, 7, 9], [4]), before([9], [8])]) == [[], [5, 6, 7], [8]]


TEXT = ("the cat sat . the dog ran !", "the bird flew ; the dog sat")


def stop_pieces(tmp_path, **settings: object) -> set[str]:
    """Of documents in which "the" is four of fifteen words and "dog" and "sat" two each."""
    subwords = small_subwords(TEXT * 20, 300)
    documents = [ParallelDocument("d", TEXT, TEXT)]
    store = write_store(tmp_path / "store", documents, subwords, subwords, threads=1, key="test")
    found = cache_module.stop_words(ContextConfig(kind="cache", **settings), store, subwords)
    return {text.decode("utf-8", "replace").strip() for text, out in zip(subwords.written(), found, strict=True) if out}


def test_stop_words_are_the_frequent_ones_and_whatever_has_no_letter(tmp_path):
    found = stop_pieces(tmp_path, stop_frequency=0.2)
    assert {"the", ".", "!", ";", ""} <= found and not {"dog", "cat", "bird", "7"} & found


def test_a_recipe_may_list_them(tmp_path):
    found = stop_pieces(tmp_path, stop_words=("Dog", "sat"))
    assert {"dog", "sat", "."} <= found and not {"the", "cat"} & found


def test_topic_words_stand_beside_them():
    model = make_cache(cache_words=3, topic_words=4)
    model.context_topics.words.copy_(torch.tensor([6, 0, 5, -1]))
    assert contents(model, [before(), before([5, 9])]) == [[0, 5, 6], [0, 5, 6, 9]]


def test_the_first_sentence_has_the_words_of_its_own_topic():
    model = make_cache(cache_words=3, topic_words=1)
    model.context_topics.evidence[5, 1] = 1.0
    model.context_topics.evidence[6, 2] = 1.5
    model.context_topics.words[:3, 0] = torch.tensor([10, 11, 12])
    source = make_batch([[5, EOS], [6, EOS], [5, EOS], [7, EOS]], None, [[]] * 4, BOS, EOS).source
    history = pack_contexts([Before([[BOS]], [[]]), Before([[BOS]], [[]]), Before([[6, EOS]], [[]]),
                             Before([[5, EOS], [5, EOS]], [[], []])], BOS)  # fmt: skip
    words = model.cache(source, history).words
    assert words[:, -1].tolist() == [11, 12, 12, 11]
