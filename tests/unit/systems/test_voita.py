"""Voita et al. (2018): the encoder's last layer in NumPy, context off, batch mates, freezing, decoding word by word."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.corpora.batches import make_batch, pack
from docnmt.decoding.incremental import DecoderState
from docnmt.model.context import is_document_parameter
from docnmt.systems.voita import SYSTEM, VoitaTransformer
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    logits_of,
    model_config,
    random_batch,
    random_sentences,
    sentence_model_of,
    shake,
    with_end,
)
from tests.parity.test_context_numpy import Weights, fnn, layer_norm, multi_head

CONTEXT = ContextConfig(kind="voita", previous=1)


def make_voita(seed: int = 0) -> VoitaTransformer:
    torch.manual_seed(seed)
    return shake(VoitaTransformer(model_config(), CONTEXT, SOURCE_WORDS, TARGET_WORDS), seed).eval()


def encoder_layer(s, w):
    a = layer_norm(s + multi_head(s, s, s, w / "attention"), w / "after_attention" / "norm")
    return layer_norm(a + fnn(a, w / "feed_forward"), w / "after_feed_forward" / "norm")


def expected(model: VoitaTransformer, source: list[int], context: list[int]) -> np.ndarray:
    """One sentence through the encoder, by the equations of the docstring."""
    w = Weights(model)
    with torch.no_grad():
        s, c = (model.embed(model.source_embedding, pack([ids])).numpy() for ids in (source, context))
    last = len(model.encoder) - 1
    for n in range(last):
        s, c = encoder_layer(s, w / "encoder" / n), encoder_layer(c, w / "encoder" / n)
    c = encoder_layer(c, w / "context_last_layer")
    layer = w / "encoder" / last
    a, b = multi_head(s, s, s, layer / "attention"), multi_head(s, c, c, w / "context_attention")
    gate = np.concatenate([a, b], axis=1) @ (w / "context_gate")["weight"].T + (w / "context_gate")["bias"]
    g = 1 / (1 + np.exp(-gate))
    s = layer_norm(s + g * a + (1 - g) * b, layer / "after_attention" / "norm")
    return layer_norm(s + fnn(s, layer / "feed_forward"), layer / "after_feed_forward" / "norm")


def test_the_encoder_is_the_papers():
    model = make_voita().double()
    sources = with_end(random_sentences(4, SOURCE_WORDS, 1))
    contexts = [[BOS], *with_end(random_sentences(3, SOURCE_WORDS, 2))]
    found = model.encode(pack(sources), pack(contexts)).states.split([len(s) for s in sources])
    for source, context, states in zip(sources, contexts, found, strict=True):
        np.testing.assert_allclose(states.detach().numpy(), expected(model, source, context), atol=1e-10)


def test_without_context_it_is_the_transformer_to_the_bit():
    model = make_voita()
    assert torch.equal(
        logits_of(model, random_batch(context=False)), logits_of(sentence_model_of(model), random_batch())
    )


def test_context_matters_and_batch_mates_do_not():
    model = make_voita()
    sources, contexts, targets = (
        with_end(random_sentences(5, SOURCE_WORDS, 3)),
        with_end(random_sentences(5, SOURCE_WORDS, 4)),
        random_sentences(5, TARGET_WORDS, 5),
    )
    together = logits_of(model, make_batch(sources, contexts, targets, BOS, EOS))
    others = logits_of(model, make_batch(sources, contexts[::-1], targets, BOS, EOS))
    assert (together - others).abs().max() > 1e-3
    place = 0
    for source, context, target in zip(sources, contexts, targets, strict=True):
        alone = logits_of(model, make_batch([source], [context], [target], BOS, EOS))
        torch.testing.assert_close(alone, together[place : place + len(alone)], atol=1e-5, rtol=1e-5)
        place += len(alone)


def test_word_by_word_as_all_at_once():
    model, target = make_voita(), random_sentences(1, TARGET_WORDS, 6)[0]
    source, context = (with_end(random_sentences(1, SOURCE_WORDS, seed)) for seed in (7, 8))
    whole = logits_of(model, make_batch(source, context, [target], BOS, EOS))
    with torch.inference_mode():
        state = SYSTEM.state(model, model.encode(pack(source), pack(context)), 1)
        assert isinstance(state, DecoderState)
        steps = torch.cat([state.logits(torch.tensor([word])) for word in (BOS, *target)])
    torch.testing.assert_close(steps, whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("frozen", [True, False])
def test_step_2_moves_what_it_adds_and_the_rest_only_if_it_may(frozen):
    model = make_voita().train()
    if frozen:
        for _, parameter in model.sentence_parameters():
            parameter.requires_grad_(False)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for seed in range(2):
        optimiser.zero_grad()
        model.loss(random_batch(seed=seed))[0].backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        moved = not torch.equal(parameter, before[name])
        assert moved == (is_document_parameter(name) or not frozen), name
