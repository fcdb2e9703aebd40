from hypothesis import given
from hypothesis import strategies as st

from leakcheck.static.flow.values import (
    ANYTHING,
    DETACHED,
    EMPTY,
    NONE,
    PLAIN,
    SURE,
    Value,
    age,
    derive,
    join,
    join_all,
)

ids = st.frozensets(st.integers(0, 5), max_size=3)
flat = st.builds(
    Value,
    graph=st.integers(0, 3),
    kind=st.sampled_from(["tensor", "number", "unknown"]),
    origins=ids,
    born=ids,
    stale=ids,
    sinks=ids,
    floats=st.booleans(),
)
nested = st.builds(lambda inner: Value(NONE, "list", element=inner), flat)
values = st.one_of(flat, nested)


@given(values, values)
def test_where_flow_joins_the_more_graph_wins(one, other):
    joined = join(one, other)

    assert joined.graph == max(one.graph, other.graph)
    assert joined.sinks == one.sinks | other.sinks
    assert join(other, one).graph == joined.graph


@given(values)
def test_joining_a_value_with_itself_changes_nothing(value):
    assert join(value, value) == value


@given(st.lists(values, min_size=1, max_size=4))
def test_an_operation_carries_what_its_operands_carry(operands):
    result = derive(operands, frozenset({9}))

    assert result.graph == max(v.contents.graph for v in operands) or result == PLAIN
    assert result == PLAIN or result.born == {9}


@given(values)
def test_what_a_turn_made_is_stale_in_the_next(value):
    loop = 3

    later = age(value, loop)

    assert loop not in later.born or value.graph == NONE
    if loop in value.born and value.graph > NONE:
        assert loop in later.stale
    assert age(later, loop) == later


def test_a_detached_value_has_no_past():
    value = Value(SURE, "tensor", origins=frozenset({1}), sinks=frozenset({2}))

    assert value.cut() == DETACHED


def test_a_dict_keeps_its_slots_apart():
    table = Value(NONE, "dict").with_slot("loss", Value(SURE)).with_slot("size", PLAIN)

    assert table.slot("loss") == Value(SURE)
    assert table.slot("size") == PLAIN
    assert table.slot("other") is None
    assert table.with_slot(..., ANYTHING).slot("other") == ANYTHING
    assert table.contents.graph == SURE


def test_an_empty_container_holds_nothing():
    assert Value(NONE, "list").contents == EMPTY
    assert join_all([]) == EMPTY
