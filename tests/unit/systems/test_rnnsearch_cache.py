"""The cache of Kuang et al. (2017) on RNNsearch; what the cache holds is proved in test_cache.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.corpora.batches import make_batch, pack, pack_contexts
from docnmt.corpora.contexts import Before
from docnmt.model.rnnsearch import RNNsearch
from docnmt.systems.rnnsearch_cache import CacheRNNsearch, RecurrentCacheState
from tests.builders import BOS, EOS, SOURCE_WORDS, TARGET_WORDS, model_config, random_sentences, shake, with_end
from tests.numpy_rnnsearch import sigmoid, softmax

SOURCES, TARGETS = with_end(random_sentences(4, SOURCE_WORDS, 0)), random_sentences(4, TARGET_WORDS, 1)
HISTORIES = [
    Before([[BOS]], [[]]),
    Before([[5, EOS]], [[4, 7, 4]]),
    Before([[5, EOS], [6, EOS]], [[8, 9, 10, 11], [12, 13]]),
    Before([[5, EOS], [6, EOS]], [[15], [3]]),
]
CONTENTS: list[list[int]] = [[], [4, 7], [9, 10, 11, 12, 13], [3, 15]]  # the last five words


def cache_model(seed: int = 0) -> CacheRNNsearch:
    torch.manual_seed(seed)
    context = ContextConfig(kind="cache", cache_words=5, topic_words=0)
    model = CacheRNNsearch(model_config(kind="rnnsearch"), context, SOURCE_WORDS, TARGET_WORDS)
    return shake(model, seed).eval()


def batch_of(rows=range(4), targets=TARGETS):
    return make_batch([SOURCES[i] for i in rows], [HISTORIES[i] for i in rows], targets, BOS, EOS)


def scores(model, batch) -> torch.Tensor:
    with torch.no_grad():
        return model.loss(batch)[1]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_mixture(smoothing):
    model, batch = cache_model().double(), batch_of()
    w = {name: p.detach().numpy() for name, p in model.named_parameters()}
    e = w["target_embedding.weight"] * np.sqrt(model.model_config.width)
    with torch.no_grad():
        decoded = model.decode(batch.target_in, model.encode(batch.source))
        read = model.read_out(decoded).numpy()
    expected, total, position = [], 0.0, 0
    for sentence, target in enumerate(TARGETS):
        for previous, y in zip([BOS, *target], [*target, EOS], strict=True):
            p = softmax(w["target_embedding.weight"] @ read[position])
            s, c = decoded.states[position].numpy(), decoded.attended[position].numpy()
            x = np.concatenate([s, c, e[previous]])
            if held := CONTENTS[sentence]:
                query = w["context_query.weight"] @ x + w["context_query.bias"]
                hidden = np.tanh(query + e[held] @ w["context_key.weight"].T)
                gate = np.tanh(w["context_gate.0.weight"] @ x + w["context_gate.0.bias"])
                a = sigmoid(w["context_gate.2.weight"] @ gate + w["context_gate.2.bias"])
                p = a * p
                p[held] += (1 - a) * softmax(hidden @ w["context_score.weight"][0])
            expected.append(np.log(p[y]))
            total -= (1 - smoothing) * np.log(p[y]) + smoothing * np.log(p).mean()
            position += 1
    loss, found = model.loss(batch, smoothing)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert loss.item() == pytest.approx(total, rel=1e-5)


def test_without_a_context_it_is_the_base_to_the_bit():
    model = cache_model()
    base = RNNsearch(model.model_config, ContextConfig(kind="none"), SOURCE_WORDS, TARGET_WORDS).eval()
    assert base.load_weights({name: p.detach() for name, p in model.sentence_parameters()}) == []
    batch = replace(batch_of(), context=None)
    assert torch.equal(scores(model, batch), scores(base, batch))
    assert not torch.allclose(scores(model, batch_of()), scores(base, batch), atol=0.01)
    one, other = (
        RecurrentCacheState(m, m.encode(batch.source), 2).logits(torch.full((8,), BOS)) for m in (model, base)
    )
    assert torch.equal(one, other)


def test_a_sentence_has_the_same_scores_alone_and_beside_others():
    model = cache_model()
    together = scores(model, batch_of()).split([len(target) + 1 for target in TARGETS])
    for i, wanted in enumerate(together):
        torch.testing.assert_close(scores(model, batch_of([i], TARGETS[i : i + 1])), wanted, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_word_by_word_is_the_same_as_at_once_also_when_hypotheses_cross_and_sentences_leave():
    model = cache_model()
    state = RecurrentCacheState(model, model.encode(pack(SOURCES), pack_contexts(HISTORIES, BOS)), 2)
    state.logits(torch.full((8,), BOS))
    state.logits(torch.arange(3, 11))
    state.reorder(torch.tensor([1, 0, 3, 2, 5, 4, 7, 6]))
    state.keep(torch.tensor([0, 2]))
    found = state.logits(torch.tensor([11, 12, 13, 14]))  # log-probabilities
    torch.testing.assert_close(found.logsumexp(dim=1), torch.zeros(4), atol=1e-5, rtol=0)
    for row, (sentence, words) in enumerate([(0, [4, 11]), (0, [3, 12]), (2, [8, 13]), (2, [7, 14])]):
        for word in (3, 9, 12, EOS):
            log_p = scores(model, batch_of([sentence], [[*words, word]]))[2]
            assert found[row, word].item() == pytest.approx(log_p.item(), abs=1e-4)


@pytest.mark.parametrize("freeze", [True, False])
def test_step_2_moves_all_of_theta_d_and_theta_s_only_where_nothing_is_frozen(freeze):
    model = cache_model().train()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    theta_d = {name for name, _ in model.document_parameters()}
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(not freeze)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for _ in range(2):
        optimiser.zero_grad()
        loss, _ = model.loss(batch_of())
        loss.backward()
        optimiser.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == (theta_d if freeze else set(before))
