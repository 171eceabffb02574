"""The accelerator: a level for each kind of processor, gone without where the extension was not built."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import docnmt.engine
from docnmt.base.errors import DocnmtError
from docnmt.data.packing import pack
from docnmt.decoding.translator import Translator
from docnmt.engine import Engine, EngineState, native
from docnmt.engine.native import ACTIVATIONS, LANES, MOST_OF_FOUR, accelerator, accelerators, quantize
from tests.builders import SOURCE_WORDS, loaded_model, make_model, random_sentences, with_end

needs_accelerator = pytest.mark.skipif(accelerator() is None, reason="the C extension is not built")
FAST = [each for each in accelerators().values() if each.has_products]
needs_products = pytest.mark.skipif(not FAST, reason="no products of the extension's for this machine")


def test_without_the_extension_there_is_none_and_translators_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "docnmt.engine._accelerator", None)
    accelerators.cache_clear()
    try:
        assert accelerator() is None
        with pytest.warns(UserWarning, match="without its C extension: translation is slower(.|\n)*pip install"):
            engine = Translator(replace(loaded_model(), int8=True)).engine
        assert engine.accelerator is None and not engine.int8
    finally:
        accelerators.cache_clear()


@needs_accelerator
@pytest.mark.skipif(sys.platform != "linux", reason="other loaders look themselves")
@pytest.mark.parametrize("left", [5, 63, 5_000, -2_000])
def test_an_extension_that_is_cut_short_is_an_error_and_no_dead_process(tmp_path, monkeypatch, left):
    whole = Path(accelerator().library._name)
    cut = tmp_path / whole.name
    cut.write_bytes(whole.read_bytes()[:left])
    monkeypatch.setattr(native.importlib.util, "find_spec", lambda _: ModuleSpec("_", None, origin=str(cut)))
    accelerators.cache_clear()
    try:
        with pytest.raises(DocnmtError, match=f"{cut}: the C extension is incomplete .*\n  Build it again"):
            accelerator()
    finally:
        accelerators.cache_clear()


@needs_accelerator
def test_nothing_is_compiled_or_looked_for_when_docnmt_runs():
    """The extension lies in the package, and nowhere else."""
    assert Path(accelerator().library._name).parent == Path(docnmt.engine.__file__).parent


@needs_accelerator
def test_every_processor_has_a_level():
    assert list(accelerators())[-1] == "portable" and not accelerators()["portable"].has_products


@needs_accelerator
@pytest.mark.parametrize("size", [LANES, 24, 32, 64])
def test_attention_is_that_of_torch(size):
    generator = torch.Generator().manual_seed(size)
    sentences, beam, heads, room = 5, 3, 2, 21
    query = torch.randn(sentences * beam, 3 * heads * size, generator=generator)[:, : heads * size]  # of wider rows
    keys, values = torch.randn(2, 7, heads, room, size, generator=generator)
    slots = torch.tensor([6, 0, 3, 1, 5], dtype=torch.int32)
    counts = torch.tensor([21, 1, 8, 9, 16], dtype=torch.int32)
    places = torch.stack([torch.randperm(room, generator=generator) for _ in query]).int()
    for seen in (None, places):
        found = accelerator().attend(query, keys, values, slots, counts, seen)
        for row in range(len(query)):
            slot, count = slots[row // beam], counts[row // beam]
            at = torch.arange(count) if seen is None else seen[row, :count].long()
            key, value = (m[slot, :, at] for m in (keys, values))
            q = query[row].view(heads, 1, size)
            expected = torch.nn.functional.scaled_dot_product_attention(q, key, value, scale=1.0)
            assert torch.allclose(found[row], expected.flatten(), atol=1e-5)


@needs_accelerator
@pytest.mark.parametrize("size", [LANES, 32, 64])
def test_attention_among_words_is_that_of_torch(size):
    generator = torch.Generator().manual_seed(size)
    heads, lengths, seen = 3, torch.tensor([4, 1, 9, 2]), torch.tensor([1, 17, 8, 3])
    query = torch.randn(int(lengths.sum()), heads * size, generator=generator)
    keys, values = torch.randn(int(seen.sum()), 3, 2 * heads * size, generator=generator)[:, 1].chunk(2, dim=1)
    found = accelerator().attend_words(query, lengths, keys, values, seen, heads)
    sentences = zip(query.split(lengths.tolist()), keys.split(seen.tolist()), values.split(seen.tolist()), strict=True)
    for sentence, among in zip(sentences, found.split(lengths.tolist()), strict=True):
        parts = [part.unflatten(1, (heads, size)).transpose(0, 1) for part in sentence]
        expected = torch.nn.functional.scaled_dot_product_attention(*parts, scale=1.0)
        assert torch.allclose(among, expected.transpose(0, 1).flatten(1), atol=1e-5)


# ---- int8 products ----


def random_bytes(outputs, inputs, seed):
    """As quantize leaves them, many of them large."""
    generator = torch.Generator().manual_seed(seed)
    return quantize(
        torch.randn(outputs, inputs, generator=generator).sign() + torch.randn(outputs, 1, generator=generator)
    )


@needs_products
@given(st.integers(1, 20), st.integers(1, 9), st.integers(0, 1000))
def test_no_four_weights_overflow_sixteen_bits_and_few_lose_a_bit(outputs, eights, seed):
    values, scales = random_bytes(outputs, 8 * eights, seed)
    packed, new = accelerator().in_16_bits(values, scales)
    for first in range(0, 8 * eights, 8):
        for four in ([0, 1, 4, 5], [2, 3, 6, 7]):
            some = packed[:, [first + i for i in four]].int()
            assert some.clamp(min=0).sum(1).max() <= MOST_OF_FOUR and some.clamp(max=0).sum(1).min() >= -MOST_OF_FOUR
    assert MOST_OF_FOUR * 127 < 2**15
    assert ((packed * new[:, None] - values * scales[:, None]).abs() <= 0.5001 * new[:, None]).all()
    assert (new < 2 * scales).all()
    assert all(torch.equal(a, b) for a, b in zip(accelerator().in_16_bits(packed, new), (packed, new), strict=True))


@needs_products
@given(st.integers(1, 13), st.integers(1, 35), st.integers(1, 40), st.integers(0, 1000))
def test_a_product_is_that_of_whole_numbers(rows, outputs, eights, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = 8 * eights
    values, scales = accelerator().in_16_bits(*random_bytes(outputs, inputs, seed))
    bias, x = torch.randn(outputs, generator=generator), torch.randn(rows, inputs, generator=generator)
    x[0], x[-1] = 3.0, x[-1].abs()  # all at the top; none below zero
    # Each row has its own step, and its own number that means zero.
    low, high = x.amin(dim=1).clamp(max=0), x.amax(dim=1).clamp(min=0)
    step = (high - low) / 127
    zero = (-low * (1 / step) + 0.5).int()
    q = (x * (1 / step)[:, None]).round().int().add(zero[:, None]).clamp(0, 127)
    whole = (q - zero[:, None]).double() @ values.double().T
    expected = whole * (step[:, None] * scales).double() + bias.double()
    found = accelerator().product(accelerator().pack(values, scales, bias), x)
    assert found.double() == pytest.approx(expected, rel=1e-5, abs=1e-5 * float(expected.abs().max()))
    assert torch.equal(accelerator().product(accelerator().pack(values, scales, bias), x, "relu"), found.relu())
    assert torch.equal(accelerator().product(accelerator().pack(values, scales, bias), x[-1:]), found[-1:])
    for other in FAST[1:]:
        for activation in ACTIVATIONS:
            expected = accelerator().product(accelerator().pack(values, scales, bias), x, activation)
            assert torch.equal(other.product(other.pack(values, scales, bias), x, activation), expected)


@needs_products
def test_a_product_with_chosen_rows_has_those_columns():
    values, scales = accelerator().in_16_bits(*random_bytes(40, 24, seed=1))
    x, chosen = torch.randn(5, 24, generator=torch.Generator().manual_seed(2)), torch.tensor([39, 0, 7, 8])
    whole, some = (accelerator().pack(values, scales, None, rows) for rows in (None, chosen))
    assert torch.equal(accelerator().product(some, x), accelerator().product(whole, x)[:, chosen])


@needs_products
@pytest.mark.parametrize("bad", [40, 2**30, -1, -(2**62)])
def test_rows_that_a_matrix_does_not_have_do_not_reach_c(bad):
    values, scales = accelerator().in_16_bits(*random_bytes(40, 24, seed=1))
    with pytest.raises(IndexError, match="of a matrix with 40"):
        accelerator().pack(values, scales, None, torch.tensor([0, bad, 39]))


@needs_products
def test_rows_of_zeros_give_the_bias_and_rows_that_are_no_numbers_give_none():
    values, scales = accelerator().in_16_bits(*random_bytes(20, 16, seed=1))
    bias, x = torch.arange(20.0), torch.zeros(5, 16)
    x[1], x[2, 3], x[3, 4], x[4] = -2.0, torch.nan, -torch.inf, 1e-42
    found = accelerator().product(accelerator().pack(values, scales, bias), x)
    assert torch.equal(found[0], bias) and torch.equal(found[4], bias)
    assert found[1] == pytest.approx(x[1] @ (values * scales[:, None]).T + bias, rel=1e-4, abs=1e-4)
    assert found[2:4].isnan().all()


# ---- float32 products ----


@needs_products
@given(st.integers(1, 13), st.integers(1, 70), st.integers(1, 40), st.integers(0, 1000))
def test_a_float_product_is_that_of_torch_and_a_row_is_its_own(rows, outputs, inputs, seed):
    generator = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(outputs, inputs, generator=generator), torch.randn(outputs, generator=generator)
    x = torch.randn(rows, inputs, generator=generator)
    packed = accelerator().pack(weight, None, bias)
    found = accelerator().product(packed, x)
    assert torch.allclose(found.double(), x.double() @ weight.double().T + bias, atol=1e-4)
    assert torch.equal(accelerator().product(packed, x, "relu"), found.relu())
    for row in range(rows):
        assert torch.equal(accelerator().product(packed, x[row:]), found[row:])
    for other in FAST[1:]:
        for activation in ACTIVATIONS:
            expected = accelerator().product(packed, x, activation)
            assert torch.equal(other.product(other.pack(weight, None, bias), x, activation), expected)


@needs_products
def test_a_float_product_of_many_rows_and_of_chosen_outputs():
    generator = torch.Generator().manual_seed(5)
    weight, x = torch.randn(40, 24, generator=generator), torch.randn(201, 24, generator=generator)
    chosen = torch.tensor([39, 0, 7, 8])
    whole, some = (accelerator().pack(weight, None, None, rows) for rows in (None, chosen))
    assert torch.allclose(accelerator().product(whole, x), x @ weight.T, atol=1e-4)
    assert torch.equal(accelerator().product(some, x), accelerator().product(whole, x)[:, chosen])


@pytest.mark.skipif(len(FAST) < 2, reason="this processor has one level alone")
@pytest.mark.parametrize("int8", [True, False])
@torch.inference_mode()
def test_all_levels_give_the_same_bits(int8, monkeypatch):
    """So a machine with newer instructions writes what an older one writes: here whole steps of a decoder."""
    model, sources = make_model(heads=2), pack(with_end(random_sentences(9, SOURCE_WORDS, longest=11, seed=3)))
    contexts = pack(random_sentences(9, SOURCE_WORDS, longest=20, seed=4))
    found = []
    for level in FAST:
        monkeypatch.setattr("docnmt.engine.native.accelerator", lambda level=level: level)
        engine = Engine(model, int8)
        assert engine.compiled is not None and engine.accelerator is level
        state, words = EngineState(engine, engine.encode(sources, contexts), beam=3), torch.arange(27) % 7
        found.append(torch.stack([state.logits(words).clone() for _ in range(12)]))
    assert all(torch.equal(found[0], other) for other in found[1:])


@needs_accelerator
@pytest.mark.parametrize("wrong", [torch.bfloat16, torch.float64])
def test_what_c_would_misread_is_refused(wrong):
    keys = torch.zeros(1, 1, 4, LANES, dtype=wrong)
    one = torch.tensor([1], dtype=torch.int32)
    with pytest.raises(TypeError, match="accelerator cannot take"):
        accelerator().attend(torch.zeros(1, LANES), keys, keys, one - 1, one)
