"""Sharing out work over processes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from docnmt.training import parallel
from docnmt.training.parallel import Group, join_group, leave_group

CPU = torch.device("cpu")


@given(st.lists(st.integers()), st.integers(1, 9))
def test_shares_are_all_of_it_and_nothing_twice(items, size):
    shares = [Group(rank, size).share(items) for rank in range(size)]
    assert sorted(item for share in shares for item in share) == sorted(items)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    together: list = [None] * len(items)
    for rank, share in enumerate(shares):
        together[rank::size] = share
    assert together == items


def test_a_group_of_one_changes_nothing():
    group = Group()
    assert group.first and group.share([1, 2]) == [1, 2] and group.gather([1, 2]) == [[1, 2]]
    assert group.any(True, CPU) is True and group.any(False, CPU) is False
    value = torch.tensor(3.0)
    assert group.sum(value) is value
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.tensor([1.0, 2.0])
    group.sum_gradients([parameter])
    assert parameter.grad.tolist() == [1.0, 2.0]
    group.wait()


@pytest.mark.parametrize("rank", [0, 1])
def test_only_the_first_is_the_first(rank):
    assert Group(rank, 2).first is (rank == 0)


def test_without_torchrun_there_is_a_group_of_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert join_group(CPU) == Group(0, 1)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert join_group(CPU) == Group(0, 1)
    leave_group()


def test_gradients_are_summed_in_place_whatever_their_shapes(monkeypatch):
    """The other process has ten times this one's gradients; what has none is passed over."""
    monkeypatch.setattr(parallel.dist, "all_reduce", lambda tensor: tensor.mul_(11))
    shapes: list[tuple[int, ...]] = [(2, 3), (4,), (), (1, 2, 2)]
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    frozen = nn.Parameter(torch.zeros(3))
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full(parameter.shape, float(number + 1))
    held = [parameter.grad for parameter in parameters]
    Group(0, 2).sum_gradients([parameters[0], frozen, *parameters[1:]])
    assert frozen.grad is None
    for number, (parameter, before) in enumerate(zip(parameters, held, strict=True)):
        assert parameter.grad is before
        assert torch.equal(parameter.grad, torch.full(parameter.shape, 11.0 * (number + 1)))


def test_any_is_so_if_it_is_so_elsewhere(monkeypatch):
    group = Group(0, 2)
    monkeypatch.setattr(parallel.dist, "all_reduce", lambda tensor: tensor.add_(1))
    assert group.any(False, CPU) is True
    monkeypatch.setattr(parallel.dist, "all_reduce", lambda tensor: tensor)
    assert group.any(False, CPU) is False and group.any(True, CPU) is True
