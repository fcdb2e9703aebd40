"""How many keys there may be, from those that a dictionary has."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.runtime.attribution.keys import number_of_keys

DRAWN = st.tuples(st.integers(0, 10**6), st.integers(100, 10**6))  # a seed, how many there are


@given(DRAWN)
def test_of_numbers_drawn_at_random_the_range_tells_how_many_there_are(drawn):
    seed, number = drawn
    keys = random.Random(seed).sample(range(number), 100)

    told = number_of_keys(dict.fromkeys(keys))

    assert told is None or 0.85 * number <= told <= 1.1 * number


def test_of_a_hundred_numbers_drawn_at_random_almost_all_samples_tell():
    samples = [random.Random(seed).sample(range(6000), 100) for seed in range(200)]

    told = [number_of_keys(dict.fromkeys(sample)) for sample in samples]

    assert sum(each is None for each in told) <= 2


@given(st.integers(24, 2000), st.integers(-(10**9), 10**9), st.sampled_from([-7, -1, 1, 4]))
def test_numbers_that_ascend_or_descend_go_on_for_ever(count, first, apart):
    assert number_of_keys(dict.fromkeys(range(first, first + count * apart, apart))) is None


def test_numbers_that_are_shuffled_within_each_step_go_on_for_ever():
    rng = random.Random(0)
    keys = [step * 8 + i for step in range(200) for i in rng.sample(range(8), 8)]

    assert number_of_keys(dict.fromkeys(keys)) is None


def test_the_cells_of_a_grid_are_as_many_as_its_sides_allow():
    rng = random.Random(0)
    cells = defaultdict(list, {(rng.randrange(30), rng.randrange(20)): [] for _ in range(400)})

    assert number_of_keys(cells) == 600


def test_samples_of_ever_new_epochs_go_on_for_ever():
    rng = random.Random(0)
    keys = [(epoch, i) for epoch in range(3) for i in rng.sample(range(300), 300)]

    assert number_of_keys(dict.fromkeys(keys)) is None
    assert 300 <= number_of_keys(dict.fromkeys(keys[:200])) <= 304  # of the first epoch


@pytest.mark.parametrize(
    "keys",
    [
        [f"image {number}" for number in range(100)],
        [float(number) for number in range(100)],
        [True, False],
        [*range(100), None],
        [(), *((number,) for number in range(50))],
        [3, 1, 2],
    ],
)
def test_other_keys_and_few_of_them_tell_nothing(keys):
    assert number_of_keys(dict.fromkeys(keys)) is None


def test_what_is_no_dictionary_tells_nothing():
    assert number_of_keys(set(range(100))) is None


def test_a_million_keys_are_looked_at_by_some():
    keys = random.Random(0).sample(range(2 * 10**5), 10**5)

    assert 199_000 <= number_of_keys(dict.fromkeys(keys)) <= 201_000


@pytest.mark.parametrize(
    "key",
    [
        lambda i: f"sample-{i}",
        lambda i: f"train/img_{i:06d}.png",
        lambda i: ("train", i),
        lambda i: (f"layer.{i % 4}.weight", i // 4),
    ],
    ids=["name", "file", "tuple", "parts"],
)
def test_numbers_in_names_tell_as_much(key):
    drawn = random.Random(0).sample(range(8000), 300)

    assert 7000 <= number_of_keys({key(i): None for i in drawn}) <= 9000
    assert number_of_keys({key(i): None for i in sorted(drawn)}) is None


@pytest.mark.parametrize(
    "key",
    [
        lambda i: f"{i * 2654435761 % 2**32:08x}",  # a hash
        lambda i: f"{10**15 + i * 7919}",
        lambda i: f"a-{i}" if i % 2 else f"b-{i}",
        lambda i: (f"sample-{i}", None),
        lambda i: "word" * i,
    ],
    ids=["hash", "long", "two", "other", "text"],
)
def test_other_names_tell_nothing(key):
    drawn = random.Random(0).sample(range(8000), 300)

    assert number_of_keys({key(i): None for i in drawn}) is None


def test_addresses_in_a_heap_that_is_reused_go_on_for_ever():
    places = random.Random(0).sample(range(0x7F0000000000, 0x7F0000030000, 48), 48)

    assert number_of_keys(dict.fromkeys(places)) is None
    assert number_of_keys(dict.fromkeys(each - 0x7F0000000000 for each in places)) is not None
