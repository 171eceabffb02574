"""The cache of Kuang et al. (2017) on RNNsearch; what the cache holds is proved in test_cache.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.context import Before
from docnmt.data.packing import make_batch
from docnmt.systems.cache import CacheRNNsearch
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
                scores = np.log(p[held]) + hidden @ w["context_score.weight"][0]
                p = a * p
                p[held] += (1 - a) * softmax(scores)
            expected.append(np.log(p[y]))
            total -= (1 - smoothing) * np.log(p[y]) + smoothing * np.log(p).mean()
            position += 1
    loss, found = model.loss(batch, smoothing)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert loss.item() == pytest.approx(total, rel=1e-5)
