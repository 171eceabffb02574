"""The packed engine against the model it is made from."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig
from docnmt.data.packing import pack
from docnmt.decoding import terms as binding
from docnmt.decoding.beam import beam_search, in_torch
from docnmt.decoding.terms import Glossary, Term
from docnmt.decoding.translator import Translator
from docnmt.decoding.units import in_parallel
from docnmt.document import Document
from docnmt.engine import Engine, EngineState
from docnmt.engine.kv_cache import ROOM, STEPS
from docnmt.engine.layers import Rows, has_int8
from docnmt.engine.native import accelerator, dequantize, quantize
from docnmt.model.transformer import DecoderState
from tests.builders import (
    BOS,
    CONNECTIONS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    lines,
    loaded_model,
    make_model,
    random_sentences,
    toy_model,
    with_end,
)

needs_int8 = pytest.mark.skipif(not has_int8(), reason="there is no int8 kernel for this processor")
needs_accelerator = pytest.mark.skipif(accelerator() is None, reason="the C extension is not built")
needs_compiled = pytest.mark.skipif(
    accelerator() is None or not accelerator().has_products,
    reason="no int8 product of the accelerator's for this machine",
)
HEADS = [4, pytest.param(2, marks=needs_accelerator)]  # of four numbers, in torch alone, and of eight, accelerated
ALL_CONTEXTS = [
    ContextConfig(integration=integration, connection=connection, start=start)
    for integration in INTEGRATIONS
    for connection in CONNECTIONS
    for start in STARTS
]


def search(model, sources, contexts=None, start=EngineState, **options):
    packed = None if contexts is None else pack(contexts)
    return beam_search(model, pack(sources), packed, bos=BOS, eos=EOS, start=start, **options)


def samples(count, words=TARGET_WORDS, longest=7):
    """Sentences and their contexts; the toy model has one vocabulary for both sides."""
    sources = with_end(random_sentences(count, words, longest=longest, seed=3))
    return sources, random_sentences(count, words, longest=2 * longest, seed=4)


def written(found):
    return [[hypothesis.tokens for hypothesis in sentence] for sentence in found]


def margin(model, source, context, **options):
    """The smallest gap between two candidates of a step of the search, in log-probability."""
    gaps = []

    def watched(logits, scores, count):
        best = in_torch(logits, scores, count + 1)[0]
        gaps.append((best[:, :-1] - best[:, 1:]).nan_to_num(torch.inf).min().item())
        return in_torch(logits, scores, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docnmt.decoding.beam.best_continuations", watched)
        search(copy.deepcopy(model).double(), [source], context and [context], DecoderState, **options)
    return min(gaps)


def assert_alike(model, sources, contexts, **options):
    """The same hypotheses and scores; but where two candidates are so close that rounding decides, either may win."""
    ours = search(Engine(model, int8=False), sources, contexts, **options)
    plain = search(model, sources, contexts, DecoderState, **options)
    for i, (found, expected) in enumerate(zip(ours, plain, strict=True)):
        if written([found]) == written([expected]):
            assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)
        else:
            assert margin(model, sources[i], contexts and contexts[i], **options) < 1e-5


class Only:
    """A shortlist of always the same words."""

    def __init__(self, words):
        self.words = np.array(sorted(words))

    def candidates(self, source):
        return self.words


# ---- the same words as the model ----


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("context", ALL_CONTEXTS, ids=lambda c: f"{c.integration}-{c.connection}-{c.start}")
def test_in_float32_it_writes_what_the_model_writes(context, beam, heads):
    model = make_model(context=context, heads=heads)
    sources, contexts = samples(17, SOURCE_WORDS)
    for given in (contexts, None):
        assert_alike(model, sources, given, beam=beam, nbest=beam)


@pytest.mark.parametrize("heads", HEADS)
def test_also_long_after_the_first_room_for_words_was_full(heads):
    class Endless(EngineState):
        def logits(self, words):
            return super().logits(words).index_fill(1, torch.tensor([EOS]), -torch.inf)

    class EndlessModel(DecoderState):
        def logits(self, words):
            return super().logits(words).index_fill(1, torch.tensor([EOS]), -torch.inf)

    model, length = make_model(heads=heads), 5 * STEPS + 3
    sources, contexts = samples(5, SOURCE_WORDS)
    ours = search(Engine(model, int8=False), sources, contexts, Endless, extra_length=length, nbest=4)
    assert written(ours) == written(search(model, sources, contexts, EndlessModel, extra_length=length, nbest=4))
    assert min(len(tokens) for sentence in written(ours) for tokens in sentence) >= length


def test_a_sentence_alone_is_translated_as_in_a_batch():
    engine = Engine(toy_model(), int8=False)
    sources, contexts = samples(12)
    together = written(search(engine, sources, contexts))
    assert together == [written(search(engine, [s], [c]))[0] for s, c in zip(sources, contexts, strict=True)]


def test_the_accelerator_is_used_where_heads_allow_it():
    assert Engine(make_model(heads=4), int8=False).accelerator is None
    assert Engine(make_model(heads=2), int8=False).accelerator is accelerator()


# ---- int8 ----


@needs_compiled
def test_an_int8_product_is_off_by_the_rounding_of_its_input_alone():
    generator = torch.Generator().manual_seed(1)
    weight, x = torch.randn(48, 64, generator=generator), torch.randn(32, 64, generator=generator)
    rows, bias = Rows(weight, int8=True), torch.randn(48, generator=generator)
    exact = x @ dequantize(rows.values, rows.scales).T + bias
    step = (x.max() - x.min()) / 127  # of an input with seven bits
    bound = 0.5 * step * dequantize(rows.values, rows.scales).abs().sum(dim=1) + 1e-4
    assert ((rows.matrix(bias)(x) - exact).abs() <= bound).all()
    assert torch.equal(rows.matrix(bias, "relu")(x), rows.matrix(bias)(x).relu())


def test_without_the_accelerator_the_rounded_weights_are_multiplied_in_float32(monkeypatch):
    monkeypatch.setattr("docnmt.engine.native.accelerator", lambda: None)
    assert not has_int8()
    generator = torch.Generator().manual_seed(1)
    weight, x = torch.randn(48, 64, generator=generator), torch.randn(32, 64, generator=generator)
    assert torch.equal(Rows(weight, int8=True).matrix(None)(x), x @ dequantize(*quantize(weight)).T)


@needs_compiled
def test_large_products_do_not_overflow():
    weight = torch.full((8, 512), 3.0)
    assert Rows(weight, int8=True).matrix(None)(torch.full((4, 512), 5.0)) == pytest.approx(7680, rel=0.01)


@needs_compiled
@pytest.mark.parametrize("filter_width", [24, 72])  # narrower and wider than query, key and value
@pytest.mark.parametrize("context", ALL_CONTEXTS, ids=lambda c: f"{c.integration}-{c.connection}-{c.start}")
@pytest.mark.parametrize("int8", [True, False])
@torch.inference_mode()
def test_the_compiled_decoder_computes_what_the_layers_compute(int8, context, filter_width):
    model = make_model(context=context, heads=2, filter_width=filter_width)
    compiled, by_layer = (Engine(model, int8) for _ in range(2))
    assert compiled.compiled is not None
    by_layer.compiled = None
    far: list[torch.Tensor] = []
    sources, contexts = samples(7, SOURCE_WORDS)
    for given in (pack(contexts), None):
        states = [EngineState(e, e.encode(pack(sources), given), beam=3) for e in (compiled, by_layer)]
        words, rows = torch.arange(21) % TARGET_WORDS, torch.arange(21).view(7, 3).flip(1).flatten()
        for step in range(ROOM + 2):  # longer than the first room for words
            ours, theirs = (state.logits(words) for state in states)
            far.append((ours - theirs).abs().amax(dim=1))
            for state in states:
                state.reorder(rows)
                if step == 3:
                    state.keep(torch.tensor([0, 2, 5]))
            if step == 3:
                words, rows = words[:9], rows[:9]
    # In int8, where one rounds the last bit of a number up and the other down, it may become another byte: seldom, but
    # then it stays in what that hypothesis remembers.
    assert (torch.cat(far) < 1e-5).float().mean() > (0.9 if int8 else 0.999)


@needs_compiled
def test_a_filter_of_odd_width_goes_without_it():
    engine = Engine(make_model(heads=2, filter_width=20), int8=True)
    sources, contexts = samples(3, SOURCE_WORDS)
    assert engine.compiled is None and len(search(engine, sources, contexts)) == 3


@needs_compiled
@pytest.mark.parametrize("beam", [1, 4])
def test_the_compiled_decoder_outlives_changes_of_the_model(beam):
    model = make_model(heads=2)
    engine = Engine(model, int8=True)
    sources, contexts = samples(1, SOURCE_WORDS)
    before = search(engine, sources, contexts, beam=beam)
    model.double().float()
    torch.zeros(10_000).add_(1)  # takes the memory that was let go
    assert search(engine, sources, contexts, beam=beam) == before


@needs_compiled
def test_in_int8_a_sentence_is_translated_the_same_whatever_is_beside_it():
    engine = Engine(make_model(heads=2), int8=True)
    sources, contexts = samples(23, SOURCE_WORDS)
    together = search(engine, sources, contexts, nbest=4)
    alone = [search(engine, [s], [c], nbest=4)[0] for s, c in zip(sources, contexts, strict=True)]
    assert written(together) == written(alone)
    assert [h.score for s in together for h in s] == pytest.approx([h.score for s in alone for h in s], rel=1e-5)


# ---- shortlists ----


@pytest.mark.parametrize("int8", [False, pytest.param(True, marks=needs_int8)])
def test_a_shortlist_of_all_words_changes_nothing(int8):
    sources, contexts = samples(9)
    whole = search(Engine(toy_model(), int8), sources, contexts)
    listed = search(Engine(toy_model(), int8, Only(range(TARGET_WORDS))), sources, contexts)
    assert written(listed) == written(whole)


def test_words_come_from_the_shortlist_alone():
    allowed = {EOS, 5, 6, 8, 11}
    sources, contexts = samples(9)
    engine = Engine(toy_model(), False, Only(allowed))
    found = {word for s in search(engine, sources, contexts, nbest=4) for h in s for word in h.tokens}
    assert found and found <= allowed
    beyond = {w for s in search(engine.without_shortlist, sources, contexts, nbest=4) for h in s for w in h.tokens}
    assert not beyond <= allowed


class OfItsWords:
    """A shortlist that gives every source word a few words of its own."""

    def candidates(self, source):
        return np.unique([EOS, *(4 + (word * step) % (TARGET_WORDS - 4) for word in source for step in (1, 3))])


@pytest.mark.parametrize("int8", [False, pytest.param(True, marks=needs_int8)])
def test_with_a_shortlist_a_sentence_is_translated_the_same_whatever_is_beside_it(int8):
    engine = Engine(make_model(heads=2), int8, OfItsWords())
    sources, contexts = samples(23, SOURCE_WORDS)
    together = search(engine, sources, contexts, nbest=4)
    alone = [search(engine, [s], [c], nbest=4)[0] for s, c in zip(sources, contexts, strict=True)]
    assert written(together) == written(alone)
    for source, found in zip(sources, together, strict=True):
        assert {word for h in found for word in h.tokens} <= set(OfItsWords().candidates(source).tolist())
    if int8:  # to the bit: no row of a product depends on another
        assert [h.score for s in together for h in s] == [h.score for s in alone for h in s]


# ---- the translator's use of it ----


def documents():
    return [Document(str(n), tuple(lines(5, seed=n))) for n in range(6)]


def test_the_translator_decodes_with_it_and_is_not_told_from_the_model():
    translator = Translator(loaded_model())
    assert translator.engine is not None and not translator.engine.int8
    ours = list(translator.translate_documents(documents()))
    plain = Translator(loaded_model())
    plain.engine = None
    assert [d.sentences for d in ours] == [
        tuple(replace(s, scores=tuple(pytest.approx(x, abs=1e-4) for x in s.scores)) for s in d.sentences)
        for d in plain.translate_documents(documents())
    ]


@needs_int8
def test_in_int8_the_translator_finds_nearly_the_same():
    exact, rounded = Translator(loaded_model()), Translator(replace(loaded_model(), int8=True))
    assert rounded.engine is not None and rounded.engine.int8
    pairs = [
        pair
        for one, other in zip(*(t.translate_documents(documents()) for t in (exact, rounded)), strict=True)
        for pair in zip(one.sentences, other.sentences, strict=True)
    ]
    assert sum(one.text == other.text for one, other in pairs) > 0.75 * len(pairs)
    assert abs(np.mean([other.scores[0] - one.scores[0] for one, other in pairs])) < 0.2


def test_the_number_of_threads_changes_nothing_and_is_left_as_it_was():
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            translated = Translator(loaded_model()).translate_documents(documents())
            found.append([[s.text for s in d.sentences] for d in translated])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_an_error_in_a_thread_reaches_the_caller():
    def fails(batch):
        if batch == 3:
            raise ValueError("three")

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(ValueError, match="three"):
            in_parallel(range(6), fails)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_shortlist_is_passed_over_where_words_are_asked_for(monkeypatch):
    """A glossary's term may be made of any words."""
    monkeypatch.setattr(binding, "FOREIGN", math.inf)  # it is searched for, not put in
    loaded = loaded_model()
    narrow = Translator(loaded, Only({loaded.target.eos, *loaded.target.encode(["le chat"])[0]}))
    sentence = "le chat voit la mer."
    free = Translator(loaded)
    assert narrow.translate([sentence]) != free.translate([sentence])
    assert narrow.translate([sentence], options=replace(narrow.options, shortlist=False)) == free.translate([sentence])
    assert "zeux" in narrow.translate([sentence], glossary=Glossary((Term("mer", "zeux"),)))[0].lower()
