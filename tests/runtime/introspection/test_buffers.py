"""Which buffers are told to be extended, from what is seen of them at each look."""

from __future__ import annotations

import io

import numpy as np

from leakcheck.runtime.introspection import buffers
from leakcheck.runtime.introspection.buffers import Buffers, Extended

LOOKS = (0, 5, 13, 24)


def large(things: list[object]) -> Buffers:
    return buffers.large({type(one): [o for o in things if type(o) is type(one)] for one in things})


def seen(*looks: list[object]) -> list[tuple[object, float]]:
    """Take a look at each of these lists in turn, and return what grows by the last."""
    extended = Extended()
    for step, things in zip(LOOKS, looks, strict=True):
        extended.look(step, large(things))
    return extended.growing(large(looks[-1]))


def test_a_text_that_is_replaced_by_longer_ones_is_extended():
    texts = ["x" * (5000 + 100 * step) for step in LOOKS]

    assert seen(*([text] for text in texts)) == [(texts[-1], 100.0)]


def test_of_other_texts_that_are_longer_nothing_is_told():
    source = "a long source file " * 5000
    texts = ["x" * (5000 + 100 * step) for step in LOOKS]

    assert seen(*([source, text] for text in texts)) == [(texts[-1], 100.0)]


def test_arrays_that_are_new_at_each_step_are_no_growth():
    assert seen(*([np.zeros(5000)] for _ in LOOKS)) == []


def test_one_array_that_is_larger_than_the_others_is_no_growth():
    assert seen(*([np.zeros(5000 + (step == 13) * 900)] for step in LOOKS)) == []


def test_growth_that_is_not_even_is_none():
    sizes = (5000, 5001, 9000, 9001)

    assert seen(*([np.zeros(size)] for size in sizes)) == []


def grown(sizes: dict[int, int]) -> list[tuple[object, float]]:
    """Look at one text, of these sizes by step, and return what grows by the last."""
    extended = Extended()
    texts = {step: "x" * size for step, size in sizes.items()}
    for step, text in texts.items():
        extended.look(step, large([text]))
    newest = texts[max(texts)]
    return [(one is newest, rate) for one, rate in extended.growing(large([newest]))]


def test_what_comes_at_each_second_step_is_even_whatever_looks_one_step_apart_find():
    every_second = {step: 5000 + 200 * (step // 2) for step in (0, 90, 178, 179, 182)}
    every_odd = {step: 5000 + 200 * ((step + 1) // 2) for step in (0, 90, 178, 179, 182)}

    assert grown(every_second) == [(True, 100.0)]
    assert grown(every_odd) == [(True, 100.0)]


def test_what_is_smaller_at_one_of_two_looks_a_step_apart_is_no_growth():
    assert grown({0: 5000, 90: 14000, 178: 23000, 179: 22000, 182: 23400}) == []


def test_buffers_that_grow_in_place_are_read_where_their_writing_stands():
    file, text, array = io.BytesIO(b""), io.StringIO(), bytearray()
    extended = Extended()
    for step in LOOKS:
        grow = 1000 * (step + 5) - len(array)
        file.write(b"b" * grow)
        text.write("t" * grow)
        array.extend(b"a" * grow)
        extended.look(step, large([file, text, array]))

    last = large([file, text, array])
    assert sorted(map(id, extended.in_place(last))) == sorted(map(id, [file, text, array]))
    grown = {id(one): rate for one, rate in extended.growing(last)}
    assert grown == {id(file): 1000.0, id(text): 1000.0, id(array): 1000.0}


def test_a_file_that_is_closed_is_passed_over():
    file = io.BytesIO(b"x" * 9000)
    file.close()

    assert large([file]) == {}


def test_a_look_at_the_same_step_adds_nothing():
    extended = Extended()
    for step in (0, 5, 5, 5):
        extended.look(step, large(["x" * (5000 + step)]))

    assert extended.growing(large(["x" * 5005])) == []
