"""What the model does otherwise when its keys say so: by the formulas, in training, decoding and the engine."""

from __future__ import annotations

import math
from copy import copy

import pytest
import torch
import torch.nn.functional as F

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, DecodingConfig, ModelConfig
from docnmt.data.packing import pack
from docnmt.data.subwords import NamedSubwords, Vocabulary
from docnmt.decoding.beam import MarianRule, beam_search
from docnmt.engine import Engine, EngineState
from docnmt.engine.layers import Rows, has_int8
from docnmt.engine.native import accelerator
from docnmt.model.base import smoothed_cross_entropy
from docnmt.model.layers import FeedForward, Residual, sinusoids
from docnmt.model.transformer import DecoderState, DocumentTransformer
from docnmt.model_folder import ModelCard, load_model, save_model, weights_of
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    logits_of,
    make_model,
    random_batch,
    random_sentences,
    shake,
    with_end,
)
from tests.builders import subwords as subwords_of

needs_int8 = pytest.mark.skipif(not has_int8(), reason="there is no int8 kernel for this processor")
ACTIVATIONS = ("relu", "swish", "gelu")
MARIANS = {"positions": "marian", "norm_epsilon": 1e-6, "output_bias": True, "start": "zero"}
CONTEXTS = (ContextConfig(), ContextConfig(kind="none"))


def test_marians_positions_by_its_formula():
    width, table = 6, sinusoids(4, 6, torch.device("cpu"), "marian")
    for position in range(4):
        angles = [position * 10000 ** (-i / (width / 2 - 1)) for i in range(width // 2)]
        expected = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)])
        torch.testing.assert_close(table[position], expected)
    assert not torch.equal(table, sinusoids(4, 6, torch.device("cpu")))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("relu", lambda x: max(x, 0)),
        ("swish", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    ],
)
def test_activations_by_their_formulas(name, of):
    layer = FeedForward(1, 1, name)
    with torch.no_grad():
        for linear in (layer.inner, layer.outer):
            linear.weight.fill_(1.0)
        x = torch.linspace(-4, 4, 17)[:, None]
        torch.testing.assert_close(layer(x), torch.tensor([[of(v)] for v in x[:, 0].tolist()]))


def test_the_epsilon_of_the_norms():
    x = 1e-3 * torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    for epsilon in (1e-6, 1e-5):
        found = Residual(8, 0.0, epsilon)(x, torch.zeros_like(x))
        torch.testing.assert_close(found, F.layer_norm(x, (8,), eps=epsilon))


def test_the_start_of_a_translation_is_no_word():
    model, batch = make_model(**MARIANS), random_batch()
    first = batch.target_in.segments.positions == 0
    others = logits_of(model, batch)
    batch.target_in.tokens[first] = 7  # whatever stands there
    assert torch.equal(logits_of(model, batch), others)
    assert not torch.equal(logits_of(make_model(), batch), others)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_with_a_bias_is_that_with_one_input_more(smoothing):
    torch.manual_seed(0)
    states, weight, bias = (torch.randn(*size, requires_grad=True) for size in ((9, 4), (7, 4), (7,)))
    targets = torch.randint(7, (9,))
    loss, log_p = smoothed_cross_entropy(states, weight, targets, smoothing, bias=bias)
    wider = torch.cat([states, torch.ones(9, 1)], 1), torch.cat([weight, bias[:, None]], 1)
    expected, expected_log_p = smoothed_cross_entropy(*wider, targets, smoothing)
    torch.testing.assert_close((loss, log_p), (expected, expected_log_p))
    ours = torch.autograd.grad(loss, (states, weight, bias))
    for found, wanted in zip(ours, torch.autograd.grad(expected, (states, weight, bias)), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_with_the_keys_at_their_defaults_the_same_numbers_are_drawn():
    models = [make_model(shaken=False), make_model(shaken=False, activation="swish", positions="marian", start="zero")]
    one, other = (dict(model.named_parameters()) for model in models)
    assert list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def test_one_table_for_both_sides_and_the_softmax_is_one_parameter():
    model = make_model(source_words=TARGET_WORDS, tie="all", **MARIANS)
    assert model.softmax.weight is model.target_embedding.weight is model.source_embedding.weight
    names = [name for name, _ in model.named_parameters()]
    assert "source_embedding.weight" in names and "target_embedding.weight" not in names


@pytest.mark.parametrize("key", ["activation", "positions", "start", "search"])
def test_a_value_that_is_not_known_is_told(key):
    with pytest.raises(DocnmtError, match=f"model.{key}: unknown value 'marain'"):
        ModelConfig(**{key: "marain"})


# ---- decoding ----


def samples(count=9):
    sources = with_end(random_sentences(count, SOURCE_WORDS, seed=3))
    return sources, random_sentences(count, SOURCE_WORDS, longest=12, seed=4)


def search(model, start, sources, contexts, **options):
    found = beam_search(model, pack(sources), contexts and pack(contexts), bos=BOS, eos=EOS, start=start, **options)
    return [[hypothesis.tokens for hypothesis in sentence] for sentence in found], [h.score for s in found for h in s]


@pytest.mark.parametrize("context", CONTEXTS, ids=["document", "sentence"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("heads", [4, 2])  # of four numbers, in torch alone, and of eight, accelerated
def test_the_engine_writes_what_the_model_writes(activation, heads, context):
    model = make_model(heads=heads, activation=activation, context=context, **MARIANS)
    sources, contexts = samples()
    options = {"beam": 3, "nbest": 3, "rule": MarianRule, "alpha": 1.0, "forbidden": [5]}
    contexts = contexts if context.active else None
    plain, scores = search(model, DecoderState, sources, contexts, **options)
    packed, packed_scores = search(Engine(model, int8=False), EngineState, sources, contexts, **options)
    assert packed == plain
    assert packed_scores == pytest.approx(scores, abs=1e-4)
    # And the model one word at a time is the model of training.
    for sentence, source in enumerate(sources[:3]):
        tokens = list(plain[sentence][0])
        assert 5 not in tokens and len(tokens) <= 3 * len(source)


@needs_int8
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_compiled_decoder_computes_what_its_layers_compute(activation):
    model = make_model(width=32, filter_width=64, heads=2, activation=activation, **MARIANS)
    engine = Engine(model, int8=True)
    if engine.compiled is None:
        assert activation == "gelu" or accelerator() is None or not accelerator().has_products
        return
    layers = copy(engine)
    layers.compiled = None
    sources, contexts = samples()
    with torch.inference_mode():
        states = [EngineState(e, e.encode(pack(sources), pack(contexts)), 1) for e in (engine, layers)]
        for word in (BOS, 7, 4, 9):
            one, other = (state.logits(torch.full((len(sources),), word)) for state in states)
            torch.testing.assert_close(one, other, atol=2e-2, rtol=1e-3)  # a number may round the other way


@needs_int8
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_int8_product_with_an_activation(activation):
    torch.manual_seed(0)
    weight, bias, x = torch.randn(40, 24), torch.randn(40), 3 * torch.randn(6, 24)
    rows = Rows(weight, int8=True)
    expected = {"relu": F.relu, "swish": F.silu, "gelu": F.gelu}
    torch.testing.assert_close(
        rows.matrix(bias, activation)(x), expected[activation](rows.matrix(bias)(x)), atol=1e-5, rtol=1e-5
    )


def test_a_shortlist_takes_its_part_of_the_bias():
    class Only:
        def candidates(self, source):
            return torch.tensor([EOS, 4, 9, 11]).numpy()

    model, (sources, contexts) = shake(make_model(**MARIANS), 1), samples()
    for int8 in (False, True) if has_int8() else (False,):
        whole, some = Engine(model, int8), Engine(model, int8, Only())
        with torch.inference_mode():
            a, b = (EngineState(e, e.encode(pack(sources), pack(contexts)), 1) for e in (whole, some))
            words = torch.full((len(sources),), BOS)
            torch.testing.assert_close(a.logits(words)[:, [EOS, 4, 9, 11]], b.logits(words), atol=1e-4, rtol=1e-4)


def test_a_large_table_that_all_share_can_be_loaded(tmp_path):
    """Models of OPUS-MT's size: a table of 60,000 words by 512 is made three times before it is one."""
    words = Vocabulary(("<0>", "<s>", "</s>", "<unk>", *(f"word{n}" for n in range(70_000))))
    subwords = NamedSubwords(subwords_of("source").model, words)
    config = ModelConfig(
        width=128, filter_width=8, heads=2, encoder_layers=1, decoder_layers=1, tie="all", positions="marian"
    )
    model = DocumentTransformer(config, ContextConfig(kind="none"), len(subwords), len(subwords))
    card = ModelCard(config, ContextConfig(kind="none"), DecodingConfig(), "fr", "en")
    save_model(tmp_path / "model", weights_of(model), card, subwords, subwords, {})
    assert torch.equal(load_model(tmp_path / "model").model.softmax.weight, model.softmax.weight)
