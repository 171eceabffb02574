"""What hooks take from the context sub-layers is what the sub-layers computed with, and they change nothing."""

from __future__ import annotations

import itertools

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.packing import make_batch
from docnmt.decoding.translator import Translator
from docnmt.evaluation.context_trace import gate_by_layer, traced
from docnmt.model.layers import join_heads
from docnmt.model_folder import LoadedModel, ModelCard
from tests.builders import (
    CONNECTIONS,
    INTEGRATIONS,
    STARTS,
    loaded_model,
    make_model,
    parallel_documents,
    random_batch,
    sentence_model_of,
    subwords,
)

VARIANTS = list(itertools.product(INTEGRATIONS, CONNECTIONS, STARTS))


def variant(integration: str, connection: str, start: str):
    return make_model(5, context=ContextConfig(integration=integration, connection=connection, start=start))


def sublayers(model):
    """Name and module of each context sub-layer."""
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model, side), 1):
            if layer.context is not None:
                yield f"{side} {number}", layer.context


def translator_of(context: ContextConfig) -> Translator:
    source, target = subwords("source"), subwords("target")
    model = make_model(2, context=context, source_words=len(source), target_words=len(target))
    return Translator(
        LoadedModel(model, ModelCard(model.model_config, context, DecodingConfig(), "fr", "en"), source, target)
    )


@pytest.mark.parametrize(("integration", "connection", "start"), VARIANTS)
@torch.no_grad()
def test_weights_and_gates_give_the_outputs_of_the_sublayers_again(integration, connection, start):
    model, batch = variant(integration, connection, start), random_batch(6)
    calls: dict[str, dict] = {}
    for name, module in sublayers(model):
        seen = calls[name] = {}
        module.attention.register_forward_hook(lambda m, i, o, seen=seen: seen.update(attention=(m, i, o)))
        module.connection.register_forward_hook(lambda m, i, o, seen=seen: seen.update(connection=(m, i, o)))
    with traced(model) as trace:
        model(batch)
    assert list(trace) == list(calls) != []
    for name, found in trace.items():
        attention, (_, segments, memory, memory_segments), output = calls[name]["attention"]
        rows = segments.unpad(found.weights.transpose(1, 2).flatten(2)).unflatten(-1, (attention.heads, -1))
        torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:2]))
        hidden = ~memory_segments.mask[:, None, None, :].expand(found.weights.shape)
        assert hidden.any() and not found.weights[hidden].any(), "attends to padding"
        _, values = attention.memory(memory, memory_segments)
        again = attention.output(segments.unpad(join_heads(found.weights @ values)))
        torch.testing.assert_close(again, output)

        join, (h, sublayer), joined = calls[name]["connection"]
        if connection == "residual":
            assert found.gate is None and found.context_share is None
            continue
        assert found.gate.shape == h.shape and ((found.gate > 0) & (found.gate < 1)).all()
        if start == "paper":
            again = join.norm(found.gate * h + (1 - found.gate) * sublayer)
        else:
            again = h + (1 - found.gate) * sublayer
        torch.testing.assert_close(again, joined)
        torch.testing.assert_close(found.context_share, 1 - found.gate.mean(-1))


@pytest.mark.parametrize(("integration", "connection", "start"), VARIANTS)
@torch.no_grad()
def test_a_traced_model_computes_the_same_to_the_bit(integration, connection, start):
    model, batch = variant(integration, connection, start), random_batch(6)
    before = model.loss(batch)[1]
    with traced(model) as trace:
        inside = model.loss(batch)[1]
    kept = {name: found.weights for name, found in trace.items()}
    after = model.loss(random_batch(4, seed=9))[1]  # the hooks are gone: this pass leaves no trace
    assert torch.equal(before, inside) and len(after)
    assert all(trace[name].weights is weights for name, weights in kept.items())
    assert not any(module._forward_hooks for module in model.modules())


def test_hooks_go_even_when_the_pass_fails():
    model = make_model()
    with pytest.raises(AttributeError), traced(model):
        model(None)
    assert not any(module._forward_hooks for module in model.modules())


def test_gates_by_layer_are_the_mean_over_sentences_with_a_context():
    translator, documents = Translator(loaded_model()), parallel_documents((3, 1, 4), seed=4)
    found = gate_by_layer(translator, documents)
    assert list(found) == ["encoder 1", "decoder 1", "decoder 2"]
    shares: dict[str, list] = {name: [] for name in found}
    rule = translator.card.rule(translator.source)
    for document in documents:  # one sentence at a time
        ids = translator.source.encode(document.source)
        for position in range(1, len(ids)):
            batch = make_batch(
                [[*ids[position], translator.source.eos]],
                [rule.context(rule.around(ids, position))],
                translator.target.encode([document.target[position]]),
                translator.target.bos,
                translator.target.eos,
            )
            with traced(translator.model) as trace, torch.no_grad():
                translator.model(batch)
            for name, sublayer in trace.items():
                shares[name] += (1 - sublayer.gate).mean(-1).tolist()
    for name, values in shares.items():
        assert found[name] == pytest.approx(sum(values) / len(values), abs=1e-6)


def test_gates_of_a_sample_of_documents():
    translator, documents = Translator(loaded_model()), parallel_documents((3,) * 9, seed=4)
    assert (
        gate_by_layer(translator, documents, 3)
        == gate_by_layer(translator, [documents[i] for i in (0, 4, 8)])
        != gate_by_layer(translator, documents)
    )


def test_a_residual_connection_has_no_gates():
    documents = parallel_documents((3, 2))
    assert gate_by_layer(translator_of(ContextConfig(connection="residual")), documents) == {}
    assert list(gate_by_layer(translator_of(ContextConfig(integration="decoder")), documents)) == [
        "decoder 1",
        "decoder 2",
    ]


def test_a_sentence_model_has_nothing_to_trace():
    loaded = loaded_model()
    context = ContextConfig(kind="none")
    card = ModelCard(loaded.card.model, context, loaded.card.decoding, "fr", "en")
    translator = Translator(LoadedModel(sentence_model_of(loaded.model), card, loaded.source, loaded.target))
    with pytest.raises(DocnmtError, match="sentence model"):
        gate_by_layer(translator, parallel_documents((3, 2)))
