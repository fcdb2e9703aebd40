"""A limit at work that lets something grow all the same."""

from __future__ import annotations

import pytest

from leakcheck.runtime.attribution.overrun import was_cut_in_vain

ONE_OF_FOUR = """
while True:
    for k in range(4):
        kept[k] = x
    if len(kept) > n:
        kept.popitem()
"""


def test_what_was_cut_back_twice_and_grows_all_the_same(named):
    suspect = named(ONE_OF_FOUR, line=4)
    path = suspect.locations[0].path

    assert was_cut_in_vain(suspect, {(path, 6): 2})
    assert not was_cut_in_vain(suspect, {(path, 6): 1})  # it may be less after that
    assert not was_cut_in_vain(suspect, {(path, 5): 24})


@pytest.mark.parametrize(
    "statement",
    ["if len(kept) > n: kept.popitem()", "if ready:\n        kept.popitem()"],
)
def test_on_one_line_nobody_knows_and_a_flag_is_no_limit(named, statement):
    suspect = named(f"while True:\n    kept[k] = x\n    {statement}\n", line=2)
    path = suspect.locations[0].path

    assert not was_cut_in_vain(suspect, {(path, 3): 24, (path, 4): 24})
