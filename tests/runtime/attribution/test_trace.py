"""How a live object is named in a report."""

from __future__ import annotations

import weakref

import pytest
import torch

from leakcheck.runtime.attribution.trace import describe


class Thing:
    pass


THING = Thing()


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (THING, "Thing"),
        (weakref.ref(THING), "weak reference"),
        (torch.zeros(2, 3), "Tensor (2x3) float32"),
        (torch.zeros((), dtype=torch.int64), "Tensor (scalar) int64"),
    ],
    ids=["object", "weak reference", "tensor", "scalar"],
)
def test_an_object_is_named_by_its_type_and_a_tensor_by_its_form(thing, name):
    assert describe(thing) == name
