"""What is joined to a tensor or array leaves one of its ends as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.runtime.introspection.corners import are_kept, corners_of


def kept(*things: object) -> bool:
    looks = [corners_of(thing) for thing in things]
    assert None not in looks
    return are_kept(looks)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    more=st.integers(1, 3),
    dim=st.integers(0, 2),
    first=st.booleans(),
)
def test_what_is_joined_at_either_end_keeps_the_other(sizes, more, dim, first):
    dim %= len(sizes)
    new = torch.randn([more if i == dim else size for i, size in enumerate(sizes)])
    past = torch.randn(sizes)

    assert kept(past, torch.cat([new, past] if first else [past, new], dim))


def test_arrays_and_views_are_read_as_they_lie():
    array = np.arange(24.0).reshape(4, 6)
    tensor = torch.arange(24.0).reshape(4, 6)

    assert kept(array.T, np.concatenate([array.T, array.T[:2]]))
    assert kept(tensor.t(), torch.cat([tensor.t(), tensor.t()[:2]]))
    assert kept(tensor[1:, 1:], torch.cat([tensor[1:, 1:], tensor[:1, 1:]]))


def test_the_output_of_a_larger_batch_is_another():
    assert not kept(torch.randn(4, 5), torch.randn(6, 5))
    assert not kept(np.random.default_rng(0).random(9), np.random.default_rng(1).random(12))


@pytest.mark.parametrize(
    "unreadable",
    [
        torch.empty(0, 4),
        torch.empty(3, device="meta"),
        torch.eye(3).to_sparse(),
        np.array([object()]),
        "a text",
        None,
    ],
)
def test_what_cannot_be_read_says_nothing(unreadable):
    assert corners_of(unreadable) is None
    assert are_kept([None, corners_of(torch.ones(2)), None])


def test_a_tensor_whose_storage_was_emptied_is_left_alone():
    tensor = torch.ones(100)
    tensor.untyped_storage().resize_(0)

    assert corners_of(tensor) is None
