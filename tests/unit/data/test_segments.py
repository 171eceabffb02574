"""Packed rows and their padded layout are two views of the same tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from docnmt.data.packing import Segments

RAGGED = [3, 1, 5, 2]
DENSE = [4, 4, 4]
LENGTHS = [RAGGED, DENSE, [1], [6], [1, 1, 1], [2, 1]]


def segments_of(lengths: list[int]) -> Segments:
    return Segments(torch.tensor(lengths))


def packed_rows(lengths: list[int], width: int = 3) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(sum(lengths), width, dtype=torch.float64)


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=8), width=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_unpad_takes_back_what_pad_laid_out(lengths, width):
    rows = packed_rows(lengths, width)
    segments = segments_of(lengths)
    padded = segments.pad(rows)
    assert padded.shape == (len(lengths), max(lengths), width)
    assert torch.equal(segments.unpad(padded), rows)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_pad_is_each_segment_then_zeros(lengths):
    rows = packed_rows(lengths)
    padded = segments_of(lengths).pad(rows)
    for row, part, length in zip(padded, rows.split(lengths), lengths, strict=True):
        assert torch.equal(row[:length], part)
        assert not row[length:].any()


@pytest.mark.parametrize("lengths", LENGTHS)
def test_unpad_does_not_look_at_the_padding(lengths):
    segments, rows = segments_of(lengths), packed_rows(lengths)
    padded = segments.pad(rows).clone()
    padded[~segments.mask] = torch.nan
    assert torch.equal(segments.unpad(padded), rows)


def test_unpad_takes_a_tensor_that_is_not_contiguous():
    # Attention gives its heads transposed, so this is what unpad meets in the model.
    segments, rows = segments_of(RAGGED), packed_rows(RAGGED, 4)
    crooked = segments.pad(rows).transpose(0, 1).contiguous().transpose(0, 1)
    assert not crooked.is_contiguous()
    assert torch.equal(segments.unpad(crooked), rows)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_positions_begin_anew_in_each_segment(lengths):
    expected = [place for length in lengths for place in range(length)]
    assert segments_of(lengths).positions.tolist() == expected


@pytest.mark.parametrize("lengths", LENGTHS)
def test_mask_is_true_where_a_token_stands(lengths):
    segments = segments_of(lengths)
    expected = [[place < length for place in range(max(lengths))] for length in lengths]
    assert segments.mask.tolist() == expected
    assert segments.count == len(lengths) and segments.longest == max(lengths)


def test_attention_mask_broadcasts_over_heads_and_queries():
    mask = segments_of(RAGGED).attention_mask
    assert mask is not None and mask.shape == (4, 1, 1, 5) and mask.dtype == torch.bool
    assert mask[:, 0, 0].sum(1).tolist() == RAGGED


def test_a_dense_batch_has_no_mask_and_copies_nothing():
    segments, rows = segments_of(DENSE), packed_rows(DENSE)
    assert segments.dense and segments.attention_mask is None
    padded = segments.pad(rows)
    assert padded.data_ptr() == rows.data_ptr()
    assert segments.unpad(padded).data_ptr() == rows.data_ptr()


def test_one_shorter_segment_makes_a_batch_ragged():
    assert not segments_of([4, 4, 3]).dense


@pytest.mark.parametrize("lengths", LENGTHS)
def test_gradients_of_pad_and_unpad(lengths):
    segments = segments_of(lengths)
    rows = packed_rows(lengths).requires_grad_()
    padded = torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(segments.pad, rows)
    assert gradcheck(segments.unpad, padded)
    assert gradcheck(lambda x: segments.unpad(segments.pad(x).square()), rows)


def test_second_derivatives():
    # Both are linear; through a square the second derivative is not zero.
    segments = segments_of(RAGGED)
    rows = packed_rows(RAGGED).requires_grad_()
    assert gradgradcheck(lambda x: segments.unpad(segments.pad(x).pow(3)), rows)


def test_padding_gets_no_gradient():
    segments = segments_of(RAGGED)
    padded = torch.randn(4, 5, 3, requires_grad=True)
    segments.unpad(padded).sum().backward()
    assert torch.equal(padded.grad.bool().all(-1), segments.mask)


def test_nothing_is_computed_for_a_row_that_needs_no_gradient():
    # A frozen encoder's rows pass through pad as well.
    segments = segments_of(RAGGED)
    assert not segments.pad(packed_rows(RAGGED)).requires_grad
