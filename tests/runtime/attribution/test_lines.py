"""Which line is to blame for what a counter gained, when other lines add more and give it back."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import leakcheck
from leakcheck.runtime.attribution import lines
from leakcheck.runtime.attribution.lines import LineTracer, culprit
from leakcheck.runtime.introspection.frames import Site

ZERO_GRAD, FORWARD, BACKWARD, LEAK = (Site("train.py", line) for line in (27, 28, 29, 31))


def test_the_line_that_added_what_is_left_is_to_blame_not_the_one_that_added_most():
    credits = Counter({FORWARD: 75_392, ZERO_GRAD: -80_480, BACKWARD: 46_752, LEAK: 72_192})

    assert culprit(credits, expected=24 * 3007.5) == {LEAK: 72_192}


def test_a_forward_pass_that_adds_megabytes_is_not_to_blame_for_a_leak_of_kilobytes():
    credits = Counter({FORWARD: 24 << 20, ZERO_GRAD: -(24 << 20), LEAK: 72_192})

    assert culprit(credits) == {LEAK: 72_192}


def test_a_line_that_leaks_and_works_is_named_if_no_other_adds():
    credits = Counter({FORWARD: 150_000, ZERO_GRAD: -78_000, BACKWARD: 10})

    assert culprit(credits, expected=72_000) == {FORWARD: 150_000}


def test_nothing_is_named_where_two_lines_may_be_to_blame():
    credits = Counter({FORWARD: 150_000, BACKWARD: 190_000, ZERO_GRAD: -268_000})

    assert culprit(credits, expected=72_000) == {}


def test_nothing_is_named_where_two_lines_added_all_of_it():
    credits = Counter({FORWARD: 98_304, LEAK: 99_000, ZERO_GRAD: -98_650})

    assert culprit(credits, expected=98_700) == {}


def test_of_two_lines_that_added_all_of_it_the_one_whose_memory_is_given_back_is_not_to_blame():
    credits = Counter({FORWARD: 98_304, LEAK: 99_000, ZERO_GRAD: -98_304})

    assert culprit(credits, expected=98_700) == {LEAK: 99_000}


def test_nothing_is_named_where_nothing_was_gained():
    assert culprit(Counter()) == culprit(Counter({FORWARD: 10, ZERO_GRAD: -10})) == {}


def test_nothing_is_named_where_what_grows_was_not_added_meanwhile():
    credits = Counter({FORWARD: 16_000, ZERO_GRAD: -16_000})

    assert culprit(credits, expected=19_200) == {}


@given(
    leak=st.integers(100, 10**6),
    passing=st.lists(st.integers(1, 10**9), max_size=6),
)
def test_what_other_lines_add_and_give_back_changes_nothing(leak, passing):
    apart = [amount for amount in passing if not leak / 2 <= amount <= 2 * leak]
    credits = Counter({LEAK: leak, ZERO_GRAD: -sum(apart)})
    credits.update({Site("model.py", line): amount for line, amount in enumerate(apart)})

    assert culprit(credits, expected=leak) == {LEAK: leak}


def test_a_line_at_which_something_older_was_freed_hides_no_other():
    credits = Counter({FORWARD: -8_000_000, BACKWARD: 21_344, ZERO_GRAD: -23_000, LEAK: 35_552})

    assert culprit(credits, expected=22 * 1616.0) == {LEAK: 35_552}


def test_what_a_collection_freed_on_another_line_hides_no_line_that_added_as_much_as_grew():
    freed = {FORWARD: 38_272, BACKWARD: 9_792, ZERO_GRAD: -77_000, LEAK: 35_600}

    assert culprit(Counter(freed), expected=22 * 1616.0) == {LEAK: 35_600}
    assert culprit(Counter({FORWARD: 35_600, ZERO_GRAD: -35_600}), expected=35_552) == {}


def test_what_changes_in_a_step_of_our_own_is_no_line_s():
    rows: list[int] = []
    tracer = LineTracer()

    def step():
        with tracer.ours():
            rows.extend(range(100))

    step.__code__ = step.__code__.replace(co_filename=leakcheck.__file__)
    assert tracer.start()
    tracer.watch("rows", rows.__len__)

    rows.append(1)
    step()
    rows.append(2)
    tracer.stop()

    assert list(tracer.credits["rows"].values()) == [1, 1]


def test_what_was_read_until_the_budget_was_spent_is_that_of_so_many_steps(monkeypatch):
    monkeypatch.setattr(lines, "MOST_S", 0.0)
    monkeypatch.setattr(lines, "_EVENTS_BETWEEN_CHECKS", 60)
    rows: list[int] = []

    tracer = traced("rows", rows, lambda: rows.append(1), 50)

    traced_steps, (added,) = tracer.traced_of(50), tracer.credits["rows"].values()
    assert 0 < traced_steps < 50
    assert added - 1 <= traced_steps <= added
    assert LineTracer().traced_of(50) == 50


def test_a_generator_that_is_only_resumed_was_not_called():
    def numbers():
        yield 1
        yield 2

    suspended, tracer = numbers(), LineTracer()
    next(suspended)
    assert tracer.start()
    next(suspended)
    resumed = numbers.__code__ in tracer.called
    next(numbers())
    tracer.stop()

    assert not resumed
    assert numbers.__code__ in tracer.called


def test_the_calls_that_led_to_a_line_that_adds_are_noted_up_to_the_program_s_first():
    rows: list[int] = []
    tracer = LineTracer()

    def add():
        rows.append(1)

    def step(function):
        function()

    assert tracer.start()
    tracer.watch(str(id(rows)), rows.__len__)
    step(add)
    tracer.stop()

    ((adds, calls),) = tracer.stacks.items()
    first = add.__code__.co_firstlineno
    assert adds[1] == first + 1
    assert [(line - first, called) for _, line, called in calls[:2]] == [(4, "add"), (8, "step")]


def traced(key, kept, step, steps: int) -> LineTracer:
    """Trace some steps, with the length of a list as the probe."""
    tracer = LineTracer()
    assert tracer.start()
    tracer.watch(key, kept.__len__)
    for _ in range(steps):
        step()
        with tracer.ours():
            pass
    tracer.stop()
    return tracer


def test_a_function_of_very_many_lines_hides_no_line_that_comes_after_it(monkeypatch):
    monkeypatch.setattr(lines, "MOST_LINES", 50)
    monkeypatch.setattr(lines, "BUDGET_S", 400 * lines._EVENT_S)  # of two steps that are seen whole
    monkeypatch.setattr(lines, "_EVENTS_BETWEEN_CHECKS", 10)
    rows: list[int] = []

    def busy():
        passed = 0
        for each in range(1000):
            passed += each
        rows.append(passed)  # seen no more, and of no line

    def step():
        busy()
        rows.append(1)

    tracer = traced("rows", rows, step, 5)

    first = step.__code__.co_firstlineno
    credited = {site.line - first: added for site, added in tracer.credits["rows"].items()}
    assert credited == {2: 5}
    assert tracer.traced_of(5) == 5


def test_a_function_of_very_many_lines_that_adds_is_seen_whole(monkeypatch):
    monkeypatch.setattr(lines, "MOST_LINES", 50)
    rows: list[int] = []

    def fill():
        for each in range(500):
            rows.insert(0, each)

    tracer = traced(str(id(rows)), rows, fill, 1)

    assert list(tracer.credits[str(id(rows))].values()) == [500]


def test_of_a_step_in_which_the_budget_was_spent_nothing_is_credited(monkeypatch):
    monkeypatch.setattr(lines, "MOST_S", 0.0)
    monkeypatch.setattr(lines, "_EVENTS_BETWEEN_CHECKS", 40)
    kept: list[int] = []

    def step():
        kept.append(1)
        kept.extend(range(10))
        del kept[-10:]  # what a step has beside, it gives back

    tracer = traced("kept", kept, step, 50)

    assert sum(tracer.credits["kept"].values()) == tracer.traced_of(50)
