"""What a step makes anew keeps what it held if its values say so, and else is another's."""

from __future__ import annotations

import gc

import pytest
import torch

from leakcheck.runtime.attribution.remade import Remade

STEPS = (0, 5, 13, 40)
KEPT: dict[str, list] = {}


class ToKept:
    """The way to the list, by its name."""

    def content(self):
        return KEPT["values"]

    def length(self):
        return len(KEPT["values"])


def looked_at(make) -> Remade:
    """Look at a list that `make` makes anew for each step."""
    remade = Remade(ToKept())
    for step in STEPS:
        KEPT["values"] = make(step)
        remade.look(step)
    return remade


def numbered(step):
    """What was there before, copied, and one more."""
    return [torch.full((3,), float(at)) for at in range(10 + step)]


def test_copies_of_what_was_there_and_one_more_a_step_gain_one_a_step():
    assert looked_at(numbered).gained == 40


def test_other_values_each_time_gain_nothing_however_many():
    torch.manual_seed(0)

    assert looked_at(lambda step: [torch.randn(3) for _ in range(10 + step)]).gained == 0


def test_values_that_are_all_alike_tell_nothing():
    assert looked_at(lambda step: [torch.ones(3) for _ in range(10 + step)]).gained == 0


def test_what_was_shorter_at_one_look_gains_nothing():
    lengths = dict(zip(STEPS, (20, 30, 5, 60), strict=True))

    assert looked_at(lambda step: numbered(lengths[step] - 10)).gained == 0


def test_what_stays_as_long_gains_nothing():
    assert looked_at(lambda step: numbered(0)).gained == 0


@pytest.mark.parametrize(
    ("lengths", "gained"),
    [((10, 15, 23, 50), 40), ((10, 15, 24, 50), 0)],
    ids=["one a step", "not the same in each step"],
)
def test_unreadable_values_gain_only_what_each_step_gains_alike(lengths, gained):
    of_step = dict(zip(STEPS, lengths, strict=True))
    # of a device whose memory is not read, as a GPU's
    made = looked_at(lambda step: [torch.empty(3, device="meta") for _ in range(of_step[step])])

    assert made.gained == gained


def test_it_holds_nothing_of_what_it_looked_at():
    remade = looked_at(numbered)
    gc.collect()

    assert [each for each in gc.get_referrers(*KEPT["values"]) if each is not KEPT["values"]] == []
    assert remade.length() == 50
