"""The whole model: its parts and their names, context on and off, independence of batch mates, freezing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.packing import make_batch
from docnmt.model.context import is_document_parameter
from docnmt.model.transformer import DocumentTransformer
from tests.builders import (
    BOS,
    CONNECTIONS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    logits_of,
    make_model,
    random_batch,
    random_sentences,
    sentence_model_of,
    with_end,
)

VARIANTS = [
    ContextConfig(integration=integration, connection=connection, start=start)
    for integration, connection, start in itertools.product(INTEGRATIONS, CONNECTIONS, STARTS)
]


def variant_id(context: ContextConfig) -> str:
    return f"{context.integration}-{context.connection}-{context.start}"


every_variant = pytest.mark.parametrize("context", VARIANTS, ids=variant_id)


# ---- parts and names ----


def at_the_papers_sizes(**context: object) -> DocumentTransformer:
    with torch.device("meta"):
        return DocumentTransformer(ModelConfig(), ContextConfig(**context), 32_000, 32_000)


def test_theta_d_has_as_many_parameters_as_the_released_model():
    model = at_the_papers_sizes()
    attention = 12 * (4 * (512 * 512 + 512) + 2 * 512 * 512 + 2 * 512)
    encoder = 4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 2 * 2 * 512
    assert attention + encoder == 22_063_616
    assert sum(p.numel() for _, p in model.document_parameters()) == 22_063_616
    whole = sum(p.numel() for p in model.parameters())
    sentence = sum(p.numel() for p in at_the_papers_sizes(kind="none").parameters())
    assert whole - sentence == 22_063_616


@every_variant
def test_theta_s_and_theta_d_are_a_partition(context):
    model = make_model(context=context)
    everything = [name for name, _ in model.named_parameters()]
    theta_s, theta_d = ([name for name, _ in part()] for part in (model.sentence_parameters, model.document_parameters))
    assert sorted(theta_s + theta_d) == sorted(everything)
    assert not set(theta_s) & set(theta_d)
    # Told apart by name alone, theta_s must be just what a model without context modules has.
    assert theta_s == [name for name, _ in sentence_model_of(model).named_parameters()]
    assert theta_d and all(is_document_parameter(name) for name in theta_d)


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_tied_weights_are_one_parameter(tie):
    model = make_model(tie=tie, source_words=21, target_words=21)
    assert (model.softmax.weight is model.target_embedding.weight) == (tie != "none")
    assert (model.source_embedding.weight is model.target_embedding.weight) == (tie == "all")
    names = [name for name, p in model.named_parameters() if p.shape == (21, 16)]
    assert len(names) == {"none": 3, "target": 2, "all": 1}[tie]


@pytest.mark.parametrize("integration", ["none", *INTEGRATIONS])
def test_integration_says_which_layers_have_a_context_sublayer(integration):
    model = make_model(context=ContextConfig(integration=integration))
    assert all((layer.context is not None) == (integration in ("encoder", "both")) for layer in model.encoder)
    assert all((layer.context is not None) == (integration in ("decoder", "both")) for layer in model.decoder)
    assert (model.context_encoder is not None) == (integration != "none")


@pytest.mark.parametrize("off", [ContextConfig(kind="none"), ContextConfig(integration="none")], ids=["kind", "place"])
def test_a_model_without_context_modules_has_no_theta_d(off):
    model = make_model(context=off)
    assert list(model.document_parameters()) == []
    # It may be given a context all the same, and takes no notice.
    batch = random_batch()
    assert torch.equal(logits_of(model, batch), logits_of(model, random_batch(context=False)))


@pytest.mark.parametrize("layers", [1, 3])
def test_context_layers(layers):
    assert len(make_model(context=ContextConfig(layers=layers)).context_encoder.layers) == layers


def test_an_unknown_connection_is_named():
    with pytest.raises(Exception, match="'glue'"):
        make_model(context=ContextConfig(connection="glue"))


# ---- context off, context on ----


@every_variant
def test_context_off_is_the_sentence_model_to_the_bit(context):
    model, batch = make_model(context=context), random_batch(context=False)
    assert torch.equal(logits_of(model, batch), logits_of(sentence_model_of(model), batch))


@every_variant
def test_context_changes_the_output(context):
    model = make_model(context=context)
    first = random_batch()
    other = with_end(random_sentences(5, SOURCE_WORDS, seed=99, longest=9))
    second = make_batch(sources_of(first), other, targets_of(first), BOS, EOS)
    moved = (logits_of(model, first) - logits_of(model, second)).abs().amax(1)
    assert (moved > 1e-4).all()


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize("connection", CONNECTIONS)
def test_start_sentence_starts_as_the_sentence_model(integration, connection):
    context = ContextConfig(integration=integration, connection=connection, start="sentence")
    model, batch = make_model(context=context, shaken=False, dropout=0.0), random_batch()
    torch.testing.assert_close(logits_of(model, batch), logits_of(sentence_model_of(model), batch))


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize("connection", CONNECTIONS)
def test_start_sentence_has_a_gradient_at_once_and_then_everywhere(integration, connection):
    context = ContextConfig(integration=integration, connection=connection, start="sentence")
    model, batch = make_model(context=context, shaken=False, dropout=0.0), random_batch()
    theta_d = dict(model.document_parameters())
    model.loss(batch)[0].backward()
    outputs = [name for name in theta_d if ".context.attention.output." in name]
    assert outputs and all(theta_d[name].grad.abs().max() > 1e-4 for name in outputs)
    optimiser = torch.optim.SGD(theta_d.values(), lr=0.1)
    optimiser.step()
    optimiser.zero_grad()
    model.loss(batch)[0].backward()
    for name, parameter in theta_d.items():
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-6, name


def test_start_paper_does_not_start_as_the_sentence_model():
    # The reason for the other start: a fresh gate and norm take the model far from what step 1 learned.
    model, batch = make_model(shaken=False), random_batch()
    assert (logits_of(model, batch) - logits_of(sentence_model_of(model), batch)).abs().max() > 0.05


# ---- batch mates ----


def sources_of(batch):
    return [part.tolist() for part in batch.source.tokens.split(batch.source.segments.lengths.tolist())]


def contexts_of(batch):
    return [part.tolist() for part in batch.context.tokens.split(batch.context.segments.lengths.tolist())]


def targets_of(batch):
    return [part.tolist()[:-1] for part in batch.target_out.split(batch.target_in.segments.lengths.tolist())]


def by_sentence(logits, batch):
    return logits.split(batch.target_in.segments.lengths.tolist())


@pytest.mark.parametrize("with_context", [True, False], ids=["context", "off"])
def test_alone_or_in_a_batch(with_context):
    model, batch = make_model(), random_batch(7)
    sources, contexts, targets = sources_of(batch), contexts_of(batch), targets_of(batch)
    together = make_batch(sources, contexts if with_context else None, targets, BOS, EOS)
    found = by_sentence(logits_of(model, together), together)
    for i, expected in enumerate(found):
        alone = make_batch([sources[i]], [contexts[i]] if with_context else None, [targets[i]], BOS, EOS)
        torch.testing.assert_close(logits_of(model, alone), expected, atol=1e-5, rtol=1e-5)


def other_words(sentence, words):
    """The same length, so that nothing but the content of a neighbour changes."""
    return [(token - 3 + 5) % (words - 3) + 3 for token in sentence]


@pytest.mark.parametrize("what", ["source", "context", "target"])
def test_what_a_neighbour_says_changes_nothing_to_the_bit(what):
    model, batch = make_model(), random_batch(5)
    sources, contexts, targets = sources_of(batch), contexts_of(batch), targets_of(batch)
    before = by_sentence(logits_of(model, batch), batch)
    if what == "source":
        sources[2] = other_words(sources[2], SOURCE_WORDS)
    elif what == "context":
        contexts[2] = other_words(contexts[2], SOURCE_WORDS)
    else:
        targets[2] = other_words(targets[2], TARGET_WORDS)
    after = by_sentence(logits_of(model, make_batch(sources, contexts, targets, BOS, EOS)), batch)
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [True, True, False, True, True]


def test_a_target_word_does_not_see_itself_or_those_after_it():
    model, batch = make_model(), random_batch(1, seed=3)
    sources, contexts, targets = sources_of(batch), contexts_of(batch), targets_of(batch)
    assert len(targets[0]) >= 3
    before = logits_of(model, batch)
    targets[0][2] = (targets[0][2] - 3 + 5) % (TARGET_WORDS - 3) + 3
    after = logits_of(model, make_batch(sources, contexts, targets, BOS, EOS))
    same = (before - after).abs().amax(1) < 1e-6
    assert same[:3].all() and not same[3:].any()


def test_the_order_of_a_batch_does_not_matter():
    model, batch = make_model(), random_batch(6)
    order = [4, 0, 5, 2, 1, 3]
    parts = [part(batch) for part in (sources_of, contexts_of, targets_of)]
    shuffled = make_batch(*([part[i] for i in order] for part in parts), BOS, EOS)
    before, after = by_sentence(logits_of(model, batch), batch), by_sentence(logits_of(model, shuffled), shuffled)
    for place, i in enumerate(order):
        torch.testing.assert_close(after[place], before[i], atol=1e-5, rtol=1e-5)


# ---- freezing, loading ----


@every_variant
def test_training_theta_d_moves_all_of_it_and_nothing_else(context):
    model = make_model(context=context, shaken=False).train()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(4):
        optimiser.zero_grad()
        model.loss(random_batch(seed=step), smoothing=0.1)[0].backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) != is_document_parameter(name), name
    # And with the context off it still is the sentence model it was.
    off = random_batch(context=False)
    model.eval()
    frozen = sentence_model_of(model)
    frozen.load_weights({n: v for n, v in before.items() if not is_document_parameter(n)})
    assert torch.equal(logits_of(model, off), logits_of(frozen, off))


def test_frozen_parameters_get_no_gradient_not_even_zero():
    model = make_model()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    model.loss(random_batch())[0].backward()
    assert all((p.grad is None) != is_document_parameter(name) for name, p in model.named_parameters())


@pytest.mark.parametrize(("own", "of_context"), [(0.5, 0.0), (0.0, 0.5), (0.5, -1.0), (0.0, -1.0)])
def test_the_context_branch_may_have_a_dropout_of_its_own(own, of_context):
    model = make_model(context=ContextConfig(dropout=of_context, integration="decoder"), dropout=own).train()
    batch = random_batch()
    first, second = (model.encode(batch.source, batch.context) for _ in range(2))
    assert torch.equal(first.states, second.states) == (own == 0)
    assert torch.equal(first.context, second.context) == (of_context == 0 or (of_context < 0 and own == 0))


def test_load_weights_returns_what_is_missing_and_refuses_what_it_does_not_know():
    model = make_model()
    weights = {name: p.detach() for name, p in make_model(seed=5).sentence_parameters()}
    assert model.load_weights(weights) == [name for name, _ in model.document_parameters()]
    assert all(torch.equal(p, weights[name]) for name, p in model.sentence_parameters())
    with pytest.raises(DocnmtError, match=r"no\.such\.weight"):
        model.load_weights({"no.such.weight": torch.zeros(1)})


def test_load_weights_refuses_a_wrong_shape():
    model = make_model()
    name, parameter = next(iter(model.document_parameters()))
    with pytest.raises(DocnmtError, match="shape"):
        model.load_weights({name: torch.zeros(*parameter.shape, 2)})


def test_loss_is_the_sum_over_tokens_of_the_softmax():
    model, batch = make_model(), random_batch()
    loss, log_p = model.loss(batch)
    expected = logits_of(model, batch).log_softmax(1).gather(1, batch.target_out[:, None])[:, 0]
    torch.testing.assert_close(log_p, expected)
    torch.testing.assert_close(loss.detach(), -expected.sum())


# ---- dropout ----


@every_variant
@torch.no_grad()
def test_dropout_on_the_added_modules_alone(context):
    """theta_s without dropout: while training the sentence model is what it is in use, and the context still varies."""
    model = make_model(context=context)
    without, batch = random_batch(context=False), random_batch()
    in_use = logits_of(model, without)
    model.train()
    assert not torch.equal(logits_of(model, without), in_use)
    model.set_sentence_dropout(0.0)
    assert torch.equal(logits_of(model, without), in_use)
    assert not torch.equal(logits_of(model, batch), logits_of(model, batch))
    assert model.context_dropout.rate == 0.1


def varies(**settings: Any) -> bool:
    """Whether training draws anything at random, with dropout in what is named alone."""
    context = ContextConfig(**{"dropout": 0.0, **settings})
    model = make_model(context=context).train()
    model.set_sentence_dropout(0.0)
    with torch.no_grad():
        return not torch.equal(logits_of(model, random_batch()), logits_of(model, random_batch()))


@pytest.mark.parametrize("start", ["paper", "sentence"])
def test_dropout_on_a_residual_context_sub_layer_and_never_on_a_gated_one(start):
    assert varies(connection="residual", residual_dropout=0.1, start=start)
    assert not varies(connection="residual", start=start)
    assert not varies(connection="gate", residual_dropout=0.1, start=start)


def test_dropout_on_the_contexts_embeddings_may_be_another_than_in_its_encoder():
    assert varies(embedding_dropout=0.1) and varies(dropout=0.1, embedding_dropout=0.0) and not varies()
    model = make_model(context=ContextConfig(dropout=0.2, embedding_dropout=0.0))
    assert model.context_dropout.rate == 0.0
    assert model.context_encoder.layers[0].after_attention.dropout.rate == 0.2
