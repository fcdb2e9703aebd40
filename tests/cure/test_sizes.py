from __future__ import annotations

import pytest

pytest.importorskip("libcst")
from leakcheck.cure.sizes import names_of, without_sizes
from leakcheck.model import Holder, Suspect

NAMES = frozenset({"kept"})


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("print(len(kept))", "print(0)"),
        ("print('of', len(run.kept), loss)", "print('of', 0, loss)"),
        ("print(f'{len(kept):d} kept, {loss}')", "print(f'{0:d} kept, {loss}')"),
        ("print('a ' f'{kept.qsize()}')", "print('a ' f'{0}')"),
        ("print(str(kept.size))", "print(str(0))"),
        ("print(kept.cache_info().currsize)", "print(0)"),
    ],
)
def test_a_size_that_is_printed_as_it_is_is_left_out(text, without):
    assert without_sizes(text, NAMES) == without


@pytest.mark.parametrize(
    "text",
    [
        "print(len(right))",  # of something else
        "print(total / len(kept))",  # a mean
        "print(sum(kept))",
        "print(kept)",
        "count = len(kept)",
        "loss = loss * len(kept)",
        "print(len(kept[0]))",
        "print(len([each for each in kept if each > 0]))",
        "print(len(kept)",  # does not parse
    ],
)
def test_what_tells_more_than_a_size_stays(text):
    assert without_sizes(text, NAMES) == text


def test_open_figures_are_the_ones_that_pyplot_keeps():
    text = "print(len(plt.get_fignums()))"

    assert without_sizes(text, frozenset({"figs"})) == "print(0)"
    assert without_sizes(text, NAMES) == text


def test_a_container_goes_by_the_name_of_its_holder_and_of_that_ones_root():
    root = Holder("local", "model", function="main")
    memo = Holder("memo", "", function="Cache.rows")

    assert names_of(Suspect("tensor", "", holder=Holder("attribute", "kept", root=root))) == {
        "kept",
        "model",
    }
    assert names_of(Suspect("tensor", "", holder=memo)) == {"rows"}
