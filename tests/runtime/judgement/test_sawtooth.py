"""A graph that an epoch keeps is told by where in the epoch the readings were taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leakcheck.model import Notice, Reason
from leakcheck.runtime.judgement.sawtooth import Teeth, rises_within
from leakcheck.runtime.readings.series import Series

TOLD = (Notice("epoch-sawtooth", Reason.of("released-at-turns", resources=("graph.nodes",))),)
READ_AT = (10, 15, 20, 25, 30, 36, 42, 67, 118, 181, 321, 573)


def told_of(nodes, turns=range(1, 600, 30), read_at=READ_AT):
    """Tell of readings of `nodes(step, steps since the turn before)`."""
    teeth, slow = Teeth(0), Series()
    since = 0
    for step in range(600):
        if step in turns:
            since = step
            teeth.turn(step)
        if step in read_at:
            teeth.read(step)
            slow.append(step, float(step), {"graph.nodes": nodes(step, step - since)})
    return teeth.notices(slow, after=0)


def test_a_graph_that_each_step_adds_to_until_the_loop_turns_is_told():
    assert told_of(lambda step, since: 11 + 8 * since) == TOLD


def test_a_graph_that_is_the_same_at_each_step_is_not():
    assert told_of(lambda step, since: 11) == ()


def test_a_graph_that_hangs_on_something_else_is_not():
    assert told_of(lambda step, since: 11 + step * 7 % 13) == ()


def test_a_graph_that_grows_through_all_turns_is_another_matter():
    assert told_of(lambda step, since: 11 + 8 * step) == ()


def test_a_few_steps_between_turns_such_as_an_inner_loop_s_are_too_few():
    assert told_of(lambda step, since: 11 + 8 * since, turns=range(1, 600, 5)) == ()


def test_one_turn_is_too_few():
    assert told_of(lambda step, since: 11 + 8 * since, turns=(), read_at=READ_AT[:7]) == ()


@given(st.lists(st.integers(0, 10**6), max_size=40))
def test_any_readings_have_an_answer(values):
    assert rises_within(range(len(values)), values) in (True, False)


def higher(tensors, turns=range(1, 600, 30)):
    """Name what is higher in each turn, by readings of `tensors(step, turns so far)`."""
    teeth, slow = Teeth(0), Series()
    seen = 0
    for step in range(600):
        if step in turns:
            seen += 1
            teeth.turn(step)
        if step in READ_AT:
            teeth.read(step)
            slow.append(step, float(step), {"tensors": tensors(step, seen), "graph.nodes": 7})
    return teeth.higher_each_turn(slow, after=0)


def test_what_each_turn_leaves_is_higher_from_turn_to_turn():
    assert higher(lambda step, turns: 10 + 20 * turns) == ["tensors"]
    assert higher(lambda step, turns: 10 + 2 * step) == ["tensors"]


def test_what_comes_down_once_or_rises_within_turns_alone_is_not():
    assert higher(lambda step, turns: 10 + 20 * (turns % 5)) == []
    assert higher(lambda step, turns: 10 + step % 30) == []


def test_one_tensor_more_in_a_few_turns_is_little():
    assert higher(lambda step, turns: 10 + min(turns, 4)) == []


def test_of_turns_that_are_few_nothing_is_said():
    assert higher(lambda step, turns: 10 + 20 * turns, turns=(1, 100, 400)) == []
